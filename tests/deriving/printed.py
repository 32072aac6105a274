"""Computing a printed formula from the arrays that its symbols stand for.

An axis has the letter of its length, and values meet by these; where letters do not tell, they
meet as arrays of NumPy do, from the last axis on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
from tests.deriving.lettered import (
    BIG,
    FENCES,
    FUNCTIONS,
    INDICES,
    LETTERED,
    UnreadableError,
    Value,
    in_place,
    placed,
    scalar,
    together,
)
from tests.deriving.taken_apart import (
    is_moment,
    is_prime,
    is_relation,
    parts_of,
)
from tests.equations.reading import RELATIONS, split


class PrintedFormulas:
    """Formulas as a page has them, computed from the values that are known."""

    def __init__(self, letters: Mapping[Formula, int]) -> None:
        self.letters = letters
        self.lengths = {length: letter for letter, length in letters.items()}
        self.values: dict[Formula, Value] = {}

    #: The lengths of the axes of the line that is computed.
    sizes: Sequence[int] = ()
    #: The length that a loop counts along.
    over: Formula | None = None

    def shape(self, formula: Formula) -> tuple[list[int], tuple[Formula | None, ...]]:
        """The lengths of axes, and their letters."""
        sizes = [row(*each) for _, each in split(parts_of(formula), ",")]
        lengths = [int(self.value(size).array) for size in sizes]
        return lengths, tuple(None if size == Number("1") else size for size in sizes)

    def together(self, one: Value, other: Value) -> tuple[Any, Any, tuple[Formula | None, ...]]:
        """Two arrays that fit each other; one that is written by indices comes by its places."""
        indexed = [bool(set(each.axes) & set(INDICES)) for each in (one, other)]
        if not all(indexed) and one.axes and other.axes:
            one, other = in_place(one, other), in_place(other, one)
            one, other = one.by_place(self.lengths), other.by_place(self.lengths)
        return together(one, other)

    def dated(self, formula: Formula) -> Formula:
        """A symbol with its time as a number: h_{4} for h_{5 − 1}."""
        match formula:
            case FormulaRow((Symbol("d") as d, of)):
                return row(d, self.dated(of))
            case Script(base, sub, sup):
                inside = sup.body if isinstance(sup, Fenced) else sup
                return Script(
                    self.dated(base),
                    self.moment(sub),
                    Fenced(self.moment(inside)) if isinstance(sup, Fenced) else sup,
                )
        return formula

    def moment(self, index: Formula | None) -> Formula | None:
        """A sum of numbers and lengths as a number; of the rounds of several loops each."""
        several = isinstance(index, FormulaRow) and Sign(",") in index.parts
        if several and (items := [row(*each) for _, each in split(parts_of(index), ",")]):
            told = [self.moment(each) for each in items]
            return index if told == items else separated(tuple(each for each in told if each))
        if index is None or not is_moment(index, set(self.letters)):
            return index
        number = int(self.sum(parts_of(index)).array)
        return Number(str(number)) if number >= 0 else row(Sign("−"), Number(str(-number)))

    def value(self, formula: Formula) -> Value:
        formula = self.dated(formula)
        if formula in self.values:
            return self.values[formula]
        if formula in self.letters:
            return scalar(float(self.letters[formula]))
        match formula:
            case Number(digits):
                return scalar(float(digits))
            case Symbol("infinity"):
                return scalar(math.inf)
            case FormulaRow(parts):
                return self.sum(parts)
            case Fraction(above, below):
                one, other, axes = self.together(self.value(above), self.value(below))
                return Value(one / other, axes)
            case Root(body):
                return self.applied(np.sqrt, body)
            case Accent("bar", body):
                return self.applied(np.conj, body)
            case Big(kind, body, below):
                return self.big(kind, body, below)
            case Cases(rows):
                return self.cases(rows)
            case Fenced(body, "("):
                return self.value(body)
            case Fenced(FormulaRow(parts), "[") if Sign("∣") in parts:
                blocks = [self.sum(each) for _, each in split(parts, "∣")]
                axes = (*blocks[0].axes[:-1], None)
                return Value(np.concatenate([each.array for each in blocks], -1), axes)
            case Fenced(body, "["):
                return self.condition(body)
            case Fenced(body, "⟨"):
                return self.big("mean", body, None)
            case Script(Fenced(body, "⟨"), sub, None):
                return self.big("mean", body, sub)
            case Fenced(body, left) if left in FENCES:
                return self.applied(FENCES[left], body)
            case Script(base, FormulaRow(parts), None) if Sign("⋯") in parts and (
                base not in self.values and Sign(",") not in parts
            ):
                return self.stacked(parts, lambda k: Script(base, k))
            case Script(base, sub, Fenced(FormulaRow(parts))) if Sign("⋯") in parts:
                return self.stacked(parts, lambda k: Script(base, sub, Fenced(k)))
            case Script(base, sub, sup) if sub is not None and is_prime(sup):
                return self.indexed(self.value(Script(base, None, sup)), sub)
            case Script(base, sub, sup) if sup is not None:
                return self.raised(base if sub is None else Script(base, sub), sup)
            case Script(base, Fenced(_, "(") as body):
                shape, letters = self.shape(body)
                return Value(self.value(base).array.reshape(shape), letters)
            case Script(base, FormulaRow(parts)) if Sign(",") in parts and (
                (part := Script(base, parts[0])) in self.values
            ):
                return self.indexed(self.values[part], row(*parts[2:]))
            case Script(base, sub) if sub is not None:
                return self.indexed(self.value(base), sub)
        raise UnreadableError(f"no value: {formula}")

    def stacked(self, parts: Sequence[Formula], at: Callable[[Formula], Formula]) -> Value:
        """Those of all rounds, one after the other."""
        (_, first), (_, last) = split(parts, "⋯")
        ends = [int(self.sum(each).array) for each in (first, last)]
        found = [self.value(at(Number(str(k)))) for k in range(ends[0], ends[1] + 1)]
        letter = next((each for each in self.letters if each in last), None)
        return Value(np.stack([each.array for each in found]), (letter, *found[0].axes))

    def applied(self, function: Callable[[Any], Any], body: Formula) -> Value:
        value = self.value(body)
        return Value(function(value.array), value.axes)

    def raised(self, base: Formula, sup: Formula) -> Value:
        value = self.value(base)
        match sup:
            case Sign("⊤") if not value.axes:
                return value
            case Sign("⊤"):
                axes = (*value.axes[:-2], value.axes[-1], value.axes[-2])
                return Value(np.swapaxes(value.array, -1, -2), axes)
            case Fenced(FormulaRow(parts)) if Sign(",") in parts:
                order = [int(self.sum(each).array) - 1 for _, each in split(parts, ",")]
                axes = tuple(value.axes[axis] for axis in order)
                return Value(np.transpose(value.array, order), axes)
        one, other, axes = self.together(value, self.value(sup))
        return Value(one**other, axes)

    def indexed(self, value: Value, sub: Formula) -> Value:
        """x with an index for each axis: letters of sums name them."""
        items = [each for _, each in split(parts_of(sub), ",")]
        if not value.axes:
            return value  # a number stands for an array of it
        if self.over is not None and self.over in value.axes and len(items) == 1:
            items = [(Sign(":"),)] * value.axes.index(self.over) + items
        index: list[Any] = []
        axes: list[Formula | None] = []
        axis = 0
        for each in items:
            own = value.axes[axis] if axis < len(value.axes) else None
            if each == (Sign("∗"),):
                index.append(None)
                axes.append(None)
                continue
            axis += 1
            if each == (Sign(":"),):
                index.append(self.part(each))
                axes.append(own)
            elif len(each) == 1 and each[0] in INDICES and each[0] not in self.values:
                index.append(slice(None))
                axes.append(each[0])
            else:
                index.append(self.part(each))
                axes += [None] * (1 if isinstance(index[-1], slice) else np.ndim(index[-1]))
        axes += value.axes[axis:]
        found = Value(value.array[tuple(index)], tuple(axes))
        return found.narrow() if set(axes) & set(INDICES) else found

    def part(self, index: Sequence[Formula]) -> Any:
        """An index of an axis: all of it, those from one place to another, one, or several."""
        if index == (Sign(":"),):
            return slice(None)
        if Sign("⋯") in index:
            ends = [int(self.sum(each).array) for _, each in split(index, "⋯")]
            if len(ends) != 2:
                raise UnreadableError(f"a step: {index}")
            return slice(ends[0], ends[1] + 1)
        place = self.sum(index).array
        return place.astype(int) if place.ndim else int(place)

    def big(self, kind: str, body: Formula, below: Formula | None) -> Value:
        value = self.value(body)
        if below is None:
            return Value(BIG[kind](value.array), ())
        letters = [row(*each) for _, each in split(parts_of(below), ",")]
        missing = [each for each in letters if each in self.letters and each not in value.axes]
        for letter in missing if kind == "sum" else ():
            value = Value(value.array * self.letters[letter], value.axes)
        return value.over([each for each in letters if each not in missing], BIG[kind])

    def cases(self, rows: Sequence[tuple[Formula, Formula]]) -> Value:
        *given, (otherwise, last) = rows
        assert last == Text("otherwise")
        found = self.value(otherwise)
        for formula, when in reversed(given):
            word, *condition = parts_of(when)
            value = self.value(formula)
            if word == Text("at "):
                found = self.placed(found, value, *condition)
                continue
            one, other, axes = self.together(value, found)
            both = Value(np.stack(np.broadcast_arrays(one, other), -1), (*axes, None))
            test = self.condition(row(*condition))
            chosen, values, axes = self.together(
                Value(test.array[..., None], (*test.axes, None)), both
            )
            found = Value(np.where(chosen[..., 0] != 0, values[..., 0], values[..., 1]), axes[:-1])
        return found

    def placed(self, into: Value, value: Value, at: Formula) -> Value:
        """An array with a value at some of its places."""
        assert isinstance(at, Fenced)
        array = np.array(np.broadcast_to(into.array, self.sizes))
        array[tuple(self.part(each) for _, each in split(parts_of(at.body), ","))] = value.array
        return Value(array, into.axes or (None,) * array.ndim)

    def condition(self, formula: Formula) -> Value:
        """1 where it holds, otherwise 0."""
        parts = parts_of(formula)
        for sign, combined in (("∨", np.maximum), ("∧", np.minimum)):
            if Sign(sign) in parts:
                several = [self.condition(row(*each)) for _, each in split(parts, sign)]
                one, other, axes = self.together(*several)
                return Value(combined(one, other), axes)
        if parts[0] == Sign("¬"):
            inner = self.condition(row(*parts[1:]))
            return Value(1.0 - inner.array, inner.axes)
        for place, part in enumerate(parts):
            if isinstance(part, Sign) and part.char in RELATIONS:
                one, other, axes = self.together(
                    self.sum(parts[:place]), self.sum(parts[place + 1 :])
                )
                return Value(RELATIONS[part.char](one, other).astype(float), axes)
        return self.value(formula)

    def sum(self, parts: Sequence[Formula]) -> Value:
        if row(*parts) in self.values:
            return self.values[row(*parts)]
        if is_relation(row(*parts)):
            return self.condition(row(*parts))
        total: Value | None = None
        for sign, term in split(parts, "+", "−"):
            value = self.product(term)
            if sign == "−":
                value = Value(-value.array, value.axes)
            if total is not None:
                one, other, axes = self.together(total, value)
                value = Value(one + other, axes)
            total = value
        assert total is not None
        return total

    def product(self, parts: Sequence[Formula]) -> Value:
        """Factors with ⊙ between them, each of them factors that scale, or of matrices."""
        total: Value | None = None
        for _, group in split(parts, "⊙"):
            value: Value | None = None
            for factor in self.factors(group):
                value = factor if value is None else self.times(value, factor)
            assert value is not None
            if total is not None:
                one, other, axes = self.together(total, value)
                value = Value(one * other, axes)
            total = value
        assert total is not None
        return total

    def times(self, one: Value, other: Value) -> Value:
        """A product of matrices where the axes fit, otherwise one scales the other."""
        if any(not each.axes and each.array == 0 for each in (one, other)):
            return scalar(0.0)  # zeros that a loop starts from
        is_matrix = min(len(one.axes), len(other.axes)) > 1
        is_indexed = set(one.axes) & set(INDICES) and set(other.axes) & set(INDICES)
        if is_matrix and not is_indexed and _fit(one, other):
            return Value(one.array @ other.array, (*one.axes[:-1], other.axes[-1]))
        if is_indexed:
            order = list(dict.fromkeys((*one.axes, *other.axes)))
            return Value(placed(one, order) * placed(other, order), tuple(order))
        first, second, axes = self.together(one, other)
        return Value(first * second, axes)

    def factors(self, parts: Sequence[Formula]) -> Iterator[Value]:
        rest = [each for each in parts if each not in (Space(), Sign("·"))]
        while rest:
            part = rest.pop(0)
            if isinstance(part, Operator):
                yield self.function(part.name, rest)
            elif part == Symbol("d") and rest and part not in self.values:
                yield self.adjoint(rest.pop(0))
            elif part in LETTERED and rest and isinstance(rest[0], Fenced):
                yield self.applied(LETTERED[part], rest.pop(0))
            elif part == Sign("¬"):
                inner = self.condition(rest.pop(0))
                yield Value(1.0 - inner.array, inner.axes)
            else:
                yield self.value(part)

    def function(self, name: str, rest: list[Formula]) -> Value:
        if name not in FUNCTIONS or not rest:
            raise UnreadableError(f"no function: {name}")
        items = [self.sum(each) for _, each in split(parts_of(rest.pop(0).body), ",")]
        if len(items) == 1:
            return Value(FUNCTIONS[name](items[0].array), items[0].axes)
        one, other, axes = self.together(*items)
        return Value(FUNCTIONS[name](one, other), axes)

    def adjoint(self, of: Formula) -> Value:
        """dx, or with an index; dx² is the square of dx only in brackets."""
        whole = row(Symbol("d"), of)
        if whole in self.values:
            return self.values[whole]
        match of:
            case Script(base, sub, sup) if sub is not None and is_prime(sup):
                return self.indexed(self.adjoint(Script(base, None, sup)), sub)
            case Script(base, sub, sup) if sup is not None:
                inner = self.adjoint(base if sub is None else Script(base, sub))
                if sup == Sign("⊤"):
                    axes = (*inner.axes[:-2], inner.axes[-1], inner.axes[-2])
                    return Value(np.swapaxes(inner.array, -1, -2), axes)
            case Script(base, sub) if sub is not None:
                return self.indexed(self.adjoint(base), sub)
        raise UnreadableError(f"no adjoint: {whole}")


def _fit(one: Value, other: Value) -> bool:
    inner, also = one.axes[-1], other.axes[-2]
    sizes = one.array.shape[-1], other.array.shape[-2]
    return sizes[0] == sizes[1] and (inner == also or None in (inner, also))
