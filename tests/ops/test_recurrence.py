"""Lengths of sequences: a copy of the caller's, looked at again, and padding that never counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from handgrad.errors import HandgradError
from handgrad.ops import additive_attention, attention, cosine_attention, gru, leaky_rnn, lstm, rnn
from tests.rows import rows

RECURRENT = {"rnn": (rnn, 1), "lstm": (lstm, 4), "gru": (gru, 3), "leaky_rnn": (leaky_rnn, 1)}
ENGINES = [
    "reference",
    pytest.param("kernels", marks=pytest.mark.skipif(kernels.native is None, reason="no kernels")),
]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape)


def arguments(name: str) -> tuple[tuple[np.ndarray, ...], dict[str, Any]]:
    _, gates = RECURRENT[name]
    weights = (
        (normal(4 * gates, 3),)
        if name == "leaky_rnn"
        else (
            normal(4 * gates, 3),
            normal(4 * gates, 4),
        )
    )
    return (normal(3, 5, 3), *weights), {"alpha": 0.5} if name == "leaky_rnn" else {}


def cotangent(y: Any) -> Any:
    return tuple(map(cotangent, y)) if isinstance(y, tuple) else normal(*y.shape)


def attending(name: str, lengths: np.ndarray) -> tuple[Any, Any, Any]:
    op = {"attention": attention, "additive": additive_attention, "cosine": cosine_attention}[name]
    arrays = {
        "attention": (normal(3, 2, 4, 5),) * 3,
        "additive": (normal(3, 4, 5), normal(3, 4, 6), normal(2, 5), normal(2, 6), normal(2)),
        "cosine": (normal(3, 4, 5), normal(3, 4, 5)),
    }[name]
    return op, *op.forward(*arrays, lengths=lengths)


@pytest.mark.parametrize("on", ENGINES)
@pytest.mark.parametrize("name", [*RECURRENT, "attention", "additive", "cosine"])
def test_lengths_changed_after_forward_change_nothing(name: str, on: str) -> None:
    def run(change: bool) -> list[Any]:
        lengths = np.array([4, 0, 2])
        if name in RECURRENT:
            op: Any = RECURRENT[name][0]
            arrays, options = arguments(name)
            y, cache = op.forward(*arrays, lengths=lengths, **options)
        else:
            op, y, cache = attending(name, lengths)
        if change:
            lengths[:] = [2**62, -7, 5]
        return [each for each in op.backward(cotangent(y), cache) if each is not None]

    with engine(on):
        for found, expected in zip(run(True), run(False), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(kernels.native is None, reason="no kernels")
@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize("others", [[4, 0, 6], [4, -1, 2], [2**62, 0, 2], [4, 3, 4]])
def test_kept_lengths_are_looked_at_again(name: str, others: list[int]) -> None:
    op: Any = RECURRENT[name][0]
    arrays, options = arguments(name)
    y, cache = op.forward(*arrays, lengths=np.array([4, 0, 2]), **options)
    cache.kept.lengths[:] = others
    if name == "rnn" and max(others) == 4 and min(others) >= 0:
        return  # keeps nothing for every step, so that other lengths are as good
    with pytest.raises((IndexError, HandgradError)):
        op.backward(cotangent(y), cache)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("on", ENGINES)
@rows("reverse", [False, True])
@rows("infinite_weight", [False, True])
@rows("name", RECURRENT, by=str)
def test_padding_never_counts(name: str, infinite_weight: bool, reverse: bool, on: str) -> None:
    """Not even as 0 · ∞, where a weight is infinite or the state of an empty sequence NaN."""
    op: Any = RECURRENT[name][0]
    (x, weight_ih, *others), options = arguments(name)
    if infinite_weight:
        weight_ih[0, 0] = np.inf
    h0 = normal(3, 4)
    h0[1] = np.nan
    x[0, 4:] = x[1] = np.nan
    with engine(on):
        (y, final), cache = op.forward(
            x, weight_ih, *others, h0=h0, lengths=np.array([4, 0, 2]), reverse=reverse, **options
        )
        dx, *gradients = op.backward(cotangent((y, final)), cache)
    assert not y[1].any()
    assert not dx[1].any()
    assert not dx[0, 4:].any()
    if not infinite_weight:
        assert all(np.isfinite(each).all() for each in gradients if each is not None)


@pytest.mark.parametrize("on", ENGINES)
@rows(
    "lengths",
    [
        np.array([1.0, 2.0, 3.0]),
        np.array([True, False, True]),
        np.array([[1, 2, 3]]),
        np.array([1, 2]),
        np.array([1, 2**64 - 1, 3], np.uint64),
        np.array([1, 6, 3]),
        np.array([1, -1, 3]),
        np.array([1, 2, None]),
        [1, 2, 3],
        3,
        "abc",
    ],
    ids=str,
)
@rows("name", RECURRENT, by=str)
def test_lengths_of_other_kinds_are_one_sentence(name: str, lengths: Any, on: str) -> None:
    arrays, options = arguments(name)
    op: Any = RECURRENT[name][0]
    with engine(on), pytest.raises(HandgradError, match=rf"^{name}: lengths .*; allowed: "):
        op.forward(*arrays, lengths=lengths, **options)


@pytest.mark.parametrize("reverse", [2, None, "yes", np.ones(2)])
@pytest.mark.parametrize("name", RECURRENT)
def test_reverse_is_true_or_false(name: str, reverse: Any) -> None:
    arrays, options = arguments(name)
    op: Any = RECURRENT[name][0]
    with pytest.raises(HandgradError, match=rf"^{name}: reverse is .*; allowed: True or False"):
        op.forward(*arrays, reverse=reverse, **options)
