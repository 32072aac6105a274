"""Interfaces that several readings fit: the one by which the gradient is right is meant."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import handgrad as hg
from tests.checking.functions import normal as n


def verdict(target: Any, *arrays: Any) -> str:
    return hg.check(target, *arrays).verdict


def bent(x: Any, w: Any, b: Any) -> Any:
    z = x @ w + b
    t = np.tanh(z)
    return z * t, (x, w, z, t)


def bent_grad(dy: Any, x: Any, w: Any, z: Any, t: Any) -> Any:
    dz = dy * (t + z * (1 - t * t))
    return dz @ w.T, x.T @ dz, dz.sum(axis=0)


def test_a_cache_is_spread_over_the_arguments_of_backward() -> None:
    assert verdict((bent, bent_grad), n(4, 3), n(3, 2), n(2)) == "right"


class Cell:
    """Two states go on, and the gradients of both come back."""

    def __init__(self) -> None:
        self.w, self.dw = n(3, 4, seed=5), np.zeros((3, 4))

    def forward(self, x: Any, h_prev: Any, c_prev: Any) -> Any:
        a = np.tanh(x @ self.w + h_prev)
        c_next = 0.5 * c_prev + a
        h_next = a * np.sin(c_next)
        self.kept = (x, a, c_next)
        return h_next, c_next

    def backward(self, dh_next: Any, dc_next: Any) -> Any:
        x, a, c_next = self.kept
        dc = dc_next + dh_next * a * np.cos(c_next)
        dz = (dh_next * np.sin(c_next) + dc) * (1 - a * a)
        self.dw[...] = x.T @ dz
        return dz @ self.w.T, dz, 0.5 * dc


def test_two_cotangents_are_named_after_the_states_that_go_on() -> None:
    assert verdict(Cell(), n(2, 3), n(2, 4), n(2, 4)) == "right"


def test_one_cotangent_of_two_that_is_forgotten_is_wrong() -> None:
    class Forgetful(Cell):
        def backward(self, dh_next: Any, dc_next: Any) -> Any:
            return super().backward(dh_next, 0 * dc_next)

    assert verdict(Forgetful(), n(2, 3), n(2, 4), n(2, 4)) == "wrong"


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class WithProbabilities:
    """A loss that hands its predictions on, and takes them again."""

    def forward(self, y_true: Any, scores: Any) -> Any:
        found = softmax(scores)
        return -np.sum(y_true * np.log(found)) / len(scores), found

    def backward(self, y_true: Any, y_pred: Any, found: Any) -> Any:
        return (found - y_true) / len(y_true)


def labels(rows: int, classes: int) -> Any:
    return np.eye(classes)[np.random.default_rng(7).integers(0, classes, rows)]


def test_a_loss_takes_its_inputs_and_its_predictions_again() -> None:
    assert verdict(WithProbabilities(), labels(5, 3), n(5, 3)) == "right"


def test_a_loss_that_forgets_the_rows_is_wrong() -> None:
    class Sum(WithProbabilities):
        def backward(self, y_true: Any, y_pred: Any, found: Any) -> Any:
            return found - y_true

    assert verdict(Sum(), labels(5, 3), n(5, 3)) == "wrong"


def test_a_function_gives_its_loss_the_gradient_and_the_predictions() -> None:
    def loss(scores: Any, label: Any) -> Any:
        found = softmax(scores)
        return -np.sum(label * np.log(found)) / len(found), (found - label) / len(found), found

    assert verdict(loss, n(5, 3), labels(5, 3)) == "right"


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    def outer(*given: Any) -> Any:
        return function(*given)

    return outer


class Traced:
    """A decorator hides the names of the methods and of their arguments."""

    @traced
    def forward(self, x: Any) -> Any:
        self.x = x
        return np.sin(x)

    @traced
    def backward(self, dy: Any) -> Any:
        return -dy * np.cos(self.x)


def test_a_backward_that_a_decorator_renames_is_none_of_a_derivative() -> None:
    (fault,) = hg.check(Traced(), n(4, 3)).faults
    assert "sign" in fault.message or "−1" in fault.message


class Chunks:
    """A row-wise softmax whose object keeps every input that it was given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(x)
        return softmax(x)

    def backward(self, dy: Any) -> Any:
        y = softmax(self.seen[0])
        return y * (dy - (dy * y).sum(axis=1, keepdims=True))


