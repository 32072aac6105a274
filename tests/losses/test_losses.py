"""Losses: the gradient they start, with and without an incoming one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad import dispatch
from handgrad.errors import ArgumentError, ShapeError
from handgrad.losses import BinaryCrossEntropy, CrossEntropy, CTCLoss, Loss, SquaredError, Weighted
from tests.tolerances import assert_close

RNG = np.random.default_rng(0)
Y = RNG.standard_normal((4, 3))
CLASSES = RNG.integers(0, 3, 4)
VALUES = RNG.random((4, 3))

CASES: list[tuple[Callable[[], Loss], np.ndarray]] = [
    (CrossEntropy, CLASSES),
    (lambda: CrossEntropy(weight=np.array([1.0, 2.0, 0.5]), label_smoothing=0.1), CLASSES),
    (lambda: CrossEntropy(reduction="none"), CLASSES),
    (SquaredError, VALUES),
    (lambda: SquaredError(reduction="half_sum"), VALUES),
    (BinaryCrossEntropy, VALUES),
    (lambda: BinaryCrossEntropy(reduction="none"), VALUES),
]


@pytest.mark.parametrize(("make", "target"), CASES)
def test_gradient_matches_a_difference(make: Callable[[], Loss], target: np.ndarray) -> None:
    loss = make()
    rng = np.random.default_rng(1)
    value, cache = loss.forward(Y, target)
    dloss = rng.standard_normal(value.shape)
    direction = rng.standard_normal(Y.shape)
    step = 1e-5
    ahead, behind = (loss.forward(Y + d * direction, target)[0] for d in (step, -step))
    expected = np.sum(dloss * (ahead - behind)) / (2 * step)
    found = np.sum(loss.backward(cache, dloss) * direction)
    assert_close(found, expected, "finite differences")


@pytest.mark.parametrize(("make", "target"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_incoming_gradient_is_1_by_default(
    make: Callable[[], Loss], target: np.ndarray, dtype: type[np.floating]
) -> None:
    loss = make()
    if target.dtype.kind == "f":
        target = target.astype(dtype)
    if loss.options.get("weight") is not None:
        loss.options["weight"] = loss.options["weight"].astype(dtype)
    value, cache = loss.forward(Y.astype(dtype), target)
    dy = loss.backward(cache)
    assert dy.dtype == dtype
    np.testing.assert_array_equal(dy, loss.backward(cache, np.ones(value.shape, dtype)))


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1, "ignore_index": 2}])
def test_the_gradient_may_be_written_over_the_scores(
    engine: str, axis: int, options: dict[str, Any]
) -> None:
    """Also where rows do not lie in one piece (axis 1), and for more classes than one vector."""
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((3, 41, 5) if axis == 1 else (3, 5, 41)).astype(np.float32)
    target = rng.integers(0, 41, (3, 5))
    target[0, 0] = 2
    loss = CrossEntropy(class_axis=axis, **options)
    with dispatch.engine(engine):
        _, cache = loss.forward(scores, target)
        expected = loss.backward(cache)
        found = loss.backward(cache, out=scores)
    assert np.shares_memory(found, scores)
    np.testing.assert_array_equal(scores, expected)


def test_a_strided_buffer_for_the_gradient_is_refused() -> None:
    scores = np.zeros((2, 3, 8), np.float32)
    loss = CrossEntropy(class_axis=-1)
    _, cache = loss.forward(scores, np.zeros((2, 3), np.int64))
    with pytest.raises(ArgumentError, match="strided view; allowed: C-contiguous"):
        loss.backward(cache, out=np.zeros((2, 3, 16), np.float32)[..., ::2])


def test_half_the_sum_of_squares_is_that_of_the_notes() -> None:
    y = np.array([[4.0, 2, 5, 2], [2, 2, 3, 2]])
    target = np.array([[1.0, 0, 0, 1], [0, 0, 1, 1]])
    loss = SquaredError(reduction="half_sum")
    value, cache = loss.forward(y, target)
    assert float(value) == 26
    np.testing.assert_array_equal(loss.backward(cache), [[3, 2, 5, 1], [2, 2, 2, 1]])


def test_classes_last_are_the_same_loss() -> None:
    """Scores (N, T, C) and (N, C, T) of the same numbers, with targets that do not count."""
    rng = np.random.default_rng(3)
    y, target = rng.standard_normal((4, 5, 3)), rng.integers(0, 3, (4, 5))
    for options in ({"ignore_index": 0}, {"label_smoothing": 0.1}, {"reduction": "none"}):
        last = CrossEntropy(class_axis=-1, **options)
        second = CrossEntropy(**options)
        value, cache = last.forward(y, target)
        expected, expected_cache = second.forward(np.moveaxis(y, -1, 1), target)
        assert_close(value, expected, "float64")
        dloss = rng.standard_normal(value.shape)
        dy = np.moveaxis(second.backward(expected_cache, dloss), 1, -1)
        assert_close(last.backward(cache, dloss), dy, "float64")


def test_classes_last_take_probabilities() -> None:
    rng = np.random.default_rng(3)
    y, target = rng.standard_normal((4, 5, 3)), rng.dirichlet(np.ones(3), (4, 5))
    value, _ = CrossEntropy(class_axis=-1).forward(y, target)
    swapped = CrossEntropy().forward(np.moveaxis(y, -1, 1), np.moveaxis(target, -1, 1))[0]
    assert_close(value, swapped, "float64")


def test_ctc_takes_the_lengths_of_scores_and_labels() -> None:
    rng = np.random.default_rng(4)
    y, target = rng.standard_normal((3, 6, 4)), np.array([[1, 2], [3, -1], [-1, -1]])
    lengths = np.array([6, 4, 2]), np.array([2, 1, 0])
    loss = CTCLoss(reduction="none")
    value, cache = loss.forward(y, target, *lengths)
    alone = [
        CTCLoss().forward(y[n : n + 1, :steps], target[n : n + 1, :labels])[0] * max(labels, 1)
        for n, (steps, labels) in enumerate(zip(*lengths, strict=True))
    ]
    assert_close(value, alone, "float64")
    direction = rng.standard_normal(y.shape)
    ahead, behind = (loss.forward(y + d * direction, target, *lengths)[0] for d in (1e-5, -1e-5))
    found = np.sum(loss.backward(cache) * direction)
    assert_close(found, np.sum(ahead - behind) / 2e-5, "finite differences")


def test_a_class_axis_or_targets_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="class_axis is 2; allowed: 1 or -1"):
        CrossEntropy(class_axis=2)
    with pytest.raises(ShapeError, match=r"target has shape \(4,\); allowed: \(4, 5\)"):
        CrossEntropy(class_axis=-1).forward(np.zeros((4, 5, 3)), np.zeros(4, np.int64))


@pytest.mark.parametrize(
    ("loss", "target", "weight"),
    [
        (CrossEntropy(reduction="none"), CLASSES, RNG.random(4)),
        (SquaredError(reduction="none"), VALUES, RNG.random((4, 3))),
        (BinaryCrossEntropy(reduction="none"), VALUES, RNG.random((4, 3))),
    ],
)
def test_a_weighted_loss_is_the_sum_of_each_times_its_weight(
    loss: Loss, target: np.ndarray, weight: np.ndarray
) -> None:
    weighted = Weighted(loss)
    value, cache = weighted.forward(Y, target, weight)
    losses, inner = loss.forward(Y, target)
    assert_close(value, np.sum(weight * losses), "float64")
    wanted = loss.backward(inner, weight)
    assert_close(weighted.backward(cache), wanted, "float64")
    assert_close(weighted.backward(cache, np.array(2.0)), 2 * wanted, "float64")


def test_weights_of_another_shape_and_losses_that_are_sums() -> None:
    weighted = Weighted(CrossEntropy(reduction="none"))
    for weight in (None, np.ones(3), np.ones((4, 3))):
        with pytest.raises(ShapeError, match=r"Weighted: weight is .*; allowed: \(4,\)"):
            weighted.forward(Y, CLASSES, weight)
    with pytest.raises(ArgumentError, match="the loss has reduction 'mean'; allowed: 'none'"):
        Weighted(CrossEntropy())
