"""Functions of scipy.special: a record each, where SciPy is installed.

softmax, log_softmax and logsumexp need no SciPy; their attribute is `axis`, a tuple, and for the
last `keepdims`.
"""

from typing import Any

import numpy as np

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build
from handgrad.program.primitives.analytic import finite_below
from handgrad.program.primitives.axes import axes_of, reduced, spread
from handgrad.program.primitives.reduce import AXES, boxes
from handgrad.program.primitives.table import FUNCTIONS, helper

OVER = ({"axis": (0,)}, {"axis": (2,)}, {"axis": (0, 2)})


@helper()
def logsumexp(x: Any, axis: Any, keepdims: Any) -> Any:
    """The logarithm of a sum of exponentials, after a shift by the largest."""
    top = np.max(x, axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    y = np.log(np.sum(np.exp(x - top), axis, keepdims=True)) + top
    return y if keepdims else np.squeeze(y, axis)


@helper()
def softmax(x: Any, axis: Any) -> Any:
    """Exponentials over their sum, after a shift by the largest."""
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)


@helper()
def log_softmax(x: Any, axis: Any) -> Any:
    """The logarithm of softmax, without its underflow."""
    x = x - np.max(x, axis, keepdims=True)
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True))


def axis_text(axis: tuple[int, ...], ndim: int) -> str:
    """One axis from the end, or several."""
    return str(axis[0] - ndim if len(axis) == 1 else axis)


def on_axes(name: str, keep: str = "") -> Any:
    """A call with the axis second."""

    def text(e: Any, n: Node) -> str:
        kept = f", {keep}=True" if keep and n.attrs["keepdims"] else ""
        return f"{name}({e.arg(n.args[0])}, {axis_text(n.attrs['axis'], n.args[0].ndim)}{kept})"

    return text


def with_helper(e: Any, n: Node) -> str:
    """A call of the helper of that name."""
    axis = axis_text(n.attrs["axis"], n.args[0].ndim)
    return str(e.call(n.op, n.args, **{**n.attrs, "axis": axis}))


def softmax_torch(e: Any, n: Node) -> str:
    """PyTorch's own over one axis, else by logsumexp, which goes over several."""
    x, axis = n.args[0], axis_text(n.attrs["axis"], n.args[0].ndim)
    if len(n.attrs["axis"]) == 1:
        return f"torch.{n.op}({e.arg(x)}, {axis})"
    log = f"{e.arg(x, 5)} - torch.logsumexp({e.arg(x)}, {axis}, keepdim=True)"
    return f"torch.exp({log})" if n.op == "softmax" else f"({log})"


def softmax_vjp(g: Node, y: Node, x: Node, axis: tuple[int, ...]) -> tuple[Node]:
    """y (g − Σ g y)."""
    return (y * (g - build("sum", g * y, axis=axis, keepdims=True)),)


def log_softmax_vjp(g: Node, y: Node, x: Node, axis: tuple[int, ...]) -> tuple[Node]:
    """g − exp(y) Σ g."""
    return (g - build("exp", y) * build("sum", g, axis=axis, keepdims=True),)


def logsumexp_vjp(g: Node, y: Node, x: Node, axis: tuple[int, ...], keepdims: bool) -> tuple[Node]:
    """g exp(x − y): the shares of the terms; none where all are 0."""
    kept = build("reshape", finite_below(y), shape=reduced(x, axis, keepdims=True))
    return (spread(g, x, axis) * build("exp", x - kept),)


PRIMITIVES["softmax"] = Primitive(
    name="softmax",
    evaluate=softmax,
    shape=lambda x, axis: (x.shape, "f"),
    vjp=softmax_vjp,
    text=with_helper,
    torch=softmax_torch,
    jax=on_axes("jax.nn.softmax"),
    domain=boxes,
    cases=OVER,
)
PRIMITIVES["log_softmax"] = Primitive(
    name="log_softmax",
    evaluate=log_softmax,
    shape=lambda x, axis: (x.shape, "f"),
    vjp=log_softmax_vjp,
    text=with_helper,
    torch=softmax_torch,
    jax=on_axes("jax.nn.log_softmax"),
    domain=boxes,
    cases=OVER,
)
PRIMITIVES["logsumexp"] = Primitive(
    name="logsumexp",
    evaluate=logsumexp,
    shape=lambda x, axis, keepdims: (reduced(x, axis, keepdims), "f"),
    vjp=logsumexp_vjp,
    text=with_helper,
    torch=on_axes("torch.logsumexp", "keepdim"),
    jax=on_axes("jax.nn.logsumexp", "keepdims"),
    domain=boxes,
    cases=AXES,
)


def softmax_call(x: Any, axis: Any = None) -> Node:
    """SciPy's softmax."""
    x = as_node(x)
    return build("softmax", x, axis=axes_of(axis, x.ndim))


def log_softmax_call(x: Any, axis: Any = None) -> Node:
    """SciPy's log_softmax."""
    x = as_node(x)
    return build("log_softmax", x, axis=axes_of(axis, x.ndim))


def logsumexp_call(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """SciPy's logsumexp; with weights b it is the logarithm of the size of Σ b exp(a)."""
    a = as_node(a)
    axes = axes_of(axis, a.ndim)
    if b is None:
        y = build("logsumexp", a, axis=axes, keepdims=bool(keepdims))
        return (y, build("sign", build("exp", y))) if return_sign else y
    top = build("stop", build("max", a, axis=axes, keepdims=True))
    s = build("sum", as_node(b) * build("exp", a - top), axis=axes, keepdims=True)
    size = build("abs", s) if return_sign else s
    y, sign = build("log", size) + top, build("sign", s)
    if not keepdims:
        shape = reduced(a, axes, keepdims=False)
        y, sign = (build("reshape", r, shape=shape) for r in (y, sign))
    return (y, sign) if return_sign else y


def logaddexp_reduce(
    x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **_: Any
) -> Node:
    """NumPy's logaddexp.reduce."""
    x = as_node(x)
    return build("logsumexp", x, axis=axes_of(axis, x.ndim), keepdims=bool(keepdims))


FUNCTIONS[np.logaddexp, "reduce"] = logaddexp_reduce
