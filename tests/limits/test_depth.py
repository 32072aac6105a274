"""Signals vanish and explode in deep stacks of dense layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from handgrad import limits
from handgrad.errors import HandgradError


def test_relu_is_critical_at_two() -> None:
    """He's initialisation: χ = σ²/2 at every variance."""
    assert limits.critical_weight_variance("relu") == pytest.approx(2.0, rel=1e-9)
    found = limits.fixed_point("relu", 1.5, 0.1)
    assert found.variance == pytest.approx(0.1 / (1.0 - 0.75), rel=1e-9)
    assert found.chi == pytest.approx(0.75, rel=1e-12)
    assert found.depth_scale == pytest.approx(1.0 / abs(math.log(0.75)), rel=1e-9)


def test_the_identity_keeps_what_its_weights_keep() -> None:
    assert limits.critical_weight_variance("identity") == pytest.approx(1.0, rel=1e-9)
    found = limits.signals("identity", 1.0, depth=5, start=[0.1, 0.9])
    np.testing.assert_allclose(found.correlation, np.tile([0.1, 0.9], (6, 1)), rtol=1e-12)
    np.testing.assert_allclose(found.variance, 1.0)


def test_tanh_with_biases_is_critical_where_gradients_keep_their_size() -> None:
    """On both sides of the critical variance correlations go elsewhere."""
    critical = limits.critical_weight_variance("tanh", 0.05)
    ordered = limits.signals("tanh", 0.7 * critical, 0.05, depth=200).correlation
    chaotic = limits.signals("tanh", 1.5 * critical, 0.05, depth=200).correlation
    assert ordered[-1] > 1.0 - 1e-6
    assert chaotic[-1] < 0.95


def test_what_explodes_ends_in_nan() -> None:
    found = limits.signals("relu", 40.0, depth=30)
    assert np.isnan(found.variance[-1])
    assert found.variance[1] == pytest.approx(20.0)


def test_a_correlation_of_one_stays() -> None:
    for activation in ("relu", "gelu", "erf", "tanh"):
        found = limits.signals(activation, 1.3, 0.1, depth=10, start=1.0)
        np.testing.assert_allclose(found.correlation, 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: limits.fixed_point("relu", -1.0), "weight_variance is -1.0"),
        (lambda: limits.fixed_point("relu", 1.0, math.nan), "bias_variance is nan"),
        (lambda: limits.fixed_point("step", 1.0), "step"),
        (lambda: limits.signals("relu", 1.0, depth=-1), "depth is -1"),
    ],
)
def test_settings_that_are_refused(call, words: str) -> None:
    with pytest.raises(HandgradError, match=words):
        call()
