"""Simplification by algebra: names for parts of products, definitions, facts; no rule for any op.

Two moves, repeated while the cost falls: fold a part of a product into the name of an array that is
known, and put an array's definition in its place so that something else folds or cancels. Every
step is evaluated on both sides in both runs; one that changes the value is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.deriving.arrays import Array, Graph, owner
from handgrad.deriving.terms import (
    Factor,
    Index,
    Sum,
    Term,
    add,
    common_factors,
    fresh,
    magnitude,
    names_in,
    of,
    powered,
    renamed,
    scaled,
    term,
    without,
)

#: Definitions that are put in one after another before something has to become simpler.
_DEPTH: Final = 3
#: Sums that are looked at further in each of these rounds, the cheapest first.
_WIDTH: Final = 12
#: Sums of more terms than this are left as they are.
_MOST_TERMS: Final = 24
#: Two float64 evaluations of one sum differ by no more than this share of its largest value.
_SAME: Final = 1e-8


class Step(NamedTuple):
    """One simplification: of which array, both sides, the rule, its reason, and what differs."""

    array: str
    before: Sum
    after: Sum
    rule: str
    why: str
    difference: float


#: A term that is equal to another up to a factor: its cost, it, the factor, the rule, the reason.
Shorter = tuple[float, Term, Fraction, str, str]


class Fact(NamedTuple):
    """The sum of an array over some of its axes, which is a constant."""

    name: str
    over: frozenset[int]
    value: Fraction
    why: str


@dataclass
class Simplifier:
    """Simplifies sums over the arrays of a graph; what it did is in `steps`."""

    graph: Graph
    facts: list[Fact] = field(default_factory=list)
    #: What is kept in any case.
    kept: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    _hidden: Array | None = None
    _solutions: dict[str, Sum] | None = None
    _best: dict[Term, Shorter | None] = field(default_factory=dict)
    _state: tuple[Any, ...] = ()
    _changes: int = 0

    def simplify(self, name: str, sum_: Sum, axes: tuple[str | None, ...]) -> Sum:
        """An equal sum that costs no more, over the indices of these axes."""
        self._name, self._axes = name, axes
        sum_ = self._fold(sum_)
        while len(sum_) <= _MOST_TERMS and (better := self._expanded(sum_)) is not None:
            sum_ = better
        return sum_

    def inlined(self, gradients: Mapping[str, Sum]) -> dict[str, Sum]:
        """Gradients in which adjoints are written out whose names hide that something cancels.

        The arrays of the backward that read such an adjoint change too.
        """
        gradients = dict(gradients)
        for array in reversed([each for each in self.graph.arrays.values() if each.is_backward]):
            needed = self._needed(gradients)
            code = [n for n in needed if self.graph[n].definition is None]
            if array.definition is None or array.name not in needed:
                continue
            if any(array.name in self.graph[name].reads for name in code):
                continue
            before = self._total(gradients)
            inner = [self.graph[name] for name in needed if name != array.name]
            old = {each.name: each.definition for each in inner}
            steps = len(self.steps)
            self._changes += 1
            for each in inner:
                if each.definition is not None and array.name in names_in(each.definition):
                    each.definition = self._written_out(each.name, each.definition, each, array)
            new = {
                name: self._written_out(f"d{name}", sum_, self.graph[name], array)
                if array.name in names_in(sum_)
                else sum_
                for name, sum_ in gradients.items()
            }
            left = array.name in self._needed(new)
            if left or self._total(new) > before - 1e-9:
                self._changes += 1
                for each in inner:
                    each.definition = old[each.name]
                del self.steps[steps:]
            else:
                gradients = new
        return gradients

    def _written_out(self, name: str, sum_: Sum, of_shape: Array, array: Array) -> Sum:
        """The sum with an array's definition in its place, simplified."""
        written: Sum = sum_
        for each in list(sum_):
            at = next((i for i, f in enumerate(each.factors) if f.name == array.name), None)
            if at is None or (found := self._defined(each, at)) is None:
                continue
            rest = {key: c for key, c in written.items() if key != each}
            written = add(rest, scaled(found, sum_[each]))
        self._hidden = array
        self._name, self._axes = name, of_shape.axes
        self._take(sum_, written, "definition", array.name)
        written = self.simplify(name, written, of_shape.axes)
        self._hidden = None
        return written

    def _needed(self, gradients: Mapping[str, Sum]) -> set[str]:
        """The arrays of the backward that gradients are made of."""
        waiting = [owner(name) for sum_ in gradients.values() for name in names_in(sum_)]
        found: set[str] = set()
        while waiting:
            array = self.graph.arrays.get(waiting.pop())
            if array is not None and array.is_backward and array.name not in found:
                found.add(array.name)
                waiting += self.graph.reads(array)
        return found

    def _total(self, gradients: Mapping[str, Sum]) -> float:
        """The cost of a whole backward."""
        arrays = [self.graph[name] for name in self._needed(gradients)]
        sums = [*gradients.values(), *(a.definition for a in arrays if a.definition is not None)]
        sums = [dict(each) for each in {frozenset(sum_.items()) for sum_ in sums}]
        kept = {name for sum_ in sums for name in names_in(sum_)}
        return sum(map(self.cost_to_compute, sums)) - 2 * len(arrays) + self.cost_to_keep(kept)

    def _take(self, before: Sum, after: Sum, rule: str, why: str) -> bool:
        """Keep a step if both sides are equal in both runs."""
        worst = 0.0
        for run in (0, 1):
            found = self.graph.value(add(before, scaled(after, -1)), self._axes, run)
            size = self.graph.value(before, self._axes, run, absolute=True)
            scale = float(np.max(size, initial=0.0)) or 1.0
            worst = max(worst, float(np.max(np.abs(found), initial=0.0)) / scale)
        if not worst <= _SAME:
            return False
        self.steps.append(Step(self._name, before, after, rule, why, worst))
        return True

    # Folding

    def _fold(self, sum_: Sum, reasons: list[str] | None = None) -> Sum:
        """The sum with every part that has a cheaper name written by it.

        Each is a step of its own, unless `reasons` is a list, which takes those of all.
        """
        changed = True
        while changed:
            changed = False
            for each in sorted(sum_, key=cost_of_term, reverse=True):
                best = self._shortest(each)
                if best is None:
                    continue
                _, new, factor, rule, why = best
                rest = {key: c for key, c in sum_.items() if key != each}
                after = add(rest, {new: sum_[each] * factor})
                if reasons is not None:
                    reasons.append(why)
                elif not self._take(sum_, after, rule, why):
                    continue
                sum_, changed = after, True
                break
        return sum_

    def _shortest(self, one: Term) -> Shorter | None:
        """The cheapest of the terms that are equal up to a factor, if one is cheaper."""
        state = (len(self.graph.arrays), self._hidden and self._hidden.name, self._changes)
        if state != self._state:
            self._state = state
            self._best.clear()
        if one not in self._best:
            self._best[one] = min(self._shorter(one), key=lambda found: found[0], default=None)
        return self._best[one]

    def _shorter(self, one: Term) -> Iterator[Shorter]:
        """Cheaper terms that are equal up to a factor: cost, term, factor, rule and reason."""
        now = cost_of_term(one)
        present = {f.name for f in one.factors}
        for array in list(self.graph.arrays.values()):
            if array.definition is None or len(array.definition) != 1 or array is self._hidden:
                continue
            for new, factor in _folded(one, array, present):
                price = cost_of_term(new)
                if price < now - 1e-9:
                    yield price, new, factor, "fold", array.name
        for fact in self.facts:
            for new in self._without(one, fact):
                yield cost_of_term(new), new, fact.value, "fact", fact.why

    def cost(self, sum_: Sum) -> float:
        """Of all terms, and of what has to be kept for them: results are there anyway."""
        return self.cost_to_compute(sum_) + self.cost_to_keep(names_in(sum_))

    def cost_to_keep(self, names: Iterable[str]) -> float:
        """Of arrays that would not be kept anyway."""
        return sum(self._price(name) for name in set(names) - self.kept)

    def cost_to_compute(self, sum_: Sum) -> float:
        """Of all terms; what they have in common counts once."""
        common = common_factors(list(sum_)) if len(sum_) > 1 else {}
        outside = Term(tuple(Factor(*key, power) for key, power in common.items()))
        return cost_of_term(outside) + sum(cost_of_term(without(t, common)) + 1 for t in sum_)

    def _price(self, name: str) -> float:
        array = self.graph.arrays.get(owner(name))
        if array is None or array.is_backward:
            return 0.0
        if array.node is not None and array.node.op == "input":
            return 0.5
        return 1.25 if None not in array.axes and len(array.axes) > 1 else 0.25

    def _without(self, one: Term, fact: Fact) -> Iterator[Term]:
        """The term where a factor is alone under its sum, without both."""
        layout = self.graph[fact.name].layout if fact.name in self.graph.arrays else ()
        own = [at for at, index in enumerate(layout) if index is not None]
        for i, factor in enumerate(one.factors):
            if factor.name != fact.name or factor.power != 1:
                continue
            axes = dict(zip(own, factor.indices, strict=True))
            over = {axes[at] for at in fact.over if at in axes}
            others = [f for j, f in enumerate(one.factors) if j != i]
            alone = not any(over & set(f.indices) for f in others)
            if over <= set(one.bound) and alone:
                yield term(others, set(one.bound) - over)

    # Definitions

    def _expanded(self, sum_: Sum) -> Sum | None:
        """A cheaper sum after some definitions have been put in; None where there is none."""
        now = self.cost(sum_)
        front: list[tuple[Sum, tuple[str, ...]]] = [(sum_, ())]
        seen: set[frozenset[Any]] = set()
        for _ in range(_DEPTH):
            following = []
            for current, path in front:
                for each, at in ((t, i) for t in current for i in range(len(t.factors))):
                    found = self._defined(each, at)
                    if found is None:
                        continue
                    rest = {key: c for key, c in current.items() if key != each}
                    new = add(rest, scaled(found, current[each]))
                    key = frozenset(new.items())
                    if key in seen or len(new) > _MOST_TERMS:
                        continue
                    seen.add(key)
                    way = (*path, each.factors[at].name)
                    reasons: list[str] = []
                    folded = self._fold(new, reasons)
                    if self.cost(folded) < now - 1e-9:
                        why = ", ".join(dict.fromkeys(way))
                        if reasons:
                            why += f", then {', '.join(dict.fromkeys(reasons))}"
                        if self._take(sum_, folded, "definition", why):
                            return folded
                    following.append((new, way))
            front = sorted(following, key=lambda pair: self.cost(pair[0]))[:_WIDTH]
        return None

    def _defined(self, one: Term, at: int) -> Sum | None:
        """The term with the definition of one factor in its place."""
        factor = one.factors[at]
        array = self.graph.arrays.get(factor.name)
        if array is None:
            return None
        definition = array.definition
        if definition is None:
            definition = self._solved().get(array.name)
        if definition is None:
            return None
        names = dict(zip(array.indices, factor.indices, strict=True))
        rest = tuple(f for i, f in enumerate(one.factors) if i != at)
        if len(definition) > 1:
            if factor.power.denominator != 1 or factor.power < 1:
                return None
            part: Sum | None = renamed(definition, names)
            if factor.power > 1:
                rest = (*rest, factor._replace(power=factor.power - 1))
        else:
            part = powered(renamed(definition, names), factor.power)
        if part is None:
            return None
        return _times(rest, one.bound, part)

    def _solved(self) -> Mapping[str, Sum]:
        """Arrays without a definition that one of a single sum determines: y = x − m gives x."""
        if self._solutions is not None:
            return self._solutions
        found: dict[str, Sum] = {}
        self._solutions = found
        for array in self.graph.arrays.values():
            if array.definition is None or len(array.definition) < 2:
                continue
            for one, coefficient in array.definition.items():
                if one.bound or len(one.factors) != 1 or one.factors[0].power != 1:
                    continue
                name, indices, _ = one.factors[0]
                other = self.graph.arrays.get(name)
                if other is None or other.definition is not None or other.node is None:
                    continue
                if other.node.op == "input" or set(indices) != set(array.indices):
                    continue
                rest = {key: c for key, c in array.definition.items() if key != one}
                both = add(of(array.name, array.indices), scaled(rest, -1))
                names = dict(zip(indices, other.indices, strict=True))
                found[name] = renamed(scaled(both, 1 / coefficient), names)
        return found


