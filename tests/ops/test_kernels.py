"""Every kernel against the reference of the same name."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.dispatch import engine
from tests.ops.cases import ORDINARY_CASES, Case, each, each_float, mapped, named_outputs
from tests.tolerances import assert_close


@each_float
@each(ORDINARY_CASES)
def test_kernel_equals_reference(case: Case, dtype: Any, on_kernels: None) -> None:
    arrays = case.arrays(dtype)
    y, cache = case.forward(arrays)
    assert type(cache) is not case.module.Cache, "the reference ran, not the kernel"
    dy = case.random_like(y, "cotangent", dtype)
    gradients = case.backward(dy, cache)
    exact_dy = mapped(lambda array: array.astype(np.float64), dy)

    exact = {
        name: array.astype(np.float64) if array.dtype == dtype else array
        for name, array in arrays.items()
    }
    with engine("reference"):
        exact_y, exact_cache = case.forward(exact)
    exact_gradients = case.backward(exact_dy, exact_cache)

    kind = np.dtype(dtype).name
    for name, exact_output in named_outputs(exact_y).items():
        output = named_outputs(y)[name]
        assert output.dtype == dtype
        assert_close(output, exact_output, kind, name)
    for name in case.differentiable:
        assert gradients[name].dtype == dtype
        assert_close(gradients[name], exact_gradients[name], kind, f"d{name}")
