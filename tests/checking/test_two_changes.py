"""Two changes of one expression, brackets elsewhere, and the derivative of another activation."""

from __future__ import annotations

import numpy as np

import handgrad as hg
from tests.checking.functions import normal, square

Q, K = normal(5, 3), normal(5, 3)


def scores(q, k):
    scale = 1 / np.sqrt(q.shape[1])
    return scale * (q @ k.T), (q, k, scale)


def message(functions, *arrays, gradient):
    report = hg.check(functions, *arrays)
    (fault,) = [each for each in report.faults if each.gradient == gradient][:1]
    return fault


def test_a_transpose_too_many_and_a_scale_that_is_missing_are_both_named():
    def wrong(dz, cache):
        q, k, scale = cache
        return dz.T @ k, scale * (dz.T @ q)

    fault = message((scores, wrong), Q, K, gradient="q")
    assert fault.kind == "two causes"
    assert "dz is transposed and should not be" in fault.message
    assert "the factor scale is missing" in fault.message


def test_two_edits_are_both_named():
    def forward(x, a, b):
        return x * a + x * b, (a, b, x)

    def wrong(dy, cache):
        a, b, x = cache
        return dy * a - dy * b * x, dy * x, dy * x

    fault = message((forward, wrong), *(normal(4, 3) for _ in range(3)), gradient="x")
    assert fault.kind == "two causes"
    assert "has the wrong sign" in fault.message
    assert "the factor x is too many" in fault.message


def test_two_factors_too_many_are_of_one_kind():
    def forward(x, w, b):
        return (x @ w) * b, (x, w, b)

    def wrong(dy, cache):
        x, w, b = cache
        da = dy * b
        return ((da * b) @ w.T) * x, x.T @ da, dy * (x @ w)

    fault = message((forward, wrong), normal(5, 3), normal(3, 4), normal(5, 4), gradient="x")
    assert fault.kind == "extra factor"
    assert "the factor b is too many" in fault.message
    assert "the factor x is too many" in fault.message


def test_what_no_pair_explains_is_told_by_the_derived_line():
    noise = normal(5, 4)

    def wrong(dy, x):
        return np.sin(7.0 * x + noise) * dy

    fault = message((square, wrong), normal(5, 4, seed=12), gradient="x")
    assert fault.kind == "other expression"
    assert "2 dy x belongs where" in fault.message


def test_brackets_that_belong_elsewhere():
    def forward(x, w):
        a = w @ x.T
        return np.maximum(a, 0), (x, a)

    def wrong(dh, cache):
        x, a = cache
        return None, dh * ((a > 0) @ x)

    report = hg.check((forward, wrong), normal(4, 4), normal(3, 4), wrt=("w",))
    (fault,) = report.faults[:1]
    assert fault.kind == "brackets"
    assert "dh ((a > 0) @ x)" in fault.message


def test_the_derivative_of_another_activation():
    def tanh(x):
        y = np.tanh(x)
        return y, y

    def sigmoid(x):
        y = 1 / (1 + np.exp(-x))
        return y, y

    def softmax(x):
        z = 3 * x
        y = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        return y, y

    def of_sigmoid(dy, y):
        return dy * y * (1 - y)

    def of_tanh(dy, y):
        return dy * (1 - y * y)

    def of_diagonal(dy, y):
        return 3 * (dy * y * (1 - y))

    x = normal(4, 3)
    for_tanh = message((tanh, of_sigmoid), x, gradient="x")
    assert "that of tanh belongs there" in for_tanh.message
    for_sigmoid = message((sigmoid, of_tanh), x, gradient="x")
    assert "that of sigmoid belongs there" in for_sigmoid.message
    for_softmax = message((softmax, of_diagonal), x, gradient="x")
    assert "of softmax's backward is missing" in for_softmax.message
    faults = (for_tanh, for_sigmoid, for_softmax)
    assert {fault.kind for fault in faults} == {"other derivative"}
