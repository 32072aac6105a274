"""No bit of what stood in memory before is in a result: twice, with other values standing there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.errors import EngineError
from tests.ops.cases import SMALL_CASES, Case, each, leaves
from tests.ops.fresh_memory import fill_fresh_memory

pytestmark = pytest.mark.skipif(kernels.native is None, reason="no compiled kernels")


def results(case: Case) -> list[Any]:
    arrays = case.arrays()
    y, cache = case.forward(arrays)
    gradients = case.backward(case.random_like(y, "cotangent"), cache)
    return [array.copy() for array in leaves((y, tuple(gradients.values())))]


@each(SMALL_CASES)
def test_fresh_memory_is_in_no_result(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for value in (np.nan, 7.0):
        with hg.engine("kernels"), monkeypatch.context() as patch:
            fill_fresh_memory(patch, value)
            try:
                found.append(results(case))
            except EngineError:
                pytest.skip("no kernel of this op")
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
