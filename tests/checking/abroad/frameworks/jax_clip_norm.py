import jax
import jax.numpy as jnp
import numpy as np


def rms(x, w):
    r = jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    return x * r * w


@jax.custom_vjp
def rms_norm(x, w):
    return rms(x, w)


def _fwd(x, w):
    r = jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    return x * r * w, (x, w, r)


def _bwd(saved, dy):
    x, w, r = saved
    xn = x * r
    dw = (dy * xn).sum(axis=0)
    dn = dy * w
    dx = r * (dn - xn * (dn * xn).mean(-1, keepdims=True))
    return dx, dw


rms_norm.defvjp(_fwd, _bwd)


# ---- the case
jax.config.update("jax_enable_x64", True)
TARGET = rms_norm
inputs = normal((4, 3), 3)
WRONG = [
    Wrong("(dn * xn).mean(-1", "(dn * xn).sum(-1", "sum for mean"),
    Wrong("dn = dy * w", "dn = dy", "factor missing"),
    Wrong("dw = (dy * xn).sum(axis=0)", "dw = (dy * x).sum(axis=0)", "name"),
]