def _times(rest: tuple[Factor, ...], bound: tuple[Index, ...], part: Sum) -> Sum:
    """The product under the bound indices of the whole term, which stand in both."""
    found: dict[Term, Fraction] = {}
    for one, coefficient in part.items():
        factors, its = fresh(one)
        key = term((*rest, *factors), (*bound, *its))
        found[key] = found.get(key, Fraction(0)) + coefficient
    return {key: c for key, c in found.items() if c}


def _folded(one: Term, array: Array, present: set[str]) -> Iterator[tuple[Term, Fraction]]:
    """The term with the array's single product in it written by the array's name."""
    assert array.definition is not None
    ((factors, bound), coefficient) = next(iter(array.definition.items()))
    parts = [f for f in factors if not f.is_size]
    sizes = [f for f in factors if f.is_size]
    if not parts or any(f.name not in present for f in parts):
        return
    places = [[i for i, f in enumerate(one.factors) if f.name == part.name] for part in parts]
    for chosen in itertools.product(*places):
        if len(set(chosen)) < len(chosen):
            continue
        pairs = zip(parts, chosen, strict=True)
        ratios = {Fraction(one.factors[at].power) / part.power for part, at in pairs}
        times = {1} if bound else {1, -1, *(int(r) for r in ratios if r.denominator == 1)}
        for count in times - {0}:
            found = _replaced(one, array, parts, sizes, bound, chosen, count)
            if found is not None:
                yield found, (1 / coefficient) ** count