def test_a_known_function_is_called_on_a_fresh_object_each_time() -> None:
    assert verdict(Chunks(), n(5, 3)) == "right"


def test_the_cotangent_of_a_number_is_a_number() -> None:
    class Halved:
        def forward(self, x: Any) -> Any:
            self.x = x
            return np.sum(np.sin(x)) / 2

        def backward(self, dout: Any = 1) -> Any:
            dout *= 0.5
            return dout * np.cos(self.x)

    assert verdict(Halved(), n(4, 3)) == "right"


def test_a_cache_with_the_same_dictionary_twice_stays_one() -> None:
    class Store:
        def __init__(self, grads: dict[str, Any]) -> None:
            self.grads = grads

        def forward(self, x: Any, w: Any) -> Any:
            self.x, self.w = x, w
            return x @ w

        def backward(self, dy: Any) -> Any:
            self.grads["w"] = self.x.T @ dy
            return dy @ self.w.T

    def run(x: Any, w: Any) -> Any:
        grads: dict[str, Any] = {}
        layer = Store(grads)
        return layer.forward(x, w), (layer, grads)

    def run_backward(dy: Any, cache: Any) -> Any:
        layer, grads = copy.copy(cache)
        grads["x"] = layer.backward(dy)
        return grads

    assert verdict((run, run_backward), n(4, 3), n(3, 2)) == "right"


def squashed(x: Any, derivative: bool = False) -> Any:
    y = 1 / (1 + np.exp(-x))
    return y * (1 - y) if derivative else y


def test_a_flag_makes_a_function_its_own_derivative() -> None:
    def swollen(x: Any, prime: bool = False) -> Any:
        y = np.tanh(x)
        return 1 + y * y if prime else y

    assert verdict(squashed, n(4, 3)) == "right"
    (fault,) = hg.check(swollen, n(4, 3)).faults
    assert "1 - y * y" in fault.diff


class Guarded:
    """A guard within the logarithm moves the right gradient a little, which its backward skips."""

    def forward(self, x: Any, t: Any) -> Any:
        self.y, self.t = softmax(x), t
        return -np.sum(np.log(self.y[np.arange(len(t)), t] + 1e-7)) / len(t)

    def backward(self, dout: Any = 1) -> Any:
        dx = self.y.copy()
        dx[np.arange(len(self.t)), self.t] += 1
        return dx * dout / len(self.t)


def test_a_guard_in_a_loss_hides_no_cause() -> None:
    (fault,) = hg.check(Guarded(), n(5, 3), np.array([0, 2, 1, 0, 2])).faults
    assert "+= 1" in fault.diff
    assert "-= 1" in fault.diff


class Buffered:
    """A sum over time in arrays of float32, whatever goes in."""

    def forward(self, x: Any, w: Any) -> Any:
        h = np.zeros(w.shape[0], dtype="f")
        self.x, self.w, self.h = x, w, [h]
        y = np.empty((len(x), len(w)), dtype="f")
        for t in range(len(x)):
            h = np.tanh(x[t] + w @ h)
            y[t] = h
            self.h.append(h)
        return y

    def backward(self, dy: Any) -> Any:
        dx, dw = np.empty(dy.shape, dtype="f"), np.zeros(self.w.shape, dtype="f")
        dh = np.zeros(len(self.w))
        for t in reversed(range(len(dy))):
            dz = (dy[t] + dh) * (1 - self.h[t + 1] ** 2)
            dx[t] = dz
            dw = np.outer(dz, self.h[t])
            dh = self.w.T @ dz
        return dx, dw


def test_buffers_of_float32_hide_no_cause() -> None:
    (fault,) = hg.check(Buffered(), n(4, 3), n(3, 3, seed=2)).faults
    assert "dw += np.outer(dz, self.h[t])" in fault.diff
