import numpy as np


def pg(W, states, actions, advantages, beta):
    """REINFORCE with entropy bonus, linear softmax policy."""
    z = states @ W
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    n = len(actions)
    logp = np.log(p)
    H = -(p * logp).sum(1)
    loss = -(advantages * logp[np.arange(n), actions]).mean() - beta * H.mean()
    g = p.copy()
    g[np.arange(n), actions] -= 1
    g *= advantages[:, None]
    g += beta * p * (logp + H[:, None])
    return loss, states.T @ g / n


# ---- the case
TARGET = pg
CALL = "step"
OPTIONS = {"wrt": ("W",)}
def inputs(rng):
    return rng.standard_normal((3, 4)), rng.standard_normal((6, 3)), rng.integers(0, 4, 6), rng.standard_normal(6), 0.2
WRONG = [
    Wrong("beta * p * (logp + H[:, None])", "beta * p * (logp + 1)", "name", (r"H|entropy|belongs|instead|term|should",)),
    Wrong("    g *= advantages[:, None]\n", "", "factor missing"),
]
