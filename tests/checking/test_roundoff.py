"""Bounds of rounding errors: never below what float32 does, and never far above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.checking.roundoff import bound_of_backward, perturbed_bound
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from tests.ops.cases import SMALL_CASES, Case, each

#: A bound is to say something: most elements of it below this fraction of the largest gradient.
USEFUL = 1e-3
CASES_OF_EACH_OP = 6


def _some_of_each_op() -> list[Case]:
    """The awkward ones first: their sizes make the longest sums."""
    taken: Counter[str] = Counter()
    cases = []
    for case in sorted(SMALL_CASES, key=lambda case: case.row not in case.samples.awkward):
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
    engines = ["reference", "kernels"] if kernels.has(case.op) else ["reference"]
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
            scale = np.max(np.abs(value), initial=0.0)
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
    with pytest.raises(ArgumentError, match=r"unit is 0\.1; allowed: "):
        bound_of_backward(lambda x: (x, x), lambda dy, x: dy, (np.ones(3),), np.ones(3), unit=0.1)
