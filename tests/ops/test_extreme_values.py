"""Kernels beside references where values are NaN, infinite, subnormal or huge: NaN at the same
positions, infinities too, and the rest as near as values of one type can be.

Left out is what the docstrings leave open: the `open_nonfinite` inputs of an op, such as the weight
of a convolution, whose products with the zeros of the padding one engine makes and the other does
not, and pairs that attention masks.
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from tests.ops.cases import UNMASKED_CASES, Case, each, each_float, leaves
from tests.rows import rows

#: Cases in which one −∞ among the biases masks a whole row.
_ROW_BIASES: Final = ("attention-bias-of-heads",)


def _sprinkled(array: np.ndarray, rng: np.random.Generator, extremes: list[float]) -> np.ndarray:
    """A tenth of the values replaced by one of the extremes."""
    chosen = rng.random(array.shape) < 0.1
    return np.where(chosen, rng.choice(extremes, array.shape), array).astype(array.dtype)


def _kinds(array: Any) -> np.ndarray:
    """0 for a number, 1 for NaN, 2 and 3 for the infinities."""
    array = np.asarray(array)
    return np.select([np.isnan(array), array == np.inf, array == -np.inf], [1, 2, 3], 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each_float
@rows("kind", ["nan", "infinite", "tiny"])
@each(UNMASKED_CASES)
def test_extremes_are_passed_on_alike(case: Case, kind: str, dtype: Any) -> None:
    if kernels.native is None:
        pytest.skip(kernels.reason)
    rng = np.random.default_rng(crc32(f"{case.id}/{kind}".encode()))
    tiny = float(np.finfo(dtype).smallest_subnormal)
    extremes = {"nan": [np.nan], "infinite": [np.inf, -np.inf, np.nan], "tiny": [tiny, -tiny, -0.0]}
    spared = ("bias",) if case.id in _ROW_BIASES else case.samples.open_nonfinite
    arrays = {
        name: _sprinkled(array, rng, extremes[kind])
        if array.dtype == dtype and name not in spared
        else array
        for name, array in case.arrays(dtype).items()
    }
    results = []
    for name in ("kernels", "reference"):
        with engine(name):
            y, cache = case.forward(arrays)
            dy = case.random_like(y, "cotangent", dtype)
            gradients = case.backward(dy, cache)
        results.append([*leaves(y), *(gradients[each] for each in case.differentiable)])
    for number, (found, expected) in enumerate(zip(*results, strict=True)):
        np.testing.assert_array_equal(_kinds(found), _kinds(expected), err_msg=f"result {number}")
        finite = np.isfinite(expected)
        scale = np.max(np.abs(expected), where=finite, initial=0.1)
        error = np.max(np.abs(found - expected), where=finite, initial=0.0)
        assert error <= 300 * np.finfo(dtype).eps * scale
