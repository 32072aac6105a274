"""The nodes of a forward as Python: one expression for each, in the names of the arrays."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from handgrad.deriving.evaluation import value_of
from handgrad.deriving.sizes import Sizes
from handgrad.deriving.terms import Factor, Power, magnitude
from handgrad.errors import ArgumentError
from handgrad.program.functions import OPERATORS, Attribute, Method, element, getitem
from handgrad.program.nodes import Node

_INFIX: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "matmul": "@",
    "pow": "**",
    "floor_divide": "//",
    "remainder": "%",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_PREFIX: Final = {"negative": "-", "positive": "+", "bitwise_invert": "~"}
_STRENGTH: Final = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    "|": 2,
    "^": 3,
    "&": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "@": 6,
    "//": 6,
    "%": 6,
    "**": 8,
}
_UNARY, _ATOM = 7, 9
#: Names in NumPy of what the array API calls otherwise, for those that older versions lack.
_NUMPY: Final = {"concat": "concatenate", "permute_dims": "transpose", "pow": "power"}


class UnreadableError(ArgumentError):
    """A forward of which no derivation can be made: its line, and why."""


def refuse(node: Node, why: str) -> UnreadableError:
    """The error for a node: where it stands in the source, and why it cannot be derived."""
    where = f"line {node.line}: {node.site.text}" if node.site is not None else node.op
    return UnreadableError(f"derive: {where[:100]}: {why}")


def unexpected(error: Exception, function: Any) -> UnreadableError:
    """The error for what nothing here expects: the operation that was at work, and its line."""
    why = f"no derivation of this is known ({type(error).__name__}: {error}); allowed: a forward "
    why += "without it"
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for value in frame.f_locals.values():
            node = value if isinstance(value, Node) else getattr(value, "node", None)
            if isinstance(node, Node) and node.site is not None:
                return refuse(node, why)
    return UnreadableError(f"derive: {of_function(function)}: {why}")


def of_function(function: Any) -> str:
    """The line of a function's definition."""
    line = getattr(getattr(function, "__code__", None), "co_firstlineno", 0)
    return f"line {line}: def {getattr(function, '__name__', 'forward')}"


