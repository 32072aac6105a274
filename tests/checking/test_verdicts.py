"""Right, wrong or undecided: what a report says of gradients that are not plainly one of them."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import causes
from tests.checking.functions import X, normal, square, square_backward

WHOLE = np.array([[0.0, 1.0, -1.0, 0.0], [2.0, 2.0, -2.0, 0.0]])


def relu(x):
    return np.maximum(x, 0), x


@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0])
def test_any_slope_at_a_kink_is_right_and_said_to_be_one(slope):
    report = hg.check((relu, lambda dy, x: dy * np.where(x == 0, slope, x > 0)), WHOLE, like="relu")
    assert report.verdict == "right", report
    report = hg.check((relu, lambda dy, x: dy * np.where(x == 0, slope, x > 0)), WHOLE)
    assert report.verdict == "right", report


def test_a_kink_is_told():
    report = hg.check((lambda x: (np.abs(x), x), lambda dy, x: dy * np.sign(x)), np.zeros((3, 4)))
    assert (report.verdict, [remark.kind for remark in report.remarks]) == ("right", ["kink"])
    assert "dx: forward has a kink at these inputs" in str(report)


@pytest.mark.parametrize("factor", [-1.0, 1.05, 5.0])
def test_a_kink_excuses_nothing_beside_it(factor):
    report = hg.check((relu, lambda dy, x: factor * dy * (x > 0)), WHOLE)
    assert report.verdict == "wrong"


def test_values_that_tie_hand_on_their_cotangent_once():
    def largest(x):
        return x.max(axis=1), x == x.max(axis=1, keepdims=True)

    every = hg.check((largest, lambda dy, ties: dy[:, None] * ties), WHOLE)
    assert every.verdict == "wrong"
    shared = hg.check(
        (largest, lambda dy, ties: dy[:, None] * ties / ties.sum(1, keepdims=True)), WHOLE
    )
    assert shared.verdict == "right"


def test_a_random_forward_is_said_to_be_one():
    generator = np.random.default_rng(0)

    def dropout(x):
        mask = generator.random(x.shape) < 0.9
        return x * mask, mask

    report = hg.check((dropout, lambda dy, mask: dy * mask), normal(2, 3))
    assert report.verdict == "undecided"
    assert "forward is random" in report.faults[0].message
    assert "seeded generator" in report.faults[0].message


@pytest.mark.parametrize("ending", [SystemExit, GeneratorExit, RuntimeError])
@pytest.mark.parametrize("where", ["forward", "backward", "later"])
def test_what_a_target_raises_is_one_sentence_with_its_line(ending, where):
    calls = []

    def forward(x):
        calls.append(x)
        if where == "forward" or (where == "later" and len(calls) > 8):
            raise ending("enough")
        return x * x, x

    def backward(dy, x):
        if where == "backward":
            raise ending("enough")
        return 2 * x * dy

    report = hg.check((forward, backward), X)
    assert report.verdict == "undecided"
    if where != "later":
        (fault,) = report.faults
        assert f"{where} raises {ending.__name__}: enough (line " in fault.message
        assert "of test_verdicts.py)" in fault.message


def test_an_interrupt_goes_through():
    def forward(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hg.check((forward, square_backward), X)


def test_a_search_that_fails_leaves_the_verdict(monkeypatch):
    def failing(*_, **__):
        raise IndexError("nothing there")

    monkeypatch.setattr(causes, "causes", failing)
    report = hg.check((square, lambda dy, x: x * dy), X)
    assert report.verdict == "wrong"
    assert report.faults[0].message == "dx is wrong; the search for the cause ended with IndexError"


def test_a_forward_that_refuses_values_beside_the_point_does_not_end_the_check():
    def logarithm(p):
        if np.any(p < 1e-9):
            raise ValueError("p is no probability")
        return np.log(p), p

    report = hg.check((logarithm, lambda dy, p: dy / p), np.array([1e-9, 0.5]))
    assert report.verdict in ("right", "undecided")


def test_an_input_that_happens_to_be_as_long_as_the_batch_is_not_cut():
    """With the zeros that biases begin with, the first row alone gives the same values."""

    def heads(x, bias):
        return x + bias[:, None], None

    def heads_backward(dy, _):
        return dy, dy.sum(axis=1)

    def rows(x, bias):
        return x + bias, None

    def rows_backward(dy, _):
        return dy, dy.sum(axis=0)

    for functions in ((heads, heads_backward), (rows, rows_backward)):
        report = hg.check(functions, normal(3, 3), np.zeros(3))
        assert report.verdict == "right", report


def test_an_empty_batch_is_no_fault():
    def backward(dy, x):
        if not len(x):
            raise ValueError("no rows")
        return 2 * x * dy

    report = hg.check((square, backward), X)
    assert report.verdict == "right"
    assert any("empty" in remark.message for remark in report.remarks)


def test_a_sum_that_cancels_is_judged_by_its_terms():
    """The gradient of a shift before softmax is 0, and all that is left of it is rounding."""

    def shifted(x, shift):
        e = np.exp(100.0 * (x + shift))
        p = e / e.sum(axis=1, keepdims=True)
        return 1e6 * p, p

    def shifted_backward(dy, p):
        dx = 1e8 * p * (dy - (dy * p).sum(axis=1, keepdims=True))
        return dx, dx.sum(axis=1, keepdims=True)

    for seed in range(5):
        inputs = 0.1 * normal(4, 6, seed=seed), 0.1 * normal(4, 1, seed=seed)
        assert hg.check((shifted, shifted_backward), *inputs).verdict == "right"
        report = hg.check(
            (shifted, lambda dy, p: (shifted_backward(dy, p)[0], 1e-3 * dy[:, :1])), *inputs
        )
        assert report.verdict == "wrong"


def test_methods_that_keep_the_cache_in_their_object():
    class Tanh:
        def forward(self, x):
            self.y = np.tanh(x)
            return self.y

        def backward(self, dy):
            return dy * (1 - self.y**2)

    class Wrong(Tanh):
        def backward(self, dy):
            return dy * (1 + self.y**2)

    layer = Tanh()
    assert hg.check(layer, X).verdict == "right"
    assert hg.check((layer.forward, layer.backward), X).verdict == "right"
    assert hg.check(Wrong(), X).verdict == "wrong"


def test_a_report_of_what_cannot_be_judged():
    report = hg.check((lambda x: x / 0 * 0, square_backward), X)
    assert report.verdict == "undecided"
    assert report.to_dict()["verdict"] == "undecided"
    assert "could not be judged: " in str(report)


def test_a_loss_that_is_all_rounding_has_a_gradient_of_zero():
    def centred_sum(x):
        return float((x - x.mean(-1, keepdims=True)).sum()), x.shape

    report = hg.check((centred_sum, lambda dy, shape: np.zeros(shape)), normal(1, 2))
    assert report.verdict == "right", report


def test_zeros_are_not_taken_for_a_product():
    def zero(a, b):
        return 0.0 * (a * b).sum(), (a, b)

    backward = lambda dy, cache: (0.0 * cache[0], 0.0 * cache[1])  # noqa: E731
    report = hg.check((zero, backward), [0.0], [2.0])
    assert (report.verdict, report.like) == ("right", None), report


def test_infinite_scores_that_nobody_gave_are_no_fault():
    """A softmax is recognised, and the op's own samples have masked scores."""

    def softmax(x):
        p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        return p, (x, p)

    def softmax_backward(dy, cache):
        x, p = cache
        return p * (dy - (dy * p).sum(-1, keepdims=True)) + 0.0 * x

    report = hg.check((softmax, softmax_backward), normal(3, 4))
    assert (report.verdict, report.like) == ("right", "softmax"), report
    assert any("not finite" in remark.message for remark in report.remarks)
    assert hg.check((softmax, softmax_backward), like="softmax").verdict == "wrong"


def test_an_imaginary_step_vouches_for_nothing_at_a_kink():
    """np.abs drops the imaginary part, and with it all that a gradient leaves out."""

    def both(x):
        ordered = np.sort(x, axis=0)
        return (np.abs(x).sum(), ordered), (x, np.argsort(x, axis=0, kind="stable"))

    def lost(dy, cache):
        x, order = cache
        dx = np.zeros_like(x)
        np.put_along_axis(dx, order, dy[1], axis=0)
        return dx

    def right(dy, cache):
        return lost(dy, cache) + dy[0] * np.sign(cache[0])

    x = np.array([[-1.0], [-2.0], [-2.0], [0.0]])
    assert hg.check((both, right), x).verdict == "right"
    assert hg.check((both, lost), x).verdict == "wrong"


def test_rounding_that_large_inputs_multiply_is_no_fault():
    """One weight of a softmax is 1 and the gradient 0; keys of 1e4 make 1e-9 of its rounding."""
    shapes = (1, 2, 7, 1), (1, 2, 6, 1), (1, 2, 6, 7)
    with hg.engine("auto"):
        report = hg.check("attention", *(normal(*shape) for shape in shapes), seed=2258)
    assert report.ok, report.faults
