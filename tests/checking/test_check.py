"""What `hg.check` promises: targets, reports, and one sentence for every way to be wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import handgrad as hg
from handgrad import trees
from handgrad.checking import CheckError, CheckReport, Fault
from handgrad.checking.report import KINDS
from handgrad.errors import ArgumentError
from handgrad.layers import Layer


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
        assert fault.kind in {**trees.KINDS, **KINDS}
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


# Targets


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
    pair = (lambda x: (np.tanh(x),) * 2, lambda dy, y: dy * (1.0 - y * y))
    assert hg.check(pair, normal(2, 3)).like == "tanh"
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
    faults = told((both, one_lost), *inputs)
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


# The report


def test_fields_of_a_report_that_is_ok():
    report = hg.check((forward, backward), X, W)
    assert isinstance(report, CheckReport)
    assert report.seed == 0
    assert [row.gradient for row in report.gradients[:2]] == ["x", "w"]
    for row in report.gradients:
        assert row.verdict == "right"
        assert 0.0 <= row.error <= row.bound
        assert row.method
    tried = {row.situation for row in report.trials}
    assert tried >= {"usual", "float32", "read-only inputs", "backward twice"}
    assert tried >= {"non-contiguous cotangent", "broadcast cotangent", "one row", "empty"}
    assert "✓" in str(report)


def test_fields_of_a_fault():
    def wrong(dy, cache):
        x, w, y = cache
        return dy @ w.T, x.T @ (dy * (1.0 - y * y))

    report = hg.check((forward, wrong), X, W)
    (fault,) = report.faults
    assert fault.gradient == "x"
    assert fault.message.startswith("dx: ")
    assert fault.situation == "usual"
    verdicts = {row.gradient: row.verdict for row in report.gradients}
    assert verdicts == {"x": "wrong", "w": "right"}
    with pytest.raises(CheckError, match="dx") as raised:
        report.assert_ok()
    assert isinstance(raised.value, AssertionError)
    assert fault.message.split()[0] in str(report)


def test_to_dict_is_plain_and_complete():
    report = hg.check((forward, lambda dy, cache: (np.full((5, 3), np.nan), cache[1])), X, W)
    found = report.to_dict()
    assert found["ok"] is False
    assert set(found) >= {"target", "seed", "like", "gradients", "trials", "faults"}
    assert set(found["faults"][0]) >= {"gradient", "kind", "term", "message", "confidence"}
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(report.to_json())


def test_the_same_seed_gives_the_same_report():
    def wrong(dy, cache):
        dx, dw = backward(dy, cache)
        return dx, 1.5 * dw

    first, second = (hg.check((forward, wrong), X, W, seed=3) for _ in range(2))
    assert first == second
    other = hg.check((forward, wrong), X, W, seed=4)
    assert other.seed == 4
    assert [row.error for row in other.gradients] != [row.error for row in first.gradients]
    assert [fault.kind for fault in other.faults] == [fault.kind for fault in first.faults]


def test_the_global_generator_is_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    hg.check((forward, backward), X, W)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_inputs_are_left_alone():
    def destructive(x):
        y = x * x
        x *= 0.0
        return y, y

    x = normal(3, 4)
    kept = x.copy()
    told((destructive, lambda dy, y: dy), x)
    assert np.array_equal(x, kept)


def test_inputs_drawn_from_the_same_seed_hide_nothing():
    """The cotangent must not be the very numbers that the user's own generator gave."""

    def product(x, w):
        return 0.5 * (x @ w), (x, w)

    def transposed(dy, cache):
        x, w = cache
        return 0.5 * (dy @ w.T), 0.5 * (dy.T @ x)

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    assert [fault.gradient for fault in told((product, transposed), x, w, seed=0)] == ["w"]


def test_what_cannot_be_decided_is_not_ok():
    """At a kink in every direction no difference says what is right."""

    def absolute(x):
        return np.abs(x), x

    report = hg.check((absolute, lambda dy, x: dy * 5.0), np.zeros((3, 4)))
    assert not report.ok or all(row.verdict == "right" for row in report.gradients)


# Every way to be wrong has a sentence


def returning(value):
    """A backward of `square` that returns what `value` makes of the right gradient.

    A lambda, in which no cause can be read.
    """
    return square, lambda dy, x: value(2.0 * x * dy)


def raises(dy, x):
    raise KeyError("no such gradient")


