"""Gradients of another shape are told with the line that loses it."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from tests.checking.functions import normal


class Bordered:
    """Squares with a border of zeros around, of no rows unless one is asked for."""

    def __init__(self, border: int = 0) -> None:
        self.border = border

    def forward(self, x: Any) -> Any:
        self.wide = np.pad(x, ((0, 0), (self.border, self.border), (self.border, self.border)))
        return self.wide**2


class CutByMinus(Bordered):
    def backward(self, dy: Any) -> Any:
        border = self.border
        dwide = 2 * self.wide * dy
        return dwide[:, border:-border, border:-border]


class CutByOneSide(Bordered):
    def backward(self, dy: Any) -> Any:
        dx = 2 * self.wide * dy
        b = self.border
        dx = dx[:, b : dx.shape[-1] - b, b : dx.shape[-1] - b]
        return dx


def test_a_margin_of_nothing_leaves_nothing() -> None:
    (fault,) = hg.check(CutByMinus(), normal(2, 4, 3)).faults
    assert fault.kind == "wrong shape"
    assert "the slice border:-border is empty" in fault.message
    assert "border:dwide.shape[1] - border, border:dwide.shape[2] - border" in fault.diff
    assert hg.check(CutByMinus(1), normal(2, 4, 3)).verdict == "right"


def test_rows_that_are_cut_by_the_length_of_columns() -> None:
    (fault,) = hg.check(CutByOneSide(1), normal(2, 6, 4)).faults
    assert fault.kind == "wrong shape"
    assert "another size belongs there: dx.shape[1] for dx.shape[−1]" in fault.message
    assert fault.diff


def test_a_mean_in_the_place_of_every_entry() -> None:
    def loss(guess: Any, goal: Any) -> Any:
        return np.mean((guess - goal) ** 4)

    def loss_backward(guess: Any, goal: Any) -> Any:
        return np.mean(guess - goal, axis=1, keepdims=True)

    report = hg.check((loss, loss_backward), normal(4, 3), normal(4, 3, seed=1), wrt=["guess"])
    (fault,) = [each for each in report.faults if each.gradient]
    assert "dguess has shape (4, 1); allowed: (4, 3)" in fault.message
    assert "belongs where mean(guess − goal) stands" in fault.message
    assert fault.diff


class Mixed:
    """Windows of three times weights, summed over the window and over the channels."""

    def __init__(self) -> None:
        self.kernel = normal(2, 3, 3, seed=3)  # to, from, position

    def forward(self, x: Any) -> Any:
        self.x = x
        windows = [x[:, t : t + 3] for t in range(x.shape[1] - 2)]
        return np.stack([np.einsum("oip,ip->o", self.kernel, each) for each in windows], -1)

    def backward(self, dy: Any) -> Any:
        dx = np.zeros(self.x.shape)
        wide = np.pad(dy, ((0, 0), (2, 2)))[:, None]
        turned = self.kernel[:, :, ::-1]
        for t in range(dx.shape[1]):
            dx[:, t] = np.sum(wide[:, :, t : t + 3] * turned)
        return dx


def test_a_channel_that_gets_the_sum_over_all_channels() -> None:
    (fault,) = hg.check(Mixed(), normal(3, 6)).faults
    assert fault.kind == "wrong axis"
    assert "is to be taken along axes (0, 2) alone" in fault.message
