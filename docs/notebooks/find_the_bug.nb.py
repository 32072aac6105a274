# %% [markdown]
# # Find the bug
#
# A wrong backward does not crash: the network learns badly, or not at all. `hg.check` compares a
# backward with the derivative of its forward, and where they differ it says which term is wrong.

# %%
import math

import numpy as np

import handgrad as hg

rng = np.random.default_rng(1)

# %% [markdown]
# ## One wrong sign
#
# A layer normalisation. Can you see it?


# %%
def forward(x, gamma, beta):
    centred = x - x.mean(axis=-1, keepdims=True)
    inv_std = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    x_hat = centred * inv_std
    return gamma * x_hat + beta, (x_hat, inv_std, gamma)


def backward(dy, cache):
    x_hat, inv_std, gamma = cache
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    dx_hat = dy * gamma
    mean = dx_hat.mean(axis=-1, keepdims=True)
    projection = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat + mean - projection) * inv_std
    return dx, dgamma, dbeta


# %%
inputs = [rng.standard_normal(shape) for shape in ((5, 7), 7, 7)]
report = hg.check((forward, backward), *inputs)
print(report)

# %%
(fault,) = report.faults
assert (fault.gradient, fault.kind, fault.term) == ("x", "wrong sign", "mean")

# %% [markdown]
# The table compares each gradient with a derivative of forward; the bound says how large an error
# rounding explains. The last lines are the finding: the line of the backward was changed so and
# run, and every gradient was right.
#
# ## A test that does not see it
#
# Many gradient tests take the gradient of `y.sum()`. For a normalisation that gradient is zero,
# whatever the backward does with its mean. A cotangent whose rows have mean 0 sees as little: the
# term with the wrong sign is 0. `hg.check` draws its cotangents at random.

# %%
y, cache = forward(inputs[0], np.ones(7), np.zeros(7))
centred_dy = rng.standard_normal((5, 7))
centred_dy -= centred_dy.mean(axis=-1, keepdims=True)
wrong = backward(centred_dy, cache)[0]
_, layer_norm_cache = hg.ops.layer_norm.forward(inputs[0], np.ones(7), np.zeros(7))
right = hg.ops.layer_norm.backward(centred_dy, layer_norm_cache)[0]
print("largest difference where dy has mean 0:", np.abs(wrong - right).max())
assert np.abs(wrong - right).max() < 1e-12

# %% [markdown]
# ## Three mistakes at once
#
# Scaled dot-product attention. A transpose, a term of the softmax and a scale are missing, the
# mistakes that are made most often.


# %%
def attention(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v, (q, k, v, weights)


def attention_backward(dy, cache):
    q, k, v, weights = cache
    dv = weights @ dy
    dweights = dy @ v.T
    dscores = weights * dweights
    dq = dscores @ k
    dk = dscores.T @ q / math.sqrt(q.shape[-1])
    return dq, dk, dv


# %%
square = [rng.standard_normal((5, 5)) for _ in range(3)]
report = hg.check((attention, attention_backward), *square)
for fault in report.faults:
    print("-", fault.message)

# %%
assert len(report.faults) == 3

# %% [markdown]
# With all sizes equal a missing transpose runs. With sizes that differ it is caught by NumPy
# itself, and the report names the line and the shapes.

# %%
q, k, v = (rng.standard_normal(shape) for shape in ((5, 3), (7, 3), (7, 2)))
for fault in hg.check((attention, attention_backward), q, k, v).faults:
    print("-", fault.message)

# %% [markdown]
# ## Repaired


# %%
def repaired(dy, cache):
    q, k, v, weights = cache
    scale = 1 / math.sqrt(q.shape[-1])
    dv = weights.T @ dy
    dweights = dy @ v.T
    dscores = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True))
    dq = scale * (dscores @ k)
    dk = scale * (dscores.T @ q)
    return dq, dk, dv


# %%
report = hg.check((attention, repaired), q, k, v)
print(report)
report.assert_ok()

# %% [markdown]
# `assert_ok` raises where something is wrong, which makes any test of a backward one line long. On
# the command line the same is `handgrad check file.py --shape x=5,7`, and the ten exercises of
# `handgrad exercises` let you write a backward yourself.
