"""Backwards that ask for what forward keeps to itself."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from tests.checking.functions import normal


def dropped(x):
    mask = (np.random.default_rng(0).random(x.shape) > 0.3) * 1.0
    return x * mask


def through_the_mask(mask, dout):
    return dout * mask


def test_a_mask_that_forward_keeps_to_itself_is_named():
    report = hg.check((dropped, through_the_mask), normal(5, 4))
    (fault,) = report.faults
    assert fault.kind == "not returned"
    assert "backward asks for mask, which forward makes and does not return" in fault.message
    assert "it was given x in its place" in fault.message


def squashed(x):
    y = np.tanh(x)
    return y


def of_the_output(dout, y):
    return dout * (1.0 - y**2)


def wrong_of_the_output(dout, y):
    return dout * (1.0 + y**2)


def test_a_value_that_forward_returns_is_not():
    assert hg.check((squashed, of_the_output), normal(5, 4)).ok
    faults = hg.check((squashed, wrong_of_the_output), normal(5, 4)).faults
    assert faults
    assert all(fault.kind != "not returned" for fault in faults)
