"""Tokens in columns, tokens in rows
=================================

Turner's columns equal rows: Y = X A and Yᵀ = Aᵀ Xᵀ are the same attention.

Papers that keep a token in every column of X let the columns of A sum to one; programs keep a
token in every row, and there the rows sum to one. Both are run here, each with its own softmax and
its own backward pass, and agree in the attention matrix, the output and the gradient of X.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Picture, output

import handgrad as hg

path = output(__doc__)

TOKENS, FEATURES, SIZE = 4, 3, 2

rng = np.random.default_rng(0)
x = rng.standard_normal((FEATURES, TOKENS))  # a token is a column
u_q = rng.standard_normal((SIZE, FEATURES))
u_k = rng.standard_normal((SIZE, FEATURES))
dy = rng.standard_normal((FEATURES, TOKENS))
root = np.sqrt(SIZE)

# Columns. Entry (n′, n) of the scores: how well the key of token n′ fits the query of token n.
q, k = u_q @ x, u_k @ x
a, cache = hg.ops.softmax.forward(k.T @ q / root, axis=0)  # every column sums to one
y = x @ a
ds = hg.ops.softmax.backward(x.T @ dy, cache)
dx = dy @ a.T + u_q.T @ (k @ ds / root) + u_k.T @ (q @ ds.T / root)

# Rows: the attention of this library, on the transposes. X goes in three times: gradients add.
one = (None, None)  # one batch, one head
rows_y, rows_cache = hg.ops.attention.forward((x.T @ u_q.T)[one], (x.T @ u_k.T)[one], x.T[one])
dq, dk, dv = (d[0, 0] for d in hg.ops.attention.backward(dy.T[one], rows_cache)[:3])
rows_a, rows_y = rows_cache.a[0, 0], rows_y[0, 0]
rows_dx = dq @ u_q + dk @ u_k + dv

print("sums of the columns of A:", a.sum(axis=0), "and of its rows:", a.sum(axis=1).round(2))
print("largest differences between the column form and the row form, transposed")
for name, column, row in (("A", a, rows_a), ("Y", y, rows_y), ("dX", dx, rows_dx)):
    print(f"{name:>4} {column.shape}: {abs(column - row.T).max():.1e}")

CELL = 46
picture = Picture(900, 610, "The same attention with tokens in columns and with tokens in rows")


def draw(matrix: NDArray[Any], left: float, top: float, name: str) -> None:
    """A matrix with its numbers: the larger, the deeper the colour; orange is negative."""
    width = matrix.shape[1] * CELL - 2
    picture.text(left, top - 10, name, "ink", size=16, bold=True)
    picture.text(left + width, top - 10, "{} × {}".format(*matrix.shape), anchor="end")
    for (i, j), value in np.ndenumerate(matrix):
        corner = left + j * CELL, top + i * CELL
        depth = 0.04 + 0.5 * abs(value) / abs(matrix).max()
        colour = "blue" if value >= 0 else "orange"
        picture.rectangle(*corner, CELL - 2, CELL - 2, colour, opacity=depth)
        text = f"{value:.2f}".replace("-", "−")
        picture.text(corner[0] + 22, corner[1] + 27, text, "ink", size=12.5, anchor="middle")


def say(top: float, *lines: str) -> None:
    for number, line in enumerate(lines):
        picture.text(686, top + 19 * number, line, "purple" if number > 1 else "muted")


picture.text(40, 42, "A token is a column: Y = X A", "ink", size=18, bold=True)
draw(x, 40, 115, "X")
picture.text(240, 190, "·", "ink", size=22, anchor="middle")
draw(a, 258, 92, "A")
picture.text(458, 190, "=", "ink", size=22, anchor="middle")
draw(y, 476, 115, "Y")
for n in range(TOKENS):
    picture.text(280 + n * CELL, 294, f"Σ {a[:, n].sum():.2f}", size=12, anchor="middle")
picture.rectangle(258 + 2 * CELL - 2, 90, CELL + 2, 4 * CELL + 2, "purple", outline=True)
picture.rectangle(476 + 2 * CELL - 2, 113, CELL + 2, 3 * CELL + 2, "purple", outline=True)
say(
    150,
    "softmax down the columns:",
    "each column sums to 1",
    "framed: the weights of",
    "token 3, and what it gets",
)

picture.text(40, 346, "A token is a row: Yᵀ = Aᵀ Xᵀ", "ink", size=18, bold=True)
draw(rows_a, 40, 396, "Aᵀ")
picture.text(284, 494, "·", "ink", size=22, anchor="middle")
draw(x.T, 302, 396, "Xᵀ")
picture.text(458, 494, "=", "ink", size=22, anchor="middle")
draw(rows_y, 476, 396, "Yᵀ")
for n in range(TOKENS):
    picture.text(230, 422 + n * CELL, f"Σ {rows_a[n].sum():.2f}", size=12)
picture.rectangle(38, 394 + 2 * CELL, 4 * CELL + 2, CELL + 2, "purple", outline=True)
picture.rectangle(474, 394 + 2 * CELL, 3 * CELL + 2, CELL + 2, "purple", outline=True)
say(
    454,
    "softmax along the rows:",
    "each row sums to 1",
    "framed: the same weights,",
    "the same token 3",
)
picture.save(path)
