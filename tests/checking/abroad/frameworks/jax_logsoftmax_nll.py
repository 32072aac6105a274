import jax
import jax.numpy as jnp
import numpy as np


@jax.custom_vjp
def nll(logits, onehot):
    z = logits - logits.max(-1, keepdims=True)
    return -jnp.mean(jnp.sum(onehot * (z - jnp.log(jnp.sum(jnp.exp(z), -1, keepdims=True))), -1))


def nll_fwd(logits, onehot):
    p = jax.nn.softmax(logits, axis=-1)
    return nll(logits, onehot), (p, onehot)


def nll_bwd(res, g):
    p, onehot = res
    n = p.shape[0]
    dlogits = g * (p - onehot) / n
    donehot = -g * jnp.log(p) / n
    return dlogits, donehot


nll.defvjp(nll_fwd, nll_bwd)


# ---- the case
jax.config.update("jax_enable_x64", True)
TARGET = nll
def inputs(rng):
    return rng.standard_normal((4, 3)), np.eye(3)[[0, 2, 1, 1]]
WRONG = [
    Wrong("g * (p - onehot) / n", "g * (p - onehot)", "factor missing"),
    Wrong("donehot = -g * jnp.log(p) / n", "donehot = -g * p / n", "name", (r"log|instead|belongs|should",)),
]
