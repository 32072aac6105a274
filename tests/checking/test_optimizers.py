"""Layers that wait for an optimizer: what backward hands it are the gradients of the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg


def n(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


class Dense:
    """A layer as it is before its network gives it an optimizer."""

    def __init__(self, hand_on: Callable[[Any, Any, Any], None], factor: float) -> None:
        self.w, self.b = n(3, 4), n(1, 4)
        self.w_opt = self.b_opt = self.optimizer = None
        self.hand_on, self.factor = hand_on, factor

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.w + self.b

    def backward(self, dy: Any) -> Any:
        w = self.w
        self.hand_on(self, self.x.T @ dy, self.factor * dy.sum(axis=0, keepdims=True))
        return dy @ w.T


def each_its_own(self: Any, dw: Any, db: Any) -> None:
    self.w, self.b = self.w_opt.update(self.w, dw), self.b_opt.update(self.b, db)


def by_name(self: Any, dw: Any, db: Any) -> None:
    self.optimizer.update(self, {"dw": dw, "db": db})


def in_lists(self: Any, dw: Any, db: Any) -> None:
    self.w, self.b = self.optimizer.step([self.w, self.b], [dw, db])


def as_steps(self: Any, dw: Any, db: Any) -> None:
    self.w -= self.w_opt.step(dw)
    self.b -= self.b_opt.step(db)


def one_after_another(self: Any, dw: Any, db: Any) -> None:
    self.optimizer.zero_grad()
    self.optimizer.update(param=self.w, grad=dw)
    self.optimizer.update(param=self.b, grad=db)


@pytest.mark.parametrize("hand_on", [each_its_own, by_name, in_lists, as_steps, one_after_another])
def test_gradients_handed_to_an_optimizer_are_judged(hand_on: Callable[..., None]) -> None:
    right = hg.check(Dense(hand_on, 1.0), n(5, 3))
    assert right.verdict == "right"
    assert not right.unjudged
    wrong = hg.check(Dense(hand_on, 2.0), n(5, 3))
    assert {fault.gradient for fault in wrong.faults if fault.judged} == {"b"}


class Holder:
    """A layer that holds another one."""

    def __init__(self) -> None:
        self.inner = Dense(each_its_own, 2.0)

    def forward(self, x: Any) -> Any:
        return self.inner.forward(x)

    def backward(self, dy: Any) -> Any:
        return self.inner.backward(dy)


def test_a_layer_within_another_waits_as_well() -> None:
    faults = hg.check(Holder(), n(5, 3)).faults
    assert {fault.gradient for fault in faults if fault.judged} == {"inner.b"}


class Tanh:
    """A layer without weights, which has an optimizer and asks it nothing."""

    def __init__(self) -> None:
        self.optimizer = None

    def forward(self, x: Any) -> Any:
        self.y = np.tanh(x)
        return self.y

    def backward(self, dy: Any) -> Any:
        return dy * (1 - self.y**2)


def test_an_optimizer_that_is_asked_nothing_changes_nothing() -> None:
    layer = Tanh()
    assert hg.check(layer, n(5, 3)).verdict == "right"
    assert layer.optimizer is None
