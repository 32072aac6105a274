"""Checks of what has several outputs, loops, parts, and optional inputs between others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer

OPS = ("rnn", "leaky_rnn", "lstm", "gru")


@pytest.mark.parametrize("op", OPS)
def test_an_op_is_right_in_every_situation(op: str) -> None:
    report = hg.check(op)
    assert report.ok, report
    assert {trial.verdict for trial in report.trials} == {"right"}
    assert any("float32" in row.method for row in report.gradients)


def test_another_forward_is_told() -> None:
    def forward(*args: Any, **options: Any) -> Any:
        (y, h), cache = hg.ops.rnn.forward(*args, **options)
        return (y, h + 0.25), cache

    report = hg.check((forward, hg.ops.rnn.backward), like="rnn")
    (fault,) = (fault for fault in report.faults if fault.kind == "forward differs")
    assert fault.message == "forward is not that of rnn: y differs by up to 0.25"


def test_a_pair_with_several_outputs_is_recognised() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((2, 3, 4), (5, 4), (5, 5), (5,), (5,), (2, 5))]
    report = hg.check((hg.ops.rnn.forward, hg.ops.rnn.backward), *arrays)
    assert report.ok, report
    assert report.like == "rnn"


def test_none_stands_for_an_input_that_is_left_out() -> None:
    rng = np.random.default_rng(0)
    x, w, u, h0, c0 = (rng.standard_normal(s) for s in ((2, 3, 4), (8, 4), (8, 2), (2, 2), (2, 2)))
    report = hg.check("lstm", x, w, u, None, None, None, h0, c0, lengths=np.array([3, 1]))
    assert report.ok, report
    assert {row.gradient for row in report.gradients} == {"x", "weight_ih", "weight_hh", "h0", "c0"}


def _model(rng: np.random.Generator) -> Layer:
    return hg.Sequential(hg.LSTM(4, 3, rng=rng), hg.LastStep(), hg.Dense(3, 2, rng=rng))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda rng: hg.LSTM(4, 3, 2, rng=rng, proj_size=2, dropout=0.3), [(2, 3, 4)]),
        (lambda rng: hg.GRU(4, 3, rng=rng, bidirectional=True), [(2, 3, 4), (2, 2, 3)]),
        (_model, [(2, 3, 4)]),
    ],
)
def test_a_layer_is_checked_with_its_state(
    make: Callable[[np.random.Generator], Layer], shapes: list[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(0)
    report = hg.check(make(rng), *(rng.standard_normal(shape) for shape in shapes))
    assert report.ok, report


def test_a_wrong_recurrent_layer_is_found_in_its_model() -> None:
    class Wrong(hg.LSTM):
        def backward(self, *args: Any, **settings: Any) -> Any:
            found, gradients = super().backward(*args, **settings)
            return found, {**gradients, "bias_hh_l0": -gradients["bias_hh_l0"]}

    rng = np.random.default_rng(0)
    model = hg.Sequential(Wrong(4, 3, rng=rng), hg.LastStep(), hg.Dense(3, 2, rng=rng))
    report = hg.check(model, rng.standard_normal((2, 3, 4)))
    assert [fault.gradient for fault in report.faults] == ["0.bias_hh_l0"]
