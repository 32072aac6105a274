"""Nodes as formulas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction as Rational
from typing import Final

from handgrad.deriving.algebra.terms import BaseTable, Component, Factor, Mask, Sum
from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    FormulaRow,
    Fraction,
    Number,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.equations.glossary import Glossary
from handgrad.equations.parts import RELATIONS
from handgrad.program.node import Node
from handgrad.program.sizes import Size

_SIGNS: Final = {"add": "+", "subtract": "−", **RELATIONS}
#: What only arranges an array: a formula shows the array itself.
_SHOWN: Final = ("reshape", "broadcast_to", "stop")


class Formulas:
    """Formulas of nodes; those in `named` are symbols."""

    def __init__(self, named: Collection[str]) -> None:
        self.named = frozenset(named)

    def symbol(self, name: str) -> Formula:
        """A name as a symbol; an adjoint is d and the symbol of what it belongs to."""
        if name[:1] == "d" and name[1:] in self.named:
            base = self.symbol(name[1:])
            is_word = isinstance(base, Text)
            return row(Symbol("d"), Space(), base) if is_word else row(Symbol("d"), base)
        found = Glossary(known=self.named, inputs=self.named).symbol(name)
        return Text(name.replace("_", " ")) if isinstance(found, Fraction | FormulaRow) else found

    def equation(self, node: Node) -> Formula:
        """A named node with what it is."""
        return row(self.symbol(node.name), Sign("="), self.inside(node))

    def of(self, node: Node) -> Formula:
        if node.name and node.op not in ("const", "size"):
            return self.symbol(node.name)
        return self.inside(node)

    def inside(self, node: Node) -> Formula:
        """A node by its operands."""
        args = node.args
        if node.op == "const":
            value = node.attrs["value"]
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            return Number(shown.replace("-", "−"))
        if node.op == "size":
            return Text(str(node.attrs["size"]))
        if node.op in _SIGNS:
            left, right = self.of(args[0]), self.of(args[1])
            inner = args[1].op in ("add", "subtract", "negative") and not args[1].name
            closed = Fenced(right) if inner and node.op == "subtract" else right
            return row(left, Sign(_SIGNS[node.op]), closed)
        if node.op == "multiply":
            return row(self._factor(args[0]), Space(), self._factor(args[1]))
        if node.op == "contract":
            return row(self._factor(args[0]), Space(), self._factor(args[1]))
        if node.op == "divide":
            return Fraction(self.of(args[0]), self.of(args[1]))
        if node.op == "negative":
            return row(Sign("−"), self._factor(args[0]))
        if node.op in ("power", "square"):
            exponent = self.of(args[1]) if node.op == "power" else Number("2")
            return Script(self._base(args[0]), sup=exponent)
        if node.op == "sqrt":
            return Root(self.of(args[0]))
        if node.op == "exp":
            return Script(Symbol("e"), sup=self.of(args[0]))
        if node.op == "sum":
            return Big("sum", self._factor(args[0]))
        if node.op == "transpose" and node.ndim == 2:
            return Script(self._base(args[0]), sup=Symbol("T"))
        if node.op in _SHOWN and args:
            return self.of(args[0])
        return self._call(node)

    def _call(self, node: Node) -> Formula:
        if node.op == "part":
            return row(Text("the loop’s result"), Space(), Number(str(node.attrs["index"] + 1)))
        word = {"softplus": "softplus", "getitem": "part"}.get(node.op, node.op.replace("_", " "))
        return row(Text(word), Fenced(separated(tuple(map(self.of, node.args)))))

    def _factor(self, node: Node) -> Formula:
        shown = self.of(node)
        is_sum = node.op in (*_SIGNS, "negative") and not node.name
        return Fenced(shown) if is_sum else shown

    def _base(self, node: Node) -> Formula:
        shown = self.of(node)
        plain = isinstance(shown, Symbol | Text | Number)
        return shown if plain else Fenced(shown)

    # Sums of products, as the algebra has them

    def sum_of(self, table: BaseTable, sum_: Sum) -> Formula:
        """One side of a step."""
        if not sum_:
            return Number("0")
        parts: list[Formula] = []
        for term, coefficient in sorted(sum_.items(), key=lambda item: (item[1] < 0, item[0])):
            if coefficient < 0 or parts:
                parts.append(Sign("−" if coefficient < 0 else "+"))
            parts.append(self._term(table, term, abs(coefficient)))
        return row(*parts)

    def _term(
        self, table: BaseTable, term: Sequence[Factor], coefficient: Rational | int
    ) -> Formula:
        above = [self._power(table, f.base, f.power) for f in term if f.power > 0]
        below = [self._power(table, f.base, -f.power) for f in term if f.power < 0]
        if coefficient.numerator != 1 or not above:
            above.insert(0, Number(str(coefficient.numerator)))
        if coefficient.denominator != 1:
            below.insert(0, Number(str(coefficient.denominator)))
        return Fraction(apart(above), apart(below)) if below else apart(above)

    def _power(self, table: BaseTable, base: int, power: Rational | int) -> Formula:
        found = table.bases[base]
        if isinstance(found, Size):
            shown: Formula = Text(str(found))
        elif isinstance(found, Mask):
            condition = self.of(found.condition)
            shown = Fenced(row(Sign("¬"), condition) if found.inverted else condition, "[")
        elif isinstance(found, Component):
            shown = Big("sum", self._term(table, found.term, Rational(1)))
        else:
            shown = self.of(found)
        if power == 1:
            return shown
        if power == Rational(1, 2):
            return Root(shown)
        exponent = str(power.numerator) + (
            "" if power.denominator == 1 else f"/{power.denominator}"
        )
        plain = isinstance(shown, Symbol | Text | Number)
        return Script(shown if plain else Fenced(shown), sup=Number(exponent))


def apart(parts: Sequence[Formula]) -> Formula:
    """Factors with a little room between them."""
    found: list[Formula] = []
    for each in parts:
        found += [Space(), each] if found else [each]
    return row(*found)
