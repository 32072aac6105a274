"""Reductions."""

import numpy as np

from handgrad.program.node import PRIMITIVES, Primitive, as_node, build
from handgrad.program.primitives.axes import axes_of, product, reduced, same, spread
from handgrad.program.primitives.table import FUNCTIONS, known
from handgrad.program.sizes import ONE, Size

n = as_node


def primitive(name, evaluate, shape, vjp=None, text="", torch="", rewrite=None, precedence=9):
    PRIMITIVES[name] = Primitive(
        name, evaluate, shape, vjp, text or f"np.{name}", torch, precedence, None, rewrite
    )


def reduction(name, function, vjp, floating=False):
    def text(e, n):
        axis = n.attrs["axis"]
        every = axis == tuple(range(n.args[0].ndim))
        inside = [
            "" if every else str(axis[0] - n.args[0].ndim if len(axis) == 1 else axis),
            "keepdims=True" if n.attrs["keepdims"] else "",
        ]
        return f"{e.arg(n.args[0], 9)}.{name}({', '.join(t for t in inside if t)})"

    primitive(
        name,
        function,
        lambda x, axis, keepdims: (
            reduced(x, axis, keepdims)[0],
            "f" if floating else reduced(x, axis, keepdims)[1],
        ),
        vjp,
        text,
        rewrite=lambda x, axis, keepdims: x if not axis else None,
    )


def extreme_vjp(g, y, x, axis, keepdims):
    """Equal extremes share the gradient."""
    kept = build("reshape", y, shape=tuple(ONE if i in axis else s for i, s in enumerate(x.shape)))
    chosen = build("where", build("equal", x, kept), 1.0, 0.0)
    return (spread(g, x, axis) * chosen / build("sum", chosen, axis=axis, keepdims=True),)


reduction("sum", np.sum, lambda g, y, x, axis, keepdims: (spread(g, x, axis),))
reduction(
    "mean",
    np.mean,
    lambda g, y, x, axis, keepdims: (
        spread(g / as_node(product(x.shape[a] for a in axis)), x, axis),
    ),
    floating=True,
)
reduction("max", np.max, extreme_vjp)
reduction("min", np.min, extreme_vjp)
reduction("any", np.any, lambda g, y, x, **_: (None,))
reduction("all", np.all, lambda g, y, x, **_: (None,))
reduction(
    "prod",
    np.prod,
    lambda g, y, x, axis, keepdims: (spread(g, x, axis) * build("others", x, axis=axis),),
)


def others(x, axis):
    """The product of all other elements along the axes; right at zeros too."""
    rest = [i for i in range(x.ndim) if i not in axis]
    order = rest + list(axis)
    flat = x.transpose(order).reshape([x.shape[i] for i in rest] + [-1])
    one = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([one, flat[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([one, flat[..., :0:-1]], -1), -1)[..., ::-1]
    return (before * after).reshape([x.shape[i] for i in order]).transpose(np.argsort(order))


primitive("others", others, same, text=lambda e, n: e.call("others", n.args, axis=n.attrs["axis"]))
primitive(
    "cumsum",
    np.cumsum,
    same,
    lambda g, y, x, axis: (
        build("flip", build("cumsum", build("flip", g, axis=axis), axis=axis), axis=axis),
    ),
    text=lambda e, n: f"np.cumsum({e.arg(n.args[0])}, {n.attrs['axis']})",
)


def reduction_call(name):
    def f(x, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
        x = n(x)
        if name in ("sum", "mean", "prod") and x.kind == "b":
            x = build("astype", x, kind="i")
        y = build(name, x, axis=axes_of(axis, x.ndim), keepdims=bool(keepdims))
        return (
            y
            if initial is None
            else build(
                {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}[name],
                y,
                initial,
            )
        )

    return f


for name in ["sum", "mean", "max", "min", "prod", "any", "all"]:
    FUNCTIONS[getattr(np, name)] = reduction_call(name)
FUNCTIONS[np.amax], FUNCTIONS[np.amin] = FUNCTIONS[np.max], FUNCTIONS[np.min]


@known(np.var)
def var(x, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **_):
    x = n(x)
    axes = axes_of(axis, x.ndim)
    d = x - build("mean", x, axis=axes, keepdims=True)
    return (
        build("mean", d * d, axis=axes, keepdims=bool(keepdims))
        if ddof == 0
        else build("sum", d * d, axis=axes, keepdims=bool(keepdims))
        / n(product(x.shape[a] for a in axes) - ddof)
    )


@known(np.std)
def std(*args, **kwargs):
    return build("sqrt", var(*args, **kwargs))


@known(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    x = n(x)
    axes = axes_of(axis, x.ndim)
    if ord in (None, 2, "fro"):
        return build("sqrt", build("sum", x * x, axis=axes, keepdims=keepdims))
    if ord == 1:
        return build("sum", build("abs", x), axis=axes, keepdims=keepdims)
    if ord == np.inf:
        return build("max", build("abs", x), axis=axes, keepdims=keepdims)
    return build("sum", build("abs", x) ** ord, axis=axes, keepdims=keepdims) ** (1 / ord)


@known(np.cumsum)
def cumsum(x, axis=None, dtype=None):
    x = FUNCTIONS[np.ravel](x) if axis is None else n(x)
    return build("cumsum", x, axis=(axis or 0) % x.ndim)


@known(np.diff)
def diff(x, n=1, axis=-1):
    x = as_node(x)
    axis %= x.ndim
    lead = (slice(None),) * axis
    for _ in range(n):
        x = build("getitem", x, index=lead + (slice(ONE, None, None),)) - build(
            "getitem", x, index=lead + (slice(None, Size.of(-1), None),)
        )
    return x
