"""Elements at a kink, of which differences know little, do not hide what is wrong elsewhere."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from handgrad.checking.diagnosis import best_fault
from handgrad.checking.functions import forward_backward
from handgrad.checking.hypotheses import Draw, Explanation
from handgrad.checking.trial import numeric_gradient, run
from handgrad.checking.work import Work
from tests.checking.functions import normal

X = normal(4, 5)
X[1, 2] = X[3, 0] = 0.0


def kinked(x):
    return np.abs(x) * np.exp(x), x


def right(dy, x):
    return dy * np.exp(x) * (np.sign(x) + np.abs(x))


def without_the_slope(dy, x):
    return dy * np.exp(x) * (1.0 + np.abs(x))


def wrong_at_the_kink(dy, x):
    return dy * np.exp(x) * (np.where(x == 0.0, 7.0, np.sign(x)) + np.abs(x))


def known(backward):
    functions = forward_backward((kinked, backward), [X])
    rng = np.random.default_rng(5)
    done = run(functions, {"x": X}, rng)
    gradient, bound = numeric_gradient(functions, done, "x", 2000, rng)
    return done, gradient, bound


def test_elements_at_a_kink_are_left_out_and_the_others_are_known_well():
    done, gradient, bound = known(without_the_slope)
    assert np.isnan(gradient[X == 0.0]).all()
    smooth = X != 0.0
    assert np.abs(gradient - right(done.dy, X))[smooth].max() <= bound <= 1e-4


def test_they_stay_where_all_others_are_right():
    _, gradient, bound = known(wrong_at_the_kink)
    assert np.isfinite(gradient).all()
    assert bound > 1e-2


def test_what_is_wrong_elsewhere_is_named():
    (fault,) = hg.check((kinked, without_the_slope), X).faults
    assert fault.message.startswith("dx: the derivative of abs(x) with respect to x, a factor")
    assert fault.line


def test_nothing_is_a_cause_that_leaves_more_than_rounding():
    vague = Draw({"x": X}, X, X, {"x": 1.5 * X}, {"x": X}, {"x": 10.0})
    half = Explanation("scaled", "", "is half", 1.0, lambda draw: 0.5 * draw.right["x"])
    whole = Explanation("scaled", "", "is 3/2", 1.0, lambda draw: 1.5 * draw.right["x"])
    assert best_fault("x", [[half]], (vague,), "usual", Work(1.0)).kind == "unknown"
    assert best_fault("x", [[half], [whole]], (vague,), "usual", Work(1.0)).message.startswith(
        "dx: is 3/2"
    )
