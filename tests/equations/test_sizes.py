"""Sizes of a user's own functions in the letters of their annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg

X = np.arange(1.0, 9.0).reshape(4, 2)
W = np.arange(1.0, 5.0).reshape(2, 2)


def halves(x: Float[Array, "N D"]):
    half = x.shape[1] // 2
    a, b = x[:, :half], x[:, half:]
    y = a * b
    return y, (a, b)


def halves_backward(dy, cache):
    a, b = cache
    dx = np.concatenate([dy * b, dy * a], axis=1)
    return dx


def stacked(x: Float[Array, "N D"], w: Float[Array, "E H"]):
    rows = [row @ w for row in x]
    y = np.stack(rows)
    return y, (x, w)


def stacked_backward(dy, cache):
    x, w = cache
    return dy @ w.T, x.T @ dy


def dropped(x: Float[Array, "N D"]):
    mask = np.random.default_rng(0).random(x.shape) < 0.5
    y = x * mask
    return y, mask


def dropped_backward(dy, mask):
    return dy * mask


def viewed(x: Float[Array, "N D"]):
    y = x * 2.0
    first = y[0]
    first += 1.0
    picked = y[np.arange(x.shape[0]), 0]
    return picked, (x.shape, y)


def viewed_backward(dpicked, cache):
    _shape, y = cache
    dx = np.zeros_like(y)
    dx[:, 0] = 2.0 * dpicked
    return dx


@pytest.mark.parametrize(
    ("pair", "arrays", "shapes"),
    [
        # The second half is as long as the first where D is a multiple of 2.
        ((halves, halves_backward), (X,), {"a": "(N, D / 2)", "b": "(N, D / 2)", "dx": "(N, D)"}),
        # D and E are multiplied, so that they are one letter; as many rows as the loop had rounds.
        ((stacked, stacked_backward), (X, W), {"w": "(D, H)", "y": "(N, H)", "dy": "(N, H)"}),
        ((dropped, dropped_backward), (X,), {"mask": "(N, D)", "y": "(N, D)"}),
        ((viewed, viewed_backward), (X,), {"picked": "(N ,)", "y": "(N, D)"}),
    ],
)
def test_every_size_is_written_in_letters(pair: Any, arrays: Any, shapes: dict[str, str]) -> None:
    text = hg.notes(pair, *arrays, measure=None).to_markdown()
    for name, shape in shapes.items():
        assert any(f"`{name}`" in line and shape in line for line in text.splitlines()), text
