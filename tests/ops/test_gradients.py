"""Every gradient against central differences: float64, random cotangent, random direction."""

from __future__ import annotations

import numpy as np

from tests.ops.cases import SMALL_CASES, Case, each, leaves
from tests.tolerances import TOLERANCES

STEP = 1e-5


@each([case for case in SMALL_CASES if case.row.smooth])
def test_gradients_are_the_finite_differences(case: Case, on_engine: str) -> None:
    arrays = case.arrays()
    y, cache = case.forward(arrays)
    dy = case.random_like(y, "cotangent")
    gradients = case.backward(dy, cache)
    size = sum(np.sum(np.abs(a * b)) for a, b in zip(leaves(dy), leaves(y), strict=True))
    rounding = 4 * np.finfo(np.float64).eps * size / STEP
    for name in case.differentiable:
        direction = case.random_like(arrays[name], f"direction of {name}")
        ahead, _ = case.forward(arrays | {name: np.asarray(arrays[name] + STEP * direction)})
        behind, _ = case.forward(arrays | {name: np.asarray(arrays[name] - STEP * direction)})
        outputs = zip(leaves(dy), leaves(ahead), leaves(behind), strict=True)
        terms = np.concatenate([np.ravel(d * (a - b)) / (2 * STEP) for d, a, b in outputs])
        expected = np.sum(terms)
        actual = np.sum(gradients[name] * direction)
        allowed = TOLERANCES["finite differences"].relative * np.sum(np.abs(terms)) + rounding
        assert abs(actual - expected) <= allowed, (
            f"d{name} along a random direction is {actual}, by finite differences {expected}"
        )


@each(SMALL_CASES)
def test_gradients_have_the_shapes_of_their_inputs(case: Case, on_engine: str) -> None:
    arrays = case.arrays()
    y, cache = case.forward(arrays)
    gradients = case.backward(case.random_like(y, "cotangent"), cache)
    for name, gradient in gradients.items():
        if name in arrays:
            assert gradient.shape == arrays[name].shape, name
        else:
            assert gradient is None, name
