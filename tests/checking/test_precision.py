"""float32 that rounds as it must passes; float32 that loses digits does not."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from tests.checking.functions import (
    normal,
    only_kind,
    square,
)


def softmax_cross_entropy(x, target):
    z = x - x.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(x)), target].mean(), (np.exp(log_p), target)


def softmax_cross_entropy_backward(dloss, cache):
    p, target = cache
    dx = p.copy()
    dx[np.arange(len(p)), target] -= 1.0
    return dx * (dloss / len(p))


def layer_norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    istd = 1.0 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred * istd * gamma + beta, (centred * istd, istd, gamma)


def layer_norm_backward(dy, cache):
    x_hat, istd, gamma = cache
    g = dy * gamma
    dx = istd * (g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True))
    return dx, (dy * x_hat).sum(0), dy.sum(0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("functions", "inputs"),
    [
        ((lambda x: (np.tanh(x),) * 2, lambda dy, y: dy * (1.0 - y * y)), (normal(9, 11),)),
        ((layer_norm, layer_norm_backward), (3.0 * normal(7, 33) + 5.0, normal(33), normal(33))),
        (
            (softmax_cross_entropy, softmax_cross_entropy_backward),
            (5.0 * normal(13, 10), np.arange(13) % 10),
        ),
    ],
    ids=["tanh", "layer norm", "softmax and cross-entropy"],
)
def test_a_right_float32_backward_passes(functions, inputs, seed):
    narrow = [each.astype(np.float32) if each.dtype.kind == "f" else each for each in inputs]
    report = hg.check(functions, *narrow, seed=seed)
    assert report.ok, str(report)
    assert any(row.situation == "float32" for row in report.trials)


def test_a_float32_backward_that_loses_half_its_digits_is_named():
    def coarse(dy, x):
        dx = 2.0 * x * dy
        return dx.astype(np.float16).astype(np.float32) if dx.dtype == np.float32 else dx

    fault = only_kind((square, coarse), normal(4, 5))
    assert (fault.kind, fault.situation) == ("inaccurate", "float32")
    assert "beyond what rounding explains" in fault.message


def test_settings_that_are_arrays_count_as_rounded() -> None:
    """In float32 α = 0.999 is off by 6e-8, and 1 − α by 5e-5 of it: no fault of the gradient."""
    rng = np.random.default_rng(0)
    alpha = 1.0 - rng.uniform(1e-4, 1e-3, 6)
    x, weight = rng.standard_normal((3, 4, 5)), rng.standard_normal((6, 5))
    with hg.engine("auto"):
        report = hg.check("leaky_rnn", x, weight, None, None, alpha=alpha)
    assert report.ok, report.faults
