"""Computing what any equation of a page says, from the page alone.

A value has an axis in front for every index that is bound around it, and behind these its own. An
index stands at the axis of its size; where two have that size nobody can tell, and reading fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from handgrad.documents.formulas.formula import (
    Accent,
    Big,
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Operator,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
    separated,
)
from tests.equations.reading import RELATIONS, replaced, split


class UnreadableError(AssertionError):
    """A formula that says nothing, or too little, to who knows only the page."""


class Index(NamedTuple):
    letter: Formula
    size: int


_ELEMENTWISE: Mapping[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "erf": np.vectorize(math.erf),
}


def softmax(s: Any) -> Any:
    """0 throughout where every score is −∞."""
    highest = np.max(s, axis=-1, keepdims=True)
    powers = np.exp(s - np.where(np.isfinite(highest), highest, 0.0))
    total = np.sum(powers, axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)


class Calculator:
    """Knows values of symbols, and functions by their words; `constants` by their letters."""

    def __init__(self, functions: Mapping[Formula, Callable[..., Any]]) -> None:
        self.values: dict[Formula, Any] = {}
        self.functions = dict(functions)
        self.bound: tuple[Index, ...] = ()

    def learn(self, symbol: Formula, value: Any) -> None:
        """A symbol's value; where it is 1/σ, that of σ."""
        self.values[symbol] = value
        match symbol:
            case Fraction(Number("1"), of):
                self.values[of] = 1.0 / np.asarray(value)

    def of_entries(self, formula: Formula, letters: list[Formula], shape: tuple[int, ...]) -> Any:
        """The value of a side that stands for every entry, whose last axes have these letters."""
        sizes = shape[len(shape) - len(letters) :]
        self.target, self.bound = None, tuple(map(Index, letters, sizes))
        try:
            found = self.value(formula)
        finally:
            self.bound = ()
        own = found.shape[len(letters) :]
        assert own[len(own) - len(letters) :] == (1,) * len(letters)
        found = found.reshape(found.shape[: len(own)] if not own else (*found.shape[:2], *own[:-2]))
        return np.broadcast_to(np.moveaxis(found, (0, 1), (-2, -1)), shape)

    def result(self, formula: Formula, shape: tuple[int, ...]) -> Any:
        """The value of a whole side, in the shape that stands beside it."""
        self.target = shape
        found = np.asarray(self.value(formula))
        if found.size == math.prod(shape):
            return found.reshape(shape)
        return np.broadcast_to(found, shape)

    # Axes

    def own(self, value: Any) -> int:
        """How many axes a value has beside those of bound indices."""
        return int(np.ndim(value)) - len(self.bound)

    def lifted(self, value: Any) -> Any:
        """Something without indices, with an axis for each in front."""
        value = np.asarray(value)
        return value.reshape((1,) * len(self.bound) + value.shape)

    def together(self, *values: Any) -> list[Any]:
        """The values with as many own axes each, those that are missing in front of the others.

        One axis that does not fit there is the one of its size.
        """
        most = max(map(self.own, values))
        count = len(self.bound)
        (full, *_) = [each.shape[count:] for each in values if self.own(each) == most]
        found = []
        for each in values:
            own = each.shape[count:]
            shape = (*(1,) * (most - len(own)), *own)
            if len(own) == 1 < most and own[0] not in (1, full[-1]) and full.count(own[0]) == 1:
                shape = tuple(size if size == own[0] else 1 for size in full)
            found.append(np.reshape(each, (*each.shape[:count], *shape)))
        return found

    def under(self, index: Index, body: Formula) -> Any:
        """The value of a body in which another index is bound; its axis is the last bound."""
        before = self.bound
        self.bound = (*before, index)
        try:
            return self.value(body)
        finally:
            self.bound = before

    def indexed(self, array: Any, indices: list[Formula]) -> Any:
        """An array with indices: bound letters, numbers counted from 1, and : for whole axes.

        Where a letter stands an axis of size 1 is left, so that a row is a row.
        """
        array = np.asarray(array)
        sizes = {each.letter: each.size for each in self.bound}
        if len(indices) == 1 and (rows := self.values.get(indices[0])) is not None:
            return self.lifted(array[np.asarray(rows)])
        places = self.places(array, indices, sizes)
        for axis in sorted(places, reverse=True):
            if isinstance(places[axis], Number):
                array = np.take(array, int(places[axis].digits) - 1, axis)
        letters = [each for each in places.values() if not isinstance(each, Number)]
        kept = [axis for axis in sorted(places) if not isinstance(places[axis], Number)]
        taken = [axis for axis in sorted(places) if isinstance(places[axis], Number)]
        moved = [axis - sum(each < axis for each in taken) for axis in kept]
        by_letter = {places[axis]: new for axis, new in zip(kept, moved, strict=True)}
        assert len(letters) == len(by_letter)
        front = [by_letter.get(each.letter) for each in self.bound]
        present = [each for each in front if each is not None]
        rest = [1 if axis in present else size for axis, size in enumerate(array.shape)]
        array = np.moveaxis(array, present, range(len(present)))
        array = np.reshape(array, (*array.shape[: len(present)], *rest))
        for position, each in enumerate(front):
            if each is None:
                array = np.expand_dims(array, position)
        return array

    def places(
        self, array: Any, indices: list[Formula], sizes: Mapping[Formula, int]
    ) -> dict[int, Formula]:
        """The axis of every index, one after the other; the last where several fit its size.

        A number counts steps.
        """
        sizes = {**sizes, **{each: self.steps for each in indices if isinstance(each, Number)}}
        fits = list(_placed(array.shape, indices, sizes, 0))
        if not fits:
            raise UnreadableError(f"no way to read {indices} of {array.shape}")
        return fits[-1]

    #: How many steps a sequence has.
    steps = 0

    # Formulas

    def value(self, formula: Formula) -> Any:
        known = self.known(formula)
        if known is not None:
            return known
        match formula:
            case Number(digits):
                return self.lifted(float(digits))
            case Symbol("infinity"):
                return self.lifted(math.inf)
            case Symbol("pi"):
                return self.lifted(math.pi)
            case FormulaRow(parts):
                return self.sum(parts)
            case Fraction(numerator, denominator):
                one, other = self.together(self.value(numerator), self.value(denominator))
                with np.errstate(all="ignore"):
                    return one / other
            case Root(body):
                return np.sqrt(self.value(body))
            case Fenced(FormulaRow(parts), "(") if Sign("⋯") in parts:
                first, *_, last = (
                    self.value(each) for each in _split_items(formula) if each != Sign("⋯")
                )
                return self.lifted(np.arange(int(first), int(last) + 1.0))
            case Fenced(FormulaRow(parts), "(") if Sign(",") in parts:
                return np.stack([self.value(each) for each in _split_items(formula)])
            case Fenced(body, "("):
                return self.value(body)
            case Fenced(body, "|"):
                return np.abs(self.value(body))
            case Fenced(FormulaRow(parts), "[") if Sign("∣") in parts:
                return self.joined(parts, "∣", -1)
            case Fenced(FormulaRow(parts), "[") if Sign(";") in parts:
                return self.joined(parts, ";", len(self.bound))
            case Fenced(body, "["):
                return self.condition(body).astype(float)
            case Cases(rows):
                return self.cases(rows)
            case Big(kind, body, below, above):
                return self.big(kind, body, below, above)
            case Script(base, Fenced(left="(") as shape, None):
                return self.shaped(self.value(base), self.shape(shape))
            case Script(Fenced(FormulaRow(parts), "["), Number(axis), None) if Sign(";") in parts:
                return self.joined(parts, ";", len(self.bound) + int(axis))
            case Script(base, sub, None) if self.bound and sub is not None:
                return self.picked(base, _groups(sub))
            case Script(base, Fenced(index, "["), sup):
                whole = self.value(base)
                found = whole[(slice(None),) * len(self.bound) + self.position(index)]
                return found if sup is None else self.raised(found, sup)
            case Script(base, sub, FormulaRow((*own, Sign("⊤")))):
                return self.raised(self.value(Script(base, sub, row(*own))), Sign("⊤"))
            case Script(base, sub, sup) if sup is not None:
                inner = base if sub is None else Script(base, sub)
                return self.raised(self.value(inner), sup)
        raise UnreadableError(f"no value: {formula}")

    def picked(self, base: Formula, indices: list[Formula]) -> Any:
        """What no symbol stands for, with a letter that counts along one of its axes."""
        *before, index = self.bound
        *skipped, letter = indices
        assert letter == index.letter
        assert set(skipped) <= {Sign(":")}
        self.bound = tuple(before)
        try:
            whole = np.asarray(self.value(base))
        finally:
            self.bound = (*before, index)
        axis = len(before) + len(skipped)
        return np.expand_dims(np.moveaxis(whole, axis, len(before)), axis + 1)

    def raised(self, value: Any, sup: Formula) -> Any:
        match sup:
            case Script(Sign("⊤"), axes):
                count = len(self.bound)
                order = (int(each.digits) for each in _items(axes) if isinstance(each, Number))
                return np.transpose(value, (*range(count), *(axis + count for axis in order)))
            case Sign("⊤"):
                column = value[..., None] if self.own(value) == 1 else value
                return np.swapaxes(column, -1, -2)
        return value ** self.value(sup)

    def known(self, formula: Formula) -> Any:
        """The value of a symbol, or of one with indices behind its own, or transposed."""
        letters = {each.letter for each in self.bound}
        for symbol, indices in (*bare(formula), *without_letters(formula, letters)):
            if symbol in self.values:
                return self.indexed(self.values[symbol], indices)
        for position, (letter, size) in enumerate(self.bound):
            if formula == letter:
                shape = [1] * len(self.bound)
                shape[position] = size
                return np.arange(1.0, size + 1).reshape(shape)
        return None

    def sum(self, parts: tuple[Formula, ...]) -> Any:
        total: Any = None
        for sign, term in split(parts, "+", "−"):
            value = self.product(term)
            if total is None:
                total = value if sign == "+" else -value
            else:
                one, other = self.together(total, value)
                total = one + other if sign == "+" else one - other
        return total

    def product(self, parts: tuple[Formula, ...]) -> Any:
        """Factors with ⊙ between them, each of them factors that scale, or of matrices."""
        total: Any = None
        for _, group in split(parts, "⊙"):
            value: Any = None
            for factor in self.factors([each for each in group if each != Sign("·")]):
                value = factor if value is None else self.times(value, factor)
            if total is not None:
                one, other = self.together(total, value)
                value = one * other
            total = value
        return total

    def times(self, one: Any, other: Any) -> Any:
        """A product of matrices where the sizes fit, otherwise one scales the other."""
        rows = self.own(one), self.own(other)
        if rows == (1, 2) and other.shape[-2] == 1 != one.shape[-1]:
            return one[..., None] @ other
        if rows == (1, 1) and one.shape[-1] != 1 != other.shape[-1]:
            return np.sum(one * other, axis=-1)
        if rows[0] > 1 and rows[1] == 1 and one.shape[-1] == other.shape[-1]:
            return (one @ other[..., None])[..., 0]
        if rows[0] == 1 and rows[1] > 1 and one.shape[-1] == other.shape[-2]:
            return (one[..., None, :] @ other)[..., 0, :]
        if min(rows) > 1 and one.shape[-1] == other.shape[-2]:
            first, second = self.together(one, other)
            return first @ second
        if rows[0] == 2 and not self.bound and one.shape[-1] == math.prod(other.shape[:-1]):
            return one @ other.reshape(one.shape[-1], -1)  # the rows of several axes
        first, second = self.together(one, other)
        return first * second

    def factors(self, parts: list[Formula]) -> Iterator[Any]:
        """The factors of a group, functions applied to what stands behind them."""
        rest = [part for part in parts if not isinstance(part, Space)]
        while rest:
            part = rest.pop(0)
            name, sub = part, None
            if isinstance(part, Script) and not self.is_known(part) and part not in self.functions:
                name, sub = part.base, part.sub
            if isinstance(name, Operator) and name.name in _ELEMENTWISE:
                yield _ELEMENTWISE[name.name](self.value(rest.pop(0)))
            elif isinstance(name, Operator) and name.name in ("max", "min"):
                several = self.together(*map(self.value, _split_items(rest.pop(0))))
                yield (np.maximum if name.name == "max" else np.minimum)(*several)
            elif name in self.functions:
                given = [] if sub is None else [int(self.value(e)) for e in _split_items(sub)]
                yield self.applied(name, rest.pop(0), given)
            else:
                yield self.value(part)

    def is_known(self, formula: Formula) -> bool:
        return any(symbol in self.values for symbol, _ in bare(formula))

    def applied(self, name: Formula, argument: Formula, given: list[int]) -> Any:
        if self.bound:
            return self.functions[name](self.value(argument), *given)
        values = []
        body = argument.body if isinstance(argument, Fenced) else argument
        parts = body.parts if isinstance(body, FormulaRow) else (body,)
        for each in split(parts, ","):
            inner = row(*each[1])
            if isinstance(inner, Fenced):
                values.append([self.value(part) for part in _split_items(inner)])
            else:
                found = self.value(inner)
                values.append(found if found.ndim else found.item())
        return np.asarray(self.functions[name](*values, *given))

    def shaped(self, value: Any, shape: tuple[int, ...]) -> Any:
        """The values in this shape, repeated where they are fewer."""
        front, own = value.shape[: len(self.bound)], value.shape[len(self.bound) :]
        if math.prod(own) == math.prod(shape):
            return value.reshape(*front, *shape)
        return np.broadcast_to(value, (*front, *shape))

    def shape(self, sub: Formula | None) -> tuple[int, ...]:
        return tuple(int(each.digits) for each in _items(sub) if isinstance(each, Number))

    def joined(self, parts: tuple[Formula, ...], sign: str, axis: int) -> Any:
        blocks = [self.sum(block) for _, block in split(parts, sign)]
        return np.concatenate(blocks, axis=axis)

    def cases(self, rows: tuple[tuple[Formula, Formula], ...]) -> Any:
        """The first row whose condition holds; elements `at` an index are set last row first."""
        *given, (otherwise, last) = rows
        if _is_at(last):
            given, otherwise = list(rows), None
        if given and _is_at(given[0][1]):
            return self.stored(given, otherwise)
        found = self.value(otherwise)
        for value, condition in reversed(given):
            assert isinstance(condition, FormulaRow)
            test = self.condition(row(*condition.parts[1:]))
            one, yes, no = self.together(test, self.value(value), found)
            found = np.where(one, yes, no)
        return found

    def stored(self, rows: list[tuple[Formula, Formula]], otherwise: Formula | None) -> Any:
        """What stands at indices; the shape of the whole is known to who called."""
        assert self.target is not None
        found = np.full(self.target, np.nan)
        if otherwise is not None:
            found[...] = self.value(otherwise)
        for value, at in reversed(rows):
            assert isinstance(at, FormulaRow)
            assert isinstance(at.parts[-1], Fenced)
            found[self.position(at.parts[-1].body)] = self.value(value)
        return found

    #: The shape that the equation says its left side has.
    target: tuple[int, ...] | None = None

    def position(self, index: Formula) -> tuple[Any, ...]:
        found: list[Any] = []
        parts = index.parts if isinstance(index, FormulaRow) else (index,)
        for _, each in split(parts, ",") if parts else []:
            if each in ((Sign("⋯"),), (Sign(":"),)):
                found.append(... if each == (Sign("⋯"),) else slice(None))
            elif isinstance(each[0], Fenced):
                first, second, *_ = (int(self.value(n)) for n in _split_items(each[0])[:2])
                found.append(slice(first, None, second - first))
            elif Sign("⋯") in each:
                cut = each.index(Sign("⋯"))
                found.append(slice(int(self.sum(each[:cut])), int(self.sum(each[cut + 1 :])) + 1))
            else:
                found.append(int(self.sum(each)))
        return tuple(found)

    def condition(self, formula: Formula) -> Any:
        parts = formula.parts if isinstance(formula, FormulaRow) else (formula,)
        for sign, combined in (("∨", np.logical_or), ("∧", np.logical_and)):
            if Sign(sign) in parts:
                several = [self.condition(row(*each)) for _, each in split(parts, sign)]
                one, other = self.together(*several)
                return combined(one, other)
        if parts[0] == Sign("¬"):
            return ~self.condition(row(*parts[1:])).astype(bool)
        for i, part in enumerate(parts):
            if isinstance(part, Sign) and part.char in RELATIONS:
                sides = self.sum(parts[:i]), self.sum(parts[i + 1 :])
                sizes = [each.shape[-1] if self.own(each) else 1 for each in sides]
                if not self.bound and 1 not in sizes and sizes[0] != sizes[1]:
                    sides = sides[0][..., None], sides[1]  # a table
                one, other = self.together(*sides)
                return RELATIONS[part.char](one, other)
        if len(parts) == 1 and isinstance(parts[0], Fenced):
            return self.condition(parts[0].body)
        return self.value(formula).astype(bool)

    def big(self, kind: str, body: Formula, below: Formula | None, above: Formula | None) -> Any:
        count = len(self.bound)
        reduce = {"sum": np.sum, "max": np.max, "prod": np.prod, "mean": np.mean}[kind]
        match below, above:
            case None, None:
                value = self.value(body)
                return reduce(value, axis=tuple(range(count, value.ndim)))
            case FormulaRow((Symbol("t"), Sign("="), Number("1"))), Number(size):
                steps = (str(step) for step in range(1, int(size) + 1))
                self.steps = int(size)
                return sum(self.value(replaced(body, Symbol("t"), Number(t))) for t in steps)
            case FormulaRow((letter, Sign("="), Number("1"))), Number(size):
                found = self.under(Index(letter, int(size)), body)
                return self._reduced(reduce, found, int(size))
            case _, None:
                letters = [each for each in _items(below) if each != Sign(",")]
                return self._over(reduce, body, letters)
        raise UnreadableError(f"no range: {below} {above}")

    def _over(self, reduce: Any, body: Formula, letters: list[Formula]) -> Any:
        """A sum or maximum whose indices have no ends: they run over the last axes of the body."""
        symbols = [self.values[symbol] for symbol in _symbols(body) if symbol in self.values]
        sizes = max((np.shape(each) for each in symbols), key=len)[-len(letters) :]
        before = self.bound
        self.bound = (*before, *map(Index, letters, sizes))
        try:
            found = self.value(body)
        finally:
            self.bound = before
        axes = tuple(range(len(before), len(before) + len(letters)))
        wanted = [*found.shape]
        for axis, size in zip(axes, sizes, strict=True):
            wanted[axis] = size
        return reduce(np.broadcast_to(found, wanted), axis=axes)

    def _reduced(self, reduce: Any, found: Any, size: int) -> Any:
        axis = len(self.bound)
        wanted = [*found.shape]
        wanted[axis] = size
        return reduce(np.broadcast_to(found, wanted), axis=axis)


