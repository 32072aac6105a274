"""Subnormal inputs: smooth activations may take them for 0, a kink may not."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import handgrad as hg

SMALLEST = {np.float32: 1.2e-38, np.float64: 2.3e-308}
ACTIVATIONS = ["relu", "leaky_relu", "sigmoid", "tanh", "gelu", "silu", "softmax"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACTIVATIONS)
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


def test_the_rounding_mode_of_the_caller_stays() -> None:
    hg.ops.tanh.forward(np.full(100_000, 1e-40, np.float32))
    kept = np.full(4, 1e-40, np.float32) * np.float32(0.5)
    assert np.all(kept > 0)
