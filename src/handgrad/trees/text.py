"""A tree as one line of plain text, as a person would say it: `−x̂ mean(dx̂ x̂)`.

For messages. Brackets stand where Python needs them; shaping calls such as `reshape` are left out,
because they change no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handgrad.program.words import symbol
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

#: Calls that arrange values and change none; they print as their argument.
SHAPING: Final = frozenset(
    {
        "reshape",
        "expand_dims",
        "squeeze",
        "astype",
        "asarray",
        "broadcast_to",
        "ravel",
        "grouped",
        "ungrouped",
        "copy",
        "contiguous",
    }
)
_SUM, _PRODUCT, _UNARY, _ATOM = range(4)

Definition = Callable[[str], Node | None]


def text(node: Node, definition: Definition | None = None) -> str:
    """The node in a line. With `definition`, a name for a mean or sum is written out as that."""
    return _Writer(definition).write(node, 0)


def called(function: Node | None) -> str:
    """The last part of a function's name: `exp` of `xp.exp`."""
    match function:
        case nodes.Name(name) | nodes.Attribute(_, name):
            return name
    return ""


class _Writer:
    def __init__(self, definition: Definition | None) -> None:
        self.definition = definition

    def write(self, node: Node, around: int) -> str:
        words, strength = self.parts(node)
        return words if strength >= around else f"({words})"

    def parts(self, node: Node) -> tuple[str, int]:
        """The words, and how tightly they hold together."""
        match node:
            case nodes.Name(name):
                value = self.definition(name) if self.definition else None
                if isinstance(value, nodes.Reduce):
                    return self.parts(value)
                return symbol(name), _ATOM
            case nodes.Constant(value):
                return ("..." if value is ... else f"{value}".replace("-", "−")), _ATOM
            case nodes.Sum(terms):
                first, *rest = terms
                words = self.write(first.value, _SUM)
                for term in rest:
                    sign = " + " if term.sign > 0 else " − "
                    words += sign + self.write(term.value, _PRODUCT)
                return words, _SUM
            case nodes.Product(factors):
                words = self.write(factors[0].value, _PRODUCT)
                for factor in factors[1:]:
                    words += ("/" if factor.inverse else " ") + self.write(factor.value, _UNARY)
                return words, _PRODUCT
            case nodes.Negative(value):
                return "−" + self.write(value, _PRODUCT), _PRODUCT
            case nodes.MatMul(left, right):
                return f"{self.write(left, _PRODUCT)} @ {self.write(right, _UNARY)}", _PRODUCT
            case nodes.Power(base, nodes.Constant(2)):
                return self.write(base, _ATOM) + "²", _ATOM
            case nodes.Power(base, exponent):
                return f"{self.write(base, _ATOM)}^{self.write(exponent, _ATOM)}", _ATOM
            case nodes.Transpose(value):
                return self.write(value, _ATOM) + "ᵀ", _ATOM
            case nodes.Reduce(kind, value):
                return f"{kind}({self.write(value, 0)})", _ATOM
            case nodes.Where(condition, yes, no):
                inner = ", ".join(self.write(each, 0) for each in (condition, yes, no))
                return f"where({inner})", _ATOM
            case nodes.Call(function, (nodes.Loop() as loop,), _):
                return f"{called(function)} of {self.write(loop.element, _ATOM)}", _PRODUCT
            case nodes.Call(function, arguments, _) if called(function) in SHAPING and arguments:
                return self.parts(arguments[0])
            case nodes.Call(function, arguments, _):
                inner = ", ".join(self.write(each, 0) for each in arguments)
                return f"{called(function)}({inner})", _ATOM
            case nodes.Method(value, name, _, _) if name in SHAPING:
                return self.parts(value)
            case nodes.Method(value, name, arguments, _):
                inner = ", ".join(self.write(each, 0) for each in arguments)
                return f"{self.write(value, _ATOM)}.{name}({inner})", _ATOM
            case nodes.Attribute(value, name):
                return f"{self.write(value, _ATOM)}.{name}", _ATOM
            case nodes.Index(value, index):
                return f"{self.write(value, _ATOM)}[{self.index(index)}]", _ATOM
            case nodes.Sequence(_, items):
                return f"({', '.join(self.write(each, 0) for each in items)})", _ATOM
            case nodes.Compare(operator, left, right):
                return f"{self.write(left, _SUM)} {operator} {self.write(right, _SUM)}", _SUM - 1
            case nodes.Logic(operator, (value,)):
                return f"{operator} {self.write(value, _UNARY)}", _UNARY
            case nodes.Logic(operator, values):
                return f" {operator} ".join(self.write(each, _SUM) for each in values), _SUM - 1
            case nodes.Choice(test, yes, no):
                either = (self.write(each, _SUM) for each in (yes, test, no))
                return "{} if {} else {}".format(*either), _SUM - 1
            case nodes.Loop(_, element):
                return f"{self.write(element, _SUM)}, ...", _SUM - 1
            case nodes.Starred(value):
                return "*" + self.write(value, _ATOM), _ATOM
            case nodes.Integral(operator, left, right):
                return (
                    f"{self.write(left, _UNARY)} {operator} {self.write(right, _UNARY)}",
                    _PRODUCT,
                )
        return type(node).__name__.lower(), _ATOM

    def index(self, node: Node) -> str:
        match node:
            case nodes.Sequence(_, items):
                return ", ".join(map(self.index, items))
            case nodes.Slice(lower, upper, step):
                parts = ["" if each is None else self.write(each, 0) for each in (lower, upper)]
                return ":".join(parts) + ("" if step is None else f":{self.write(step, 0)}")
        return self.write(node, 0)
