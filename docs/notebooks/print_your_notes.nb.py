# %% [markdown]
# # Print your notes
#
# The derivation of an operation, of a model, or of functions of your own, printed from the code
# that runs: it cannot say anything else than what is computed.

# %%
import tempfile
from pathlib import Path

import numpy as np

import handgrad as hg

# %% [markdown]
# ## An operation
#
# The last value of a cell is shown as it is.

# %%
hg.notes("softmax")

# %% [markdown]
# ## With numbers
#
# Real matrices under every equation, as on a blackboard, for a small example of whole numbers.

# %%
hg.notes("linear", numbers=True)

# %% [markdown]
# ## Your own functions
#
# A forward and a backward on NumPy arrays. A name such as `dh` is set as ∂L/∂h, `w1` as W₁.


# %%
def forward(x, w, b):
    """A dense layer with tanh."""
    a = x @ w + b
    h = np.tanh(a)
    return h, (x, w, h)


def backward(dh, cache):
    x, w, h = cache
    da = dh * (1 - h**2)
    dw = x.T @ da
    db = da.sum(axis=0)
    dx = da @ w.T
    return dx, dw, db


# %%
x = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
w = np.array([[1.0, -1.0], [0.0, 1.0], [-1.0, 0.0]])
b = np.array([0.0, 1.0])
notes = hg.notes((forward, backward), x, w, b, numbers=True)
assert notes.ok
notes

# %% [markdown]
# The gradients are measured while the page is made. One that is wrong is said in red at its top.


# %%
def wrong(dh, cache):
    x, w, h = cache
    da = dh * (1 - h)
    dw = x.T @ da
    db = da.sum(axis=0)
    dx = da @ w.T
    return dx, dw, db


# %%
notes = hg.notes((forward, wrong), x, w, b)
assert not notes.ok
notes

# %% [markdown]
# ## A model
#
# Layers with parameters, memory and FLOPs, a drawing of the data flow with the gradients running
# back, the whole forward, the loss, the whole backward in reverse order, and the update.

# %%
rng = np.random.default_rng(0)
model = hg.Sequential(hg.Dense(3, 4, activation="relu", rng=rng), hg.Dense(4, 2, rng=rng))
hg.notes(model, input_shape=(3,))

# %% [markdown]
# ## On paper, on a slide, in Romanian
#
# HTML for a page that needs nothing else, LaTeX that compiles as it is, Markdown with its
# mathematics between dollar signs.

# %%
folder = Path(tempfile.mkdtemp())
notes = hg.notes("layer_norm", lang="ro")
for name in ("layer_norm.html", "layer_norm.tex", "layer_norm.md"):
    file = notes.save(folder / name)
    print(f"{name:<16} {file.stat().st_size:>7,} bytes")

# %%
print(notes.to_latex()[notes.to_latex().index(r"\begin{equation}") :][:200])
