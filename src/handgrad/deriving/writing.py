"""Sums of products as Python over arrays: products, sums over axes, and matrix products."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from handgrad.deriving.arrays import Graph
from handgrad.deriving.terms import (
    Factor,
    Index,
    Power,
    Sum,
    Term,
    common_factors,
    magnitude,
    term,
    without,
)

_SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(5)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

Layout = tuple[Index | None, ...]


class Text(NamedTuple):
    """An expression, how tightly it binds, and the index of each axis of its value."""

    code: str
    strength: int
    layout: Layout

    def within(self, strength: int) -> str:
        return self.code if self.strength >= strength else f"({self.code})"

    @property
    def indices(self) -> set[Index]:
        return {index for index in self.layout if index is not None}


@dataclass
class Writer:
    """Writes sums; `name` gives a variable to a reduction that stands within a longer expression.

    read: the arrays that have been written.
    """

    graph: Graph
    statements: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    _known: dict[tuple[Term, Layout, bool], Text] = field(default_factory=dict)

    def sum(self, sum_: Sum, layout: Layout) -> Text:
        """A sum as an expression whose value broadcasts to this layout."""
        if not sum_:
            return Text("0.0", _ATOM, ())
        common = common_factors(list(sum_)) if len(sum_) > 1 else {}
        terms = [(without(each, common), coefficient) for each, coefficient in sum_.items()]
        terms.sort(key=lambda pair: (pair[1] < 0, len(pair[0].bound), len(pair[0].factors)))
        shared = _shared_coefficient([coefficient for _, coefficient in terms])
        if len(terms) == 1:
            return self._product(terms[0][0], terms[0][1], layout, alone=True)
        parts = [self._product(each, c / shared, layout, alone=False) for each, c in terms]
        code = parts[0].within(_SUM)
        for part in parts[1:]:
            is_minus = part.code.startswith("-")
            text = part.code[1:] if is_minus else part.within(_SUM)
            code += f" {'-' if is_minus else '+'} {text}"
        found = Text(code, _SUM, _joined(layout, parts))
        if not common and shared == 1:
            return found
        outside = Term(tuple(Factor(*key, power) for key, power in common.items()))
        return self._product(outside, shared, layout, alone=True, inner=found)

    # Products

    def _product(
        self,
        one: Term,
        coefficient: Fraction,
        layout: Layout,
        *,
        alone: bool,
        inner: Text | None = None,
    ) -> Text:
        """A term; `inner` is a sum that it multiplies."""
        masks = [f for f in one.factors if f.is_mask and not set(f.indices) & set(one.bound)]
        outer, groups = _groups(one, masks)
        above: list[Text] = []
        below: list[Text] = []
        sizes = {f.name[1:]: f.power for f in one.factors if f.is_size}
        reduced = []
        for factors, bound in groups:
            averaged = _averaged(bound, sizes)
            text = self._contraction(factors, bound, layout, averaged)
            is_whole = alone and inner is None and not outer and len(groups) == 1 and not masks
            reduced.append(text if is_whole else self._name(text, factors, bound, averaged, layout))
        for each in sorted(outer, key=self._place):
            text = self._aligned(self._factor(each, magnitude(each.power)), layout)
            (above if each.power > 0 else below).append(text)
        if inner is not None:
            wide = [text for text in above if text.indices >= inner.indices]
            above = [*wide, inner, *(text for text in above if text not in wide)]
        above += reduced
        sign = "-" if coefficient < 0 else ""
        times, over = _fraction(abs(coefficient))
        for name, power in sizes.items():
            size = Text(name, _ATOM if name.isidentifier() or name.isdecimal() else _SUM, ())
            if power:
                code = size.within(_ATOM)
                code = code if magnitude(power) == 1 else f"{code} ** {_power(magnitude(power))}"
                (above if power > 0 else below).append(Text(code, _POWER, ()))
        if over:
            below.append(Text(over, _ATOM, ()))
        if times or not above:
            above.insert(0, Text(times or "1.0", _ATOM, ()))
        code = " * ".join(each.within(_PRODUCT) for each in above)
        if below:
            code += "".join(f" / {each.within(_UNARY)}" for each in below)
        strength = _PRODUCT if len(above) + len(below) > 1 else above[0].strength
        found = Text(code, strength, _joined(layout, [*above, *below]))
        for mask in masks:
            found = self._masked(mask, found, layout)
        if sign:
            found = Text("-" + found.within(_PRODUCT), _PRODUCT, found.layout)
        return found

    def _masked(self, mask: Factor, text: Text, layout: Layout) -> Text:
        """The value where the mask holds, and zero elsewhere, whatever the value is there."""
        condition = self._aligned(self._factor(mask, 1), layout)
        pair = (text.code, "0.0") if not mask.name.startswith("[~") else ("0.0", text.code)
        code = f"np.where({condition.code}, {pair[0]}, {pair[1]})"
        return Text(code, _ATOM, _joined(layout, [condition, text]))

    def _factor(self, factor: Factor, power: Power) -> Text:
        name = factor.name.strip("[~]") if factor.is_mask else factor.name
        self.reads(name)
        array = self.graph.arrays.get(name)
        axes = array.axes if array is not None else ()
        rest = iter(factor.indices)
        layout = tuple(None if axis is None else next(rest) for axis in axes)
        text = Text(name, _ATOM, layout)
        if power == 1:
            return text
        if power == Fraction(1, 2):
            return Text(f"np.sqrt({name})", _ATOM, layout)
        if power == 2:
            return Text(f"{name} * {name}", _PRODUCT, layout)
        return Text(f"{name} ** {_power(power)}", _POWER, layout)

    def reads(self, name: str) -> None:
        if name not in self.read:
            self.read.append(name)

    def _place(self, factor: Factor) -> tuple[bool, int]:
        """Adjoints first, then the arrays of the forward in their order."""
        names = list(self.graph.arrays)
        array = self.graph.arrays.get(factor.name)
        at = names.index(factor.name) if array is not None else -1
        return (array is None or not array.is_backward, at)

    # Sums over indices

    def _name(
        self,
        text: Text,
        factors: Sequence[Factor],
        bound: set[Index],
        averaged: bool,
        layout: Layout,
    ) -> Text:
        """A variable for a reduction, the same where it occurs again."""
        key = (term(factors, bound), text.layout, averaged)
        if key in self._known:
            return self._known[key]
        ordered = sorted(factors, key=self._place)
        names = [f.name.strip("[~]") for f in ordered for _ in range(2 if f.power == 2 else 1)]
        kind = "mean_" if averaged else "sum_" if text.code.startswith("np.sum(") else ""
        stem = kind + "_".join(names[:3])
        name = stem
        for i in range(2, 100):
            if name not in self.taken and name not in self.graph.arrays:
                break
            name = f"{stem}_{i}"
        self.taken.add(name)
        self.statements.append(f"{name} = {text.code}")
        self._known[key] = Text(name, _ATOM, text.layout)
        return self._known[key]

    def _contraction(
        self, factors: Sequence[Factor], bound: set[Index], layout: Layout, averaged: bool
    ) -> Text:
        """Σ over `bound` of a product."""
        groups = [
            ([each], set(each.indices)) for each in sorted(factors, key=lambda f: -len(f.indices))
        ]
        merged: list[tuple[list[Factor], set[Index]]] = []
        for group, indices in groups:
            for into in merged:
                if indices <= into[1]:
                    into[0].extend(group)
                    break
            else:
                merged.append((group, indices))
        if len(merged) == 1:
            group = merged[0][0]
            return self._reduced(self._multiplied(group, bound, layout), bound, layout, averaged)
        if len(merged) == 2:
            found = self._pair(merged[0][0], merged[1][0], bound, layout)
            if found is not None:
                return self._divided(found, bound) if averaged else found
        found = self._einsum([group for group, _ in merged], bound, layout)
        return self._divided(found, bound) if averaged else found

    def _divided(self, text: Text, bound: set[Index]) -> Text:
        sizes = " / ".join(_length(index) for index in sorted(bound))
        return Text(f"{text.within(_PRODUCT)} / {sizes}", _PRODUCT, text.layout)

    def _multiplied(self, factors: Sequence[Factor], bound: set[Index], layout: Layout) -> Text:
        """The product of factors, element by element, in the layout of the largest."""
        whole = self._factor(max(factors, key=lambda f: len(f.indices)), 1).layout
        kept = [index for index in whole if index is not None]
        if [i for i in kept if i not in bound] == [i for i in layout if i in set(kept)]:
            target: Layout = whole
        else:
            target = tuple(kept)
        above: list[Text] = []
        below: list[Text] = []
        for each in sorted(factors, key=self._place):
            text = self._aligned(self._factor(each, magnitude(each.power)), target)
            if each.is_mask:
                text = (
                    text
                    if not each.name.startswith("[~")
                    else text._replace(code=f"~{text.within(_UNARY)}", strength=_UNARY)
                )
            (above if each.power > 0 else below).append(text)
        if not above:
            above.append(Text("1.0", _ATOM, ()))
        code = " * ".join(each.within(_PRODUCT) for each in above)
        code += "".join(f" / {each.within(_UNARY)}" for each in below)
        parts = [*above, *below]
        strength = parts[0].strength if len(parts) == 1 else _PRODUCT
        return Text(code, strength, _joined(target, parts))

    def _reduced(self, text: Text, bound: set[Index], layout: Layout, averaged: bool) -> Text:
        """Summed over its axes that have bound indices; keepdims where that aligns it."""
        axes = [at for at, index in enumerate(text.layout) if index in bound]
        kept = tuple(None if index in bound else index for index in text.layout)
        dropped = tuple(index for index in text.layout if index not in bound)
        negative = [at - len(text.layout) for at in axes]
        which = negative if text.layout[-1] in bound and len(axes) == 1 else axes
        shown = str(which[0]) if len(which) == 1 else str(tuple(which))
        name = "mean" if averaged else "sum"
        if not _fits(dropped, layout) and _fits(kept, layout):
            return Text(f"np.{name}({text.code}, axis={shown}, keepdims=True)", _ATOM, kept)
        found = Text(f"np.{name}({text.code}, axis={shown})", _ATOM, dropped)
        return self._aligned(found, layout)

    def _pair(
        self, left: list[Factor], right: list[Factor], bound: set[Index], layout: Layout
    ) -> Text | None:
        """Two groups: a matrix product, or a tensordot."""
        one, two = ({i for f in group for i in f.indices} for group in (left, right))
        inner = one & two & bound
        if inner != bound or not inner:
            return None
        batch = [i for i in layout if i is not None and i in one & two]
        rows = [i for i in layout if i is not None and i in one - two]
        columns = [i for i in layout if i is not None and i in two - one]
        order = [i for i in layout if i is not None]
        if rows and columns and order.index(columns[0]) < order.index(rows[0]):
            left, right, rows, columns = right, left, columns, rows
        a, b = (self._multiplied(group, bound, layout) for group in (left, right))
        if len(inner) == 1 and len(rows) == 1 and len(columns) == 1:
            (along,) = inner
            a = self._moved(a, (*batch, rows[0], along))
            b = self._moved(b, (*batch, along, columns[0]))
            code = f"{a.within(_PRODUCT)} @ {b.within(_UNARY)}"
            return self._aligned(Text(code, _PRODUCT, (*batch, rows[0], columns[0])), layout)
        if not batch and (rows or columns):
            if len(inner) == 1 and len(b.indices) <= 2:
                (along,) = inner
                tail = (along, *columns) if columns else (along,)
                a, b = self._moved(a, (*rows, along)), self._moved(b, tail)
                code = f"{a.within(_PRODUCT)} @ {b.within(_UNARY)}"
                return self._aligned(Text(code, _PRODUCT, (*rows, *columns)), layout)
            a, b = self._without_ones(a), self._without_ones(b)
            ends = [i for i in a.layout if i in inner]
            axes = ", ".join(
                f"({', '.join(str(text.layout.index(i)) for i in ends)}{',' * (len(ends) == 1)})"
                for text in (a, b)
            )
            found = tuple(i for text in (a, b) for i in text.layout if i not in inner)
            code = f"np.tensordot({a.code}, {b.code}, axes=({axes}))"
            return self._aligned(Text(code, _ATOM, found), layout)
        return None

    def _einsum(self, groups: list[list[Factor]], bound: set[Index], layout: Layout) -> Text:
        texts = [self._without_ones(self._multiplied(group, bound, layout)) for group in groups]
        letters: dict[Index, str] = {}
        for text in texts:
            for index in text.layout:
                assert index is not None
                small = index.dimension.lower()
                free_letters = [c for c in (small, *_LETTERS) if c not in letters.values()]
                letters.setdefault(index, next(c for c in free_letters if len(c) == 1))
        out = tuple(i for i in layout if i is not None and i in letters)
        spelled = ",".join("".join(letters[i] for i in t.layout if i) for t in texts)
        result = "".join(letters[i] for i in out)
        code = f'np.einsum("{spelled}->{result}", {", ".join(t.code for t in texts)})'
        return self._aligned(Text(code, _ATOM, out), layout)

    # Axes

    def _without_ones(self, text: Text) -> Text:
        if None not in text.layout:
            return text
        index = ", ".join("0" if i is None else ":" for i in text.layout)
        return Text(f"{text.within(_ATOM)}[{index}]", _ATOM, tuple(i for i in text.layout if i))

    def _moved(self, text: Text, order: Layout) -> Text:
        """The axes in exactly this order, new ones of length one for None."""
        if text.layout == order:
            return text
        text = self._without_ones(text)
        wanted = [i for i in order if i is not None]
        places = [text.layout.index(i) for i in wanted]
        code = text.within(_ATOM)
        if places == [1, 0]:
            code += ".T"
        elif places == [*range(len(places) - 2), len(places) - 1, len(places) - 2]:
            code = f"np.swapaxes({text.code}, -1, -2)"
        elif places != sorted(places):
            code = f"np.transpose({text.code}, {tuple(places)})"
        if None in order:
            code += f"[{', '.join('None' if i is None else ':' for i in order)}]"
        return Text(code, _ATOM, order)

    def _aligned(self, text: Text, layout: Layout) -> Text:
        """The same value, broadcasting to a layout."""
        if _fits(text.layout, layout):
            return text
        own = text.indices
        order = [i if i in own else None for i in layout]
        while order and order[0] is None:
            order.pop(0)
        return self._moved(text, tuple(order))


def _length(index: Index) -> str:
    name = index.dimension
    return name if name.isidentifier() or name.isdecimal() else f"({name})"


def _fits(layout: Layout, target: Layout) -> bool:
    """Return whether an array of this layout broadcasts to the target as it stands."""
    if len(layout) > len(target):
        return False
    tail = target[len(target) - len(layout) :]
    return all(index is None or index == its for index, its in zip(layout, tail, strict=True))


def _joined(target: Layout, texts: Iterable[Text]) -> Layout:
    """The layout of a broadcast result, as far as it reaches in the target."""
    texts = list(texts)
    length = max((len(each.layout) for each in texts), default=0)
    have = {index for each in texts for index in each.indices}
    tail = target[len(target) - length :] if length else ()
    return tuple(index if index in have else None for index in tail)


def _groups(
    one: Term, masks: Sequence[Factor]
) -> tuple[list[Factor], list[tuple[list[Factor], set[Index]]]]:
    """Factors outside all sums, and those of each sum with the indices it is over."""
    bound = set(one.bound)
    outer = [
        f for f in one.factors if not f.is_size and not bound & set(f.indices) and f not in masks
    ]
    groups: list[tuple[list[Factor], set[Index]]] = []
    for factor in one.factors:
        own = bound & set(factor.indices)
        if not own:
            continue
        met = [group for group in groups if group[1] & own]
        joined = (
            [f for group in met for f in group[0]] + [factor],
            own.union(*(g[1] for g in met)),
        )
        groups = [group for group in groups if group not in met] + [joined]
    return outer, groups


def _averaged(bound: set[Index], sizes: dict[str, Power]) -> bool:
    """Return whether the sum is a mean; then the sizes are taken out."""
    dimensions = [index.dimension for index in bound]
    if not all(sizes.get(each, 0) <= -dimensions.count(each) for each in dimensions):
        return False
    for each in dimensions:
        sizes[each] += 1
    return True


def _shared_coefficient(values: Sequence[Fraction]) -> Fraction:
    """What all coefficients are multiples of by ±1."""
    size = abs(values[0])
    same = size if all(abs(each) == size for each in values) else Fraction(1)
    return -same if all(each < 0 for each in values) else same


def _fraction(value: Fraction) -> tuple[str, str]:
    """A coefficient as a number to multiply with and one to divide by; "" for one."""
    if value == 1:
        return "", ""
    if value.denominator == 1:
        return str(value.numerator), ""
    if value.denominator & (value.denominator - 1) == 0 or value.denominator > 1000:
        return repr(float(value)), ""
    return (str(value.numerator) if value.numerator != 1 else ""), str(value.denominator)


def _power(power: Power) -> str:
    return str(power) if power.denominator == 1 else repr(float(power))
