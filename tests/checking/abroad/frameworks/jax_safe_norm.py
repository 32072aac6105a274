import jax
import jax.numpy as jnp


@jax.custom_vjp
def unit(v):
    return v / jnp.sqrt(jnp.sum(v * v, axis=-1, keepdims=True) + 1e-8)


def unit_fwd(v):
    n = jnp.sqrt(jnp.sum(v * v, axis=-1, keepdims=True) + 1e-8)
    u = v / n
    return u, (u, n)


def unit_bwd(kept, ct):
    u, n = kept
    along = jnp.sum(ct * u, axis=-1, keepdims=True)
    return ((ct - u * along) / n,)


unit.defvjp(unit_fwd, unit_bwd)


# ---- the case
jax.config.update("jax_enable_x64", True)
import numpy as np
TARGET = unit
inputs = normal((4, 3))
WRONG = [
    Wrong("(ct - u * along) / n", "(ct - u * along)", "factor missing"),
    Wrong("(ct - u * along) / n", "(ct + u * along) / n", "sign"),
    Wrong("(ct - u * along) / n", "ct / n", "term missing"),
]
