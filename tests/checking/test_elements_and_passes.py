"""Causes in some elements, from one pass of a loop to the next, or in an array of the forward."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from tests.checking.functions import normal, only_kind, reported


def masked(x, *, seed):
    mask = np.random.default_rng(seed).random(x.shape) > 0.4
    return x * mask / 0.6


def dropped(x):
    return masked(x, seed=0), x


def test_another_mask_is_named():
    fault = only_kind((dropped, lambda dy, x: masked(dy, seed=1)), normal(5, 4))
    assert fault.kind == "other mask"
    assert "another mask than forward's" in fault.message
    assert "masked(dy, seed=0)" in fault.diff


def test_another_mask_and_another_scale_are_not_said_to_be_a_mask_alone():
    faults = reported((dropped, lambda dy, x: 1.1 * masked(dy, seed=1)), normal(5, 4))
    assert "other mask" not in {fault.kind for fault in faults}


def leaky(x, rate):
    h = np.zeros_like(x[0])
    for t in range(4):
        h = rate * h + np.sin(x[t])
    return h, (x, rate)


def with_rate(dh, cache):
    x, rate = cache
    dx = np.zeros_like(x)
    for t in (3, 2, 1, 0):
        dx[t] = dh * np.cos(x[t])
        dh = rate * dh
    return dx


def without_rate(dh, cache):
    x, _rate = cache
    dx = np.zeros_like(x)
    for t in (3, 2, 1, 0):
        dx[t] = dh * np.cos(x[t])
    return dx


def test_a_factor_from_one_pass_to_the_next_is_named():
    inputs = normal(4, 3), np.array([0.5, 0.7, 0.9])
    assert hg.check((leaky, with_rate), *inputs, wrt=["x"]).ok
    fault = only_kind((leaky, without_rate), *inputs, wrt=["x"])
    assert fault.kind == "factor missing"
    assert "the factor _rate of dh from one step to the next is missing" in fault.message


def product(x, w):
    scaled = (x - x.mean()) / x.std()
    y = np.tanh(x @ w)
    return y, (scaled, y, w)


def of_another_product(dy, cache):
    scaled, y, w = cache
    da = dy * (1 - y * y)
    return da @ w.T, scaled.T @ da


def test_an_array_of_the_forward_that_stands_for_another_is_named():
    fault = only_kind((product, of_another_product), normal(5, 4), normal(4, 3))
    assert (fault.gradient, fault.kind, fault.term) == ("w", "stale variable", "x for scaled")
    assert fault.diff.endswith("+    return y, (x, y, w)")
