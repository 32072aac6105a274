"""Nodes as formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction as Rational

from handgrad.deriving.algebra.terms import BaseTable, Component, Factor, Mask, Sum
from handgrad.deriving.filled import changed
from handgrad.deriving.notation import NOTATIONS, by_name
from handgrad.deriving.symbols import NodeSymbols
from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Fraction,
    Number,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    row,
)
from handgrad.equations.parts import ATOM, CONDITION, PRODUCT, UNARY, Part, fenced
from handgrad.equations.parts import power as raised
from handgrad.program.node import Loop, Node
from handgrad.program.sizes import Size


class Formulas:
    """Formulas of nodes; those that have `symbols` are written by them."""

    def __init__(self, symbols: NodeSymbols, nodes: Iterable[Node]) -> None:
        self.symbols = symbols
        #: For each input of a loop's rounds the node that it is outside of them.
        self._outside: dict[int, Node] = {}
        for node in nodes:
            if node.op == "loop":
                inputs = node.attrs["loop"].body.inputs
                self._outside |= dict(zip(map(id, inputs), node.args, strict=False))

    def equation(self, node: Node) -> Formula:
        """A node that has a symbol, with what it is; in a round also with what it was before."""
        symbol = self.symbols.of(node)
        is_change = node.op in ("store", "add_at")
        if is_change and node.args[0] in self.symbols and self.symbols.of(node.args[0]) == symbol:
            return changed(self, node)
        sign = Sign("←" if self._uses(node, symbol) else "=")
        return row(symbol, sign, self.inside(node).formula)

    def _uses(self, node: Node, symbol: Formula) -> bool:
        """True where a node is written with this symbol; each node in it is looked at once."""
        waiting, seen = [node], {id(node)}
        while waiting:
            each = waiting.pop()
            if each.op in ("part", "loop"):
                continue
            inside = [self._outside[id(each)]] if id(each) in self._outside else each.args
            if (same := self.symbols.same.get(id(each))) is not None:
                inside = [same]
            for arg in inside:
                if arg in self.symbols:
                    if self.symbols.of(arg) == symbol:
                        return True
                elif id(arg) not in seen:
                    seen.add(id(arg))
                    waiting.append(arg)
        return False

    def outside(self, node: Node) -> Node:
        """The node outside that an input of a loop's rounds stands for; any other node itself."""
        while id(node) in self._outside:
            node = self._outside[id(node)]
        return node

    def of(self, node: Node, strength: int = CONDITION) -> Formula:
        """The formula of a node, in brackets where it holds together less than `strength`."""
        formula, own = self.part(node)
        return fenced(formula, own) if own < strength else formula

    def part(self, node: Node) -> Part:
        if node in self.symbols:
            symbol = self.symbols.of(node)
            return Part(symbol, UNARY if isinstance(symbol, Fraction) else ATOM)
        return self.inside(node)

    def inside(self, node: Node) -> Part:
        """A node by its operands."""
        if (same := self.symbols.same.get(id(node))) is not None:
            return self.part(same)
        if node.op == "part":
            return Part(self._result(node), ATOM)
        if node.op == "input" and id(node) in self._outside:
            return self.part(self._outside[id(node)])
        return NOTATIONS.get(node.op, by_name)(self, node)

    def _result(self, node: Node) -> Formula:
        """A result of a loop: a value as it is after the last round, or those of all rounds."""
        whole, index = node.args[0], node.attrs["index"]
        if whole.op != "loop":
            return Script(Fenced(self.of(whole)), Number(str(index + 1)))
        if (left := self.symbols.left(node)) is not None:
            return left
        loop: Loop = whole.attrs["loop"]
        output = loop.body.outputs[index]
        inner = self.part(output).formula
        if index < loop.carried:
            carry = loop.body.inputs[loop.constants + index]
            inner = self.symbols.of(carry) if carry.name else inner
            last = Number("0") if loop.reverse else self.size(loop.count).formula
            return Script(Fenced(inner), last)
        return inner if isinstance(inner, Symbol | Script) else Fenced(inner)

    def size(self, size: Size | int) -> Part:
        """A size in letters."""
        return self.symbols.size(size)

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
        found = self._base(table.bases[base], table)
        if power == Rational(1, 2):
            return Root(found.formula)
        if power == 1:
            return fenced(*found) if found.strength < PRODUCT else found.formula
        exponent = Number(str(power.numerator)), Number(str(power.denominator))
        return raised(found, exponent[0] if power.denominator == 1 else Fraction(*exponent)).formula

    def _base(self, found: Node | Size | Mask | Component, table: BaseTable) -> Part:
        match found:
            case Size():
                return self.size(found)
            case Mask():
                condition = self.of(found.condition)
                inside = row(Sign("¬"), Fenced(condition)) if found.inverted else condition
                return Part(Fenced(inside, "["), ATOM)
            case Component():
                return Part(Big("sum", self._term(table, found.term, Rational(1))), PRODUCT)
        return self.part(found)


def apart(parts: Sequence[Formula]) -> Formula:
    """Factors with a little room between them."""
    found: list[Formula] = []
    for each in parts:
        found += [Space(), each] if found else [each]
    return row(*found)
