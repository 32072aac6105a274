"""Derivatives as people write them: of the input, of the output, as a Jacobian, in a method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def of_rows(s: Any) -> Any:
    return np.stack([np.diag(row) - np.outer(row, row) for row in s])


def of_whole(s: Any) -> Any:
    s = s.reshape(-1, 1)
    return np.diagflat(s) - s @ s.T


def rows_of(diagonal: Any) -> Any:
    return diagonal[:, :, np.newaxis] * np.eye(diagonal.shape[1])


def wrapped(x: Any, *rest: Any, **more: Any) -> Any:
    return np.exp(x, *rest, **more)


class Methods:
    """An activation without state."""

    def forward(self, x: Any) -> Any:
        return np.tanh(x)

    def backward(self, x: Any) -> Any:
        return 1 - np.tanh(x) ** 2


class OfOutput:
    @staticmethod
    def forward(x: Any) -> Any:
        return np.tanh(x)

    @staticmethod
    def backward(x: Any) -> Any:
        return 1 - x * x


class Named:
    """Keeps what it was called with, and has its derivative under another name."""

    def forward(self, x: Any) -> Any:
        self.last = x
        return logistic(x)

    def derivative(self, x: Any = None) -> Any:
        y = logistic(self.last if x is None else x)
        return y * (1 - y)


class Listed:
    """Returns dx and a list of the gradients of the parameters, of which there are none."""

    def forward(self, x: Any) -> Any:
        self.mask = x > 0
        return x * self.mask

    def backward(self, dout: Any) -> Any:
        return dout * self.mask, []


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ((logistic, lambda x: logistic(x) * (1 - logistic(x))), (5, 3)),
        ((logistic, lambda a: a * (1 - a)), (5, 3)),
        ((logistic, lambda x: x * (1 - x)), (5, 3)),
        ((softmax, of_rows), (5, 3)),
        ((softmax, of_whole), (4,)),
        ((np.tanh, lambda x, activations: rows_of(1 - activations**2)), (5, 3)),
        ((np.tanh, lambda x, activations: rows_of(1 - activations[..., 0] ** 2)), (5, 3, 1)),
        ((lambda x: softmax(x.T).T, of_whole), (4, 1)),
        ((np.exp, wrapped), (5, 3)),
        ((lambda x: x, lambda *_: 1), (5, 3)),
        (Methods(), (5, 3)),
        (OfOutput, (5, 3)),
        (OfOutput(), (5, 3)),
        (Named(), (5, 3)),
        (Listed(), (5, 3)),
    ],
)
def test_a_right_derivative_is_right_in_any_form(target: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).standard_normal(shape)
    report = hg.check(target, x)
    assert report.verdict == "right", str(report)
    assert not report.unjudged


def scaled_elu(x: Any, scale: float, alpha: float = 1.0) -> Any:
    return np.where(x > 0, scale * x, scale * alpha * (np.exp(x) - 1))


def of_scaled_elu(x: Any, scale: float, alpha: float = 1.0) -> Any:
    return np.where(x > 0, scale, scale * alpha * np.exp(x))


def test_a_derivative_is_given_the_settings_of_its_forward() -> None:
    x = np.random.default_rng(1).standard_normal((5, 3))
    report = hg.check((scaled_elu, of_scaled_elu), x, scale=1.05, alpha=1.67)
    assert report.verdict == "right", str(report)


class Identity:
    """Leaves its output in an attribute, and returns nothing."""

    def forward(self, inputs: Any) -> None:
        self.output = inputs

    def backward(self, dvalues: Any) -> None:
        self.dinputs = dvalues.copy()


def test_an_output_in_an_attribute_may_be_the_input() -> None:
    x = np.random.default_rng(1).standard_normal((5, 3))
    assert hg.check(Identity(), x).verdict == "right"


def leaky_step(x: Any, h: Any) -> Any:
    current_c = np.tanh(x) * h
    return np.tanh(current_c), current_c, (x, h, current_c)


def of_leaky_step(dcurrent_h: Any, dcurrent_c: Any, cache: Any) -> Any:
    x, h, c = cache
    dc = dcurrent_c + dcurrent_h * (1 - np.tanh(c) ** 2)
    return dc * h * (1 - np.tanh(x) ** 2), dc * np.tanh(x)


def test_every_output_has_its_cotangent_under_a_long_name() -> None:
    x, h = np.random.default_rng(1).standard_normal((2, 5, 3))
    report = hg.check((leaky_step, of_leaky_step), x, h)
    assert report.verdict == "right", str(report)


class Forgetful(Methods):
    def backward(self, x: Any) -> Any:
        return 1 - np.tanh(x)


class Halved:
    def forward(self, x: Any) -> Any:
        self.y = np.tanh(x)
        return self.y

    def backward(self, dout: Any) -> Any:
        return dout * (1 - self.y * self.y) / 2, []


@pytest.mark.parametrize(
    "target",
    [
        (logistic, lambda x: x * (2 - x)),
        (softmax, lambda s: of_rows(s) + np.eye(s.shape[1])),
        Forgetful(),
        Halved(),
        (np.exp, lambda x: np.ones_like(x)),
    ],
)
def test_a_wrong_one_is_wrong_by_every_reading(target: Any) -> None:
    x = np.random.default_rng(1).standard_normal((5, 3))
    report = hg.check(target, x)
    assert report.verdict == "wrong"
    assert "not linear" not in {each.kind for each in report.faults} or isinstance(
        target, Forgetful
    )


def entropy(p: Any, t: Any) -> Any:
    return -np.log(p[np.arange(len(t)), t] + 1e-7).mean()


class Loss:
    """Ends a network: its backward does not use what flows back, nor the 1e-7 of its forward."""

    def forward(self, x: Any, t: Any) -> Any:
        self.t, self.p = t, softmax(x)
        return entropy(self.p, t)

    def backward(self, dout: Any = 1) -> Any:
        d = self.p.copy()
        d[np.arange(len(self.t)), self.t] -= 1
        return d / len(self.t)


class Network:
    def __init__(self) -> None:
        self.w = np.random.default_rng(0).standard_normal((3, 4))
        self.loss = Loss()

    def forward(self, x: Any, t: Any) -> Any:
        self.x = x
        return self.loss.forward(x @ self.w, t)

    def backward(self, dout: Any = 1) -> Any:
        d = self.loss.backward(dout)
        self.dw = self.x.T @ d
        return d @ self.w.T


class Doubled(Loss):
    def backward(self, dout: Any = 1) -> Any:
        return 2 * super().backward(dout)


class Moved(Loss):
    """Wrong by more than the guard explains."""

    def backward(self, dout: Any = 1) -> Any:
        return super().backward(dout) + 1e-4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [Loss, Network])
def test_a_loss_that_ends_a_network_is_right_but_for_its_guard(kind: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    report = hg.check(kind(), rng.standard_normal((5, 3)), rng.integers(0, 3, 5))
    assert report.verdict == "right", str(report)
    assert {each.kind for each in report.remarks} >= {"convention", "guard"}


@pytest.mark.parametrize("kind", [Doubled, Moved])
def test_such_a_loss_may_be_wrong(kind: Any) -> None:
    rng = np.random.default_rng(0)
    report = hg.check(kind(), rng.standard_normal((5, 3)), rng.integers(0, 3, 5))
    assert report.verdict == "wrong"
    assert "not linear" not in {each.kind for each in report.faults}
