"""From a node of a program to a formula.

A node that has a symbol is written by it, any other by its operation. What is summed over is an
index of what it is summed of, Σ_d x_d; functions, powers and products ⊙ are element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from string import ascii_letters
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import (
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Root,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.equations import exact, indexing, notations, reductions
from handgrad.equations.constants import global_constant
from handgrad.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    LOGIC,
    PRODUCT,
    RELATIONS,
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
from handgrad.equations.places import moved, split
from handgrad.equations.products import Item, divided
from handgrad.equations.scope import LoopPosition, Scope
from handgrad.equations.shaping import (
    SHAPING,
    Subscripts,
    carried,
    of_columns,
    of_rows,
    shape,
    shaped,
    subscript_of,
    through,
    whole_number,
)
from handgrad.errors import ArgumentError
from handgrad.program import Node
from handgrad.program.arranging import is_transpose
from handgrad.program.functions import is_array
from handgrad.program.sizes import ONE, Size

_NOT: Final = frozenset({"bitwise_invert", "logical_not"})
_REDUCED: Final = frozenset({"sum", "mean", "max", "min", "prod", "any", "all"})


@dataclass(frozen=True)
class Writer:
    """Writes nodes. `figures`, if given, writes what has a symbol as its value."""

    scope: Scope
    place: LoopPosition | None = None
    figures: Callable[[Any], Formula] | None = None
    #: The node that is written out although it has a symbol.
    defined: Node | None = None
    #: The symbols of nodes between ops, whose axes and indices are written as the code has them.
    exact: Mapping[Node, Formula] | None = None

    def definition(self, node: Node, subscripts: Subscripts = ()) -> Formula:
        """The right side of an equation: a condition stands in brackets, which are 1 or 0."""
        self.scope.length = 0
        whole = replace(self, defined=node)
        formula, strength = whole.part(node, subscripts)
        return fenced(formula, strength) if is_condition(formula) else formula

    def result(self, value: Any) -> Formula:
        """A result, by its symbol if it has one."""
        formula, strength = self.part(value)
        return fenced(formula, strength) if is_condition(formula) else formula

    def write(self, value: Any, around: int = CONDITION, subscripts: Subscripts = ()) -> Formula:
        """The formula, in brackets where it would fall apart within something of `around`."""
        formula, strength = self.part(value, subscripts)
        return formula if strength >= around else fenced(formula, strength)

    def at(self, place: LoopPosition) -> Writer:
        """The same at another place."""
        return replace(self, place=place)

    def has_symbol(self, node: Any) -> bool:
        symbols = self.scope.symbols if self.exact is None else self.exact
        return isinstance(node, Node) and node in symbols and node is not self.defined

    def bare(self, node: Any) -> Any:
        """The node without operations that only shape it, which are written where it is exact."""
        while self.exact is None and isinstance(node, Node) and not self.has_symbol(node):
            inner = shaped(node)
            if inner is None:
                return node
            if node.op == "getitem" and inner is not node.args[0] and self.has_symbol(node.args[0]):
                return node  # an element of an array that has a symbol after each change
            node = inner
        return node

    def part(self, value: Any, subscripts: Subscripts = ()) -> Part:
        if not isinstance(value, Node):
            return self._plain(value)
        self.scope.length += 1
        if self.scope.length > _LONGEST:
            raise ArgumentError(
                f"notes: an equation has more than {_LONGEST} parts; allowed: fewer, with names "
                "for some of the values between"
            )
        subscripts = carried(value, subscripts)
        inner = self.bare(value)
        if inner is not value:
            return self.part(inner, through(value, inner, subscripts))
        if self.has_symbol(value):
            return self._symbol(value, subscripts)
        return self._operation(value, subscripts)

    def _plain(self, value: Any) -> Part:
        if isinstance(value, tuple | list):
            return Part(Fenced(separated(tuple(map(self.write, value)))), ATOM)
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool | int | float | str) or value is None or value is ...:
            return constant(value)
        return Part(Text(type(value).__name__.lower()), ATOM)

    def _symbol(self, node: Node, subscripts: Subscripts) -> Part:
        if self.figures is not None and (is_array(node.value) or isinstance(node.value, float)):
            figure = self.figures(node.value)
            return Part(figure, SUM if isinstance(figure, FormulaRow) else UNARY)
        if self.exact is None:
            self.scope.use(node)
            formula = self.scope.symbol(node, self.place, subscript_of(subscripts))
        else:
            formula = self.exact[node]
        return Part(formula, strength_of(formula))

    def _operation(self, node: Node, subscripts: Subscripts) -> Part:
        if self.exact is not None and (found := exact.written(self, node)) is not None:
            return found
        match node.op, node.args:
            case "input", _:
                return self._input(node)
            case "size" | "count", _:
                return Part(self.scope.dimensions.size(whole_number(node)), UNARY)
            case "counter", _:
                return self.counted(node)
            case "add" | "subtract", _:
                return self._sum(node, subscripts)
            case "multiply" | "divide", _:
                return self._product(node, subscripts)
            case "floor_divide" | "remainder", (left, right) if not is_array(node.value):
                return self._whole_number(node, left, right)
            case "negative", (value,):
                return Part(row(Sign("−"), self.write(value, BIG, subscripts)), SUM)
            case "pow", (base, exponent):
                return self._power(base, exponent, subscripts)
            case "matmul" | "dot", (left, right):
                return self._matmul(left, right, subscripts)
            case "where", (test, yes, no):
                return self.cases([(yes, test)], no, subscripts)
            case op, (left, right) if op in RELATIONS:
                return self._compared(RELATIONS[op], left, right, subscripts)
            case op, (left, right) if op in LOGIC:
                several = tuple(self.write(each, CONDITION, subscripts) for each in (left, right))
                return Part(separated(several, LOGIC[op]), CONDITION)
            case op, (value, *_) if op in _NOT:
                return Part(row(Sign("¬"), self.write(value, ATOM, subscripts)), UNARY)
        return self._shaped(node, subscripts) if self.exact is None else exact.called(self, node)

    def _shaped(self, node: Node, subscripts: Subscripts) -> Part:
        """An operation on the axes of an array, or any other."""
        match node.op, node.args:
            case _, (value, *_) if is_transpose(node):
                return self._transposed(value, subscripts)
            case "getitem", _:
                return indexing.indexed(self, node, subscripts)
            case "asarray", (list(), *_):
                return notations.stacked(self, node, subscripts)
            case op, (value, *_) if op in SHAPING:
                return self.part(value, subscripts)
            case op, (Node() as value, *_) if op in _REDUCED and is_array(value.value):
                return reductions.reduced(self, node, subscripts)
        return notations.called(self, node, subscripts)

    def _input(self, node: Node) -> Part:
        """A number as it is, anything else by the end of its name: x for cache.x."""
        value = node.value
        plain = node.name.rpartition(".")[2].strip("_")
        if plain.isupper() and isinstance(value, float) and len(plain) > 1:
            return global_constant(plain, value)
        if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub":
            return constant(np.asarray(value).item())
        words = "".join(each for each in plain.replace("_", " ") if each.isalnum() or each in " .,")
        return Part(Text(words or "array"), ATOM)

    def counted(self, node: Node) -> Part:
        """The counter of a loop: of one over steps its step less one, as the code counts from 0."""
        found = self.scope.round_of(node)
        if found is None or self.place is None:
            symbol = self.scope.glossary.symbol(node.name)
            return Part(symbol, strength_of(symbol))
        place = moved(self.place.step, found[1] - self.place.counted - 1)
        return Part(place, SUM if isinstance(place, FormulaRow) else ATOM)

    def _whole_number(self, node: Node, left: Any, right: Any) -> Part:
        """A size by its letters, k mod 2, or k // 2 as the code has it."""
        size = self.scope.dimensions.size(whole_number(node))
        if not isinstance(size, Number) or not node.rounds:
            return Part(size, UNARY)
        sign = Text(" mod " if node.op == "remainder" else " // ")
        return Part(row(self.write(left, UNARY), sign, self.write(right, UNARY)), PRODUCT)

    def cases(self, pairs: list[tuple[Any, Any]], otherwise: Any, subscripts: Subscripts) -> Part:
        """A value for each condition, and one where none holds."""
        where, elsewhere = self.scope.words
        rows: list[tuple[Formula, Formula]] = [
            (
                self.write(value, SUM, subscripts),
                row(Text(f"{where} "), self.write(test, CONDITION, subscripts)),
            )
            for value, test in pairs
        ]
        rows.append((self.write(otherwise, SUM, subscripts), Text(elsewhere)))
        return Part(Cases(tuple(rows)), CONDITION)

    # Sums and products

    def _sum(self, node: Node, subscripts: Subscripts) -> Part:
        place = indexing.place_of(self, node)
        if place is not None:
            place = moved(place, -1)
            return Part(place, SUM if isinstance(place, FormulaRow) else ATOM)
        is_named = any(self.has_symbol(each) for each in node.args)
        if isinstance(node.value, int) and not is_array(node.value) and not is_named:
            size = self.scope.dimensions.size(whole_number(node))
            if not isinstance(size, Number):
                return Part(size, SUM if isinstance(size, FormulaRow) else UNARY)
        parts: list[Formula] = []
        terms = [each for each in self._terms(node) if not self._is_zero(each[1])]
        if len(terms) == 1 and terms[0][0] > 0:
            return self.part(terms[0][1], subscripts)
        for sign, value in terms:
            inner = self.bare(value)
            if self._is(inner, "negative"):
                sign, value = -sign, inner.args[0]
            written = self.write(value, BIG if parts else SUM, subscripts)
            if parts or sign < 0:
                parts.append(Sign("+" if sign > 0 else "−"))
            parts.append(written)
        return Part(row(*parts), SUM)

    def _is(self, node: Any, *ops: str) -> bool:
        return isinstance(node, Node) and node.op in ops and not self.has_symbol(node)

    def _terms(self, node: Node) -> Iterator[tuple[int, Any]]:
        left, right = node.args
        inner = self.bare(left)
        if self._is(inner, "add", "subtract") and shape(inner) == shape(left):
            yield from self._terms(inner)
        else:
            yield 1, left
        yield (1 if node.op == "add" else -1), right

    def _is_zero(self, value: Any) -> bool:
        if isinstance(value, Node) and value in self.scope.zeros:
            return True
        return self._is(value, "multiply") and any(map(self._is_zero, value.args))

    def _product(self, node: Node, subscripts: Subscripts) -> Part:
        above: list[Item] = []
        below: list[Item] = []
        negative = False
        found = []
        for inverse, value in self._factors(node):
            sign, value = self._without_sign(value)
            negative ^= sign
            found.append((inverse, self.part(value, subscripts), self._is_full(value, subscripts)))
        for (inverse, written, full), group in groupby(found):
            formula, strength = written
            times = len(list(group))
            if times > 1:
                formula, strength = power(written, Number(str(times)))
            if is_one(formula):
                continue
            if isinstance(formula, Fraction) and is_one(formula.numerator):
                inverse, formula, strength = not inverse, formula.denominator, SUM
            (below if inverse else above).append((formula, strength, full))
        above.sort(key=lambda each: not _is_number(each[0]))
        whole = divided(above, below)
        return Part(row(Sign("−"), whole.formula), SUM) if negative else whole

    def _without_sign(self, value: Any) -> tuple[bool, Any]:
        inner = self.bare(value)
        if self._is(inner, "negative"):
            return True, inner.args[0]
        if type(inner) in (int, float) and inner < 0:
            return True, -inner
        return False, value

    def _factors(self, node: Node) -> Iterator[tuple[bool, Any]]:
        """The factors with products among them opened, and without those that are 1."""
        left, right = node.args
        for inverse, value in ((False, left), (node.op == "divide", right)):
            inner = self.bare(value)
            if isinstance(inner, Node) and inner in self.scope.ones:
                continue
            if self._is(inner, "multiply", "divide") and shape(inner) == shape(value):
                for other, each in self._factors(inner):
                    yield inverse != other, each
            else:
                yield inverse, value

    def _is_full(self, value: Any, subscripts: Subscripts) -> bool:
        """True where the value has entries along the last axis that are not summed over."""
        own_shape = shape(value)
        if self.exact is not None:
            return math.prod(own_shape) not in (1, ONE)
        own = carried(value, subscripts)
        return bool(own_shape) and own_shape[-1] != ONE and not (own and own[-1] is not None)

    def _power(self, base: Any, exponent: Any, subscripts: Subscripts) -> Part:
        if exponent == 0.5:
            return Part(Root(self.write(base, CONDITION, subscripts)), UNARY)
        if type(exponent) in (int, float) and exponent < 0:
            inverse = self.part(base, subscripts)
            if exponent != -1:
                inverse = self._power(base, -exponent, subscripts)
            return divided([], [(*inverse, False)])
        return power(self.part(base, subscripts), self.write(exponent))

    def _matmul(self, left: Any, right: Any, subscripts: Subscripts) -> Part:
        if (total := reductions.over_rows(self, left, right)) is not None:
            return total
        axes = len(shape(left)), len(shape(right))
        first = self.write(left, PRODUCT, of_rows(subscripts, axes[1]))
        second = self.write(right, PRODUCT, of_columns(subscripts, *axes))
        return Part(juxtaposed([first, second]), PRODUCT)

    def _transposed(self, value: Any, subscripts: Subscripts) -> Part:
        if self.figures is not None and is_array(value.value) and value.value.ndim == 2:
            return Part(self.figures(value.value.T), UNARY)
        swapped = (*subscripts[:-2], *reversed(subscripts[-2:]))
        return power(self.part(value, swapped), Sign("⊤"))

    def _compared(self, relation: str, left: Any, right: Any, subscripts: Subscripts) -> Part:
        first = self.write(left, SUM, subscripts)
        second = self.write(right, SUM, subscripts)
        counted = [notations.is_count(self, each) for each in (left, right)]
        (base, before), (_, behind) = split(first), split(second)
        if all(counted) and before == behind == -1:
            first, second = moved(first, 1), moved(second, 1)
        elif counted[0] and relation == "<" and (base is None or before == -1):
            first, relation = moved(first, 1), "≤"  # of whole numbers
        return Part(row(first, Sign(relation), second), CONDITION)

    def letter(self, size: Size, taken: list[str]) -> Formula:
        """A letter for an index: d for D, unless something else is called d."""
        letters = self.scope.glossary.letters | set(taken)
        dimension = self.scope.dimensions.letter(size)
        wanted = [dimension[0].lower()] if dimension else []
        found = next(
            each for each in [*wanted, *_INDEX_LETTERS, *ascii_letters] if each not in letters
        )
        taken.append(found)
        return Symbol(found)


def _is_number(formula: Formula) -> bool:
    """True for what stands before other factors: 2 x, and ½ x."""
    match formula:
        case Number() | Fraction(Number(), Number()):
            return True
    return False


_INDEX_LETTERS: Final = "ijklrqp"
#: Parts of an equation; what is longer nobody reads, and takes for ever where loops are unrolled.
_LONGEST: Final = 5000
