"""Functions of single values, and layers that only rearrange or pass values on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from handgrad.layers import (
    GEGLU,
    Activation,
    Dropout,
    Flatten,
    LastStep,
    Standardize,
    SwiGLU,
)
from handgrad.onnx.graph import Graph, Value
from handgrad.ops.gelu import CUBIC, SQRT_2_OVER_PI


def gelu(g: Graph, x: Value, *, approximate: str = "none") -> Value:
    """x Φ(x), in the order that runtimes know as GELU."""
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", x, x), x)
        inner = g.op("Add", x, g.op("Mul", cube, g.number(CUBIC)))
        curve = g.op("Tanh", g.op("Mul", inner, g.number(SQRT_2_OVER_PI)))
    else:
        curve = g.op("Erf", g.op("Div", x, g.number(math.sqrt(2.0))))
    both = g.op("Mul", x, g.op("Add", curve, g.number(1.0)))
    return g.op("Mul", both, g.number(0.5))


def silu(g: Graph, x: Value) -> Value:
    return g.op("Mul", x, g.op("Sigmoid", x))


def leaky_relu(g: Graph, x: Value, *, negative_slope: float = 0.01) -> Value:
    return g.op("LeakyRelu", x, alpha=float(negative_slope))


def softmax(g: Graph, x: Value, *, axis: int = -1) -> Value:
    return g.op("Softmax", x, axis=axis)


def _plain(kind: str) -> Callable[[Graph, Value], Value]:
    return lambda g, x: g.op(kind, x)


#: The functions of `handgrad.ops` by name, with the options of each.
FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "identity": lambda g, x: x,
    "relu": _plain("Relu"),
    "leaky_relu": leaky_relu,
    "sigmoid": _plain("Sigmoid"),
    "tanh": _plain("Tanh"),
    "gelu": gelu,
    "silu": silu,
    "erf": _plain("Erf"),
    "sin": _plain("Sin"),
    "softmax": softmax,
}


def activation(g: Graph, layer: Activation, x: Value) -> Value:
    return FUNCTIONS[layer.name](g, x, **layer.options)


def dropout(g: Graph, layer: Dropout, x: Value) -> Value:
    """Nothing, as at inference."""
    return x


def flatten(g: Graph, layer: Flatten, x: Value) -> Value:
    return g.op("Flatten", x, axis=1)


def last_step(g: Graph, layer: LastStep, x: Value) -> Value:
    last = g.op("Gather", x, g.index(-1), axis=1)
    if not layer.bidirectional:
        return last
    forward, _ = _halves(g, last)
    _, backward = _halves(g, g.op("Gather", x, g.index(0), axis=1))
    return g.op("Concat", forward, backward, axis=-1)


def _halves(g: Graph, x: Value) -> list[Value]:
    return g.ops("Split", 2, x, axis=-1)


def swiglu(g: Graph, layer: SwiGLU, x: Value) -> Value:
    a, b = _halves(g, x)
    return g.op("Mul", silu(g, a), b)


def geglu(g: Graph, layer: GEGLU, x: Value) -> Value:
    a, b = _halves(g, x)
    return g.op("Mul", gelu(g, a, approximate=layer.approximate), b)


def standardized(g: Graph, x: Value, axes: tuple[int, ...] | None, eps: float) -> Value:
    """(x − μ)/√(σ² + ε) over the axes; None for all but the batch's, whatever their number."""
    if axes is None:
        y = standardized(g, g.op("Flatten", x, axis=1), (1,), eps)
        return g.op("Reshape", y, g.op("Shape", x))
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=list(axes)))
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=list(axes))
    return g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.number(eps))))


def standardize(g: Graph, layer: Standardize, x: Value) -> Value:
    return standardized(g, x, layer.axes, layer.eps)


RULES: Final[Mapping[type, Callable[..., Value]]] = {
    Activation: activation,
    Dropout: dropout,
    Flatten: flatten,
    GEGLU: geglu,
    LastStep: last_step,
    Standardize: standardize,
    SwiGLU: swiglu,
}
