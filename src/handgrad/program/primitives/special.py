"""Special."""

import numpy as np

from handgrad.program.node import as_node, build
from handgrad.program.primitives.axes import axes_of
from handgrad.program.primitives.table import FUNCTIONS, known

n = as_node


@known("logsumexp")
def logsumexp(a, axis=None, keepdims=False):
    """The shift changes nothing, so the maximum has no gradient."""
    a = n(a)
    axes = axes_of(axis, a.ndim)
    m = build("stop", build("max", a, axis=axes, keepdims=True))
    y = build("log", build("sum", build("exp", a - m), axis=axes, keepdims=True)) + m
    return (
        y
        if keepdims
        else build("reshape", y, shape=tuple(s for i, s in enumerate(y.shape) if i not in axes))
    )


def softmax(x, axis=None):
    x = n(x)
    axes = axes_of(axis, x.ndim)
    e = build("exp", x - build("stop", build("max", x, axis=axes, keepdims=True)))
    return e / build("sum", e, axis=axes, keepdims=True)


try:
    import scipy.special as special

    FUNCTIONS |= {
        special.logsumexp: logsumexp,
        special.softmax: softmax,
        special.expit: lambda x: build("sigmoid", x),
        special.xlogy: lambda x, y: n(x) * build("log", y),
        special.log_softmax: lambda x, axis=None: n(x) - logsumexp(x, axis, True),
    }
    from handgrad.program.primitives.elementwise import elementwise as record

    record(
        "erf",
        special.erf,
        lambda g, y, x: (g * (float(2 / np.sqrt(np.pi)) * build("exp", -(x * x))),),
        text="erf",
        torch="torch.erf",
    )
    FUNCTIONS |= {
        special.erf: lambda x: build("erf", x),
        special.erfc: lambda x: 1 - build("erf", x),
    }
except ImportError:
    pass
