"""Arguments of `hg.check`: targets of every kind, and the arguments that it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from tests.checking.functions import (
    W,
    X,
    backward,
    forward,
    normal,
    only_kind,
    reported,
    square,
    square_backward,
)


class Both:
    forward = staticmethod(forward)
    backward = staticmethod(backward)


def model():
    rng = np.random.default_rng(1)
    return hg.Sequential(
        first=hg.Dense(3, 5, activation="tanh", rng=rng), second=hg.Dense(5, 2, rng=rng)
    )


TARGETS = {
    "an op's name": lambda: ("tanh",),
    "an op": lambda: (hg.ops.softmax,),
    "an op with inputs": lambda: (hg.ops.linear, normal(4, 3), normal(2, 3), normal(2)),
    "a layer": lambda: (hg.Dense(3, 4, rng=np.random.default_rng(1)), X),
    "a model": lambda: (model(), X),
    "a pair": lambda: ((forward, backward), X, W),
    "a pair in a list": lambda: ([forward, backward], X, W),
    "a class": lambda: (Both, X, W),
    "an object": lambda: (Both(), X, W),
    "a module": lambda: (SimpleNamespace(forward=forward, backward=backward), X, W),
    "lists of numbers": lambda: ((square, square_backward), [[1.5, -2.0], [0.5, 3.0]]),
}


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS)
def test_every_kind_of_target_passes(make):
    target, *inputs = make()
    report = hg.check(target, *inputs)
    assert report.ok, str(report)
    assert report.faults == ()
    report.assert_ok()


def test_a_backward_alone_with_like():
    def right(dy, cache):
        return dy * (1.0 - cache.y * cache.y)

    assert hg.check(right, like=hg.ops.tanh).ok
    assert hg.check(right, normal(2, 3), like="tanh").ok


def test_a_pair_with_like():
    def right(dy, y):
        return dy * (1.0 - y * y)

    report = hg.check((lambda x: (np.tanh(x),) * 2, right), like="tanh")
    assert report.ok
    assert report.like == "tanh"


def test_a_pair_is_recognised_as_the_op_that_it_is():
    functions = (lambda x: (np.tanh(x),) * 2, lambda dy, y: dy * (1.0 - y * y))
    assert hg.check(functions, normal(2, 3)).like == "tanh"
    assert hg.check((square, square_backward), normal(2, 3)).like is None


def test_options_go_to_forward():
    report = hg.check("leaky_relu", normal(3, 4), negative_slope=0.3)
    assert report.ok

    def half(x, *, power=1):
        return x**power, (x, power)

    def half_backward(dy, cache):
        x, power = cache
        return dy * power * x ** (power - 1)

    assert hg.check((half, half_backward), normal(3, 4), power=3).ok


def test_wrt_names_the_inputs_that_have_a_gradient():
    def error(x, target):
        return 0.5 * (x - target) ** 2, x - target

    def error_backward(dy, difference):
        return dy * difference

    inputs = normal(3, 4), normal(3, 4, seed=1)
    report = hg.check((error, error_backward), *inputs, wrt=("x",))
    assert report.ok
    assert {row.gradient for row in report.gradients} == {"x"}
    assert only_kind((error, error_backward), *inputs).kind == "wrong count"


def test_several_outputs_have_a_cotangent_each():
    def both(x, y):
        return (x * y, np.sin(x)), (x, y)

    def both_backward(dys, cache):
        (dproduct, dsine), (x, y) = dys, cache
        return dproduct * y + dsine * np.cos(x), dproduct * x

    def one_lost(dys, cache):
        (dproduct, _), (x, y) = dys, cache
        return dproduct * y, dproduct * x

    inputs = normal(3, 4), normal(3, 4, seed=1)
    assert hg.check((both, both_backward), *inputs).ok
    faults = reported((both, one_lost), *inputs)
    assert {fault.gradient for fault in faults} == {"x"}


def test_a_torch_function_and_module():
    torch = pytest.importorskip("torch")

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return x * dy

    assert only_kind(Wrong, normal(3, 4)).gradient == "x"
    assert hg.check(torch.nn.Linear(3, 2), normal(4, 3)).ok


def test_a_function_of_jax():
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def wrong(x):
        return x * x

    wrong.defvjp(lambda x: (x * x, x), lambda x, dy: (-2.0 * x * dy,))
    assert only_kind(wrong, normal(3, 4)).kind == "wrong sign"


@pytest.mark.parametrize(
    ("target", "inputs", "options", "words"),
    [
        (42, (), {}, "42"),
        ("no_such_op", (), {}, "no_such_op"),
        (square_backward, (), {}, "square_backward"),
        (square_backward, (normal(2),), {}, "like"),
        ((square, square_backward), (), {}, "no inputs"),
        ((square, square_backward, square), (normal(2),), {}, "target"),
        ((square, square_backward), (normal(2), normal(2)), {}, "2"),
        ((square, square_backward), (["a", "b"],), {}, "input 0"),
        ((square, square_backward), (object(),), {}, "input 0"),
        ((square, square_backward), (normal(2) * 1j,), {}, "complex"),
        ((forward, backward), (X, W), {"wrt": ("v",)}, "'v'"),
        (square_backward, (), {"like": "no_such_op"}, "no_such_op"),
        (square_backward, (), {"like": square}, "like"),
        ("tanh", (normal(2), normal(2)), {}, "2"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_sentence(target, inputs, options, words):
    with pytest.raises(ArgumentError) as refused:
        hg.check(target, *inputs, **options)
    message = str(refused.value)
    assert message.startswith("check: ")
    assert words in message
    assert "\n" not in message
