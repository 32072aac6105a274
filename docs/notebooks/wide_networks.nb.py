# %% [markdown]
# # Wide networks and their limit
#
# Random weights make a network a random function. As its hidden sizes grow, that function becomes
# a Gaussian process, and all that is left of the weights are their variances. Here this is
# watched, and then used.

# %%
import numpy as np

import handgrad as hg

rng = np.random.default_rng(0)

# %% [markdown]
# ## Many networks, one kernel
#
# Three examples. Two are alike, one is far away. For random networks of growing width, the mean of
# the products of their outputs comes to the kernel that `hg.limits.kernel` computes from the
# layers.

# %%
x = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 2.0]])


def network(width):
    rng = np.random.default_rng(0)
    return hg.Sequential(
        hg.Dense(3, width, activation="relu", rng=rng), hg.Dense(width, width, rng=rng)
    )


limit = hg.limits.kernel(network(8), x, weight_variance=2.0, bias_variance=0.1)
print(limit.round(3))

# %%
found = hg.limits.convergence(network, x, weight_variance=2.0, bias_variance=0.1)
for width, deviation in zip(found.widths, found.deviations, strict=True):
    print(f"width {width:>3}   squared distance {deviation:.5f}")
print(f"slope {found.slope:.2f}")
assert -1.5 < found.slope < -0.5

# %% [markdown]
# The squared distance falls as one over the width, a slope of −1: four times as wide, half as far
# away.

# %% [markdown]
# ## A prior over functions
#
# On a line of inputs the kernel says how smooth the functions are that such a network can be
# before it has seen anything. A deeper one bends more.

# %%
line = np.linspace(-2, 2, 9)[:, None]
for depth in (1, 3):
    layers = [hg.Dense(1 if i == 0 else 32, 32, activation="erf", rng=rng) for i in range(depth)]
    model = hg.Sequential(*layers, hg.Dense(32, 1, rng=rng))
    k = hg.limits.kernel(model, line, weight_variance=3.0, bias_variance=0.2)
    correlation = k[4] / np.sqrt(k[4, 4] * np.diag(k))
    print(depth, correlation.round(2))

# %% [markdown]
# ## Inference without training
#
# Conditioned on examples, the process predicts, with a deviation that says where it is sure. With
# `kind="ntk"` its mean is what training the wide network on the squared error comes to.

# %%
model = hg.Sequential(hg.Dense(1, 64, activation="erf", rng=rng), hg.Dense(64, 1, rng=rng))
seen = np.linspace(-1.8, 1.8, 7)[:, None]
process = hg.limits.GaussianProcess(model, alpha=1e-3, weight_variance=8.0, bias_variance=0.5)
process.fit(seen, np.sin(2 * seen[:, 0]))
mean, deviation = process.predict(line, return_std=True)
for at, value, spread in zip(line[:, 0], mean, deviation, strict=True):
    print(f"x {at:+.1f}   {value:+.2f} ± {spread:.2f}   sin 2x {np.sin(2 * at):+.2f}")

# %%
at_seen, deviation = process.predict(seen, return_std=True)
assert np.abs(at_seen - np.sin(2 * seen[:, 0])).max() < 0.05
assert deviation.max() < 0.05

# %% [markdown]
# ## Depth, and the edge of chaos
#
# Through a deep stack two examples come together until the network cannot tell them apart, or come
# apart until it cannot generalise. Between the two there is one variance of the weights at which
# signals and gradients get through.

# %%
for activation in ("relu", "erf", "tanh"):
    print(f"{activation:<5} {hg.limits.critical_weight_variance(activation):.3f}")

# %%
for variance in (1.5, 2.0, 2.5):
    signals = hg.limits.signals("relu", variance, depth=20)
    print(variance, "variance after 20 layers:", signals.variance[-1].round(4))

# %% [markdown]
# For ReLU it is 2, the variance that He, Zhang, Ren and Sun (2015) gave deep rectifier networks:
# below it signals die out, above it they explode.
#
# `handgrad limit digits` writes all of this for a recipe's model on one page.
