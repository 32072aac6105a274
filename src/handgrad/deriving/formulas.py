"""Nodes as formulas."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Fraction,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
)
from handgrad.equations.glossary import Glossary
from handgrad.program.node import Node

_SIGNS: Final = {
    "add": "+",
    "subtract": "−",
    "greater": ">",
    "less": "<",
    "greater_equal": "≥",
    "less_equal": "≤",
    "equal": "=",
    "not_equal": "≠",
}
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
        return Text(name.replace("_", " ")) if isinstance(found, Fraction | Row) else found

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
        return row(Text(word), Fenced(separated([self.of(each) for each in node.args])))

    def _factor(self, node: Node) -> Formula:
        shown = self.of(node)
        is_sum = node.op in (*_SIGNS, "negative") and not node.name
        return Fenced(shown) if is_sum else shown

    def _base(self, node: Node) -> Formula:
        shown = self.of(node)
        plain = isinstance(shown, Symbol | Text | Number)
        return shown if plain else Fenced(shown)


def separated(parts: Sequence[Any]) -> Formula:
    """Formulas with commas between them."""
    found: list[Formula] = []
    for each in parts:
        found += [Sign(","), each] if found else [each]
    return row(*found) if found else Text("")
