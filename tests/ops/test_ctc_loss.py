"""CTC loss against a count of every path, and at its edges, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from handgrad.ops import ctc_loss
from tests.tolerances import assert_close


@pytest.fixture(params=("reference", "kernels"), autouse=True)
def on_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "kernels" and kernels.native is None:
        pytest.skip(kernels.reason)
    with engine(request.param):
        yield


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def spelt(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    """The labels of a path: repeated ones merged, blanks removed."""
    return tuple(label for label, _ in groupby(path) if label != blank)


def by_counting(x: np.ndarray, target: tuple[int, ...], blank: int) -> tuple[float, np.ndarray]:
    """−log of the sum over all paths, and its gradient, p less the share of each label."""
    p = softmax(x)
    steps, classes = x.shape
    total, through = 0.0, np.zeros_like(x)
    for path in product(range(classes), repeat=steps):
        if spelt(path, blank) == target:
            of_path = np.prod(p[np.arange(steps), path])
            total += of_path
            through[np.arange(steps), path] += of_path
    return -np.log(total), p - through / total


@pytest.mark.parametrize(
    ("target", "blank"), [((1, 2), 0), ((2, 2), 0), ((), 0), ((0, 1, 0), 2), ((1,), 0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_sum_over_all_paths(target: tuple[int, ...], blank: int, dtype: Any) -> None:
    x = np.random.default_rng(3).standard_normal((1, 5, 3)).astype(dtype)
    targets = np.array([target], dtype=np.int64)
    loss, cache = ctc_loss.forward(x, targets, blank=blank, reduction="sum")
    expected, gradient = by_counting(x[0].astype(np.float64), target, blank)
    kind = "float64" if dtype == np.float64 else "float32"
    assert_close(loss, expected, kind)
    assert_close(ctc_loss.backward(np.ones_like(loss), cache)[0], gradient, kind)


def test_the_padding_of_scores_and_targets_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    x, targets = rng.standard_normal((2, 6, 4)), np.array([[1, 3, 2], [2, 0, 9]])
    lengths = np.array([6, 3]), np.array([3, 1])
    x[1, 3:] = np.nan
    loss, cache = ctc_loss.forward(x, targets, *lengths, reduction="none")
    dx = ctc_loss.backward(np.array([1.0, 2.0]), cache)
    alone, own = ctc_loss.forward(x[1:, :3], targets[1:, :1], reduction="none")
    assert_close(loss[1], alone[0], "float64")
    assert_close(dx[1, :3], 2 * ctc_loss.backward(np.ones(1), own)[0], "float64")
    np.testing.assert_array_equal(dx[1, 3:], 0)


def test_log_probabilities_are_their_own_scores() -> None:
    rng = np.random.default_rng(5)
    x, targets = rng.standard_normal((2, 6, 4)), np.array([[1, 2], [3, 3]])
    loss, cache = ctc_loss.forward(x, targets)
    again, own = ctc_loss.forward(np.log(softmax(x)), targets)
    assert_close(again, loss, "float64")
    one = np.ones(())
    assert_close(ctc_loss.backward(one, own), ctc_loss.backward(one, cache), "float64")


#: Too few steps for two equal labels, none at all, and enough.
IMPOSSIBLE = np.array([[1, 1], [2, 1], [2, 1]]), np.array([2, 0, 2])


def test_a_target_that_no_path_spells_has_no_gradient() -> None:
    x = np.random.default_rng(6).standard_normal((3, 3, 3))
    targets, steps = IMPOSSIBLE
    loss, cache = ctc_loss.forward(x, targets, steps, reduction="none")
    np.testing.assert_array_equal(np.isposinf(loss), [True, True, False])
    dx = ctc_loss.backward(np.ones(3), cache)
    assert np.all(np.isnan(dx[0, :2]))
    np.testing.assert_array_equal(dx[0, 2:], 0)
    np.testing.assert_array_equal(dx[1], 0)
    assert np.all(np.isfinite(dx[2]))


def test_zero_infinity_leaves_such_a_target_out() -> None:
    x = np.random.default_rng(6).standard_normal((3, 3, 3))
    targets, steps = IMPOSSIBLE
    loss, cache = ctc_loss.forward(x, targets, steps, reduction="none", zero_infinity=True)
    np.testing.assert_array_equal(loss[:2], 0)
    assert loss[2] > 0
    dx = ctc_loss.backward(np.ones(3), cache)
    np.testing.assert_array_equal(dx[:2], 0)
    assert np.any(dx[2])


def test_nan_stays_nan_and_in_its_example() -> None:
    x = np.random.default_rng(7).standard_normal((2, 4, 3))
    x[0, 2, 1] = np.nan
    targets = np.array([[1, 2], [1, 2]])
    with np.errstate(invalid="ignore"):
        loss, cache = ctc_loss.forward(x, targets, reduction="none", zero_infinity=True)
        dx = ctc_loss.backward(np.ones(2), cache)
    np.testing.assert_array_equal(np.isnan(loss), [True, False])
    assert np.all(np.isnan(dx[0]))
    assert np.all(np.isfinite(dx[1]))


def test_an_empty_batch() -> None:
    loss, cache = ctc_loss.forward(np.zeros((0, 4, 3)), np.zeros((0, 2), np.int64))
    assert loss == 0
    assert ctc_loss.backward(np.ones(()), cache).shape == (0, 4, 3)


def test_a_long_sequence_keeps_its_digits_in_kernels(request: pytest.FixtureRequest) -> None:
    """Blanks are so likely that the paths that count are exp(−1000) of all on the way."""
    if "reference" in request.node.name:
        pytest.skip("in float32 the reference's own logarithms have too few digits")
    rng = np.random.default_rng(8)
    x = rng.standard_normal((1, 600, 5)).astype(np.float32)
    x[:, :, 0] += 25
    targets = rng.integers(1, 5, (1, 60))
    gradients = {}
    for dtype in (np.float32, np.float64):
        loss, cache = ctc_loss.forward(x.astype(dtype), targets, reduction="sum")
        gradients[dtype] = ctc_loss.backward(np.ones_like(loss), cache)
        assert loss > 1000
    assert_close(gradients[np.float32], gradients[np.float64], "float32")