FAULTS = {
    "raises": ((square, raises), "raises", ("backward raises KeyError", "no such gradient")),
    "no pair": (
        (lambda x: x * x, square_backward),
        "wrong count",
        ("forward returns", "(y, cache)"),
    ),
    "too many": (returning(lambda dx: (dx, dx)), "wrong count", ("returns 2", "allowed: 1")),
    "none": (returning(lambda dx: None), "wrong type", ("dx is None",)),
    "a string": (returning(lambda dx: "dx"), "wrong type", ("dx is a str",)),
    "NaN": (returning(lambda dx: dx * np.nan), "not finite", ("dx is not finite", "20 of 20")),
    "infinite": (returning(lambda dx: dx / 0.0), "not finite", ("dx is not finite",)),
    "too long": (returning(lambda dx: np.concatenate([dx, dx])), "wrong shape", ("(8, 5)",)),
    "flat": (returning(lambda dx: dx.ravel()), "wrong shape", ("(20,)", "(4, 5)")),
    "one row more": (returning(lambda dx: dx[None]), "wrong shape", ("(1, 4, 5)", "(4, 5)")),
    "too narrow": (returning(lambda dx: dx.astype(np.float32)), "wrong type", ("float32",)),
    "integers": (returning(lambda dx: dx.astype(int)), "wrong type", ("int64",)),
}


@pytest.mark.parametrize(("pair", "kind", "words"), FAULTS.values(), ids=FAULTS)
def test_a_malformed_result_is_named(pair, kind, words):
    fault = only_kind(pair, normal(4, 5))
    assert fault.kind == kind
    for word in words:
        assert word in fault.message
    assert fault.confidence > 0.0


def test_a_forward_that_raises_is_named():
    def broken(x):
        raise ZeroDivisionError("nothing to divide by")

    fault = only_kind((broken, square_backward), normal(4, 5))
    assert fault.kind == "raises"
    assert "forward raises ZeroDivisionError: nothing to divide by" in fault.message


def test_too_few_gradients_are_named():
    fault = only_kind((forward, lambda dy, cache: backward(dy, cache)[0]), X, W)
    assert fault.kind == "wrong count"
    assert "backward returns 1 gradient; allowed: 2, for x, w" in fault.message


def test_one_of_several_gradients_is_none():
    fault = only_kind((forward, lambda dy, cache: (backward(dy, cache)[0], None)), X, W)
    assert (fault.gradient, fault.kind) == ("w", "wrong type")
    assert "dw is None" in fault.message


def test_float64_in_place_of_float32_is_named():
    def wide(dy, x):
        return np.full(x.shape, 2.0) * x * dy

    fault = only_kind((square, wide), normal(4, 5))
    assert (fault.kind, fault.situation) == ("wrong type", "float32")
    assert "dx is of float64; allowed: float32" in fault.message


def writes_dy(dy, x):
    dy *= 2.0
    return dy * x


def masks_dy(dy, x):
    dy[x < 0] = 0.0  # a second time nothing changes any more
    return dy * (x > 0)


def writes_cache(dy, x):
    x *= 2.0
    return x * dy


@pytest.mark.parametrize(
    ("forward", "backward", "name"),
    [
        (square, writes_dy, "dy"),
        (lambda x: (np.maximum(x, 0), x), masks_dy, "dy"),
        (square, writes_cache, "x"),
        (lambda x: (x * x, {"x": x.copy()}), lambda dy, c: writes_cache(dy, c["x"]), "cache['x']"),
    ],
)
def test_a_write_is_reported_with_the_name_of_what_is_written_to(forward, backward, name):
    written = [
        each for each in told((forward, backward), normal(4, 5)) if each.kind == "written to"
    ]
    assert name in {fault.term for fault in written}
    assert f"{name} is written to" in " ".join(fault.message for fault in written)


def test_a_backward_that_accumulates_is_named():
    def with_buffer(x):
        return x * x, (x, np.zeros_like(x))

    def accumulates(dy, cache):
        x, buffer = cache
        buffer += 2.0 * x * dy
        return buffer.copy()

    faults = told((with_buffer, accumulates), normal(4, 5))
    (fault,) = (each for each in faults if each.kind == "not repeatable")
    assert "twice as large" in fault.message


def test_a_backward_that_needs_a_contiguous_cotangent_is_named():
    def flat(dy, x):
        return 2.0 * x * dy.ravel(order="K").reshape(x.shape)

    fault = only_kind((square, flat), normal(4, 5))
    assert fault.kind == "strided cotangent"
    assert fault.situation == "transposed cotangent"
    assert "right when dy is contiguous" in fault.message


