"""A soft query
============

A soft query over key-value pairs: r = softmax(q Kᵀ/√d) V.

A dictionary gives the value of the one key that matches. A soft query gives a mean of all values,
each weighted by how well its key matches. Here keys and queries have two features, so that they
have a position in the plane, and values have three: red, green and blue. The answer is a colour.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Axes, Picture, output

import handgrad as hg

path = output(__doc__)

angles = np.deg2rad([100.0, 20.0, -50.0, -120.0, 165.0])
keys = 2.0 * np.stack((np.cos(angles), np.sin(angles)), axis=-1)  # (5, 2): dim_i = 2
orange, blue, green = (0.90, 0.60, 0.15), (0.35, 0.70, 0.90), (0.10, 0.60, 0.45)
mauve, yellow = (0.80, 0.47, 0.65), (0.94, 0.88, 0.40)
values = np.array([orange, blue, green, mauve, yellow])  # (5, 3): dim_o = 3


def ask(queries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The answers (N, 3) to N queries (N, 2), and the weights (N, 5) of the keys in them."""
    q, k, v = (m[None, None] for m in (queries, keys, values))  # one batch, one head
    r, cache = hg.ops.attention.forward(q, k, v)
    return r[0, 0], cache.a[0, 0]


def css(colour: NDArray[Any]) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)


# The query walks from the middle outwards, once around and a little more.
length = np.linspace(0.0, 4.5, 91)
turn = np.deg2rad(90.0 - 90.0 * length)
walk = length[:, None] * np.stack((np.cos(turn), np.sin(turn)), axis=-1)
answers, weights = ask(walk)

powers = np.exp(walk @ keys.T / np.sqrt(2.0))
written_out = powers / powers.sum(axis=1, keepdims=True) @ values
print(f"q {walk[0].shape}, K {keys.shape}, V {values.shape} give r {answers[0].shape}")
print(f"largest difference from the formula written out: {abs(answers - written_out).max():.0e}")
print("length of q   weights of k1 to k5             r: red, green, blue")
for i in range(0, 91, 15):
    parts = (" ".join(f"{part:5.2f}" for part in row) for row in (weights[i], answers[i]))
    print(f"{length[i]:11.2f}  {'    '.join(parts)}")

picture = Picture(900, 500, "The answers of a soft query in the plane, and its weights on a walk")
plane = Axes(picture, (60, 60, 375, 375), (-5, 5), (-5, 5))
plane.titles("625 queries and their answers", "a query's position is q, its colour the answer r")
plane.ticks({-4: "−4", 0: "0", 4: "4"}, {-4: "−4", 0: "0", 4: "4"})
middles = np.linspace(-4.8, 4.8, 25)
grid = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
for (u, v), answer in zip(grid, ask(grid)[0], strict=True):
    picture.rectangle(plane.across(u) - 7.5, plane.down(v) - 7.5, 15, 15, css(answer))
spiral = [(plane.across(u), plane.down(v)) for u, v in walk]
picture.line(spiral, "#1c1d20", width=4)
picture.line(spiral, "#ffffff")
for number, (u, v) in enumerate(keys, start=1):
    picture.circle(plane.across(u), plane.down(v), 13, "#ffffff", "#1c1d20")
    picture.text(plane.across(u), plane.down(v) + 4.5, f"k{number}", "#1c1d20", anchor="middle")

shares = Axes(picture, (510, 60, 350, 240), (0, 4.5), (0, 1))
shares.titles("Weights of the keys on the walk", "", "weight in the answer")
shares.ticks({}, {0.0: "0", 0.5: "½", 1.0: "1"})
below = np.zeros(91)
for number, value in enumerate(values):
    above = below + weights[:, number]
    edge = [*zip(length, above, strict=True), *zip(length[::-1], below[::-1], strict=True)]
    picture.area([(shares.across(u), shares.down(v)) for u, v in edge], css(value))
    widest = 8 + int(np.argmax(weights[8:-8, number]))
    point = shares.across(length[widest]), shares.down((above + below)[widest] / 2) + 4.5
    picture.text(*point, f"k{number + 1}", "#1c1d20", anchor="middle", bold=True)
    below = above

hard = values[np.argmax(weights, axis=1)]
for top, name, colours in ((340, "r, the answer", answers), (402, "the best key's value", hard)):
    picture.text(510, top - 7, name, "ink")
    for start, colour in zip(length[:-1], colours[:-1], strict=True):
        picture.rectangle(shares.across(start), top, 350 / 90 + 0.3, 26, css(colour))
strips = Axes(picture, (510, 402, 350, 26), (0, 4.5), (0, 1))
strips.ticks({k: str(k) for k in range(5)}, {})
strips.titles("", "length of q, which walks outwards on the white line")
picture.save(path)
