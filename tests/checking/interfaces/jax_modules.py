"""Gradients that JAX is given."""

from __future__ import annotations

from tests.checking.interfaces.case import Interface

JAX = (
    Interface(
        "jax_custom_vjp",
        """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def f(x, y):
    return jnp.sin(x) * y


def f_fwd(x, y):
    return f(x, y), (jnp.cos(x), jnp.sin(x), y)


def f_bwd(res, g):
    cos_x, sin_x, y = res
    return cos_x * g * y, sin_x * g


f.defvjp(f_fwd, f_bwd)
TARGET, INPUTS = f, [n(4, 3), n(4, 3)]
""",
        right=(("cos_x * g * y", "g * y * cos_x"),),
        wrong=(("cos_x * g * y", "cos_x * g"), ("sin_x * g\n", "cos_x * g\n")),
    ),
    Interface(
        "jax_nondiff_argnums",
        """
from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def scaled(x, factor):
    return factor * jnp.tanh(x)


def fwd(x, factor):
    y = jnp.tanh(x)
    return factor * y, y


def bwd(factor, y, g):
    return (factor * g * (1 - y ** 2),)


scaled.defvjp(fwd, bwd)
TARGET, INPUTS = scaled, [n(4, 3), 3.0]
""",
        right=(("factor * g * (1 - y ** 2)", "g * (1 - y * y) * factor"),),
        wrong=(("factor * g", "g"), ("y ** 2", "y")),
    ),
    Interface(
        "jax_custom_jvp",
        """
import jax
import jax.numpy as jnp


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    x, = primals
    t, = tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


TARGET, INPUTS = log1pexp, [n(4, 3)]
""",
        right=(("(1 - 1 / (1 + jnp.exp(x)))", "jax.nn.sigmoid(x)"),),
        wrong=(("1 - 1 /", "1 + 1 /"), ("* t\n", "* t * 2\n")),
    ),
    Interface(
        "jax_several_outputs",
        """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def polar(x, y):
    return jnp.sqrt(x ** 2 + y ** 2), x * y


def fwd(x, y):
    r, p = polar(x, y)
    return (r, p), (x, y, r)


def bwd(res, g):
    x, y, r = res
    gr, gp = g
    return gr * x / r + gp * y, gr * y / r + gp * x


polar.defvjp(fwd, bwd)
TARGET, INPUTS = jax.jit(polar), [n(4, 3), n(4, 3)]
""",
        right=(("gr * x / r + gp * y", "gp * y + x * gr / r"),),
        wrong=(("gr * x / r + gp * y", "gr * x / r"), ("gr * y / r", "gr * y")),
    ),
    Interface(
        "jax_tree_of_parameters",
        """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def dense(params, x):
    return x @ params["w"] + params["b"]


def fwd(params, x):
    return dense(params, x), (params["w"], x)


def bwd(res, g):
    w, x = res
    return {"w": x.T @ g, "b": g.sum(0)}, g @ w.T


dense.defvjp(fwd, bwd)
TARGET, INPUTS = dense, [{"w": n(3, 4), "b": n(4)}, n(5, 3)]
""",
        right=(("g.sum(0)", "jnp.sum(g, 0)"),),
        wrong=(("g.sum(0)", "g.mean(0)"), ("}, g @ w.T", "}, -g @ w.T")),
    ),
)