def test_a_fault_of_one_situation_is_told_with_it():
    def fails_on_one_row(dy, x):
        return 2.0 * x * dy if len(x) != 1 else x * dy

    (fault,) = told((square, fails_on_one_row), normal(4, 5))
    assert fault.situation == "one row"
    assert "one row" in fault.message


def test_a_forward_that_is_not_that_of_like_is_named():
    faults = told((square, square_backward), like="tanh")
    assert faults[0].kind == "forward differs"
    assert "tanh" in faults[0].message


# Nothing is invented


# The wrong backwards are lambdas: where a source can be read, the noise is a term too many.


def noise(array):
    return np.random.default_rng(array.size).normal(size=array.shape)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda dy, x: 2.0 * x * dy + noise(x) @ dy.T @ noise(x),
        lambda dy, x: 2.0 * x * dy + np.sin(17.0 * x * dy),
        lambda dy, x: dy[::-1] * noise(x),
    ],
    ids=["noise", "a sine", "a mix"],
)
def test_what_fits_no_explanation_is_unknown(wrong):
    fault = told((square, wrong), normal(4, 5))[0]
    assert (fault.gradient, fault.kind, fault.term) == ("x", "unknown", "")
    assert fault.confidence == 0.0
    assert "no explanation" in fault.message


@pytest.mark.parametrize(
    "wrong",
    [
        lambda dy, x: 2.0 * x * dy + noise(x) * np.abs(dy) ** 0.7,
        lambda dy, x: 2.0 * x * dy + np.abs(np.sin(17.0 * x * dy)),
    ],
    ids=["noise", "a size"],
)
def test_what_does_not_turn_with_dy_is_said_to(wrong):
    fault = told((square, wrong), normal(4, 5))[0]
    assert (fault.gradient, fault.kind) == ("x", "not linear")
    assert "not linear in dy" in fault.message


def test_noise_on_a_known_op_is_unknown():
    right = hg.ops.layer_norm.backward
    wrong = lambda dy, cache: (right(dy, cache)[0] + noise(dy) * dy, *right(dy, cache)[1:])  # noqa: E731
    faults = [each for each in told(wrong, like="layer_norm") if each.situation == "usual"]
    assert [(fault.gradient, fault.kind) for fault in faults] == [("x", "unknown")]


def test_an_explanation_needs_something_that_it_excludes():
    """One row, and values of one sign: "right except on row 0" or "where x > 0" says nothing."""
    pair = square, lambda dy, x: 2.0 * x * dy + noise(x) * dy
    fault = told(pair, np.abs(normal(1, 6)) + 0.1)[0]
    assert fault.kind == "unknown", fault.message


# float32 that rounds as it must


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
    ("pair", "inputs"),
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
def test_a_right_float32_backward_passes(pair, inputs, seed):
    narrow = [each.astype(np.float32) if each.dtype.kind == "f" else each for each in inputs]
    report = hg.check(pair, *narrow, seed=seed)
    assert report.ok, str(report)
    assert any(row.situation == "float32" for row in report.trials)


def test_a_float32_backward_that_loses_half_its_digits_is_named():
    def coarse(dy, x):
        dx = 2.0 * x * dy
        return dx.astype(np.float16).astype(np.float32) if dx.dtype == np.float32 else dx

    fault = only_kind((square, coarse), normal(4, 5))
    assert (fault.kind, fault.situation) == ("inaccurate", "float32")
    assert "beyond what rounding explains" in fault.message


# Models


def test_a_wrong_layer_is_found_in_its_model():
    class WrongTanh(Layer):
        def forward(self, x, *, training=False):
            y = np.tanh(x)
            return y, y

        def backward(self, dy, cache, **_):
            return dy * (1.0 - cache), {}

    rng = np.random.default_rng(1)
    wrong = hg.Sequential(
        first=hg.Dense(3, 5, rng=rng), middle=WrongTanh(), last=hg.Dense(5, 2, rng=rng)
    )
    faults = told(wrong, X)
    assert any("middle" in fault.gradient + fault.message for fault in faults)
    assert not any("last" in fault.gradient for fault in faults)


def test_the_line_of_the_fault_is_told():
    def wrong(dy, cache):
        x, w, y = cache
        da = dy * (1.0 + y * y)
        return da @ w.T, x.T @ da

    first = wrong.__code__.co_firstlineno
    assert f"line {first + 2}" in told((forward, wrong), X, W)[0].message
