"""Element-wise functions of scipy.special: a record each, imported where one is called."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.pointwise import (
    Gradients,
    between,
    elementwise,
    inside,
    nonzero,
    normal,
    positive,
)
from handgrad.program.primitives.special import log_softmax_call, logsumexp_call, softmax_call
from handgrad.program.primitives.table import FUNCTIONS, known, module_of_scipy, refuse

sp = module_of_scipy("special")

ROOT_PI = float(np.sqrt(np.pi))
ROOT_2_PI = float(np.sqrt(2 * np.pi))
_CALLS: dict[Any, Callable[..., Any]] = {
    sp.softmax: softmax_call,
    sp.log_softmax: log_softmax_call,
    sp.logsumexp: logsumexp_call,
    sp.expit: lambda x: build("sigmoid", x),
    sp.expm1: FUNCTIONS[np.expm1],
    sp.log1p: FUNCTIONS[np.log1p],
    sp.exp2: FUNCTIONS[np.exp2],
    sp.cbrt: FUNCTIONS[np.cbrt],
    math.erf: lambda x: build("erf", x),
    math.erfc: lambda x: build("erfc", x),
    math.gamma: lambda x: build("gamma", x),
    math.lgamma: lambda x: build("gammaln", x),
    sp.exp10: lambda x: build("exp", as_node(x) * float(np.log(10))),
    sp.log_expit: lambda x: -build("softplus", -as_node(x)),
}
for _function, _signature in _CALLS.items():
    known(_function)(_signature)


def special(name: str, vjp: Any, torch: Any = "", **columns: Any) -> None:
    """A record of a function of scipy.special."""
    function = getattr(sp, name)
    spelled = torch or f"torch.special.{name}"
    elementwise(name, function, vjp, text=f"scipy.special.{name}", torch=spelled, **columns)


# The error function and the normal distribution.
special("erf", lambda g, y, x: (g * (2 / ROOT_PI * build("exp", -(x * x))),))
special("erfc", lambda g, y, x: (g * (-2 / ROOT_PI * build("exp", -(x * x))),))
special("erfcx", lambda g, y, x: (g * (2 * x * y - 2 / ROOT_PI),))
special("erfinv", lambda g, y, x: (g * (ROOT_PI / 2 * build("exp", y * y)),), draw=inside)
special("ndtr", lambda g, y, x: (g * (build("exp", -0.5 * (x * x)) / ROOT_2_PI),))
special("log_ndtr", lambda g, y, x: (g * (build("exp", -0.5 * (x * x) - y) / ROOT_2_PI),))
special(
    "ndtri",
    lambda g, y, x: (g * (ROOT_2_PI * build("exp", 0.5 * (y * y))),),
    draw=between(0.1, 0.9),
)

# Logarithms with 0 log 0 = 0.
special("logit", lambda g, y, x: (g / (x * (1 - x)),), draw=between(0.1, 0.9))


def xlogy_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """As PyTorch: log b, but 0 where a is 0 and b is not positive."""
    none = build("logical_and", build("equal", a, 0), build("less_equal", b, 0))
    return build("where", none, 0.0, g * build("log", build("where", none, 1.0, b))), g * a / b


special("xlogy", xlogy_vjp, draw=(normal, positive))


def xlog1py_vjp(g: Node, y: Node, a: Node, b: Node) -> Gradients:
    """As PyTorch: log(1 + b), but 0 where a is 0 and b is at most −1."""
    none = build("logical_and", build("equal", a, 0), build("less_equal", b, -1))
    log = build("log1p", build("where", none, 0.0, b))
    return build("where", none, 0.0, g * log), g * a / (1 + b)


special("xlog1py", xlog1py_vjp, draw=(normal, positive))
special("entr", lambda g, y, x: (-(g * (1 + build("log", x))),), draw=positive)


@known(sp.rel_entr)
def rel_entr(p: Any, q: Any) -> Node:
    """p log(p / q), 0 where p is 0."""
    return build("xlogy", p, p) - build("xlogy", p, q)


@known(sp.kl_div)
def kl_div(p: Any, q: Any) -> Node:
    """p log(p / q) − p + q."""
    y: Node = rel_entr(p, q) - p + q
    return y


def sides(x: Node, d: Node, inner: Node, outer: Node) -> Node:
    """One value where |x| is at most d and another elsewhere."""
    return build("where", build("less_equal", build("abs", x), d), inner, outer)


@known(sp.huber)
def huber(delta: Any, r: Any) -> Node:
    """½ r² up to |r| = δ, from there δ (|r| − δ / 2)."""
    d, r = as_node(delta), as_node(r)
    return sides(r, d, 0.5 * (r * r), d * (build("abs", r) - 0.5 * d))


@known(sp.pseudo_huber)
def pseudo_huber(delta: Any, r: Any) -> Node:
    """δ² (√(1 + (r / δ)²) − 1)."""
    d, r = as_node(delta), as_node(r)
    ratio = r / d
    return d * d * (build("sqrt", 1 + ratio * ratio) - 1)


# The gamma function.
@known(sp.polygamma)
def polygamma(order: Any, x: Any) -> Node:
    """The derivative of digamma of a whole order."""
    if isinstance(order, Node) and order.op != "const":
        refuse("polygamma of an order that is traced is not known", "the order as a number")
    order = int(order.value if isinstance(order, Node) else order)
    return build("polygamma", x, order=order) if order else build("digamma", x)


def polygamma_in_torch(e: Any, n: Node) -> str:
    """PyTorch's own of order 1 has nine digits, its zeta all."""
    order, x = n.attrs["order"], e.arg(n.args[0])
    return f"torch.special.zeta(2, {x})" if order == 1 else f"torch.special.polygamma({order}, {x})"


