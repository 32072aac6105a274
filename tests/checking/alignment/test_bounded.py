"""Changed functions are the user's code: their loops end, and what they print is not repeated."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from tests.checking.functions import normal


def repeated(x):
    y, left = x, 3
    while left > 0:
        y, left = np.tanh(1.1 * y), left - 1
    return y, x


def repeated_backward(dy, x):
    kept, left = [x], 3
    while left > 0:
        kept.append(np.tanh(1.1 * kept[-1]))
        left -= 1
    while left < 3:
        dy = dy * (1.0 - kept[3 - left] ** 2) * 1.2
        left += 1
    return dy


def test_a_changed_loop_that_does_not_end_is_left():
    report = hg.check((repeated, repeated_backward), normal(3, 4))
    assert not report.ok
    assert {fault.gradient for fault in report.faults} == {"x"}


def talking(x):
    return np.sin(x), x


def talking_backward(dy, x):
    print("in backward")
    return dy * np.sin(x)


def test_what_changed_functions_print_is_not_repeated(capsys):
    report = hg.check((talking, talking_backward), normal(3, 4))
    assert not report.ok
    assert capsys.readouterr().out.count("in backward") < 100


def test_no_list_is_put_into_itself():
    """An array of a list that holds itself takes all memory."""

    def forward(x):
        return np.array([row**2 for row in x]), x

    def backward(dy, x):
        rows = []
        for each, row in zip(dy, x, strict=True):
            drow = each * row
            rows.append(drow)
        return np.array(rows)

    report = hg.check((forward, backward), np.random.default_rng(0).normal(size=(2, 3)))
    assert "2" in report.faults[0].message