def _placed(
    shape: tuple[int, ...], indices: list[Formula], sizes: Mapping[Formula, int], start: int
) -> Iterator[dict[int, Formula]]:
    """Every way to give indices to axes in their order; : skips one axis."""
    if not indices:
        yield {}
        return
    first, *rest = indices
    for axis in range(start, len(shape)):
        is_between = axis > start and start > 0
        if is_between:
            return
        fits = first == Sign(":") or shape[axis] == sizes.get(first)
        if fits:
            for found in _placed(shape, rest, sizes, axis + 1):
                yield found if first == Sign(":") else {axis: first, **found}


def bare(formula: Formula) -> Iterator[tuple[Formula, list[Formula]]]:
    """A symbol with ever fewer of its indices, and those that were taken from it."""
    yield formula, []
    match formula:
        case Script(base, sub, sup) if sub is not None and not isinstance(sub, Fenced):
            groups = _groups(sub)
            for kept in range(len(groups) - 1, -1, -1):
                below = separated(tuple(groups[:kept])) if kept else None
                taken = groups[kept:]
                if below is None and sup is None:
                    yield base, taken
                else:
                    yield Script(base, below, sup), taken
        case Fraction(
            FormulaRow((Symbol("partial"), *_)) as above, FormulaRow((Symbol("partial"), *of))
        ):
            for symbol, taken in bare(row(*of)):
                yield Fraction(above, row(Symbol("partial"), symbol)), taken


