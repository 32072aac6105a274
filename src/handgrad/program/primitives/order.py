"""Order."""

import numpy as np

from handgrad.program.node import as_node, build
from handgrad.program.primitives.axes import reduced
from handgrad.program.primitives.table import FUNCTIONS, known

n = as_node

from handgrad.program.primitives.reduce import primitive

primitive(
    "argsort",
    lambda x, axis: np.argsort(x, axis, kind="stable"),
    lambda x, axis: (x.shape, "i"),
    lambda g, y, x, axis: (None,),
    text=lambda e, n: f"np.argsort({e.arg(n.args[0])}, {n.attrs['axis']}, kind='stable')",
)
for name in ("argmax", "argmin"):
    primitive(
        name,
        getattr(np, name),
        lambda x, axis: (reduced(x, (axis % x.ndim,), False), "i"),
        lambda g, y, x, axis: (None,),
        text=lambda e, n: f"np.{n.op}({e.arg(n.args[0])}, {n.attrs['axis']})",
    )


@known(np.sort)
def sort(x, axis=-1, **_):
    x = n(x)
    return FUNCTIONS[np.take_along_axis](x, build("argsort", x, axis=axis % x.ndim), axis)


@known(np.argsort)
def argsort(x, axis=-1, **_):
    return build("argsort", x, axis=axis % n(x).ndim)


@known(np.argmax)
def argmax(x, axis=None, **_):
    return build("argmax", FUNCTIONS[np.ravel](x) if axis is None else x, axis=axis or 0)


@known(np.argmin)
def argmin(x, axis=None, **_):
    return build("argmin", FUNCTIONS[np.ravel](x) if axis is None else x, axis=axis or 0)
