"""Bounds of rounding errors: never below what float32 does, and never far above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.checking.rounding.model import Arithmetic
from handgrad.checking.roundoff import (
    FLOAT32_UNIT,
    Bounded,
    Unbounded,
    bound_of_backward,
    perturbed_bound,
)
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from tests.op_cases import SMALL_CASES, Case, each

FLOAT32 = Arithmetic(FLOAT32_UNIT, 2.0**-126, 2.0**128)
#: A bound is to say something: most elements of it below this fraction of the largest gradient.
USEFUL = 1e-3
CASES_OF_EACH_OP = 6


def _some_of_each_op() -> list[Case]:
    taken: Counter[str] = Counter()
    cases = []
    for case in SMALL_CASES:
        if "empty" not in case.label and taken[case.op] < CASES_OF_EACH_OP:
            taken[case.op] += 1
            cases.append(case)
    assert set(taken) == set(OPS)
    return cases


def _forward(case: Case, names: Sequence[str]) -> Callable[..., Any]:
    return lambda *arrays: case.forward(dict(zip(names, arrays, strict=True)))


def _gradients(backward: Callable[..., Any], dy: Any, cache: Any) -> tuple[Any, ...]:
    found = backward(dy, cache)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("bound", [bound_of_backward, perturbed_bound])
@each(_some_of_each_op())
def test_float32_is_within_the_bound_of_every_op(case: Case, bound: Callable[..., Any]) -> None:
    arrays = case.arrays(np.float32)
    forward, backward = _forward(case, tuple(arrays)), case.module.backward
    pending = kernels.native is None or case.op in kernels.PENDING
    engines = ["reference"] if pending else ["reference", "kernels"]
    for engine in engines:
        with hg.engine(engine):
            y, cache = forward(*arrays.values())
            dy = case.random_like(y, "cotangent", np.float32)
            found = _gradients(backward, dy, cache)
            bounds = bound(forward, backward, tuple(arrays.values()), dy)
        for name, gradient, right in zip(case.gradient_names, found, bounds, strict=True):
            if gradient is None:
                assert right is None
                continue
            value, error = right
            assert value.shape == error.shape == gradient.shape
            assert value.dtype == error.dtype == np.float64
            off = np.abs(gradient - value)
            assert np.all(off <= error), f"{engine}, d{name}: off by {np.max(off / error)} bounds"
            scale = np.max(np.abs(value))
            if scale > 1e-12:  # else all terms cancel, and only rounding is left
                assert np.median(error) <= USEFUL * scale, name


@each([case for case in SMALL_CASES if "empty" in case.label])
def test_nothing_to_bound(case: Case) -> None:
    arrays = case.arrays(np.float32)
    forward, backward = _forward(case, tuple(arrays)), case.module.backward
    y, _ = forward(*arrays.values())
    dy = case.random_like(y, "cotangent", np.float32)
    for bound in (bound_of_backward, perturbed_bound):
        bounds = bound(forward, backward, tuple(arrays.values()), dy)
        assert len(bounds) == len(case.gradient_names)


def test_a_wrong_term_is_outside() -> None:
    rng = np.random.default_rng(0)
    x, gamma, beta = rng.standard_normal((3, 64)).astype(np.float32)
    dy = rng.standard_normal(64).astype(np.float32)
    op = hg.ops.layer_norm
    (right, error), _, _ = bound_of_backward(op.forward, op.backward, (x, gamma, beta), dy)
    without_mean = right + np.mean(dy * gamma) / np.std(x)
    assert np.mean(np.abs(without_mean - right) > error) > 0.9


def test_float16_has_a_larger_unit() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 23)).astype(np.float16)
    op = hg.ops.softmax
    y, cache = op.forward(x)
    dy = rng.standard_normal(y.shape).astype(np.float16)
    ((right, error),) = bound_of_backward(op.forward, op.backward, (x,), dy, unit=2.0**-11)
    assert np.all(np.abs(op.backward(dy, cache) - right) <= error)
    assert np.max(error) > 100 * 2.0**-24 * np.max(np.abs(right))


# Functions as a stranger writes them, in NumPy


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / float(np.sqrt(q.shape[-1]))
    mask = np.tril(np.ones(scores.shape[-2:], dtype=bool))
    scores = np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p = powers / powers.sum(-1, keepdims=True)
    return p @ v, (q, k, v, p)


def _attention_backward(dy: Any, cache: Any) -> Any:
    q, k, v, p = cache
    dp = dy @ v.transpose(0, 2, 1)
    ds = p * (dp - np.sum(dp * p, axis=-1, keepdims=True))
    ds /= float(np.sqrt(q.shape[-1]))
    return ds @ k, ds.swapaxes(1, 2) @ q, np.swapaxes(p, -1, -2) @ dy


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    x_hat = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x_hat * gamma + beta, (x_hat, x.std(axis=-1, keepdims=True), gamma)


def _layer_norm_backward(dy: Any, cache: Any) -> Any:
    x_hat, std, gamma = cache
    n, d = x_hat.shape[-1], dy * gamma
    inner = d.sum(-1, keepdims=True) + x_hat * np.einsum("ij,ij->i", d, x_hat)[:, None]
    return (n * d - inner) / n / (std**2 + 1e-5) ** 0.5, (dy * x_hat).sum(0), dy.sum(0)


def _two_layers(x: Any, w: Any, b: Any, v: Any) -> Any:
    a = x @ w + b
    h = np.maximum(0, a)
    return h.dot(v), (x, w, v, a, h)


def _two_layers_backward(dy: Any, cache: Any) -> Any:
    x, w, v, a, h = cache
    dh = dy @ v.T
    dh[a <= 0] = 0
    dw = np.zeros_like(w)
    dw += x.T @ dh
    return dh @ w.T, dw, (dh * (a > 0)).sum(0), np.tensordot(h, dy, axes=([0], [0]))


def _lookup(tokens: Any, w: Any) -> Any:
    return w[tokens], (tokens, w)


def _lookup_backward(dy: Any, cache: Any) -> Any:
    tokens, w = cache
    dw = np.zeros_like(w)
    np.add.at(dw, tokens, dy)
    return dw


def _recurrent(x: Any) -> Any:
    y, h = np.empty_like(x), np.zeros_like(x[0])
    for i in range(len(x)):
        h = 0.9 * h + np.tanh(x[i])
        y[i] = h
    return y, x


def _recurrent_backward(dy: Any, x: Any) -> Any:
    dh, steps = np.zeros_like(x[0]), []
    for dy_i, x_i in zip(reversed(list(dy)), reversed(list(x)), strict=True):
        dh = dh + dy_i
        steps.append(dh * (1 - np.tanh(x_i) ** 2))
        dh = 0.9 * dh
    return np.flip(np.stack(steps), axis=0)


def _pooled(x: Any) -> Any:
    n, h, w = x.shape
    blocks = (2 * x).reshape(n, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 2, 4)
    blocks = blocks.reshape(n, h // 2, w // 2, 4)
    return blocks.max(-1), (blocks.argmax(-1), (n, h, w))


def _pooled_backward(dy: Any, cache: Any) -> Any:
    winner, (n, h, w) = cache
    d = np.where(np.arange(4) == winner[..., None], 2 * dy[..., None], np.float32(0))
    return d.reshape(n, h // 2, w // 2, 2, 2).transpose(0, 1, 3, 2, 4).reshape(n, h, w)


def _unit_vector(x: Any) -> Any:
    length = np.linalg.norm(x)
    return x / length, (x, length)


def _unit_vector_backward(dy: Any, cache: Any) -> Any:
    x, length = cache
    return dy / length - x * np.sum(x * dy) / length**3


def _normal(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


STRANGERS = {
    "attention": (_attention, _attention_backward, [_normal(2, 9, 8)] * 3),
    "layer norm": (_layer_norm, _layer_norm_backward, [_normal(7, 33), _normal(33), _normal(33)]),
    "two layers": (
        _two_layers,
        _two_layers_backward,
        [_normal(11, 13), _normal(13, 17), _normal(17), _normal(17, 5)],
    ),
    "lookup": (_lookup, _lookup_backward, [lambda rng: rng.integers(0, 6, (5, 9)), _normal(6, 4)]),
    "recurrent": (_recurrent, _recurrent_backward, [_normal(12, 5)]),
    "pooled": (_pooled, _pooled_backward, [_normal(2, 6, 8)]),
    "unit vector": (_unit_vector, _unit_vector_backward, [_normal(40)]),
}


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("bound", [bound_of_backward, perturbed_bound])
def test_float32_is_within_the_bound_of_numpy_code(name: str, bound: Callable[..., Any]) -> None:
    forward, backward, makers = STRANGERS[name]
    rng = np.random.default_rng(0)
    for _ in range(5):
        arrays = tuple(make(rng) for make in makers)
        y, cache = forward(*arrays)
        dy = rng.standard_normal(y.shape).astype(np.float32)
        found = _gradients(backward, dy, cache)
        for gradient, (right, error) in zip(
            found, bound(forward, backward, arrays, dy), strict=True
        ):
            assert gradient.dtype == np.float32
            assert np.all(np.abs(gradient - right) <= error)
            assert np.median(error) <= USEFUL * np.max(np.abs(right))


def test_nested_outputs() -> None:
    def forward(x: Any) -> Any:
        return (x * 3, (np.exp(x),)), x

    def backward(dy: Any, x: Any) -> Any:
        return 3 * dy[0] + dy[1][0] * np.exp(x)

    rng = np.random.default_rng(0)
    x, first, second = rng.standard_normal((3, 5)).astype(np.float32)
    for bound in (bound_of_backward, perturbed_bound):
        ((right, error),) = bound(forward, backward, (x,), (first, (second,)))
        assert np.all(np.abs(backward((first, (second,)), x) - right) <= error)


def test_a_function_that_takes_no_such_arrays_has_no_bound() -> None:
    def forward(x: Any) -> Any:
        return x, x

    x = np.linspace(-1, 1, 5)
    assert bound_of_backward(forward, lambda dy, x: np.fft.fft(dy).real, (x,), x) is None
    assert bound_of_backward(forward, lambda dy, x: np.asarray(dy), (x,), x) is None
    assert bound_of_backward(forward, lambda dy, x: dy.unknown(), (x,), x) is None
    assert bound_of_backward(forward, lambda dy, x: x > 0, (x,), x) is None


def test_a_unit_that_no_format_has() -> None:
    with pytest.raises(ArgumentError, match="unit is 0.1; allowed: "):
        bound_of_backward(lambda x: (x, x), lambda dy, x: dy, (np.ones(3),), np.ones(3), unit=0.1)


# Single rules


def _bounded(value: Any, error: Any = 0.0) -> Bounded:
    value = np.asarray(value, dtype=np.float64)
    return Bounded(value, np.array(np.broadcast_to(error, value.shape), dtype=float), FLOAT32)


def test_exact_zeros_add_no_error() -> None:
    x = _bounded([0.0, 1.0, 0.0])
    assert np.sum(x).error == 0
    assert (x * 0.1).error[0] == 0
    assert (x + 0.0).error[1] == 0


def test_constants_are_rounded_as_they_enter() -> None:
    assert (_bounded(1.0) * 0.5).error <= FLOAT32_UNIT
    assert (_bounded(1.0) * 0.1).error >= abs(0.1 - float(np.float32(0.1)))


def test_errors_are_carried_on_by_every_rule() -> None:
    """One step on values that are off by e gives results that are off by no more than the bound."""
    rng = np.random.default_rng(0)
    unary = ("exp", "tanh", "sin", "cos", "abs", "square", "expm1", "negative", "cumsum", "max")
    positive = ("log", "sqrt", "log1p", "reciprocal", "mean", "var", "std", "sum", "min")
    for name in (*unary, *positive):
        function = getattr(np, name)
        for _ in range(20):
            x = rng.standard_normal(7)
            x = np.abs(x) + 0.2 if name in positive else x
            e = 10.0 ** rng.uniform(-6, -1, 7)
            result = function(_bounded(x, e))
            off = np.abs(function(x + e * rng.uniform(-1, 1, 7)) - function(x))
            assert np.all(off <= result.error), name
            np.testing.assert_allclose(result.value, function(x), rtol=1e-15)
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "matmul"):
        function = getattr(np, name)
        for _ in range(20):
            x, y = rng.standard_normal((2, 7))
            e, f = 10.0 ** rng.uniform(-6, -2, (2, 7))
            result = function(_bounded(x, e), _bounded(y, f))
            moved = function(x + e * rng.uniform(-1, 1, 7), y + f * rng.uniform(-1, 1, 7))
            assert np.all(np.abs(moved - function(x, y)) <= result.error), name


def test_a_choice_in_doubt_covers_both_branches() -> None:
    x = _bounded([1.0, 1e-9, -1.0], 1e-8)
    positive = x > 0
    assert isinstance(positive, Bounded)
    np.testing.assert_array_equal(positive.error, [0, 1, 0])
    chosen = np.where(positive, 5.0, 3.0)
    np.testing.assert_array_equal(chosen.error, [0, 2, 0])
    np.testing.assert_array_equal((5.0 * positive).error > 4, [False, True, False])
    np.testing.assert_array_equal(np.logical_not(positive).error, positive.error)
    assert type(x < 2) is np.ndarray


def test_an_index_in_doubt() -> None:
    sure = np.argmax(_bounded([1.0, 2.0, 0.0], 0.1))
    assert not isinstance(sure, Bounded)
    assert sure == 1
    doubtful = np.argmax(_bounded([[1.0, 1.1], [0.0, 1.0]], 0.1), axis=1)
    np.testing.assert_array_equal(doubtful.error, [np.inf, 0])
    np.testing.assert_array_equal((doubtful == 1).error, [1, 0])
    with pytest.raises(Unbounded, match="made of values in doubt"):
        np.take(_bounded([1.0, 2.0]), doubtful)
    assert np.argmax(_bounded([2.0, 2.0])) == 0  # a tie of exact values is no doubt


def test_branches_and_numbers_need_certain_values() -> None:
    assert bool(_bounded(1.0) > 0)
    assert float(_bounded(1.5)) == 1.5
    with pytest.raises(Unbounded, match="made of values in doubt"):
        bool(_bounded(0.0, 0.1) > 0)
    with pytest.raises(Unbounded, match="made of values in doubt"):
        float(_bounded(1.5, 0.1))


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(Unbounded, match="no bound of rounding errors is known for fft"):
        np.fft.fft(_bounded([1.0, 2.0]))
    with pytest.raises(Unbounded, match="known for floor"):
        np.floor(_bounded([1.0, 2.0]))
    with pytest.raises(Unbounded, match="a plain array"):
        np.asarray(_bounded(1.0))
    with pytest.raises(Unbounded, match="add into a plain array"):
        np.add(np.ones(2), _bounded([1.0, 2.0]), out=np.zeros(2))


def test_infinities_stay_what_they_are() -> None:
    masked = _bounded([-np.inf, 1.0])
    np.testing.assert_array_equal(np.exp(masked - 1.0).error[0], 0)
    assert np.max(masked).error == 0
    assert np.exp(_bounded(100.0)).error == np.inf  # overflows in float32
    assert np.exp(_bounded(-100.0)).error > 0  # flushed to 0, perhaps
    assert np.log(_bounded(1e-9, 1e-8)).error == np.inf
    assert (1.0 / _bounded(1e-9, 1e-8)).error == np.inf


def test_arrays_as_the_array_api_makes_them() -> None:
    xp = _bounded([1.0]).__array_namespace__()
    x = _bounded(np.arange(6.0).reshape(2, 3), 1e-3)
    assert xp.astype(x > 10, x.dtype).error.max() == 0
    assert xp.full((2,), 0.1, dtype=x.dtype, device=x.device).error.min() > 0
    assert type(xp.arange(3)) is np.ndarray
    assert xp.concat([x, xp.zeros_like(x)], axis=1).shape == (2, 6)
    assert [part.shape for part in xp.unstack(x)] == [(3,), (3,)]
    assert xp.permute_dims(x, (1, 0)).shape == x.T.shape == x.mT.shape == (3, 2)
    np.testing.assert_array_equal(np.pad(x, 1, constant_values=7.0).error[0], 0)
    assert xp.inf == np.inf
