"""Attention over many blocks of queries and keys, where the cases of all ops have one or two."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import handgrad
from handgrad.dispatch import engine
from handgrad.ops import attention
from tests.tolerances import assert_close


def rng() -> np.random.Generator:
    return np.random.default_rng(41)


def heads(batch: int, count: int, groups: int, queries: int, keys: int, size: int) -> Any:
    """q, k and v as views of what projections give."""
    draw = rng().standard_normal
    return tuple(
        draw((batch, steps, number, width)).transpose(0, 2, 1, 3)
        for number, steps, width in (
            (count, queries, size),
            (groups, keys, size),
            (groups, keys, size + 3),
        )
    )


def few(*shape: int) -> np.ndarray:
    return rng().random(shape) < 0.3


SETTINGS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((1, 2, 2, 150, 290, 16), {}),
    "causal": ((1, 2, 1, 300, 300, 20), {"causal": True}),
    "causal after others": ((2, 1, 1, 133, 301, 8), {"causal": True, "offset": 168}),
    "causal before": ((1, 1, 1, 200, 260, 8), {"causal": True, "offset": -70}),
    "lengths": ((3, 2, 2, 140, 260, 7), {"lengths": np.array([260, 0, 131])}),
    "mask": ((2, 2, 1, 140, 260, 8), {"mask": few(2, 1, 140, 260)}),
    "mask of keys": ((2, 2, 2, 140, 260, 8), {"mask": few(2, 1, 1, 260), "causal": True}),
    "bias": ((2, 4, 2, 70, 260, 8), {"bias": rng().standard_normal((1, 4, 70, 260))}),
    "bias, causal": ((1, 2, 2, 260, 260, 8), {"bias": rng().standard_normal((260, 260))}),
    "dropout": ((1, 3, 3, 200, 270, 8), {"dropout_p": 0.3, "causal": True}),
    "many heads": ((5, 7, 7, 65, 90, 33), {"causal": True}),
    "one query": ((2, 4, 2, 1, 300, 40), {"causal": True, "offset": 250}),
    "two queries": ((2, 2, 2, 2, 300, 5), {"mask": few(2, 300), "dropout_p": 0.2}),
}


def run(arrays: Any, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    settings = dict(settings)
    bias = settings.pop("bias", None)
    if "dropout_p" in settings:
        settings["rng"] = np.random.default_rng(3)
    y, cache = attention.forward(*arrays, bias, **settings)
    dy = np.random.default_rng(42).standard_normal(y.shape)
    found = attention.backward(dy, cache)
    named = dict(zip(("dq", "dk", "dv", "dbias"), found, strict=True))
    return {"y": y, "a": cache.a, **{k: v for k, v in named.items() if v is not None}}


@pytest.mark.parametrize("name", SETTINGS)
def test_many_blocks_equal_the_reference(name: str) -> None:
    sizes, settings = SETTINGS[name]
    arrays = heads(*sizes)
    found = run(arrays, settings)
    with engine("reference"):
        expected = run(arrays, settings)
    assert found.keys() == expected.keys()
    for what, value in expected.items():
        assert_close(found[what], value, "float64", what)


@pytest.mark.parametrize("name", SETTINGS)
def test_bits_do_not_depend_on_threads_or_layout(name: str) -> None:
    sizes, settings = SETTINGS[name]
    arrays = heads(*sizes)
    before = handgrad.get_threads()
    try:
        first = run(arrays, settings)
        handgrad.set_threads(3)
        other = run(tuple(np.ascontiguousarray(array) for array in arrays), settings)
    finally:
        handgrad.set_threads(before)
    for what, value in first.items():
        if what != "a":
            assert other[what].tobytes() == value.tobytes(), what


def test_results_lie_in_memory_as_the_heads_do() -> None:
    """So that heads merge without a copy."""
    q, k, v = heads(2, 4, 2, 9, 9, 8)
    y, cache = attention.forward(q, k, v)
    dq, dk, dv, _ = attention.backward(y, cache)
    for array in (y, dq, dk, dv):
        assert array.transpose(0, 2, 1, 3).flags.c_contiguous


def test_keys_beyond_the_lengths_are_not_read() -> None:
    q, k, v = heads(2, 2, 2, 5, 300, 8)
    lengths = np.array([140, 7])
    expected = run((q, k, v), {"lengths": lengths})
    for n, length in enumerate(lengths):
        k[n, :, length:] = np.nan
        v[n, :, length:] = np.nan
    found = run((q, k, v), {"lengths": lengths})
    for what in ("y", "dq", "dk", "dv"):
        np.testing.assert_array_equal(found[what], expected[what])


def test_memory_grows_with_the_steps_not_with_their_pairs() -> None:
    """The cache keeps nothing of size T · S."""
    steps = 700
    arrays = heads(1, 2, 2, steps, steps, 8)
    tracemalloc.start()
    try:
        _, cache = attention.forward(*arrays, causal=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept = [array.nbytes for array in cache.kept if isinstance(array, np.ndarray)]
    assert max(peak, *kept) < steps * steps


def test_no_gradient_through_a_score_that_is_huge() -> None:
    """The weight of a single key is 1 whatever its score, even if the score's last digit is 2⁷⁷."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 4, 1, 4), np.float32)
    k, v = 1e30 * rng.standard_normal((2, 2, 2, 4), np.float32), np.ones((2, 2, 2, 1), np.float32)
    with engine("kernels"):
        y, cache = attention.forward(q, k, v, mask=np.array([True, False])[None, None, None])
        dq, dk, *_ = attention.backward(np.zeros_like(y), cache)
    assert not dq.any()
    assert not dk.any()
