"""One table: every primitive of a program as operators of ONNX, version 17."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.onnx.graph import Value
from handgrad.onnx.training.emit import INTEGER, TRUTH, GraphEmitter, Rule, lengths, number
from handgrad.program.node import Node
from handgrad.program.primitives.index import Slot
from handgrad.program.sizes import Size


def _plain(operator: str) -> Rule:
    """An operator whose operands have the type of its result."""

    def rule(e: GraphEmitter, node: Node) -> Value:
        dtype = e.dtype(node)
        return e.graph.op(operator, *(e.value(a, dtype) for a in node.args))

    return rule


def _comparison(operator: str, negated: bool = False) -> Rule:
    def rule(e: GraphEmitter, node: Node) -> Value:
        dtype = e.common(node.args)
        truth = e.graph.op(operator, *(e.value(a, dtype) for a in node.args))
        return e.graph.op("Not", truth) if negated else truth

    return rule


def _logic(operator: str) -> Rule:
    return lambda e, node: e.graph.op(operator, *(e.value(a, TRUTH) for a in node.args))


def _test(operator: str) -> Rule:
    return lambda e, node: e.graph.op(operator, e.value(node.args[0]))


def _power(e: GraphEmitter, node: Node) -> Value:
    base, exponent = node.args
    dtype = e.dtype(node)
    x = e.value(base, dtype)
    if e.is_fixed(exponent) and exponent.ndim == 0 and exponent.value == 2:
        return e.graph.op("Mul", x, x)
    return e.graph.op("Pow", x, e.value(exponent, dtype))


def _where(e: GraphEmitter, node: Node) -> Value:
    condition, x, y = node.args
    dtype = e.dtype(node)
    truth = e.value(condition, TRUTH)
    if dtype == TRUTH:  # runtimes choose between numbers alone
        chosen = e.graph.op("Where", truth, e.value(x, INTEGER), e.value(y, INTEGER))
        return e.graph.op("Cast", chosen, to=number(TRUTH))
    return e.graph.op("Where", truth, e.value(x, dtype), e.value(y, dtype))


def _clip(e: GraphEmitter, node: Node) -> Value:
    dtype = e.dtype(node)
    x, low, high = (e.value(a, dtype) for a in node.args)
    return e.graph.op("Min", e.graph.op("Max", x, low), high)


def _log1p(e: GraphEmitter, node: Node) -> Value:
    dtype = e.dtype(node)
    return _log_above_one(e, e.value(node.args[0], dtype), dtype)


def _log_above_one(e: GraphEmitter, x: Value, dtype: np.dtype[Any]) -> Value:
    """log(1 + x) · x / ((1 + x) − 1), which is right where 1 + x rounds most of x away."""
    g = e.graph
    zero, one = (g.constant(np.full((), value, dtype)) for value in (0, 1))
    above = g.op("Add", x, one)
    rest = g.op("Sub", above, one)
    is_lost = g.op("Equal", rest, zero)
    ratio = g.op("Div", x, g.op("Where", is_lost, one, rest))
    return g.op("Where", is_lost, x, g.op("Mul", g.op("Log", above), ratio))


def _softplus(e: GraphEmitter, node: Node) -> Value:
    """max(x, 0) + log(1 + exp(−|x|)): runtimes have Softplus for float32 alone."""
    g, dtype = e.graph, e.dtype(node)
    x = e.value(node.args[0], dtype)
    small = g.op("Exp", g.op("Neg", g.op("Abs", x)))
    positive = g.op("Max", x, g.constant(np.zeros((), dtype)))
    return g.op("Add", positive, _log_above_one(e, small, dtype))


def _logaddexp(e: GraphEmitter, node: Node) -> Value:
    """max(a, b) + log(1 + exp(−|a − b|)), where two infinities have no distance."""
    g, dtype = e.graph, e.dtype(node)
    a, b = (e.value(operand, dtype) for operand in node.args)
    apart = g.op("Abs", g.op("Sub", a, b))
    apart = g.op("Where", g.op("Equal", a, b), g.constant(np.zeros((), dtype)), apart)
    rest = _log_above_one(e, g.op("Exp", g.op("Neg", apart)), dtype)
    return g.op("Add", g.op("Max", a, b), rest)


def _sum(e: GraphEmitter, node: Node) -> Value:
    return e.graph.op(
        "ReduceSum",
        e.value(node.args[0], e.dtype(node)),
        e.graph.ints(*node.attrs["axis"]),
        keepdims=int(node.attrs["keepdims"]),
    )


def _reduction(operator: str) -> Rule:
    def rule(e: GraphEmitter, node: Node) -> Value:
        axes, keepdims = list(node.attrs["axis"]), int(node.attrs["keepdims"])
        x = e.value(node.args[0], e.dtype(node))
        return e.graph.op(operator, x, axes=axes, keepdims=keepdims)

    return rule


def _index_of(operator: str) -> Rule:
    def rule(e: GraphEmitter, node: Node) -> Value:
        x = e.value(node.args[0], e.graph.dtype)
        return e.graph.op(operator, x, axis=node.attrs["axis"], keepdims=0)

    return rule


def _cast(e: GraphEmitter, node: Node) -> Value:
    return e.value(node.args[0], e.dtype(node))


def _reshape(e: GraphEmitter, node: Node) -> Value:
    return e.graph.op("Reshape", e.value(node.args[0]), e.graph.ints(*lengths(node)))


def _transpose(e: GraphEmitter, node: Node) -> Value:
    return _permuted(e, e.value(node.args[0]), node.attrs["axes"])


def _broadcast(e: GraphEmitter, node: Node) -> Value:
    return e.graph.op("Expand", e.value(node.args[0]), e.graph.ints(*lengths(node)))


def _concatenate(e: GraphEmitter, node: Node) -> Value:
    dtype = e.dtype(node)
    parts = [e.value(a, dtype) for a in node.args if np.size(a.value)]
    return e.graph.op("Concat", *parts, axis=node.attrs["axis"])


def _pile(e: GraphEmitter, node: Node) -> Value:
    dtype, first = e.dtype(node), e.graph.ints(0)
    parts = [e.graph.op("Unsqueeze", e.value(a, dtype), first) for a in node.args]
    return e.graph.op("Concat", *parts, axis=0)


def _flip(e: GraphEmitter, node: Node) -> Value:
    g, axes = e.graph, node.attrs["axis"]
    count, least = len(axes), np.iinfo(np.int64).min
    return g.op(
        "Slice",
        e.value(node.args[0]),
        g.ints(*(-1,) * count),
        g.ints(*(least,) * count),
        g.ints(*axes),
        g.ints(*(-1,) * count),
    )


def _getitem(e: GraphEmitter, node: Node) -> Value:
    x, *arrays = node.args
    index = node.attrs["index"]
    slots = [axis for axis, part in enumerate(index) if isinstance(part, Slot)]
    if not slots:
        return _section(e, e.value(x), lengths(x), index)
    if len(slots) == 1 and all(part == slice(None) for part in index if not isinstance(part, Slot)):
        (axis,) = slots
        (places,) = arrays
        if places.kind == "i":
            return e.graph.op("Gather", e.value(x), e.value(places, INTEGER), axis=axis)
    if slots == list(range(x.ndim)):
        shape = np.broadcast_shapes(*map(lengths, arrays))
        last, to = e.graph.ints(-1), e.graph.ints(*shape)
        each = (e.graph.op("Expand", e.value(a, INTEGER), to) for a in arrays)
        apart = [e.graph.op("Unsqueeze", a, last) for a in each]
        return e.graph.op("GatherND", e.value(x), e.graph.op("Concat", *apart, axis=-1))
    raise ArgumentError(
        "export_training: the step selects by arrays beside slices; allowed: an array for one axis "
        "or for each"
    )


def _section(e: GraphEmitter, x: Value, shape: Sequence[int], index: Sequence[Any]) -> Value:
    """Slices and numbers as one Slice and the axes of the numbers taken away."""
    found: list[tuple[int, int, int, int]] = []
    gone: list[int] = []
    for axis, part in enumerate(index):
        if isinstance(part, Size):
            start = part.number({}) % shape[axis]
            part = slice(Size.of(start), Size.of(start + 1), None)
            gone.append(axis)
        bounds = (None if p is None else p.number({}) for p in (part.start, part.stop, part.step))
        start, stop, step = slice(*bounds).indices(shape[axis])
        if (start, stop, step) != (0, shape[axis], 1):
            found.append((start, stop, axis, step))
    g = e.graph
    if found:
        x = g.op("Slice", x, *(g.ints(*each) for each in zip(*found, strict=True)))
    return g.op("Squeeze", x, g.ints(*gone)) if gone else x


def _permuted(e: GraphEmitter, x: Value, axes: Sequence[int]) -> Value:
    if tuple(axes) == tuple(range(len(axes))):
        return x
    return e.graph.op("Transpose", x, perm=list(axes))


def _contract(e: GraphEmitter, node: Node) -> Value:
    """A product of matrices: axes in the order of batch, rows, sums, columns, each group as one."""
    left, right, out = (tuple(node.attrs[key]) for key in ("left", "right", "out"))
    batch = [i for i in out if i in left and i in right]
    sums = [i for i in left if i in right and i not in out]
    rows = [i for i in left if i not in right]
    columns = [i for i in right if i not in left]
    dtype, sizes = e.dtype(node), dict[int, int]()
    for operand, own in zip(node.args, (left, right), strict=True):
        sizes |= dict(zip(own, lengths(operand), strict=True))

    def matrices(operand: Node, own: Sequence[int], *groups: Sequence[int]) -> Value:
        order = [i for group in (batch, *groups) for i in group]
        x = _permuted(e, e.value(operand, dtype), [own.index(i) for i in order])
        if all(len(group) == 1 for group in groups):
            return x
        shape = [sizes[i] for i in batch] + [prod(sizes[i] for i in group) for group in groups]
        return e.graph.op("Reshape", x, e.graph.ints(*shape))

    a, b = node.args
    product = e.graph.op("MatMul", matrices(a, left, rows, sums), matrices(b, right, sums, columns))
    order = (*batch, *rows, *columns)
    if len(rows) != 1 or len(columns) != 1:
        product = e.graph.op("Reshape", product, e.graph.ints(*(sizes[i] for i in order)))
    return _permuted(e, product, [order.index(i) for i in out])


_OPERATORS: Final = {
    "abs": "Abs",
    "add": "Add",
    "cos": "Cos",
    "divide": "Div",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tanh": "Tanh",
}
_COMPARISONS: Final = {
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
}

RULES: Final[dict[str, Rule]] = {
    **{name: _plain(operator) for name, operator in _OPERATORS.items()},
    **{name: _comparison(operator) for name, operator in _COMPARISONS.items()},
    "not_equal": _comparison("Equal", negated=True),
    "logical_and": _logic("And"),
    "logical_or": _logic("Or"),
    "logical_not": _logic("Not"),
    "isinf": _test("IsInf"),
    "isnan": _test("IsNaN"),
    "power": _power,
    "where": _where,
    "clip": _clip,
    "log1p": _log1p,
    "softplus": _softplus,
    "logaddexp": _logaddexp,
    "sum": _sum,
    "mean": _reduction("ReduceMean"),
    "max": _reduction("ReduceMax"),
    "min": _reduction("ReduceMin"),
    "argmax": _index_of("ArgMax"),
    "argmin": _index_of("ArgMin"),
    "astype": _cast,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast,
    "concatenate": _concatenate,
    "pile": _pile,
    "flip": _flip,
    "getitem": _getitem,
    "contract": _contract,
}
