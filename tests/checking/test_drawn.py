"""Layers that draw from the generator of NumPy: masks in every forward, weights in the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg


def n(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


class Dropout:
    def forward(self, x: Any) -> Any:
        self.mask = (np.random.rand(*x.shape) < 0.6) / 0.6  # noqa: NPY002
        return x * self.mask

    def backward(self, dy: Any) -> Any:
        return dy * self.mask


class Redrawn(Dropout):
    """Draws another mask in its backward."""

    def backward(self, dy: Any) -> Any:
        self.forward(dy)
        return super().backward(dy)


class Dense:
    """Draws its weights when it sees its first input."""

    factor = 1.0

    def __init__(self) -> None:
        self.params: dict[str, Any] = {"w": None, "b": None}
        self.grads: dict[str, Any] = {}

    def forward(self, x: Any) -> Any:
        if self.params["w"] is None:
            self.params = {"w": np.random.randn(x.shape[1], 4), "b": np.zeros(4)}  # noqa: NPY002
        self.x = x
        return x @ self.params["w"] + self.params["b"]

    def backward(self, dy: Any) -> Any:
        self.grads = {"w": self.factor * self.x.T @ dy, "b": dy.sum(axis=0)}
        return dy @ self.params["w"].T


class Doubled(Dense):
    factor = 2.0


class Network:
    def __init__(self) -> None:
        self.layers = [Dense(), Dropout(), Dense()]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dy: Any) -> Any:
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy


def test_a_mask_that_is_kept_is_right() -> None:
    assert hg.check(Dropout(), n(5, 3)).verdict == "right"


def test_a_mask_that_is_drawn_again_is_wrong() -> None:
    assert hg.check(Redrawn(), n(5, 3)).verdict == "wrong"


@pytest.mark.parametrize("kind", [Dense, Network])
def test_weights_of_the_first_call_are_judged(kind: Any) -> None:
    report = hg.check(kind(), n(5, 3))
    assert report.verdict == "right", str(report)
    assert not report.unjudged
    assert any(row.gradient.endswith("w") for row in report.gradients)


def test_their_gradients_may_be_wrong() -> None:
    report = hg.check(Doubled(), n(5, 3))
    assert report.verdict == "wrong"
    assert {fault.gradient for fault in report.faults} == {"params.w"}
    assert "twice" in report.faults[0].message


def test_the_generator_goes_on_as_if_nothing_were_drawn() -> None:
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.rand(2)  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    hg.check(Dropout(), n(5, 3))
    assert np.array_equal(np.random.rand(2), expected)  # noqa: NPY002
