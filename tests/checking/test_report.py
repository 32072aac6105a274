"""The content of a report of `hg.check`, and the state that a check leaves alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import CheckError, CheckReport
from tests.checking.functions import (
    W,
    X,
    backward,
    forward,
    normal,
    reported,
)


def test_fields_of_a_report_that_is_ok():
    report = hg.check((forward, backward), X, W)
    assert isinstance(report, CheckReport)
    assert report.seed == 0
    assert [row.gradient for row in report.gradients[:2]] == ["x", "w"]
    for row in report.gradients:
        assert row.verdict == "right"
        assert 0.0 <= row.error <= row.bound
        assert row.method
    tried = {row.situation for row in report.trials}
    assert tried >= {"usual", "float32", "read-only inputs", "backward twice"}
    assert tried >= {"non-contiguous cotangent", "broadcast cotangent", "one row", "empty"}
    assert "✓" in str(report)


def test_fields_of_a_fault():
    def wrong(dy, cache):
        x, w, y = cache
        return dy @ w.T, x.T @ (dy * (1.0 - y * y))

    report = hg.check((forward, wrong), X, W)
    (fault,) = report.faults
    assert fault.gradient == "x"
    assert fault.message.startswith("dx: ")
    assert fault.situation == "usual"
    verdicts = {row.gradient: row.verdict for row in report.gradients}
    assert verdicts == {"x": "wrong", "w": "right"}
    with pytest.raises(CheckError, match="dx") as raised:
        report.assert_ok()
    assert isinstance(raised.value, AssertionError)
    assert fault.message.split()[0] in str(report)


def test_to_dict_is_plain_and_complete():
    report = hg.check((forward, lambda dy, cache: (np.full((5, 3), np.nan), cache[1])), X, W)
    found = report.to_dict()
    assert found["ok"] is False
    assert set(found) >= {"target", "seed", "like", "gradients", "trials", "faults"}
    assert set(found["faults"][0]) >= {"gradient", "kind", "term", "message", "confidence"}
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(report.to_json())


def test_the_same_seed_gives_the_same_report():
    def wrong(dy, cache):
        dx, dw = backward(dy, cache)
        return dx, 1.5 * dw

    first, second = (hg.check((forward, wrong), X, W, seed=3) for _ in range(2))
    assert first == second
    other = hg.check((forward, wrong), X, W, seed=4)
    assert other.seed == 4
    assert [row.error for row in other.gradients] != [row.error for row in first.gradients]
    assert [fault.kind for fault in other.faults] == [fault.kind for fault in first.faults]


def test_the_global_generator_is_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    hg.check((forward, backward), X, W)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_inputs_are_left_alone():
    def destructive(x):
        y = x * x
        x *= 0.0
        return y, y

    x = normal(3, 4)
    kept = x.copy()
    reported((destructive, lambda dy, y: dy), x)
    assert np.array_equal(x, kept)


def test_inputs_drawn_from_the_same_seed_hide_nothing():
    """The cotangent must not be the very numbers that the user's own generator gave."""

    def product(x, w):
        return 0.5 * (x @ w), (x, w)

    def transposed(dy, cache):
        x, w = cache
        return 0.5 * (dy @ w.T), 0.5 * (dy.T @ x)

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    assert [fault.gradient for fault in reported((product, transposed), x, w, seed=0)] == ["w"]


def test_what_cannot_be_decided_is_not_ok():
    """At a kink in every direction no difference says what is right."""

    def absolute(x):
        return np.abs(x), x

    report = hg.check((absolute, lambda dy, x: dy * 5.0), np.zeros((3, 4)))
    assert not report.ok or all(row.verdict == "right" for row in report.gradients)


class Recurrent:
    """h_t = tanh(x_t V + h_{t−1} W), whose backward forgets the path through h_{t−1}."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.V, self.W = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))

    def forward(self, x):
        self.x, self.hs = x, [np.zeros(4)]
        for step in x:
            self.hs.append(np.tanh(step @ self.V + self.hs[-1] @ self.W))
        return np.stack(self.hs[1:])

    def backward(self, dh):
        self.dV, self.dW, dx = np.zeros_like(self.V), np.zeros_like(self.W), np.zeros_like(self.x)
        dnext = np.zeros(4)
        for t in reversed(range(len(self.x))):
            da = dh[t] * (1 - self.hs[t + 1] ** 2)
            self.dV += np.outer(self.x[t], da)
            self.dW += np.outer(self.hs[t], da)
            dx[t] = da @ self.V.T
            dnext = da @ self.W.T  # noqa: F841  the mistake
        return dx


def test_what_is_said_of_several_gradients_is_printed_once():
    report = hg.check(Recurrent(), normal(5, 3))
    assert [fault.gradient for fault in report.faults] == ["x", "V", "W"]
    lines = [line for line in str(report).splitlines() if line.startswith(("✗", "    "))]
    assert lines[0].startswith("✗ dx, dV and dW: the term dnext is missing beside dh[t]")
    assert [line.split()[0] for line in lines if line.startswith("    ")] == ["-", "+"]
