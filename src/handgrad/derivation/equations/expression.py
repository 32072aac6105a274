"""From the tree of an expression to a formula.

A `Writer` writes expressions at one place of a run, where the value of every name is known: values
say which branch a choice takes, how many axes an array has, and along which of them a sum goes.
What is summed over is an index of what it is summed of, Σ_d x_d; functions, powers and products ⊙
are element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from handgrad.derivation.equations import calls
from handgrad.derivation.equations.constants import global_constant
from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.functions import cases
from handgrad.derivation.equations.glossary import Glossary
from handgrad.derivation.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    argument,
    constant,
    fenced,
    is_condition,
    is_one,
    juxtaposed,
    power,
    strength_of,
    subscripted,
)
from handgrad.derivation.equations.products import divided, flat_terms, repeated, without_sign
from handgrad.derivation.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Fraction,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.trees import evaluate, nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

#: An index for each axis of a value, counted from the last; None for an axis without one.
Marks = tuple[Formula | None, ...]

_RELATIONS: Final = {"==": "=", "!=": "≠", "<": "<", "<=": "≤", ">": ">", ">=": "≥", "is": "="}
_LOGIC: Final = {"and": "∧", "&": "∧", "or": "∨", "|": "∨"}
_INDEX_LETTERS: Final = "ijklrqp"


@dataclass
class Frame:
    """What is known where an expression stands."""

    names: dict[str, Any]
    glossary: Glossary
    dimensions: Dimensions
    #: "if" and "otherwise"
    words: tuple[str, str] = ("if", "otherwise")
    #: Names that stand for something else: another name in another shape, or zeros.
    aliases: dict[str, Node] = field(default_factory=dict)
    #: Names of lists made by a loop: the index of their elements, and the axis they are stacked on.
    families: dict[str, tuple[Formula, int | None]] = field(default_factory=dict)
    #: Names of tuples that gather what a loop computes, as they are written out.
    gathered: dict[str, Formula] = field(default_factory=dict)
    #: Names that are another's in the other function: what the cache calls it.
    renamed: dict[str, str] = field(default_factory=dict)
    #: How often a name was set anew.
    primes: dict[str, int] = field(default_factory=dict)
    #: Names whose factor is 1 and not written.
    ones: frozenset[str] = frozenset()
    #: Every name that was written, in order, and every function with the words that explain it.
    used: dict[str, None] = field(default_factory=dict)
    helpers: dict[str, tuple[Formula, str]] = field(default_factory=dict)
    #: Values found here, by the identity of the node, which is kept so that it stays one.
    values: dict[int, tuple[Node, Any]] = field(default_factory=dict)

    def symbol(self, name: str, index: Formula | None = None) -> Formula:
        """The symbol of a name as it is now, with an index."""
        primes = self.primes.get(name, 0)
        return self.glossary.symbol(self.renamed.get(name, name), primes, index)

    def at(self, names: dict[str, Any]) -> Frame:
        """The same where names have other values."""
        return replace(self, names=names, values={})


@dataclass(frozen=True)
class Writer:
    """Writes expressions. `figures`, if given, writes a name as its value."""

    frame: Frame
    #: The variables of the loops around, and the index of the innermost.
    bound: Mapping[str, Formula] = field(default_factory=dict)
    index: Formula | None = None
    figures: Callable[[Any], Formula] | None = None

    def result(self, node: Node) -> Formula:
        """The right side of an equation: a condition stands in brackets, which are 1 or 0."""
        formula, strength = self.part(node)
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
                found = evaluate(node, self.frame.names)
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
                inner = calls.shaped(self, called(function), node)
                return node if inner is None else self.bare(inner)
            case nodes.Method(_, name, _, _):
                inner = calls.shaped(self, name, calls.as_function(self, node))
                return node if inner is None else self.bare(inner)
            case nodes.Index(value, index) if _only_new_axes(index):
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
        marks = self.carried(node, marks)
        inner = self.bare(node)
        if inner is not node:
            return self.part(inner, self._through(node, inner, marks))
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
                first = self.write(left, PRODUCT, _rows(marks))
                second = self.write(right, PRODUCT, _columns(marks))
                return Part(juxtaposed([first, second]), PRODUCT)
            case nodes.Transpose(value):
                return self._transposed(value, marks)
            case nodes.Reduce():
                return self._reduced(node, marks)
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
            case nodes.Index(value, index):
                return self._index(node, value, index)
            case nodes.Sequence(_, items):
                return Part(Fenced(separated(tuple(map(self.write, items)))), ATOM)
            case nodes.Loop(_, element, clauses):
                inside = self.within(clauses)
                return Part(Script(Fenced(inside.write(element)), inside.index), UNARY)
            case nodes.Integral():
                return self._size(node)
            case nodes.Starred(value):
                return self.part(value, marks)
        return Part(Text(type(node).__name__.lower()), ATOM)

    def name(self, name: str, marks: Marks = ()) -> Part:
        if name in self.bound:
            bound = self.bound[name]
            return Part(bound, strength_of(bound))
        value = self.frame.names.get(name)
        if self.figures is not None and (is_array(value) or isinstance(value, int | float)):
            figure = self.figures(value)
            return Part(figure, SUM if isinstance(figure, Row) else UNARY)
        if name.isupper() and isinstance(value, float) and len(name) > 1:
            return global_constant(name, value)
        self.frame.used.setdefault(name)
        index = self.marked(marks)
        if name in self.frame.families and self.index is not None:
            index = self.index if index is None else row(self.index, Sign(","), index)
        formula = self.frame.symbol(name, index)
        return Part(formula, strength_of(formula))

    def family(self, name: str) -> tuple[Formula, Formula] | None:
        """An element of a list made by a loop, and its index; None for other names."""
        if name not in self.frame.families or name in self.bound:
            return None
        index, _ = self.frame.families[name]
        self.frame.used.setdefault(name)
        return self.frame.symbol(name, index), index

    # Marks: indices of the axes that are summed over

    def carried(self, node: Node, marks: Marks) -> Marks:
        """The marks of the axes that this value has itself, and not by being broadcast."""
        if not any(marks):
            return ()
        shape = self.shape(node)
        own = marks[len(marks) - len(shape) :] if len(shape) < len(marks) else marks
        return tuple(
            None if size == 1 else mark
            for size, mark in zip(shape[len(shape) - len(own) :], own, strict=True)
        )

    def marked(self, marks: Marks) -> Formula | None:
        """The index that the marks are together: `d`, or `n, :, h` with gaps."""
        given = [mark for mark in marks if mark is not None]
        if not given:
            return None
        if len(given) == 1:
            return given[0]
        last = max(i for i, mark in enumerate(marks) if mark is not None)
        return separated(tuple(Sign(":") if mark is None else mark for mark in marks[: last + 1]))

    def _through(self, node: Node, inner: Node, marks: Marks) -> Marks:
        """The marks of `inner`, of which `node` is another shape: an axis is known by its size."""
        if not any(marks):
            return ()
        outside, inside = self.shape(node), self.shape(inner)
        if outside == inside:
            return marks
        by_size = {
            size: mark
            for size, mark in zip(outside, marks, strict=True)
            if mark is not None and outside.count(size) == 1
        }
        joined = len(inside) - len(outside) + 1
        if joined > 1 and marks[0] is not None and math.prod(inside[:joined]) == outside[0]:
            # The rows of several axes, counted as one.
            return (marks[0], *(None for _ in range(joined - 1)), *marks[1:])
        return tuple(by_size.get(size) if inside.count(size) == 1 else None for size in inside)

    # Forms

    def _sum(self, terms: tuple[nodes.Term, ...], marks: Marks) -> Part:
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
        own = self.carried(node, marks)
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
        sides = (self.write(each, SUM, marks) for each in (left, right))
        first, second = sides
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

    def _index(self, node: Node, value: Node, index: Node) -> Part:
        """x_t, or a size of an array by its letter."""
        found = self.value(node)
        if isinstance(found, int) and not is_array(found):
            return self._size(node)
        positions = index.items if isinstance(index, nodes.Sequence) else (index,)
        while positions and isinstance(positions[0], nodes.Constant) and positions[0].value is ...:
            positions = positions[1:]
        below = separated(tuple(map(self.position, positions)))
        return subscripted(self.part(value), below)

    def position(self, node: Node) -> Formula:
        """One part of an index: a number, a name, or a slice as the code writes it."""
        match node:
            case nodes.Slice(lower, upper, step):
                parts: list[Formula] = [Sign(":")]
                if lower is not None:
                    parts.insert(0, self.write(lower))
                if upper is not None:
                    parts.append(self.write(upper))
                if step is not None:
                    parts += [Sign(":"), self.write(step)]
                return row(*parts)
            case nodes.Constant(value) if value is None or value is ...:
                return Sign(":") if value is None else Sign("⋯")
        return self.write(node)

    def _size(self, node: Node) -> Part:
        value = self.value(node)
        if isinstance(value, int):
            return Part(self.frame.dimensions.size(value), UNARY)
        return Part(Text(type(node).__name__.lower()), ATOM)

    # Sums and other reductions

    def _reduced(self, node: nodes.Reduce, marks: Marks) -> Part:
        family = self._over_family(node)
        if family is not None:
            return family
        axes = self._axes(node)
        shape = self.shape(node.value)
        inner = list(self._outer_marks(node, axes, len(shape), marks))
        taken: list[str] = []
        for axis in axes:
            inner[axis] = self._letter(shape[axis], taken)
        indices = tuple(mark for axis in axes if (mark := inner[axis]) is not None)
        strength = BIG if node.kind in ("sum", "mean") else CONDITION
        body = self.write(node.value, strength, tuple(inner))
        if node.kind == "sum" and all(shape[axis] == 1 for axis in axes):
            return self.part(node.value, tuple(self._outer_marks(node, axes, len(shape), marks)))
        sizes = [self.frame.dimensions.size(shape[axis]) for axis in axes]
        if node.kind not in ("sum", "mean"):
            return Part(Big(node.kind, argument(body), separated(indices)), UNARY)
        below, above = separated(indices) if indices else None, None
        if len(indices) == 1:
            below, above = row(indices[0], Sign("="), Number("1")), sizes[0]
        total = Big("sum", body, below, above)
        if node.kind == "sum":
            return Part(total, BIG)
        count = juxtaposed(sizes)
        if all(isinstance(size, Number) for size in sizes):
            count = Number(str(math.prod(shape[axis] for axis in axes)))
        return Part(row(Fraction(Number("1"), count), total), BIG)

    def _over_family(self, node: nodes.Reduce) -> Part | None:
        """A maximum along the axis on which a loop's arrays were stacked: max_τ V_τ."""
        match self.bare(node.value):
            case nodes.Name(name) if (found := self.family(name)) is not None:
                element, index = found
                _, axis = self.frame.families[name]
                shape = self.shape(node.value)
                if axis is not None and self._axes(node) == (axis % max(len(shape), 1),):
                    return Part(Big(node.kind, element, index), BIG)
        return None

    def _axes(self, node: nodes.Reduce) -> tuple[int, ...]:
        """The axes that are summed over, counted from the first."""
        count = len(self.shape(node.value))
        given = [each.value for each in node.keywords if each.name in ("axis", "dim")]
        given += node.arguments[:1]
        axis = self.value(given[0]) if given else None
        if axis is None:
            return tuple(range(count))
        several = (axis,) if isinstance(axis, int) else tuple(axis)
        return tuple(sorted(each % max(count, 1) for each in several))

    def _outer_marks(
        self, node: nodes.Reduce, axes: tuple[int, ...], count: int, marks: Marks
    ) -> Marks:
        """The marks that a reduction's result has, as marks of what is reduced."""
        kept = len(self.shape(node)) == count
        left = list(marks) if marks else [None] * len(self.shape(node))
        if kept:
            return tuple(left)
        return tuple(
            None if axis in axes else (left.pop(0) if left else None) for axis in range(count)
        )

    def _letter(self, size: int, taken: list[str]) -> Formula:
        """A letter for an index: d for D, unless something else is called d."""
        letters = self.frame.glossary.letters | set(taken)
        dimension = self.frame.dimensions.letter(size)
        wanted = [dimension[0].lower()] if dimension else []
        letter = next(each for each in [*wanted, *_INDEX_LETTERS, "a"] if each not in letters)
        taken.append(letter)
        return Symbol(letter)

    # Loops

    def within(self, clauses: tuple[nodes.Clause, ...]) -> Writer:
        """A writer for the element of a loop."""
        writer = self
        for clause in clauses:
            bound, indices = writer.binding(clause.target, clause.iterable)
            first = next(iter(self.value(clause.iterable) or ()), None)
            names = {**writer.frame.names, **dict(matched(clause.target, first))}
            index = separated(tuple(indices)) if indices else writer.index
            if indices and writer.index is not None:
                index = separated((writer.index, *indices))
            writer = replace(
                writer,
                frame=writer.frame.at(names),
                bound={**writer.bound, **bound},
                index=index,
            )
        return writer

    def binding(self, target: Node, iterable: Node) -> tuple[dict[str, Formula], list[Formula]]:
        """The symbol of every variable of a loop, and which of them are its index."""
        match target, iterable:
            case nodes.Sequence(_, targets), nodes.Call(function, arguments, _) if called(
                function
            ) == "zip" and len(targets) == len(arguments):
                bound: dict[str, Formula] = {}
                indices: list[Formula] = []
                for one, over in zip(targets, arguments, strict=True):
                    inside = replace(self, index=separated(tuple(indices)) if indices else None)
                    found, added = inside.binding(one, over)
                    bound |= found
                    indices += added
                return bound, indices
            case nodes.Sequence(_, (counter, *_)), nodes.Call(function, _, _) if (
                called(function) == "enumerate"
            ):
                return self.binding(counter, nodes.Constant(None))
            case nodes.Name(name), nodes.Name(over) if over in self.frame.families:
                own, _ = self.frame.families[over]
                index = self.index or own
                self.frame.used.setdefault(over)
                element = self.frame.symbol(over, index)
                return {name: element}, [] if self.index is not None else [own]
        found = {name: self.frame.glossary.symbol(name) for name in _target_names(target)}
        return found, list(found.values())


# Parts of formulas


def is_array(value: Any) -> bool:
    """An array of any library, or one of NumPy's scalars."""
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")


def _rows(marks: Marks) -> Marks:
    return (*marks[:-1], None) if marks else ()


def _columns(marks: Marks) -> Marks:
    return (*marks[:-2], None, marks[-1]) if marks else ()


def _only_new_axes(index: Node) -> bool:
    positions = index.items if isinstance(index, nodes.Sequence) else (index,)
    return all(
        (isinstance(each, nodes.Slice) and each == nodes.Slice(None, None, None))
        or (isinstance(each, nodes.Constant) and (each.value is None or each.value is ...))
        for each in positions
    )


def _target_names(target: Node) -> list[str]:
    return [
        part.id for part in nodes.walk(target) if isinstance(part, nodes.Name) and part.id != "_"
    ]


def matched(target: Node, value: Any) -> Iterator[tuple[str, Any]]:
    """The names of a loop's target with their part of its first value."""
    match target:
        case nodes.Name(name):
            yield name, value
        case nodes.Sequence(_, targets) if value is not None:
            for each, part in zip(targets, value, strict=False):
                yield from matched(each, part)
