import jax
import jax.numpy as jnp
import numpy as np
from functools import partial


@jax.custom_vjp
def dense_gelu(x, w, b):
    z = x @ w + b
    return z * jax.nn.sigmoid(1.702 * z)


def dense_gelu_fwd(x, w, b):
    z = x @ w + b
    s = jax.nn.sigmoid(1.702 * z)
    return z * s, (x, w, z, s)


def dense_gelu_bwd(res, g):
    x, w, z, s = res
    dz = g * (s + 1.702 * z * s * (1 - s))
    return dz @ w.T, x.T @ dz, dz.sum(axis=0)


dense_gelu.defvjp(dense_gelu_fwd, dense_gelu_bwd)


# ---- the case
jax.config.update("jax_enable_x64", True)
TARGET = dense_gelu
inputs = normal((4, 3), (3, 2), 2)
WRONG = [
    Wrong("(s + 1.702 * z * s * (1 - s))", "(s + z * s * (1 - s))", "factor missing"),
    Wrong("dz.sum(axis=0)", "dz.mean(axis=0)", "sum for mean"),
]
