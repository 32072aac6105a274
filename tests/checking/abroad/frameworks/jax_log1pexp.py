import jax
import jax.numpy as jnp


@jax.custom_vjp
def log1pexp(x, beta):
    return jnp.log1p(jnp.exp(beta * x)) / beta


def log1pexp_fwd(x, beta):
    y = log1pexp(x, beta)
    return y, (x, y, beta)


def log1pexp_bwd(res, g):
    x, y, beta = res
    s = 1 - 1 / (1 + jnp.exp(beta * x))
    return g * s, jnp.sum(g * (s * x - y) / beta)


log1pexp.defvjp(log1pexp_fwd, log1pexp_bwd)


# ---- the case
jax.config.update("jax_enable_x64", True)
TARGET = log1pexp
def inputs(rng):
    return rng.standard_normal((3, 4)), np.float64(1.3)
import numpy as np
WRONG = [
    Wrong("jnp.sum(g * (s * x - y) / beta)", "jnp.sum(g * s * x / beta)", "term missing"),
    Wrong("return g * s,", "return g * s * beta,", "factor extra"),
]
