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
    separated,
)
from handgrad.equations.parts import ATOM, BIG, CONDITION, PRODUCT, UNARY, Part, fenced
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
            return changed(self, node, symbol)
        sign = Sign("←" if self._uses(node, symbol) else "=")
        # The new shape of a whole side stands beside it.
        right = self.part(node.args[0]) if node.op == "reshape" else self.inside(node)
        return row(symbol, sign, right.formula)

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
        above = self._product(table, [f for f in term if f.power > 0], coefficient.numerator)
        below = self._product(table, [f for f in term if f.power < 0], coefficient.denominator)
        return above if below == Number("1") else Fraction(above, below)

    def _product(self, table: BaseTable, factors: Sequence[Factor], number: int) -> Formula:
        """A number, factors of one value with room between them, and arrays with ⊙."""
        found: list[Formula] = [] if number == 1 and factors else [Number(str(number))]
        in_order = sorted(factors, key=lambda factor: bool(factor.indices))
        for k, f in enumerate(in_order):
            if found:
                found.append(Sign("⊙") if k and in_order[k - 1].indices else Space())
            part = self._power(table, f.base, f.power if f.power > 0 else -f.power)
            is_last = k == len(in_order) - 1
            found.append(
                fenced(*part) if part.strength < (BIG if is_last else PRODUCT) else part.formula
            )
        return row(*found)

    def _power(self, table: BaseTable, base: int, power: Rational | int) -> Part:
        found = self._base(table.bases[base], table)
        if power == Rational(1, 2):
            return Part(Root(found.formula), UNARY)
        if power == 1:
            return found
        exponent = Number(str(power.numerator)), Number(str(power.denominator))
        return raised(found, exponent[0] if power.denominator == 1 else Fraction(*exponent))

    def _base(self, found: Node | Size | Mask | Component, table: BaseTable) -> Part:
        match found:
            case Size():
                return self.size(found)
            case Mask():
                condition = self.of(found.condition)
                inside = row(Sign("¬"), Fenced(condition)) if found.inverted else condition
                return Part(Fenced(inside, "["), ATOM)
            case Component(term, sizes):
                bound = dict(sizes)
                over = separated(tuple(self.size(size).formula for size in bound.values()))
                is_whole = all(i in bound for factor in term for i in factor.indices)
                inside = self._term(table, term, Rational(1))
                return Part(Big("sum", inside, None if is_whole else over), BIG)
        return self.part(found)
