"""Single steps on Bounded arrays: what each adds to the bound, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.checking.rounding.model import Arithmetic
from handgrad.checking.roundoff import FLOAT32_UNIT, Bounded, Unbounded

FLOAT32 = Arithmetic(FLOAT32_UNIT, 2.0**-126, 2.0**128)


def _bounded(value: Any, error: Any = 0.0) -> Bounded:
    value = np.asarray(value, dtype=np.float64)
    return Bounded(value, np.array(np.broadcast_to(error, value.shape), dtype=float), FLOAT32)


def test_exact_zeros_add_no_error() -> None:
    x = _bounded([0.0, 1.0, 0.0])
    assert np.sum(x).error == 0
    assert (x * 0.1).error[0] == 0
    assert (x + 0.0).error[1] == 0


def test_constants_are_rounded_as_they_enter() -> None:
    assert (_bounded(1.0) * 0.5).error <= FLOAT32_UNIT
    assert (_bounded(1.0) * 0.1).error >= abs(0.1 - float(np.float32(0.1)))


def test_errors_are_carried_on_by_every_rule() -> None:
    """One step on values that are off by e gives results that are off by no more than the bound."""
    rng = np.random.default_rng(0)
    unary = ("exp", "tanh", "sin", "cos", "abs", "square", "expm1", "negative", "cumsum", "max")
    positive = ("log", "sqrt", "log1p", "reciprocal", "mean", "var", "std", "sum", "min")
    for name in (*unary, *positive):
        function = getattr(np, name)
        for _ in range(20):
            x = rng.standard_normal(7)
            x = np.abs(x) + 0.2 if name in positive else x
            e = 10.0 ** rng.uniform(-6, -1, 7)
            result = function(_bounded(x, e))
            off = np.abs(function(x + e * rng.uniform(-1, 1, 7)) - function(x))
            assert np.all(off <= result.error), name
            np.testing.assert_allclose(result.value, function(x), rtol=1e-15)
    binary = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "matmul", "logaddexp")
    for name in binary:
        function = getattr(np, name)
        for _ in range(20):
            x, y = rng.standard_normal((2, 7))
            e, f = 10.0 ** rng.uniform(-6, -2, (2, 7))
            result = function(_bounded(x, e), _bounded(y, f))
            moved = function(x + e * rng.uniform(-1, 1, 7), y + f * rng.uniform(-1, 1, 7))
            assert np.all(np.abs(moved - function(x, y)) <= result.error), name


def test_a_function_of_infinity_times_a_zero_in_doubt_is_in_doubt() -> None:
    """0 · ∞ is NaN, and ∞ where rounding left something of the 0."""
    with np.errstate(invalid="ignore"):
        product = _bounded(0.0, 1e-9) * np.inf
        for result in (np.tanh(product), np.sin(product), 1.0 / product, product + 1.0):
            assert np.isnan(result.value)
            assert np.isinf(result.error)


def test_zero_and_a_subnormal_number_may_be_zero() -> None:
    total = _bounded(0.0) + _bounded(2.0**-130)
    assert total.error >= total.value
    slope = np.where(total > 0, 1.0, 0.3)
    assert slope.error == pytest.approx(0.7)


def test_infinity_times_a_number_that_may_be_flushed_is_in_doubt() -> None:
    gate = _bounded(2.0**-130) * 1.0
    assert np.isinf(np.tanh(gate * -np.inf).error)


def test_every_partial_result_of_a_sum_may_be_flushed() -> None:
    """Terms below the smallest normal number can all be lost where their sum is above it."""
    x = np.full((1, 6), 2.0**-63)
    y = np.full((6, 1), 0.9 * 2.0**-63)
    product = _bounded(x) @ _bounded(y)
    assert product.value > FLOAT32.smallest
    assert product.error >= product.value
    total = np.sum(_bounded(x * y.T))
    assert total.error >= total.value - 0.9 * FLOAT32.smallest


def test_a_choice_in_doubt_covers_both_branches() -> None:
    x = _bounded([1.0, 1e-9, -1.0], 1e-8)
    positive = x > 0
    assert isinstance(positive, Bounded)
    np.testing.assert_array_equal(positive.error, [0, 1, 0])
    chosen = np.where(positive, 5.0, 3.0)
    np.testing.assert_array_equal(chosen.error, [0, 2, 0])
    np.testing.assert_array_equal(np.where(positive, 5.0, np.nan).error, [0, np.inf, 0])
    np.testing.assert_array_equal((5.0 * positive).error > 4, [False, True, False])
    np.testing.assert_array_equal(np.logical_not(positive).error, positive.error)
    assert type(x < 2) is np.ndarray


def test_an_index_in_doubt() -> None:
    sure = np.argmax(_bounded([1.0, 2.0, 0.0], 0.1))
    assert not isinstance(sure, Bounded)
    assert sure == 1
    doubtful = np.argmax(_bounded([[1.0, 1.1], [0.0, 1.0]], 0.1), axis=1)
    np.testing.assert_array_equal(doubtful.error, [np.inf, 0])
    np.testing.assert_array_equal((doubtful == 1).error, [1, 0])
    with pytest.raises(Unbounded, match="made of values in doubt"):
        np.take(_bounded([1.0, 2.0]), doubtful)
    assert np.argmax(_bounded([2.0, 2.0])) == 0  # a tie of exact values is no doubt


def test_branches_and_numbers_need_certain_values() -> None:
    assert bool(_bounded(1.0) > 0)
    assert float(_bounded(1.5)) == 1.5
    with pytest.raises(Unbounded, match="made of values in doubt"):
        bool(_bounded(0.0, 0.1) > 0)
    with pytest.raises(Unbounded, match="made of values in doubt"):
        float(_bounded(1.5, 0.1))


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(Unbounded, match="no bound of rounding errors is known for fft"):
        np.fft.fft(_bounded([1.0, 2.0]))
    with pytest.raises(Unbounded, match="known for floor"):
        np.floor(_bounded([1.0, 2.0]))
    with pytest.raises(Unbounded, match="a plain array"):
        np.asarray(_bounded(1.0))
    with pytest.raises(Unbounded, match="add into a plain array"):
        np.add(np.ones(2), _bounded([1.0, 2.0]), out=np.zeros(2))


def test_what_may_be_zero_times_infinity_may_be_anything() -> None:
    product = _bounded([0.0, 1e-9, 0.0, 2.0], [1e-9, 1e-8, 0.0, 1e-9]) * np.inf
    np.testing.assert_array_equal(product.error, [np.inf, np.inf, 0, 0])
    np.testing.assert_array_equal(product.value, [np.nan, np.inf, np.nan, np.inf])


def test_an_unbounded_factor_counts_unless_another_is_zero() -> None:
    unbounded = _bounded([[1.0, 2.0], [1.0, 2.0]], [[0.0, np.inf], [0.0, 1e-3]])
    of_zero, of_one = unbounded @ _bounded([1.0, 0.0]), unbounded @ _bounded([1.0, 1.0])
    np.testing.assert_array_equal(of_zero.value, [1, 1])
    assert np.all(of_zero.error < 1e-6)
    assert of_one.error[0] == np.inf
    assert 1e-3 < of_one.error[1] < 2e-3
    assert np.exp(_bounded(1.0, np.inf)).error == np.inf
    assert np.tanh(_bounded(np.inf, np.inf)).error >= 1


def test_terms_of_a_zero_can_be_left_out() -> None:
    skipping = FLOAT32._replace(skips_zeros=True)
    a = np.asarray([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    b = np.asarray([[np.inf, np.nan], [-np.inf, 3.0], [4.0, np.inf]])
    left, right = (Bounded(x, np.zeros(x.shape), skipping) for x in (a, b))
    expected = [[-np.inf, np.inf], [np.inf, np.nan], [4, np.inf], [np.nan, np.nan]]
    np.testing.assert_array_equal((left @ right).value, expected)
    assert np.all((left @ right).error[2, 0] < 1e-5)
    scores = Bounded(np.asarray([-np.inf, np.nan]), np.zeros(2), skipping)
    weights = np.exp(scores - np.max(scores))
    np.testing.assert_array_equal((weights / np.sum(weights)).value, [0, np.nan])


def test_infinities_stay_what_they_are() -> None:
    masked = _bounded([-np.inf, 1.0])
    np.testing.assert_array_equal(np.exp(masked - 1.0).error[0], 0)
    assert np.max(masked).error == 0
    assert np.logaddexp(masked, masked).value[0] == -np.inf
    assert np.logaddexp(masked, masked).error[0] == 0
    assert np.exp(_bounded(100.0)).error == np.inf  # overflows in float32
    assert np.exp(_bounded(-100.0)).error > 0  # flushed to 0, perhaps
    assert np.log(_bounded(1e-9, 1e-8)).error == np.inf
    assert (1.0 / _bounded(1e-9, 1e-8)).error == np.inf


def test_arrays_as_the_array_api_makes_them() -> None:
    xp = _bounded([1.0]).__array_namespace__()
    x = _bounded(np.arange(6.0).reshape(2, 3), 1e-3)
    assert xp.astype(x > 10, x.dtype).error.max() == 0
    assert xp.full((2,), 0.1, dtype=x.dtype, device=x.device).error.min() > 0
    assert type(xp.arange(3)) is np.ndarray
    assert xp.concat([x, xp.zeros_like(x)], axis=1).shape == (2, 6)
    assert [part.shape for part in xp.unstack(x)] == [(3,), (3,)]
    assert xp.permute_dims(x, (1, 0)).shape == x.T.shape == x.mT.shape == (3, 2)
    np.testing.assert_array_equal(np.pad(x, 1, constant_values=7.0).error[0], 0)
    assert xp.inf == np.inf
