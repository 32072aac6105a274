"""From the tree of an expression to a formula.

A `Writer` writes expressions at one place of a run, where the value of every name is known: values
say which branch a choice takes, how many axes an array has, and along which of them a sum goes.
What is summed over is an index of what it is summed of, Σ_d x_d; functions, powers and products ⊙
are element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from handgrad.derivation.equations import calls, comprehensions, indexing, reductions
from handgrad.derivation.equations.carriers import carriers
from handgrad.derivation.equations.constants import global_constant
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.functions import cases
from handgrad.derivation.equations.marks import Marks, carried, marked, of_columns, of_rows, through
from handgrad.derivation.equations.opening import opened
from handgrad.derivation.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    constant,
    fenced,
    is_condition,
    is_one,
    juxtaposed,
    power,
    strength_of,
)
from handgrad.derivation.equations.places import moved, split
from handgrad.derivation.equations.products import divided, flat_terms, repeated, without_sign
from handgrad.derivation.formulas.formula import (
    Fenced,
    Formula,
    Fraction,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Text,
    row,
    separated,
)
from handgrad.trees import evaluate, nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

_RELATIONS: Final = {"==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥", "is": "="}
_LOGIC: Final = {"and": "∧", "&": "∧", "or": "∨", "|": "∨"}


@dataclass(frozen=True)
class Writer:
    """Writes expressions. `figures`, if given, writes a name as its value."""

    frame: Frame
    #: The variables of the loops around, and the index of the innermost.
    bound: Mapping[str, Formula] = field(default_factory=dict)
    index: Formula | None = None
    figures: Callable[[Any], Formula] | None = None

    def result(self, node: Node, marks: Marks = ()) -> Formula:
        """The right side of an equation: a condition stands in brackets, which are 1 or 0."""
        formula, strength = self.part(node, marks)
        return fenced(formula, strength) if is_condition(formula) else formula

    def at(self, names: dict[str, Any]) -> Writer:
        """The same where names have other values."""
        return replace(self, frame=self.frame.at(names))

    # Values

    def value(self, node: Node) -> Any:
        """The value of an expression here; None where it has none."""
        known = self.frame.values
        if id(node) not in known:
            try:
                found = evaluate(node, self.frame.environment)
            except (NameError, TypeError, ValueError, IndexError, AttributeError, KeyError):
                found = None
            if hasattr(found, "__next__"):  # used up by whoever asks
                return found
            known[id(node)] = node, found
        return known[id(node)][1]

    def shape(self, node: Node) -> tuple[int, ...]:
        value = self.value(node)
        return tuple(value.shape) if is_array(value) else ()

    def is_value(self, node: Node) -> bool:
        """Whether this is an array, or a list of them, or a variable of a loop."""
        if isinstance(node, nodes.Name) and node.id in self.bound:
            return True
        value = self.value(node)
        several = value if isinstance(value, list | tuple) and value else (value,)
        return all(map(is_array, several))

    def bare(self, node: Node) -> Node:
        """The node without calls that only shape it and choices that are settled."""
        match node:
            case nodes.Choice(test, yes, no):
                return self.bare(yes if self.value(test) else no)
            case nodes.Call(function, _, _):
                inner = calls.shaped(self, called(function), node) or opened(self, node)
                return node if inner is None else self.bare(inner)
            case nodes.Method(_, name, _, _):
                inner = calls.shaped(self, name, calls.as_function(self, node))
                return node if inner is None else self.bare(inner)
            case nodes.Index(value, index) if indexing.only_new_axes(index):
                return self.bare(value)
            case nodes.Name(name) if name in self.frame.aliases and name not in self.bound:
                return self.frame.aliases[name]
        return node

    def settled(self, node: Node) -> Node:
        """The whole tree without calls that only shape and choices that are settled."""
        return nodes.rebuilt(self.bare(node), self.settled)

    # Writing

    def write(self, node: Node, around: int = CONDITION, marks: Marks = ()) -> Formula:
        """The formula, in brackets where it would fall apart within something of `around`."""
        formula, strength = self.part(node, marks)
        return formula if strength >= around else fenced(formula, strength)

    def part(self, node: Node, marks: Marks = ()) -> Part:
        marks = carried(self, node, marks)
        inner = self.bare(node)
        if inner is not node:
            return self.part(inner, through(self, node, inner, marks))
        match node:
            case nodes.Name(name):
                return self.name(name, marks)
            case nodes.Constant(value):
                return constant(value)
            case nodes.Sum(terms):
                return self._sum(terms, marks)
            case nodes.Product(factors):
                return self._product(factors, marks)
            case nodes.Negative(value):
                return Part(row(Sign("−"), self.write(value, BIG, marks)), SUM)
            case nodes.Power(base, exponent):
                return self._power(base, exponent, marks)
            case nodes.MatMul(left, right):
                if (total := reductions.over_rows(self, left, right)) is not None:
                    return total
                axes = len(self.shape(left)), len(self.shape(right))
                first = self.write(left, PRODUCT, of_rows(marks, axes[1]))
                second = self.write(right, PRODUCT, of_columns(marks, *axes))
                return Part(juxtaposed([first, second]), PRODUCT)
            case nodes.Transpose(value):
                return self._transposed(value, marks)
            case nodes.Reduce():
                return reductions.reduced(self, node, marks)
            case nodes.Where(condition, yes, no):
                return cases(self, [(yes, condition)], no, marks)
            case nodes.Compare(operator, left, right):
                return self._compared(operator, left, right, marks)
            case nodes.Logic(operator, values):
                return self._logic(operator, values, marks)
            case nodes.Call():
                return calls.call(self, node, marks)
            case nodes.Method():
                return calls.call(self, calls.as_function(self, node), marks)
            case nodes.Attribute(value, "shape"):
                return Part(self.frame.dimensions.shape(self.value(value)), ATOM)
            case nodes.Attribute(value, name):
                return self._attribute(node, value, name)
            case nodes.Index():
                return indexing.indexed(self, node, marks)
            case nodes.Sequence(_, items):
                return Part(Fenced(separated(tuple(map(self.write, items)))), ATOM)
            case nodes.Loop(_, element, clauses):
                inside = comprehensions.within(self, clauses)
                return Part(Script(Fenced(inside.write(element)), inside.index), UNARY)
            case nodes.Integral():
                return indexing.size(self, node)
            case nodes.Starred(value):
                return self.part(value, marks)
        return Part(Text(type(node).__name__.lower()), ATOM)

    def name(self, name: str, marks: Marks = ()) -> Part:
        if name in self.bound:
            bound = self.bound[name]
            return Part(bound, strength_of(bound))
        if name in self.frame.counters:  # the code counts from 0
            place = moved(self.frame.counters[name], -1)
            return Part(place, SUM if isinstance(place, Row) else ATOM)
        value = self.frame.environment.get(name)
        if self.figures is not None and (is_array(value) or isinstance(value, int | float)):
            figure = self.figures(value)
            return Part(figure, SUM if isinstance(figure, Row) else UNARY)
        if name.isupper() and isinstance(value, float) and len(name) > 1:
            return global_constant(name, value)
        sequence = self.frame.sequences.get(name)
        if sequence is not None and len(marks) >= -sequence.axis:
            step = marks[sequence.axis]
            if step is not None:
                at = len(marks) + sequence.axis
                others = (*marks[:at], moved(step, sequence.first - 1), *marks[at + 1 :])
                return self._step(name, marked(others))
        if sequence is None or sequence.owner is None:
            self.frame.used.setdefault(name)
        index = marked(marks)
        if name in self.frame.families and self.index is not None:
            index = self.index if index is None else row(self.index, Sign(","), index)
        formula = self.frame.symbol(name, index)
        return Part(formula, strength_of(formula))

    def step(self, name: str, place: Formula, marks: Formula | None) -> Part:
        """What stands at one step of a sequence, counted from 1."""
        place = moved(place, self.frame.sequences[name].first - 1)
        return self._step(name, place if marks is None else row(place, Sign(","), marks))

    def _step(self, name: str, index: Formula | None) -> Part:
        formula = self.frame.sequences[name].step(index)
        if formula is None:
            self.frame.used.setdefault(name)
            formula = self.frame.symbol(name, index)
        return Part(formula, strength_of(formula))

    def has_steps(self, node: Node, axis: int) -> bool:
        """Whether an axis of the value is that of the steps of a sequence."""
        found = set(carriers(self, node, axis))
        known = {(name, each.axis) for name, each in self.frame.sequences.items()}
        return bool(found) and found <= known

    def family(self, name: str) -> tuple[Formula, Formula] | None:
        """An element of a list made by a loop, and its index; None for other names."""
        if name not in self.frame.families or name in self.bound:
            return None
        index, _ = self.frame.families[name]
        self.frame.used.setdefault(name)
        return self.frame.symbol(name, index), index

    # Forms

    def _sum(self, terms: tuple[nodes.Term, ...], marks: Marks) -> Part:
        place = indexing.place_of(self, nodes.Sum(terms))
        if place is not None:
            place = moved(place, -1)
            return Part(place, SUM if isinstance(place, Row) else ATOM)
        parts: list[Formula] = []
        for sign, value in flat_terms(terms):
            written = self.write(value, BIG if parts else SUM, marks)
            if parts:
                parts.append(Sign("+" if sign > 0 else "−"))
            elif sign < 0:
                parts.append(Sign("−"))
            parts.append(written)
        return Part(row(*parts), SUM)

    def _product(self, factors: tuple[nodes.Factor, ...], marks: Marks) -> Part:
        above: list[tuple[Formula, int, bool]] = []
        below: list[tuple[Formula, int, bool]] = []
        negative = False
        for inverse, value, times in repeated(self._factors(factors)):
            sign, value = without_sign(value)
            negative ^= sign and times % 2 == 1
            formula, strength = self.part(value, marks)
            if times > 1:
                formula, strength = power(Part(formula, strength), Number(str(times)))
            full = self._is_full(value, marks)
            if is_one(formula):
                continue
            if isinstance(formula, Fraction) and is_one(formula.numerator):
                inverse, formula, strength = not inverse, formula.denominator, SUM
            (below if inverse else above).append((formula, strength, full))
        found = divided(above, below)
        return Part(row(Sign("−"), found.formula), SUM) if negative else found

    def _factors(self, factors: tuple[nodes.Factor, ...]) -> Iterator[tuple[bool, Node]]:
        """The factors with products among them opened, and without those that are 1."""
        for factor in factors:
            value = self.bare(factor.value)
            if isinstance(value, nodes.Name) and value.id in self.frame.ones:
                continue
            if isinstance(value, nodes.Product) and not self._changes_rank(factor.value, value):
                for inverse, inner in self._factors(value.factors):
                    yield inverse != factor.inverse, inner
            else:
                yield factor.inverse, factor.value

    def _changes_rank(self, node: Node, inner: Node) -> bool:
        return node is not inner and self.shape(node) != self.shape(inner)

    def _is_full(self, node: Node, marks: Marks) -> bool:
        """Whether the value has entries along the last axis that are not summed over."""
        shape = self.shape(node)
        own = carried(self, node, marks)
        return bool(shape) and shape[-1] != 1 and not (own and own[-1] is not None)

    def _power(self, base: Node, exponent: Node, marks: Marks) -> Part:
        match exponent:
            case nodes.Constant(0.5):
                return Part(Root(self.write(base, CONDITION, marks)), UNARY)
            case nodes.Constant(value) if isinstance(value, int | float) and value < 0:
                inverse = nodes.Power(base, nodes.Constant(-value)) if value != -1 else base
                one = nodes.Factor(False, nodes.Constant(1))
                return self._product((one, nodes.Factor(True, inverse)), marks)
        return power(self.part(base, marks), self.write(exponent))

    def _transposed(self, value: Node, marks: Marks) -> Part:
        if self.figures is not None and is_array(whole := self.value(value)) and whole.ndim == 2:
            return Part(self.figures(whole.T), UNARY)
        swapped = (*marks[:-2], *reversed(marks[-2:]))
        return power(self.part(value, swapped), Sign("⊤"))

    def _compared(self, operator: str, left: Node, right: Node, marks: Marks) -> Part:
        relation = _RELATIONS.get(operator)
        sign: Formula = Text(f" {operator} ") if relation is None else Sign(relation)
        first = self.write(left, SUM, marks)
        second = self.write(right, SUM, marks)
        counted = [calls.is_count(self, each) for each in (left, right)]
        (base, before), (_, behind) = split(first), split(second)
        if all(counted) and before == behind == -1:
            first, second = moved(first, 1), moved(second, 1)
        elif counted[0] and operator == "<" and (base is None or before == -1):
            first, sign = moved(first, 1), Sign("≤")  # of whole numbers
        return Part(row(first, sign, second), CONDITION)

    def _logic(self, operator: str, values: tuple[Node, ...], marks: Marks) -> Part:
        if len(values) == 1:
            return Part(row(Sign("¬"), self.write(values[0], UNARY, marks)), UNARY)
        written = [self.write(each, CONDITION, marks) for each in values]
        return Part(separated(tuple(written), _LOGIC[operator]), CONDITION)

    def _attribute(self, node: Node, value: Node, name: str) -> Part:
        found = self.value(node)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return constant(found)
        self.frame.used.setdefault(name)
        return Part(self.frame.symbol(name), UNARY)


# Parts of formulas


def is_array(value: Any) -> bool:
    """An array of any library, or one of NumPy's scalars."""
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")
