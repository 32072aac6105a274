"""Layers as met in networks written from scratch: names, stores and lists of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg


def n(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize(
    ("value", "slope"),
    [
        ("activation", "derivative"),
        ("compute", "gradients"),
        ("call", "deriv"),
        ("evaluate", "derivative"),
        ("forward", "gradients"),
        ("compute_output", "get_derivative"),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_function_and_its_slope_under_other_names(value: str, slope: str, factor: float) -> None:
    def deriv(self: Any, x: Any) -> Any:
        return factor * (1 - np.tanh(x) ** 2)

    kind = type("Tanh", (), {value: lambda self, x: np.tanh(x), slope: deriv})
    for target in (kind, kind()):
        assert hg.check(target, n(4, 3)).verdict == ("right" if factor == 1.0 else "wrong")


@pytest.mark.parametrize(
    ("ahead", "back"),
    [
        ("propagate", "backpropagate"),
        ("forward_prop", "back_prop"),
        ("forward_propagate", "back_propagate"),
        ("feed_forward", "backpropagation"),
        ("forwardPropagate", "backwardPropagate"),
    ],
)
def test_a_layer_and_its_backward_under_other_names(ahead: str, back: str) -> None:
    def forward(self: Any, x: Any) -> Any:
        self.kept = np.tanh(x)
        return self.kept

    for factor, verdict in ((1.0, "right"), (2.0, "wrong")):

        def backward(self: Any, delta: Any, factor: float = factor) -> Any:
            return factor * delta * (1 - self.kept**2)

        layer = type("Tanh", (), {ahead: forward, back: backward})()
        assert hg.check(layer, n(4, 3)).verdict == verdict


class Loss:
    """Its gradient is that of the mean of every row, in the form of a column."""

    def loss(self, pred: Any, labels: Any) -> Any:
        return np.mean((pred - labels) ** 2)

    def backward(self, pred: Any, labels: Any) -> Any:
        return np.mean(pred - labels, axis=1, keepdims=True)


def test_a_gradient_of_the_wrong_shape_is_that_of_the_predictions() -> None:
    report = hg.check(Loss(), n(4, 3), n(4, 3, seed=1))
    assert report.verdict == "wrong"
    assert report.faults[0].message.startswith("dpred has shape (4, 1); allowed: (4, 3)")


class Scale:
    """A layer whose backward puts the gradients of its parameters into the caller's dictionary."""

    wrong = 1.0

    def __init__(self, name: str = "scale") -> None:
        self.name = name
        self.kept = {f"{name}/gamma": np.ones(3), f"{name}/beta": np.zeros(3)}

    def forward(self, x: Any) -> Any:
        return self.kept[f"{self.name}/gamma"] * x + self.kept[f"{self.name}/beta"], {}

    def backward(self, x: Any, cache: Any, dout: Any, gradients: Any) -> Any:
        del cache
        gradients[f"{self.name}/gamma"] = self.wrong * np.sum(dout * x, axis=0)
        gradients[f"{self.name}/beta"] = np.sum(dout, axis=0)
        return dout * self.kept[f"{self.name}/gamma"]


def test_gradients_that_are_put_into_a_dictionary_of_the_caller() -> None:
    report = hg.check(Scale(), n(5, 3))
    assert report.verdict == "right", str(report)
    assert not report.unjudged
    layer = Scale()
    layer.wrong = 2.0
    assert [each.gradient for each in hg.check(layer, n(5, 3)).faults] == ["kept.scale/gamma"]


class Appends:
    """A dense layer that collects the gradients of a batch's examples."""

    def __init__(self, forgets: bool = False) -> None:
        self.W, self.b = n(3, 4), n(4, seed=1)
        self.W_gradients: list[Any] = []
        self.b_gradients: list[Any] = []
        self.forgets = forgets

    def forward_pass(self, x: Any) -> Any:
        self.x, self.y = x, np.tanh(x @ self.W + self.b)
        return self.y

    def backward_pass(self, delta: Any) -> Any:
        inner = delta * (1 - self.y**2)
        self.W_gradients.append(np.outer(self.x, inner))
        self.b_gradients.append(delta if self.forgets else inner)
        return self.W @ inner


def test_gradients_that_are_appended_to_lists() -> None:
    right = hg.check(Appends(), n(3))
    assert right.verdict == "right", str(right)
    assert not right.unjudged
    wrong = hg.check(Appends(forgets=True), n(3))
    assert {each.gradient for each in wrong.faults} == {"b"}


class Network:
    """A network of which backward is told values by names that nothing else has."""

    def __init__(self) -> None:
        self.w = n(3, 3)

    def forward_prop(self, x: Any) -> Any:
        z1 = self.w @ x
        a1 = np.tanh(z1)
        z2 = self.w @ a1
        return z1, a1, z2, np.tanh(z2)

    def back_prop(self, z1: Any, a1: Any, a2: Any, x: Any, y: Any, batch_size: Any) -> None:
        dz2 = (a2 - np.eye(3)[:, y]) / batch_size
        self.dw = dz2 @ a1.T + (self.w.T @ dz2) * (1 - np.tanh(z1) ** 2) @ x.T


def test_a_backward_that_takes_more_than_forward_gives_ends_in_a_sentence() -> None:
    report = hg.check(Network(), n(3, 3))
    assert report.verdict == "undecided"
    assert "StopIteration" not in str(report)
