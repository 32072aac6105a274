"""Faults that are named with their line and the change that mends them, in forms met outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.checking.functions import normal


def mended(report: Any) -> list[str]:
    """The lines that changes put in the place of wrong ones, without spaces around."""
    return [fault.diff.splitlines()[-1][1:].strip() for fault in report.faults if fault.diff]


def rectified(x: Any) -> Any:
    return np.where(x > 0, x, 0.0), x


def a_mask_alone(dy: Any, x: Any) -> Any:
    dx = x > 0
    return dx


def test_a_gradient_of_booleans_is_told_with_the_change() -> None:
    report = hg.check((rectified, a_mask_alone), normal(4, 3))
    [fault] = report.faults
    assert fault.kind == "wrong type"
    assert "dx is of bool" in fault.message
    assert "the factor dy is missing" in fault.message
    # Where it is set, and not where it comes back.
    assert mended(report) == ["dx = (x > 0) * dy"]


def kept(x: Any) -> Any:
    mask = (np.abs(x) > 0.5).astype(float)
    return np.sin(x) * mask, (x, mask)


def divided(dy: Any, cache: Any) -> Any:
    x, mask = cache
    return np.cos(x) * dy / mask


def test_a_gradient_that_is_not_finite_is_told_with_the_change() -> None:
    report = hg.check((kept, divided), normal(4, 3))
    assert [fault.kind for fault in report.faults] == ["not finite"]
    assert mended(report) == ["return np.cos(x) * dy * mask"]


def affine(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b, (x, w)


def the_bias_twice(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx = dy @ w.T
    dw = x.T @ dy  # noqa: F841
    db = dy.sum(axis=0)
    return dx, db, db


def test_what_comes_back_instead_may_have_other_axes() -> None:
    report = hg.check((affine, the_bias_twice), normal(5, 3), normal(3, 4), normal(4))
    assert mended(report) == ["return dx, dw, db"]
    assert [fault.gradient for fault in report.faults] == ["w"]


def by_channel(x: Any, gamma: Any) -> Any:
    rows = x.transpose(0, 2, 3, 1).reshape(-1, x.shape[1])
    y = rows * gamma
    n, c, h, w = x.shape
    return y.reshape(n, h, w, c).transpose(0, 3, 1, 2), (rows, gamma, x.shape)


def rows_of_another_order(dy: Any, cache: Any) -> Any:
    rows, gamma, (n, c, h, w) = cache
    flat = dy.reshape(-1, c)
    dgamma = (flat * rows).sum(axis=0)
    dx = (flat * gamma).reshape(n, h, w, c).transpose(0, 3, 1, 2)
    return dx, dgamma


def left_in_rows(dy: Any, cache: Any) -> Any:
    rows, gamma, (n, c, h, w) = cache
    flat = dy.transpose(0, 2, 3, 1).reshape(-1, c)
    dgamma = (flat * rows).sum(axis=0)
    dx = (flat * gamma).reshape(n, h, w, c)
    return dx, dgamma


@pytest.mark.parametrize(
    ("backward", "line"),
    [
        (rows_of_another_order, "flat = dy.transpose(0, 2, 3, 1).reshape(-1, c)"),
        (left_in_rows, "dx = (flat * gamma).reshape(n, h, w, c).transpose(0, 3, 1, 2)"),
    ],
)
def test_a_transpose_before_or_after_a_reshape_is_put_back(backward: Any, line: str) -> None:
    assert set(mended(hg.check((by_channel, backward), normal(2, 3, 4, 4), normal(3)))) == {line}


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def negated_prime(values: Any) -> Any:
    return -(values * (1 - values))


def halved_prime(s: Any) -> Any:
    return s


def of_one_factor(x: Any) -> Any:
    return 1.0 * logistic(x)


def softplus(x: Any) -> Any:
    return np.log(1 + np.exp(x))


def negated_slope(values: Any) -> Any:
    return -1 / (1 + np.exp(-values))


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def slope_of_all(x: Any) -> Any:
    return 1.0


@pytest.mark.parametrize(
    ("pair", "line"),
    [
        ((logistic, negated_prime), "return values * (1 - values)"),
        ((logistic, halved_prime), "return s * (1 - s)"),
        ((logistic, of_one_factor), "return 1.0 * (logistic(x) * (1 - logistic(x)))"),
        ((softplus, negated_slope), "return 1 / (1 + np.exp(-values))"),
        ((relu, slope_of_all), "return 1.0 * (x > 0)"),
    ],
)
def test_a_wrong_derivative_is_mended_whether_it_takes_x_or_y(pair: Any, line: str) -> None:
    assert mended(hg.check(pair, normal(5, 3))) == [line]


def normalised(x: Any, gamma: Any) -> Any:
    mean = x.mean(axis=0)
    centred = x - mean
    std = np.sqrt((centred**2).mean(axis=0) + 1e-5)
    return gamma * centred / std, (centred, std, gamma)


def a_mean_of_the_sum(dy: Any, cache: Any) -> Any:
    centred, std, gamma = cache
    n = len(dy)
    dgamma = (dy * centred / std).sum(axis=0)
    dstd = np.mean(-dy * gamma * centred / std**2, axis=0)
    dvar = dstd / (2 * std)
    dsquared = (1 / n) * dvar * np.ones_like(dy)
    dcentred = dy * gamma / std + 2 * centred * dsquared
    return dcentred - dcentred.mean(axis=0), dgamma


def test_one_word_comes_before_a_product_of_two_factors_left_out() -> None:
    report = hg.check((normalised, a_mean_of_the_sum), normal(5, 3), normal(3))
    assert mended(report) == ["dstd = np.sum(-dy * gamma * centred / std ** 2, axis=0)"]


def pooled(x: Any) -> Any:
    return x.reshape(-1, 2).max(axis=1), x


def above_zero_alone(dy: Any, x: Any) -> Any:
    dx = np.zeros(x.size)
    for i in range(0, x.size, 2):
        pair = x.reshape(-1)[i : i + 2]
        if pair.sum() <= 0.0:
            continue
        dx[i + pair.argmax()] = dy[i // 2]
    return dx.reshape(x.shape)


def test_a_number_that_puts_right_by_chance_is_no_cause() -> None:
    report = hg.check((pooled, above_zero_alone), 0.2 * normal(4, 6))
    assert report.verdict == "wrong"
    assert not any("the term 1 is missing" in fault.message for fault in report.faults)


def scaled_columns(x: Any, gamma: Any) -> Any:
    return x * gamma, (x, gamma)


def scaled_rows(dy: Any, cache: Any) -> Any:
    x, gamma = cache
    return dy * gamma[..., None], (dy * x).sum(0)


def test_another_index_is_told_as_one() -> None:
    report = hg.check((scaled_columns, scaled_rows), normal(4, 4), normal(4, seed=12))
    assert "another index belongs there: (None, ...) for (..., None)" in report.faults[0].message


def with_bias(x: Any, b: Any) -> Any:
    return x + b, x


def summed_and_forgotten(dy: Any, x: Any) -> Any:
    both = np.sum(dy, axis=0)
    half = both * 1 / len(x)
    db = half * 1.0
    return dy, db


def test_a_change_leaves_nothing_that_is_computed_for_nothing() -> None:
    report = hg.check((with_bias, summed_and_forgotten), normal(4, 3), normal(3, seed=12))
    assert "both for half" not in report.faults[0].message


def mean_cross_entropy(scores: Any, labels: Any) -> Any:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    return -logp[rows, labels].mean(), (logp, labels)


def not_divided(dy: Any, cache: Any) -> Any:
    logp, labels = cache
    n = len(labels)
    dscores = np.exp(logp)
    dscores[np.arange(n), labels] -= 1
    return dy * dscores


def test_a_size_is_missing_after_a_line_that_changes_an_array_in_place() -> None:
    labels = np.array([0, 2, 1, 2, 0])
    (fault,) = hg.check((mean_cross_entropy, not_divided), normal(5, 3), labels).faults
    assert fault.kind == "scale missing"
    assert "n" in fault.diff


def triplet_loss(a: Any, p: Any, n: Any) -> Any:
    apart = ((a - p) ** 2).sum(axis=1) - ((a - n) ** 2).sum(axis=1) + 1.0
    loss = np.maximum(apart, 0.0)
    return loss.mean(), (a, p, n, loss)


def of_all_rows(dy: Any, cache: Any) -> Any:
    a, p, n, loss = cache
    on = dy / len(loss)
    return 2 * on * (n - p), -2 * on * (a - p), 2 * on * (a - n)


def test_a_number_stands_where_a_mask_of_rows_belongs() -> None:
    drawn = normal(6, 4), normal(6, 4, seed=2), normal(6, 4, seed=3)
    report = hg.check((triplet_loss, of_all_rows), *drawn)
    assert {fault.kind for fault in report.faults} == {"mask forgotten"}
    assert all("(loss > 0)" in fault.message for fault in report.faults)


def largest_two(x: Any) -> Any:
    order, rows = np.argsort(-x, axis=1)[:, :2], np.arange(len(x))[:, None]
    return x[rows, order].sum(axis=1), (x, order, rows)


def times_the_values(dy: Any, cache: Any) -> Any:
    x, order, rows = cache
    dx = np.zeros_like(x)
    dx[rows, order] = x[rows, order] * dy[:, None]
    return dx


def test_what_is_stored_may_be_spread_over_where_it_is() -> None:
    report = hg.check((largest_two, times_the_values), normal(3, 6))
    assert mended(report) == ["dx[rows, order] = dy[:, None]"]


def slope_above(z: Any) -> Any:
    z = np.where(z > 0, z, 0)
    return z


class Above:
    def forward(self, x: Any) -> Any:
        self.x = x
        return np.where(x > 0, x, 0)

    def backward(self, dy: Any) -> Any:
        return dy * slope_above(self.x)


def test_a_line_of_what_is_called_is_changed_before_what_it_gives() -> None:
    assert mended(hg.check(Above(), normal(5, 3))) == ["z = np.where(z > 0, 1, 0)"]


def peaks(x: Any) -> Any:
    return np.array([row.max() for row in x]), x


def peaks_of_some(dy: Any, x: Any) -> Any:
    dx = np.zeros_like(x)
    for i, row in enumerate(x):
        if row.mean() <= 0:
            continue
        dx[i, row.argmax()] = dy[i]
    return dx


def test_rounds_that_are_left_out_are_told() -> None:
    (fault,) = hg.check((peaks, peaks_of_some), normal(6, 3)).faults
    assert "rounds in which row.mean() <= 0 are left out, and should not be" in fault.message
    assert "-            continue" in fault.diff
