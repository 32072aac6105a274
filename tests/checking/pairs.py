"""Pairs that several tests check, and what they ask of the faults that are found."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from handgrad.checking import Fault
from handgrad.checking.kinds import KINDS


def normal(*shape, seed=11):
    return np.random.default_rng(seed).normal(size=shape)


def forward(x, w):
    y = np.tanh(x @ w)
    return y, (x, w, y)


def backward(dy, cache):
    x, w, y = cache
    da = dy * (1.0 - y * y)
    return da @ w.T, x.T @ da


X, W = normal(5, 3), normal(3, 4, seed=12)


def square(x):
    return x * x, x


def square_backward(dy, x):
    return 2.0 * x * dy


def told(target, *inputs, **options) -> list[Fault]:
    """The faults, after what holds for every report that has some."""
    report = hg.check(target, *inputs, **options)
    assert not report.ok
    for fault in report.faults:
        assert fault.kind in KINDS
        assert 0.0 <= fault.confidence <= 1.0
        assert fault.message
        assert "\n" not in fault.message
        assert "Traceback" not in fault.message
    return list(report.faults)


def only_kind(target, *inputs, **options) -> Fault:
    """The first fault, where all are of its kind."""
    faults = told(target, *inputs, **options)
    assert {fault.kind for fault in faults} == {faults[0].kind}, [each.message for each in faults]
    return faults[0]
