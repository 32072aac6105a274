"""Outputs and gradients equal PyTorch's: by a golden file, and live where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.golden.make import FILE, fingerprint, in_torch, sample
from tests.ops.cases import ORDINARY_CASES, Case, each, named_outputs
from tests.tolerances import assert_close

IN_TORCH = [case for case in ORDINARY_CASES if not case.row.not_in_torch]


@pytest.fixture(scope="module")
def golden() -> Iterator[Any]:
    with np.load(FILE, allow_pickle=False) as file:
        yield file


@each(IN_TORCH)
def test_equals_the_golden_file(case: Case, on_engine: str, golden: Any) -> None:
    arrays = case.arrays()
    made_from, *values = golden[case.id]
    np.testing.assert_allclose(
        fingerprint(arrays),
        made_from,
        rtol=1e-9,
        err_msg="inputs changed; see tests/golden/make.py",
    )
    y, cache = case.forward(arrays)
    gradients = case.backward(case.random_like(y, "cotangent"), cache)
    found_gradients = {name: gradients[name] for name in case.differentiable}
    for name, found in (named_outputs(y) | found_gradients).items():
        actual = sample(found)
        expected, values = values[: actual.size], values[actual.size :]
        assert_close(actual, expected, "torch float64", name)
    assert not values


@each(IN_TORCH)
def test_equals_pytorch_itself(case: Case, on_engine: str) -> None:
    pytest.importorskip("torch")
    for dtype, kind in ((np.float64, "torch float64"), (np.float32, "float32 functions")):
        y, cache = case.forward(case.arrays(dtype))
        gradients = case.backward(case.random_like(y, "cotangent", dtype), cache)
        expected_y, expected_gradients = in_torch(case, dtype)
        for name, expected in named_outputs(expected_y).items():
            assert_close(named_outputs(y)[name], expected, kind, name)
        for name, expected in expected_gradients.items():
            assert_close(gradients[name], expected, kind, f"d{name}")