special("digamma", lambda g, y, x: (g * polygamma(1, x),), draw=positive, aliases=(sp.psi,))
special("gammaln", lambda g, y, x: (g * build("digamma", x),), draw=positive)
special(
    "gamma",
    lambda g, y, x: (g * y * build("digamma", x),),
    draw=positive,
    torch=lambda e, n: f"torch.exp(torch.special.gammaln({e.arg(n.args[0])}))",
)
elementwise(
    "polygamma",
    lambda x, order: sp.polygamma(order, x),
    lambda g, y, x, order: (g * polygamma(order + 1, x),),
    text=lambda e, n: f"scipy.special.polygamma({n.attrs['order']}, {e.arg(n.args[0])})",
    torch=polygamma_in_torch,
    jax=lambda e, n: f"jax.scipy.special.polygamma({n.attrs['order']}, {e.arg(n.args[0])})",
    draw=positive,
    cases=({"order": 1}, {"order": 2}),
)


@known(sp.betaln)
def betaln(a: Any, b: Any) -> Node:
    """log Γ(a) + log Γ(b) − log Γ(a + b)."""
    a, b = as_node(a), as_node(b)
    return build("gammaln", a) + build("gammaln", b) - build("gammaln", a + b)


@known(sp.beta)
def beta(a: Any, b: Any) -> Node:
    """The beta function."""
    return build("exp", betaln(a, b))


@known(sp.multigammaln)
def multigammaln(a: Any, d: Any) -> Node:
    """The logarithm of the gamma function of d × d matrices."""
    a, d = as_node(a), int(d)
    y = as_node(d * (d - 1) / 4 * float(np.log(np.pi)))
    for j in range(d):
        y = y + build("gammaln", a - j / 2)
    return y


def by_argument(y: Node, x: Node) -> Node:
    """y / x for a function that is x / 2 near 0."""
    return build("where", build("equal", x, 0), 0.5, y / nonzero(x))


# Bessel functions.
special("i0", lambda g, y, x: (g * build("i1", x),), aliases=(np.i0,))
special("i1", lambda g, y, x: (g * (build("i0", x) - by_argument(y, x)),))
special("i0e", lambda g, y, x: (g * (build("i1e", x) - build("sign", x) * y),))
special(
    "i1e",
    lambda g, y, x: (g * (build("i0e", x) - y * build("sign", x) - by_argument(y, x)),),
)
special(
    "j0",
    lambda g, y, x: (-(g * build("j1", x)),),
    torch="torch.special.bessel_j0",
    jax=lambda e, n: f"jax.scipy.special.bessel_jn({e.arg(n.args[0])}, v=1)[0]",
)
special(
    "j1",
    lambda g, y, x: (g * (build("j0", x) - by_argument(y, x)),),
    torch="torch.special.bessel_j1",
    jax=lambda e, n: f"jax.scipy.special.bessel_jn({e.arg(n.args[0])}, v=1)[1]",
)