@dataclass
class Source:
    """Expressions for nodes; those in `names` by their name.

    twins: for every node that of the run at other sizes. settings: arguments that are no arrays.
    """

    sizes: Sizes
    twins: Mapping[Node, Node]
    settings: Mapping[str, Any]
    names: dict[Node, str] = field(default_factory=dict)

    def text(self, value: Any, around: int = 0) -> str:
        """The expression of a node, in brackets where the surroundings bind more tightly."""
        if isinstance(value, Node):
            if value in self.names:
                return self.names[value]
            written, strength = self.definition(value)
            return f"({written})" if strength < around else written
        return repr(value)

    def definition(self, node: Node) -> tuple[str, int]:
        """The expression that makes a node, and how tightly it binds."""
        twin, function = self.twins[node], node.function
        args, kwargs = node.args, dict(node.kwargs)
        if function is None:
            raise refuse(node, "a random draw or an array from outside; allowed: an argument")
        if function is OPERATORS.get(node.op):
            if node.op in _INFIX:
                sign = _INFIX[node.op]
                strength = _STRENGTH[sign]
                left = self._argument(node, twin, args[0], twin.args[0], strength)
                right = self._argument(node, twin, args[1], twin.args[1], strength + 1)
                return f"{left} {sign} {right}", strength
            if node.op in _PREFIX:
                operand = self._argument(node, twin, args[0], twin.args[0], _UNARY)
                return _PREFIX[node.op] + operand, _UNARY
        if function is getitem:
            owner = self._argument(node, twin, args[0], twin.args[0], _ATOM)
            return f"{owner}[{self._index(node, twin, args[1], twin.args[1])}]", _ATOM
        if function is element:
            owner = self._argument(node, twin, args[0], twin.args[0], _ATOM)
            return f"{owner}[{args[1]}]", _ATOM
        if isinstance(function, Attribute):
            return f"{self.text(args[0], _ATOM)}.{function.name}", _ATOM
        written = [
            self._argument(node, twin, each, other, 0)
            for each, other in zip(args, twin.args, strict=True)
        ]
        written += [
            f"{name}={self._argument(node, twin, each, twin.kwargs[name], 0)}"
            for name, each in kwargs.items()
        ]
        if isinstance(function, Method):
            owner = self._argument(node, twin, args[0], twin.args[0], _ATOM)
            return f"{owner}.{function.name}({', '.join(written[1:])})", _ATOM
        return f"{self._called(node)}({', '.join(written)})", _ATOM

    def _called(self, node: Node) -> str:
        name = getattr(node.function, "__name__", "")
        name = name if hasattr(np, name) else node.op
        name = _NUMPY.get(name, name)
        if hasattr(np.linalg, name) and not hasattr(np, name):
            return f"np.linalg.{name}"
        if not hasattr(np, name):
            raise refuse(node, f"{name or node.op} is no function of the array API")
        return f"np.{name}"

    def _argument(self, node: Node, twin: Node, value: Any, other: Any, around: int) -> str:
        if isinstance(value, Node):
            return self.text(value, around)
        if isinstance(value, tuple | list):
            parts = [
                self._argument(node, twin, each, its, 0)
                for each, its in zip(value, other, strict=True)
            ]
            if isinstance(value, list):
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if (setting := self.setting(node, value)) is not None:
            return setting
        if isinstance(value, int | float) and not isinstance(value, bool) and value != other:
            return self.size(node, value, other)
        if isinstance(value, type | np.dtype):
            return f"np.{np.dtype(value).name}"
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return f"{'-' if value < 0 else ''}np.{'nan' if math.isnan(value) else 'inf'}"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        raise refuse(node, f"a {type(value).__name__} is an operand; allowed: arrays and numbers")

    def argument(self, node: Node, at: int, around: int = 0) -> str:
        """An operand by its position."""
        return self._argument(
            node, self.twins[node], node.args[at], self.twins[node].args[at], around
        )

    def index(self, node: Node) -> str:
        """The index of a getitem."""
        return self._index(node, self.twins[node], node.args[1], self.twins[node].args[1])

    def size(self, node: Node, first: Any, second: Any) -> str:
        """A number that depends on the sizes, as an expression of their letters."""
        if isinstance(first, int) and (text := self.sizes.text(first, second)):
            return text if text.isidentifier() or text.isdecimal() else f"({text})"
        found = self.sizes.number(first, second)
        if found is None:
            raise refuse(node, f"{first!r} depends on the sizes in a way that is not known")
        ((factors, _), times) = next(iter(found.items()))
        above = [self._root(f) for f in factors if f.power > 0]
        below = [self._root(f) for f in factors if f.power < 0]
        number = [repr(times.numerator) if times.denominator == 1 else repr(float(times))]
        numbers = number if times != 1 or not above else []
        quotient = " * ".join([*numbers, *above]) + "".join(f" / {each}" for each in below)
        power = " * ".join([*numbers, *(f"{f.name[1:]} ** {float(f.power)}" for f in factors)])
        forms = [quotient, power, f"np.sqrt({' * '.join(f.name[1:] for f in factors)})"]
        exact = (form for form in forms if self._value(form) == (first, second))
        return f"({next(exact, quotient)})"

    def _root(self, factor: Factor) -> str:
        """A size to a power, without its sign."""
        name, power = factor.name[1:], magnitude(factor.power)
        if power == 1:
            return name
        return f"np.sqrt({name})" if power == Fraction(1, 2) else f"{name} ** {_short(power)}"

    def _value(self, form: str) -> tuple[float, float]:
        one, two = (
            float(value_of(form, {x: both[run] for x, both in self.sizes.lengths.items()}))
            for run in (0, 1)
        )
        return one, two

    def setting(self, node: Node, value: Any) -> str | None:
        """The name of the argument that a number is, where the source says so."""
        if node.site is None or not isinstance(value, int | float) or isinstance(value, bool):
            return None
        for name, known in self.settings.items():
            if value == known and re.search(rf"\b{re.escape(name)}\b", node.site.text):
                return name
        return None

    def _index(self, node: Node, twin: Node, index: Any, other: Any) -> str:
        if isinstance(index, tuple):
            parts = [
                self._index(node, twin, each, its) for each, its in zip(index, other, strict=True)
            ]
            return ", ".join(parts) + ("," if len(parts) == 1 else "")
        if isinstance(index, slice):
            parts = [
                "" if each is None else self._argument(node, twin, each, its, 0)
                for each, its in (
                    (index.start, other.start),
                    (index.stop, other.stop),
                    (index.step, other.step),
                )
            ]
            return f"{parts[0]}:{parts[1]}" + (f":{parts[2]}" if parts[2] else "")
        if index is Ellipsis:
            return "..."
        return self._argument(node, twin, index, other, 0)


def _short(power: Power) -> str:
    return str(power) if power.denominator == 1 else repr(float(power))