def _replaced(
    one: Term,
    array: Array,
    parts: list[Factor],
    sizes: list[Factor],
    bound: tuple[Index, ...],
    chosen: tuple[int, ...],
    count: int,
) -> Term | None:
    """The term with the array to the power `count` and so much less of its parts."""
    names: dict[Index, Index] = {}
    rest = list(one.factors)
    for part, at in zip(parts, chosen, strict=True):
        for its, here in zip(part.indices, one.factors[at].indices, strict=True):
            if names.setdefault(its, here) != here:
                return None
        rest[at] = rest[at]._replace(power=rest[at].power - count * part.power)
    if len(set(names.values())) < len(names):
        return None
    if not set(array.indices) <= names.keys():
        return None
    left = [f for f in rest if f.power and not (f.is_mask and f.power < 0)]
    inner = {names[index] for index in bound}
    if bound and (not inner <= set(one.bound) or any(inner & set(f.indices) for f in left)):
        return None
    written = Factor(array.name, tuple(names[i] for i in array.indices), count)
    undone = [f._replace(power=-count * f.power) for f in sizes]
    return term((*left, *undone, written), set(one.bound) - inner)


# Cost


@lru_cache(1 << 16)
def cost_of_term(one: Term) -> float:
    """Factors, with more for powers, for divisions and roots, and for every index summed over."""
    total = 0.0
    for factor in one.factors:
        weight = 0.1 if factor.is_size else 1.0
        total += weight * (1 + 0.25 * float(magnitude(magnitude(factor.power) - 1)))
        total += weight * 0.4 if factor.power < 0 else 0.0
        total += weight if factor.power.denominator != 1 else 0.0
    return total + 0.5 * len(one.bound)
