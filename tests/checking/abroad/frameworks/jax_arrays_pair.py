import jax.numpy as jnp
import jax


def kernel_attention(q, k, v):
    """Linear attention with elu + 1 features on jax arrays."""
    fq, fk = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    S = fk.T @ v
    z = fk.sum(0)
    den = fq @ z
    num = fq @ S
    return num / den[:, None], (q, k, v, fq, fk, S, z, num, den)


def kernel_attention_bwd(dy, cache):
    q, k, v, fq, fk, S, z, num, den = cache
    dnum = dy / den[:, None]
    dden = -(dy * num).sum(1) / den**2
    dfq = dnum @ S.T + jnp.outer(dden, z)
    dS = fq.T @ dnum
    dz = fq.T @ dden
    dfk = v @ dS.T + dz[None]
    dv = fk @ dS
    slope = lambda a: jnp.where(a > 0, 1.0, jnp.exp(a))
    return dfq * slope(q), dfk * slope(k), dv


# ---- the case
jax.config.update("jax_enable_x64", True)
TARGET = (kernel_attention, kernel_attention_bwd)
inputs = normal((4, 3), (4, 3), (4, 2))
import numpy as np
WRONG = [
    Wrong("dfk = v @ dS.T + dz[None]", "dfk = v @ dS.T", "term missing"),
    Wrong("/ den**2", "/ den", "exponent"),
]
