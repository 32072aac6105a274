"""A recurrent network, unrolled
=============================

A recurrent network with a softmax at every step, unrolled, with what runs along its arrows.

The network reads the letters of "hell" and says at each which letter comes next. Folded up it is
one cell with a loop; unrolled it is a chain in which U, W and V stand once for every step. Backward
goes the same chain the other way: at each state the gradient from its own output meets the one
from the step after, and the gradient of a weight is the sum of its shares of all steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Picture, output

import handgrad as hg

path = output(__doc__)

READ, WANTED, LETTERS = "hell", "ello", "helo"
STEPS, UNITS = len(READ), 4
x = np.eye(len(LETTERS))[[LETTERS.index(letter) for letter in READ]]
targets = np.array([LETTERS.index(letter) for letter in WANTED])

rng = np.random.default_rng(2)
settings: dict[str, Any] = {"cell": "rnn", "bias": "input", "dtype": np.float64}
model = hg.SequenceTagger(len(LETTERS), UNITS, len(LETTERS), rng=rng, **settings)
loss = hg.losses.CrossEntropy(reduction="sum", class_axis=-1)


def run() -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """The scores o (T, K), the gradient of x (T, K) and those of the weights."""
    scores, cache = model.forward(x[None])
    _, loss_cache = loss.forward(scores, targets[None])
    dx, gradients = model.backward(loss.backward(loss_cache), cache)
    return scores[0], dx[0], dict(gradients)


optimizer = hg.optimizers.SGD(0.2)
for _ in range(10):
    optimizer.step(model.parameters, run()[2])
o, dx, gradients = run()

# Equations (10): forward, one step after the other.
U, W, b, V, c = (
    model.parameters[name]
    for name in (
        "recurrent.weight_ih_l0",
        "recurrent.weight_hh_l0",
        "recurrent.bias_ih_l0",
        "head.weight",
        "head.bias",
    )
)
h = np.zeros((STEPS + 1, UNITS))  # h[0] is the state before the first step
for t in range(STEPS):
    h[t + 1] = np.tanh(b + W @ h[t] + U @ x[t])
o_written = h[1:] @ V.T + c
y_hat = np.exp(o_written) / np.exp(o_written).sum(axis=1, keepdims=True)

# Equations (11) and (12): backward, from the last step, behind which nothing follows.
do = y_hat - np.eye(len(LETTERS))[targets]
from_output, from_next = do @ V, np.zeros((STEPS + 1, UNITS))
da = np.zeros((STEPS, UNITS))
for t in reversed(range(STEPS)):
    da[t] = (from_output[t] + from_next[t + 1]) * (1.0 - h[t + 1] ** 2)
    from_next[t] = W.T @ da[t]
shares = {
    "recurrent.weight_ih_l0": [np.outer(da[t], x[t]) for t in range(STEPS)],
    "recurrent.weight_hh_l0": [np.outer(da[t], h[t]) for t in range(STEPS)],
    "recurrent.bias_ih_l0": list(da),
    "head.weight": [np.outer(do[t], h[t + 1]) for t in range(STEPS)],
    "head.bias": list(do),
}

print(f"reads {READ}, is to write {WANTED}, and gives it the probabilities")
print("   ", *(f"{y_hat[t, target]:.2f}" for t, target in enumerate(targets)))
forward = abs(o_written - o).max()
backward = max(abs(sum(parts) - gradients[name]).max() for name, parts in shares.items())
print("largest difference of o, of the gradients of weights and of that of x from the equations")
print(f"    {forward:.0e} {backward:.0e} {abs(da @ U - dx).max():.0e}")
print("norm of what reaches h(t): t, from the output, from the step after, and their sum")
for t in range(STEPS):
    parts = from_output[t], from_next[t + 1], from_output[t] + from_next[t + 1]
    print(f"    {t + 1}", *(f"{np.linalg.norm(part):.3f}" for part in parts))
print("norm of the share of every step in the gradient of W, and of their sum")
of_w = shares["recurrent.weight_hh_l0"]
print("   ", *(f"{np.linalg.norm(part):.3f}" for part in (*of_w, sum(of_w))))

# The picture: a node is a row of cells, one for each number in it.
CELL = 17.0
ROWS = {"y": 120.0, "h": 215.0, "x": 310.0}
picture = Picture(
    900, 400, "A recurrent network folded and unrolled, with its values and gradients"
)


def node(centre: float, row: str, values: NDArray[Any], labels: str = "") -> None:
    """A value of each unit: blue above zero, purple below, the stronger the larger."""
    left, top = centre - CELL * len(values) / 2, ROWS[row] - CELL / 2
    for i, value in enumerate(values):
        place = left + i * CELL, top, CELL - 1, CELL - 1
        picture.rectangle(*place, "rule")
        colour = "blue" if value > 0 else "purple"
        picture.rectangle(*place, colour, opacity=min(abs(float(value)), 0.99))
        if labels:
            picture.text(left + i * CELL + CELL / 2, top - 4, labels[i], size=11, anchor="middle")


def arrow(start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    size = 6.0 + width
    corners = [
        (end[0] - size * math.cos(angle + turn), end[1] - size * math.sin(angle + turn))
        for turn in (0.45, -0.45)
    ]
    neck = end[0] - size * 0.8 * math.cos(angle), end[1] - size * 0.8 * math.sin(angle)
    picture.line([start, neck], colour, width=width)
    picture.area([end, *corners], colour)


def gradient_arrow(
    start: tuple[float, float], end: tuple[float, float], gradient: NDArray[Any], side: str
) -> None:
    """The arrow of a gradient, as wide as its norm is large, with that norm beside or below it."""
    norm = float(np.linalg.norm(gradient))
    arrow(start, end, "orange", 1.0 + 4.0 * norm)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    if side == "below":
        picture.text(x, y + 19, f"{norm:.2f}", "orange", size=11, anchor="middle")
    else:
        picture.text(x + 8, y + 4, f"{norm:.2f}", "orange", size=11)


picture.text(40, 36, "Folded", "ink", size=15, bold=True)
picture.text(250, 36, "Unrolled over four letters", "ink", size=15, bold=True)
folded = 90.0
for row, name in (("y", "ŷ"), ("h", "h"), ("x", "x")):
    picture.circle(folded, ROWS[row], 15, "paper", "ink")
    picture.text(folded, ROWS[row] + 4.5, name, "ink", anchor="middle", bold=True)
    picture.text(245, ROWS[row] + 4.5, name, "ink", anchor="middle", bold=True)
arrow((folded, ROWS["x"] - 16), (folded, ROWS["h"] + 17), "ink", 1.5)
arrow((folded, ROWS["h"] - 16), (folded, ROWS["y"] + 17), "ink", 1.5)
picture.text(folded - 8, (ROWS["x"] + ROWS["h"]) / 2 + 4, "U", "ink", anchor="end")
picture.text(folded - 8, (ROWS["h"] + ROWS["y"]) / 2 + 4, "V", "ink", anchor="end")
turn = [math.radians(angle) for angle in range(-140, 121, 10)]
loop = [(folded + 33 + 22 * math.cos(angle), ROWS["h"] + 22 * math.sin(angle)) for angle in turn]
picture.line(loop, "ink", width=1.5)
arrow(loop[-1], (folded + 14, ROWS["h"] + 9), "ink", 1.5)
picture.text(folded + 62, ROWS["h"] + 4.5, "W", "ink")

centres = [305.0 + 155.0 * t for t in range(STEPS)]
reach = CELL * UNITS / 2
for t, centre in enumerate(centres):
    picture.text(centre, 66, f"{WANTED[t]} is right", anchor="middle")
    node(centre, "y", y_hat[t], LETTERS)
    node(centre, "h", h[t + 1])
    node(centre, "x", x[t])
    picture.text(centre, ROWS["x"] + 27, f"x({t + 1}) = {READ[t]}", "ink", anchor="middle")
    arrow((centre - 12, ROWS["x"] - 11), (centre - 12, ROWS["h"] + 11), "ink", 1.5)
    arrow((centre - 12, ROWS["h"] - 11), (centre - 12, ROWS["y"] + 11), "ink", 1.5)
    picture.text(centre - 18, (ROWS["x"] + ROWS["h"]) / 2 + 4, "U", anchor="end")
    picture.text(centre - 18, (ROWS["h"] + ROWS["y"]) / 2 + 4, "V", anchor="end")
    down = (centre + 12, ROWS["y"] + 11), (centre + 12, ROWS["h"] - 11)
    gradient_arrow(*down, from_output[t], "beside")
    down = (centre + 12, ROWS["h"] + 11), (centre + 12, ROWS["x"] - 11)
    gradient_arrow(*down, dx[t], "beside")
    if t:
        before = centres[t - 1] + reach + 3, centre - reach - 4
        arrow((before[0], ROWS["h"] - 5), (before[1], ROWS["h"] - 5), "ink", 1.5)
        picture.text(sum(before) / 2, ROWS["h"] - 12, "W", anchor="middle")
        gradient_arrow(
            (before[1], ROWS["h"] + 6), (before[0], ROWS["h"] + 6), from_next[t], "below"
        )
picture.text(40, 375, "orange: gradients, with their norms; blue: above 0; purple: below 0")
picture.save(path)