def without_letters(
    formula: Formula, letters: set[Formula]
) -> Iterator[tuple[Formula, list[Formula]]]:
    """A symbol without those of its indices that are letters, and these."""
    match formula:
        case Script(base, sub, sup) if sub is not None and not isinstance(sub, Fenced):
            groups = _groups(sub)
            taken = [each for each in groups if each in letters or each == Sign(":")]
            kept = [each for each in groups if each not in taken]
            if taken and kept:
                yield Script(base, separated(tuple(kept)), sup), taken
            elif taken:
                yield base if sup is None else Script(base, sup=sup), taken
        case Fraction(
            FormulaRow((Symbol("partial"), *_)) as above, FormulaRow((Symbol("partial"), *of))
        ):
            for symbol, taken in without_letters(row(*of), letters):
                yield Fraction(above, row(Symbol("partial"), symbol)), taken


def _groups(sub: Formula) -> list[Formula]:
    parts = sub.parts if isinstance(sub, FormulaRow) else (sub,)
    return [row(*each) for _, each in split(parts, ",")]


def _items(formula: Formula | None) -> list[Formula]:
    if formula is None:
        return []
    inner = formula.body if isinstance(formula, Fenced) else formula
    return list(inner.parts) if isinstance(inner, FormulaRow) else [inner]


def _split_items(formula: Formula) -> list[Formula]:
    return [row(*each) for _, each in split(tuple(_items(formula)), ",")]


def _is_at(condition: Formula) -> bool:
    return isinstance(condition, FormulaRow) and condition.parts[0] == Text("at ")


def _symbols(formula: Any) -> Iterator[Formula]:
    """Every symbol in a formula, without indices too."""
    if isinstance(formula, tuple):
        for each in formula:
            yield from _symbols(each)
        return
    if isinstance(formula, Script | Symbol | Accent | Text | Fraction):
        yield from (symbol for symbol, _ in bare(formula))
    if isinstance(formula, Script) and formula.sup is not None:
        yield from _symbols(Script(formula.base, formula.sub))
    for name in getattr(formula, "__dataclass_fields__", ()):
        yield from _symbols(getattr(formula, name))
