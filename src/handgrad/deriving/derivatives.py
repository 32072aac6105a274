"""Derivatives of what is no sum of products, one rule for each function.

An element-wise function has a local derivative, which multiplies the adjoint; one that moves
elements has its transpose, which is Python over the adjoint's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from handgrad.deriving.arrays import Array, Graph
from handgrad.deriving.forward import Reader
from handgrad.deriving.rules import axes_of
from handgrad.deriving.source import refuse
from handgrad.deriving.terms import ONE, Sum, add, constant, multiply, of, opposite, powered, scaled
from handgrad.program.nodes import Node


@dataclass
class Context:
    """What rules are made of."""

    graph: Graph
    reader: Reader

    def helper(self, name: str, code: str, node: Node, reads: tuple[str, ...]) -> str:
        """An array that the backward computes, of the shape of a node; its name."""
        same = [
            each.name
            for each in self.graph.arrays.values()
            if each.is_backward and each.code == code
        ]
        if same:
            return same[0]
        name = self.graph.unique(name)
        axes = self.reader.axes(node)
        self.graph.add(Array(name, axes, None, code, reads, is_backward=True))
        return name

    def name(self, node: Node) -> str:
        return self.reader.array_of(node)

    def shape(self, node: Node) -> str:
        """A node's shape as Python."""
        parts = ["1" if each is None else each for each in self.reader.axes(node)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def own(self, node: Node) -> Sum:
        """A node as one array over its own indices."""
        self.name(node)
        return self.reader.sums[node]

    def over(self, node: Node, value: Any, position: int) -> Sum:
        """An operand as one array, or a number, over the indices of a node."""
        if isinstance(value, Node):
            self.name(value)
        twin = self.reader.twins[node]
        found = self.reader.operand(node, value, twin.args[position], self.reader.axes(node))
        if found is None:
            raise refuse(node, f"operand {position + 1} is not understood")
        return found

    def argument(self, node: Node, at: int, around: int = 0) -> str:
        """An operand as Python."""
        return self.reader.source.argument(node, at, around)

    def applied(self, node: Node, name: str, code: str) -> Sum:
        """A function of the first operand, computed in the backward, over the node's indices."""
        x = self.name(node.operands[0])
        helper = self.helper(f"{name}_{x}", code.format(x=x, y=self.name(node)), node, (x,))
        return self.graph.factor(helper)

    def mask(self, node: Node, condition: str, reads: tuple[str, ...]) -> Sum:
        """Zeros and ones of the shape of a node."""
        helper = self.helper("mask", condition, node, reads)
        return of(f"[{helper}]", self.graph[helper].indices)


Local = Callable[[Context, Node], list[tuple[Node, Sum]]]
Transpose = Callable[[Context, Node, str], list[tuple[Node, str]]]
LOCAL: Final[dict[str, Local]] = {}
TRANSPOSED: Final[dict[str, Transpose]] = {}


def local(*ops: str) -> Callable[[Local], Local]:
    def register(function: Local) -> Local:
        LOCAL.update(dict.fromkeys(ops, function))
        return function

    return register


def transposed(*ops: str) -> Callable[[Transpose], Transpose]:
    def register(function: Transpose) -> Transpose:
        TRANSPOSED.update(dict.fromkeys(ops, function))
        return function

    return register


def _of_one(derivative: Callable[[Context, Node, Sum, Sum], Sum]) -> Local:
    """The rule of a function of one array, from its derivative in terms of y and x."""

    def rule(context: Context, node: Node) -> list[tuple[Node, Sum]]:
        (operand,) = node.operands[:1]
        return [(operand, derivative(context, node, context.own(node), context.own(operand)))]

    return rule


def _inverse(sum_: Sum) -> Sum:
    found = powered(sum_, Fraction(-1))
    assert found is not None
    return found


def _opposite(mask: Sum) -> Sum:
    ((factors, _), _) = next(iter(mask.items()))
    return of(opposite(factors[0].name), factors[0].indices)


def _number(value: float) -> Sum:
    return constant(Fraction(repr(value)))


LOCAL["exp"] = _of_one(lambda c, n, y, x: y)
LOCAL["expm1"] = _of_one(lambda c, n, y, x: add(y, ONE))
LOCAL["exp2"] = _of_one(lambda c, n, y, x: multiply(_number(math.log(2)), y))
LOCAL["log"] = _of_one(lambda c, n, y, x: _inverse(x))
LOCAL["log2"] = _of_one(lambda c, n, y, x: multiply(_number(1 / math.log(2)), _inverse(x)))
LOCAL["log10"] = _of_one(lambda c, n, y, x: multiply(_number(1 / math.log(10)), _inverse(x)))
LOCAL["log1p"] = _of_one(lambda c, n, y, x: _inverse(c.applied(n, "one_plus", "1 + {x}")))
LOCAL["tanh"] = _of_one(lambda c, n, y, x: add(ONE, scaled(multiply(y, y), -1)))
LOCAL["tan"] = _of_one(lambda c, n, y, x: add(ONE, multiply(y, y)))
LOCAL["sin"] = _of_one(lambda c, n, y, x: c.applied(n, "cos", "np.cos({x})"))
LOCAL["cos"] = _of_one(lambda c, n, y, x: scaled(c.applied(n, "sin", "np.sin({x})"), -1))
LOCAL["sinh"] = _of_one(lambda c, n, y, x: c.applied(n, "cosh", "np.cosh({x})"))
LOCAL["cosh"] = _of_one(lambda c, n, y, x: c.applied(n, "sinh", "np.sinh({x})"))
LOCAL["abs"] = _of_one(lambda c, n, y, x: c.applied(n, "sign", "np.sign({x})"))
LOCAL["sqrt"] = _of_one(lambda c, n, y, x: scaled(_inverse(y), Fraction(1, 2)))
LOCAL["square"] = _of_one(lambda c, n, y, x: scaled(x, 2))
LOCAL["reciprocal"] = _of_one(lambda c, n, y, x: scaled(multiply(y, y), -1))
LOCAL["atan"] = _of_one(
    lambda c, n, y, x: _inverse(c.applied(n, "one_plus_square", "1 + {x} * {x}"))
)
LOCAL["asinh"] = _of_one(
    lambda c, n, y, x: _inverse(c.applied(n, "cosh", "np.cosh(np.arcsinh({x}))"))
)
LOCAL["atanh"] = _of_one(
    lambda c, n, y, x: _inverse(c.applied(n, "one_minus_square", "1 - {x} * {x}"))
)
LOCAL["asin"] = _of_one(lambda c, n, y, x: _inverse(c.applied(n, "root", "np.sqrt(1 - {x} * {x})")))
LOCAL["acos"] = _of_one(
    lambda c, n, y, x: scaled(_inverse(c.applied(n, "root", "np.sqrt(1 - {x} * {x})")), -1)
)
for _constant in ("sign", "floor", "ceil", "round", "trunc"):
    LOCAL[_constant] = _of_one(lambda c, n, y, x: {})


@local("pow")
def _pow(context: Context, node: Node) -> list[tuple[Node, Sum]]:
    base, exponent = node.args
    x, y = context.over(node, base, 0), context.own(node)
    found = []
    if isinstance(base, Node):
        p = context.over(node, exponent, 1)
        found.append((base, multiply(p, multiply(y, _inverse(x)))))
        if not isinstance(exponent, Node):
            written = context.argument(node, 1, around=7)
            name = context.name(base)
            less = context.helper("power", f"{name} ** ({written} - 1)", node, (name,))
            found = [(base, multiply(p, context.graph.factor(less)))]
    if isinstance(exponent, Node):
        code = f"np.log({context.reader.source.text(base)})"
        reads = (context.name(base),) if isinstance(base, Node) else ()
        log = context.helper("log_base", code, node, reads)
        found.append((exponent, multiply(y, context.graph.factor(log))))
    return found


@local("maximum", "minimum")
def _extreme(context: Context, node: Node) -> list[tuple[Node, Sum]]:
    """The larger of two; where they are equal the second, so that relu has derivative 0 at 0."""
    sign = ">" if node.op == "maximum" else "<"
    names = tuple(context.name(each) for each in node.args if isinstance(each, Node))
    left, right = (context.argument(node, at, around=5) for at in (0, 1))
    mask = context.mask(node, f"{left} {sign} {right}", names)
    pairs = zip(node.args, (mask, _opposite(mask)), strict=True)
    return [(each, its) for each, its in pairs if isinstance(each, Node)]


@local("clip")
def _clip(context: Context, node: Node) -> list[tuple[Node, Sum]]:
    x, y = context.name(node.operands[0]), context.name(node)
    return [(node.operands[0], context.mask(node, f"{x} == {y}", (x, y)))]


@local("where")
def _where(context: Context, node: Node) -> list[tuple[Node, Sum]]:
    condition, *values = node.args
    mask = context.over(node, condition, 0)
    pairs = zip(values, (mask, _opposite(mask)), strict=True)
    return [(each, its) for each, its in pairs if isinstance(each, Node)]


@local("logaddexp")
def _logaddexp(context: Context, node: Node) -> list[tuple[Node, Sum]]:
    found = []
    y = context.name(node)
    for each in node.args:
        if isinstance(each, Node):
            x = context.name(each)
            code = f"np.exp({x} - {y})"
            helper = context.helper(f"share_{x}", code, node, (x, y))
            found.append((each, context.graph.factor(helper)))
    return found


@transposed("max", "min")
def _of_extreme(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    """Shared equally among ties, as PyTorch's amax does."""
    operand = node.operands[0]
    axes = axes_of(node)
    if axes is None:
        raise refuse(node, "its axis is not a number")
    x, y = context.name(operand), context.name(node)
    if len(context.reader.axes(operand)) != len(context.reader.axes(node)):
        y, dy = (f"np.expand_dims({each}, {axes})" for each in (y, dy))
    hits = f"({x} == {y})"
    return [(operand, f"{hits} * ({dy} / np.sum({hits}, axis={axes}, keepdims=True))")]


@transposed("reshape", "ravel", "flatten")
def _reshape(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    return [(node.operands[0], f"np.reshape({dy}, {context.shape(node.operands[0])})")]


@transposed("pad")
def _pad(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    mode = node.kwargs.get("mode", node.args[2] if len(node.args) > 2 else "constant")
    if mode != "constant":
        raise refuse(node, f"a pad of mode {mode!r}; allowed: constant")
    operand = node.operands[0]
    x = context.reader.axes(operand)
    widths = np.broadcast_to(np.asarray(node.args[1], dtype=int), (len(x), 2))
    if not np.array_equal(widths, np.broadcast_to(context.reader.twins[node].args[1], (len(x), 2))):
        raise refuse(node, "a pad that depends on the sizes")
    parts = [
        f"{low or ''}:{f'{low} + {length or 1}' if high else ''}"
        for (low, high), length in zip(widths, x, strict=True)
    ]
    return [(operand, f"{dy}[{', '.join(parts)}]")]


@transposed("cumulative_sum")
def _cumulative_sum(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    axes = axes_of(node)
    if axes is None or len(axes) != 1:
        raise refuse(node, "cumulative_sum of a flattened array")
    return [
        (node.operands[0], f"np.flip(np.cumsum(np.flip({dy}, {axes[0]}), {axes[0]}), {axes[0]})")
    ]


@transposed("flip")
def _flip(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    return [(node.operands[0], f"np.flip({dy}, {axes_of(node)})")]


@transposed("roll")
def _roll(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    shift = node.kwargs.get("shift", node.args[1] if len(node.args) > 1 else None)
    axes = axes_of(node, position=2)
    if not isinstance(shift, int) or axes is None or len(axes) != 1:
        raise refuse(node, "only a roll by one number along one axis is understood")
    return [(node.operands[0], f"np.roll({dy}, {-shift}, {axes[0]})")]


@transposed("tril", "triu")
def _triangle(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    k = node.kwargs.get("k", node.args[1] if len(node.args) > 1 else 0)
    return [(node.operands[0], f"np.{node.op}({dy}, {k})")]


@transposed("concat")
def _concat(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    axis = node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0)
    count = len(context.reader.axes(node))
    found, start = [], "0"
    for i, each in enumerate(node.args[0]):
        size = context.reader.axes(each)[axis % count] or "1"
        stop = size if start == "0" else f"{start} + {size}"
        is_last = i == len(node.args[0]) - 1
        part = f"{'' if start == '0' else start}:{'' if is_last else stop}"
        index = ", ".join([":"] * (axis % count) + [part])
        found.append((each, f"{dy}[{index}]"))
        start = stop
    return found


@transposed("stack")
def _stack(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    axis = node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0)
    axis %= len(context.reader.axes(node))
    before = ":, " * axis
    return [(each, f"{dy}[{before}{i}]") for i, each in enumerate(node.args[0])]


@transposed("repeat")
def _repeat(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    times = node.kwargs.get("repeats", node.args[1] if len(node.args) > 1 else None)
    axes = axes_of(node, position=2)
    if not isinstance(times, int) or axes is None or len(axes) != 1:
        raise refuse(node, "only a repetition of each element along one axis is understood")
    shape = list(context.shape(node.operands[0]).strip("(),").split(", "))
    shape.insert(axes[0] + 1, str(times))
    return [(node.operands[0], f"np.sum(np.reshape({dy}, ({', '.join(shape)})), {axes[0] + 1})")]


@transposed("getitem", "take", "take_along_axis")
def _selected(context: Context, node: Node, dy: str) -> list[tuple[Node, str]]:
    """Zeros, into which the adjoint is added where the elements came from."""
    operand = node.operands[0]
    for each in node.operands[1:]:
        context.name(each)
    x = context.shape(operand)
    if node.op == "getitem":
        index = context.reader.source.index(node)
        return [(operand, f"np.zeros({x})[{index}] <- {dy}")]
    indices = context.argument(node, 1)
    axis = node.kwargs.get("axis", node.args[2] if len(node.args) > 2 else None)
    if not isinstance(axis, int):
        raise refuse(node, "its axis is not a number")
    count = len(context.reader.axes(operand))
    axis %= count
    if node.op == "take":
        return [(operand, f"np.zeros({x})[{':, ' * axis}{indices}] <- {dy}")]
    grid = [
        f"np.arange({n or 1}).reshape({', '.join('-1' if i == at else '1' for i in range(count))})"
        for at, n in enumerate(context.reader.axes(node))
    ]
    grid[axis] = indices
    return [(operand, f"np.zeros({x})[{', '.join(grid)}] <- {dy}")]


def has_rule(node: Node) -> bool:
    return node.op in LOCAL or node.op in TRANSPOSED
