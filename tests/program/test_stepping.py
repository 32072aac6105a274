"""Counters of Python's that rounds step, read after the loop and in it."""

import runpy

import numpy as np
import pytest

from handgrad.program.marking import marked
from tests.program.tracing import Forward


def by_one(x):
    i, s = 0, 0.0
    for v in x:
        s = s + v * i
        i += 1
    return s * i


def as_an_index(x):
    n, y = 0, np.zeros_like(x)
    for t in range(len(x)):
        y[n] = x[t] * n
        n = n + 1
    return y / n


def downwards(x):
    n = 40
    for _ in x:
        n -= 2
    return x * n


def in_both_of_two_loops(x):
    n = 0
    for _t in range(len(x)):
        for _u in range(x.shape[1]):
            n += 1
    return x * n


def inside_and_around(x):
    n = 1
    for _t in range(len(x)):
        n += 2
        for _u in range(x.shape[1]):
            n += 1
    return x * n


def set_anew_in_rounds(x):
    total = 0.0
    for row in x:
        n = 0
        for _v in row:
            n += 1
        total = total + row.sum() / n
    return total * n


def twice_a_round(x):
    n = 0
    for _v in x:
        n += 1
        n += 2
    return x * n


ONE, TWO = {"x": ("N",)}, {"x": ("N", "D")}
STEPS = [
    *((f, ONE) for f in (by_one, as_an_index, downwards, twice_a_round)),
    *((f, TWO) for f in (in_both_of_two_loops, inside_and_around, set_anew_in_rounds)),
]


@pytest.mark.parametrize(("forward", "given"), STEPS, ids=[f.__name__ for f, _ in STEPS])
def test_equal_steps_follow_the_length(forward, given):
    f = Forward(forward, **given)
    for lengths in f.lengths:
        assert f.accepts(f.values(lengths, 0), lengths)
        f.check(lengths)


def doubled(x):
    n = 1
    for _v in x:
        n *= 2
    return x * n


def every_other(x):
    n = 0
    for t in range(len(x)):
        if t % 2 == 0:
            n += 1
    return x * n


def halves(x):
    c = 0.0
    for _v in x:
        c += 0.5
    return x * c


def growing_steps(x):
    n = 0
    for t in range(len(x)):
        n += t
    return x * n


@pytest.mark.parametrize("forward", [doubled, every_other, halves, growing_steps])
def test_other_steps_hold_the_count(forward):
    f = Forward(forward, x=("N",))
    first, other = f.lengths
    f.check(first)
    assert not f.accepts(f.values(other, 0), other)


def test_values_that_rounds_add_up_are_no_counters():
    def forward(x):
        total, h = 0.0, 1.0
        for v in x:
            total += v
            h = h * v
        return total * h

    f = Forward(forward, x=("N",))
    assert len(f.loops()) == 1
    f.check(f.lengths[1])


def test_equal_functions_of_two_files_keep_their_files(tmp_path):
    text = "def f(x):\n    i = 0\n    for _ in range(3):\n        i += 1\n    return x * i\n"
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(text, "utf-8")
        function = runpy.run_path(str(tmp_path / name))["f"]
        assert marked(function.__code__, "f").co_filename == str(tmp_path / name)
