"""The bits of every kernel's results do not depend on the number of threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import handgrad
from handgrad import kernels
from tests.ops.cases import CASES, Case, each, each_float, leaves


@pytest.fixture
def thread_count() -> Iterator[None]:
    """Put the number of threads back after the test."""
    before = handgrad.get_threads()
    yield
    handgrad.set_threads(before)


@each_float
@each(CASES)
def test_same_bits_with_1_2_and_4_threads(
    case: Case, dtype: Any, on_kernels: None, thread_count: None
) -> None:
    arrays = case.arrays(dtype)
    results = set()
    for number in (1, 2, 4):
        handgrad.set_threads(number)
        y, cache = case.forward(arrays)
        gradients = case.backward(case.random_like(y, "cotangent", dtype), cache)
        found = (*leaves(y), *(gradients[name] for name in case.differentiable))
        results.add(tuple(array.tobytes() for array in found))
    assert len(results) == 1


@pytest.mark.skipif(kernels.native is None, reason="the kernels were not compiled")
def test_the_environment_counts_from_the_first_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDGRAD_THREADS", "3")
    program = "import handgrad; print(handgrad.get_threads())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout == b"3\n"
