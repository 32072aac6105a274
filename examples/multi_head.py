"""From one query to eight heads
=============================

From one soft query to multi-head attention, in four steps.

One query gives one row of weights; a sequence of queries gives a matrix of them. Projections of
queries, keys and values let the layer choose what is compared, and eight heads side by side compare
eight things at once; their answers, one beside the other, go through W_O. The weights of this layer
are drawn at random and have learned nothing, so the maps show the parts and not what they find.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Picture, output

import handgrad as hg

path = output(__doc__)

STEPS, SIZE, HEADS = 6, 64, 8
rng = np.random.default_rng(5)
x = rng.standard_normal((STEPS, SIZE))
layer = hg.MultiHeadAttention(SIZE, HEADS, bias=False, rng=rng, dtype=np.float64)
parameters = layer.parameters
projections = [parameters[f"{name}_proj.weight"] for name in "qkv"]


def ask(q: NDArray[Any], k: NDArray[Any], v: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The answers (T, size) to queries (T, size), and the weights (T, S) of the keys in them."""
    y, cache = hg.ops.attention.forward(q[None, None], k[None, None], v[None, None])
    return y[0, 0], cache.a[0, 0]


def difference(one: NDArray[Any], other: NDArray[Any]) -> str:
    return f"{abs(one - other).max():.0e}"


# (a) One query, (b) a sequence of them: its rows are single queries.
answer, row = ask(x[2:3], x, x)
answers, rows = ask(x, x, x)
print(f"(a) q {x[2].shape}, K and V {x.shape} give r {answer[0].shape}")
print(f"(b) Q {x.shape} gives R {answers.shape}; row 3 differs from (a) by:")
print(f"    {difference(rows[2:3], row)}")

# (c) The first head: eight columns of Q, K and V.
width = SIZE // HEADS
first = [x @ weight[:width].T for weight in projections]
head, weights = ask(*first)
print(f"(c) W_Q, W_K, W_V make {SIZE} features {width}: the answers are {head.shape}")

# (d) All heads at once, then W_O.
y, cache = layer.forward(x[None])
maps = cache.attention.a[0]
heads = []
for i in range(HEADS):
    columns = slice(i * width, (i + 1) * width)
    heads.append(ask(*(x @ weight[columns].T for weight in projections))[0])
written = np.concatenate(heads, axis=1) @ parameters["o_proj.weight"].T
print(
    f"(d) {HEADS} heads of {head.shape} side by side, through W_O: {y[0].shape}, which differs by:"
)
print(f"    {difference(written, y[0])}")
print(f"    sums of the weights of every query: {maps.sum(axis=-1).min():.6f} or more")


def drawn(left: float, top: float, cell: float, values: NDArray[Any], colour: str) -> None:
    """A map of weights, the darker the more."""
    for (row_number, column), value in np.ndenumerate(values):
        place = left + column * cell, top + row_number * cell
        picture.rectangle(*place, cell - 1, cell - 1, "rule")
        picture.rectangle(*place, cell - 1, cell - 1, colour, opacity=min(float(value), 0.99))


picture = Picture(900, 330, "Attention weights of one query, six queries, one head and eight heads")
titles = ("(a) one query", "(b) a sequence", "(c) projected", "(d) eight heads")
notes = ("softmax(q Kᵀ/√d)", "softmax(Q Kᵀ/√d)", "Q = X W_Q, K = X W_K", "side by side, then W_O")
for left, title, note in zip((40.0, 215.0, 390.0, 565.0), titles, notes, strict=True):
    picture.text(left, 36, title, "ink", size=15, bold=True)
    picture.text(left, 58, note)
drawn(40, 80 + 2 * 22, 22, row, "blue")
drawn(215, 80, 22, rows, "blue")
drawn(390, 80, 22, weights, "green")
for i in range(HEADS):
    drawn(565 + (i % 4) * 76, 80 + (i // 4) * 92, 11, maps[i], "green")
    picture.text(565 + (i % 4) * 76, 162 + (i // 4) * 92, f"head {i + 1}", size=11)
picture.text(40, 300, "rows: queries; columns: keys; the darker, the more weight")
picture.save(path)
