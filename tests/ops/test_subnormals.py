"""Subnormal numbers: smooth functions and recurrences may take them for 0, a kink may not."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import handgrad as hg
from handgrad.ops.activation import ACTIVATIONS

SMALLEST = {np.float32: 1.2e-38, np.float64: 2.3e-308}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*ACTIVATIONS[1:], "softmax"])
def test_kernels_are_within_one_subnormal_of_the_reference(name: str, dtype: type) -> None:
    rng = np.random.default_rng(5)
    tiny = dtype(SMALLEST[dtype])
    x = (rng.uniform(-1, 1, (9, 37)) * tiny).astype(dtype)
    dy = rng.standard_normal(x.shape).astype(dtype)
    op = import_module(f"handgrad.ops.{name}")
    found = {}
    for engine in ("kernels", "reference"):
        with hg.engine(engine):
            y, cache = op.forward(x)
            found[engine] = y, op.backward(dy, cache)
    bounds = (tiny, 4 * np.finfo(dtype).eps * np.abs(dy).max())
    for kernel, reference, bound in zip(*found.values(), bounds, strict=True):
        assert np.all(np.abs(kernel - reference) <= bound + 4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_a_gradient_that_vanishes_over_time_becomes_0(name: str) -> None:
    rng = np.random.default_rng(6)
    gates = {"rnn": 1, "lstm": 4, "gru": 3}[name]
    weight_ih, weight_hh = (
        (0.01 * rng.standard_normal((gates * 16, n))).astype(np.float32) for n in (3, 16)
    )
    x = rng.standard_normal((2, 200, 3)).astype(np.float32)
    op = import_module(f"handgrad.ops.{name}")
    found = {}
    for engine in ("kernels", "reference"):
        with hg.engine(engine):
            y, cache = op.forward(x, weight_ih, weight_hh)
            dy = np.zeros_like(y[0])
            dy[:, -1] = rng.standard_normal(16)
            dy = (dy, (None, None) if name == "lstm" else None)
            found[engine] = np.abs(op.backward(dy, cache)[0])
    kernel = found["kernels"]
    tiny = np.finfo(np.float32).tiny
    assert np.any((found["reference"] > 0) & (found["reference"] < tiny))
    assert np.all((kernel == 0) | (kernel >= tiny))
    assert np.any(kernel[:, 0] == 0)


@pytest.mark.parametrize("threads", [1, 2])
def test_arithmetic_stays_exact_in_the_caller_and_in_the_workers(threads: int) -> None:
    with hg.threads(threads):
        hg.ops.tanh.forward(np.full(100_000, 1e-40, np.float32))
        kept = np.full(4, 1e-40, np.float32) * np.float32(0.5)
        assert np.all(kept > 0)
        _, cache = hg.ops.leaky_relu.forward(np.full(100_000, -1.0, np.float32))
        dx = hg.ops.leaky_relu.backward(np.full(100_000, 1e-40, np.float32), cache)
        assert np.all(dx > 0)


def test_products_read_subnormals_and_write_none() -> None:
    tiny, one = np.full((3, 300), 1e-40, np.float32), np.eye(300, dtype=np.float32)
    assert np.all(hg.matmul(tiny, one) == 0)
    assert np.all(hg.matmul(tiny, np.float32(1e30) * one) > 0)


def test_workers_take_subnormals_as_the_caller_does() -> None:
    rng = np.random.default_rng(7)
    x = (1e-38 * rng.standard_normal((64, 300))).astype(np.float32)
    dy = (1e-38 * rng.standard_normal(x.shape)).astype(np.float32)
    found = []
    for threads in (1, 2):
        with hg.threads(threads):
            _, cache = hg.ops.softmax.forward(x)
            found.append(hg.ops.softmax.backward(dy, cache).tobytes())
    assert found[0] == found[1]
