"""Every tolerance of the tests, in one table, each with its reason.

An error is measured against the largest magnitude in the expected array: where terms cancel, a
small element of a gradient is as uncertain as the large ones that made it. Where that magnitude is
below `FLOOR`, the floor counts: inputs are about 1, so all that is left are terms that cancel.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

FLOOR: Final = 0.1


class Tolerance(NamedTuple):
    relative: float
    reason: str


TOLERANCES: Final = {
    "finite differences": Tolerance(
        1e-6, "float64 central differences with a step of 1e-5: truncation and rounding near 1e-9"
    ),
    "float64": Tolerance(
        2e-13, "the same sums in another order; some hundred terms, 1e3 times the rounding of 2e-16"
    ),
    "float32": Tolerance(
        1e-5, "against the reference in float64; some hundred terms, 1e2 times the rounding of 1e-7"
    ),
    "bf16": Tolerance(
        1e-5, "the same product of rounded operands in float64: only sums in float32 round"
    ),
    "bf16 of computed operands": Tolerance(
        4e-3, "an operand that kernel and reference compute may round to neighbours, 2⁻⁸ apart"
    ),
    "bf16 training": Tolerance(
        2e-2, "losses of two runs of some tens of steps, operands rounded to 8 bits in one of them"
    ),
    "float32 functions": Tolerance(
        1e-5, "PyTorch's and JAX's own float32 against ours: both round, and both approximate exp"
    ),
    "float32 functions, saturated": Tolerance(
        1e-4, "as before, on inputs to 9: digits cancel in 1 - tanh², and are multiplied with 9"
    ),
    "torch float64": Tolerance(
        1e-12, "PyTorch sums in other orders, and its normalisations use other formulas"
    ),
    "V-transforms": Tolerance(
        2e-12,
        "series leave out 1e-13 of E[f²] up to variances of about 30, and a little is below 0.1",
    ),
    "V-transforms, large variances": Tolerance(
        1e-8, "at a variance of 100 the series of the slope of tanh leaves out 3e-7 of E[f′²], 0.05"
    ),
    "backends": Tolerance(
        1e-3, "float32 training of some tens of steps, continued by JAX, which sums in other orders"
    ),
    "ONNX training, float32": Tolerance(
        1e-6, "a hundred steps of two runtimes that sum in different orders, 1e1 times the rounding"
    ),
    "ONNX training, float64": Tolerance(
        1e-12, "the same hundred steps, whose differences grow from 2e-16"
    ),
    "other arrays": Tolerance(1e-12, "the same lines run by another array library, float64"),
    "abroad right": Tolerance(
        1e-6, "central differences of fourth order of a smooth function with a step of 1e-3"
    ),
    "abroad wrong": Tolerance(
        1e-3, "a planted fault moves a gradient by far more than rounding does"
    ),
}


#: Seconds after which a process is taken to hang. It is no measure of speed: a slow machine with
#: many neighbours takes fifty times as long as a quiet one.
HANGS: Final = 900

#: Differences of kernels and references in NaN and infinity, by op, and why; docs/engine.md says
#: the same. The fuzzer finds such cases by an error analysis (fuzz/_judge.py).
NON_FINITE: Final = {
    "conv2d": "Winograd's algorithms, where they are chosen: all outputs of a tile",
    "batch_norm": "an infinite gamma: the kernel takes it out of the means of the gradient",
    "cross_entropy": "an infinite class weight: the reference multiplies it with 0 for the classes "
    "that are no target, which the kernel leaves out; an infinite dloss where p Σq - q is 0 "
    "but for its last digit",
    "embedding": "NaN or infinity in dy: the reference is a product with a one-hot matrix and "
    "spreads it over all rows of dW; the kernel adds to the rows of the tokens alone",
    "tanh": "an infinite dy where y is 1 but for its last digit: 1 - y² may be 0 in one of them",
    "sigmoid": "as tanh",
    "layer_norm": "eps = 0 on a constant row: the difference from the mean is 0 or its last digit",
    "standardize": "as layer_norm",
    "* masked": "a term with a factor of exactly 0 may be left out or made, and 0 · ∞ with it",
    "* gradients": "g (a + b) may be infinite where g a + g b is ∞ - ∞",
    "*": "finite values whose sums or products overflow: a kernel sums in another order, and its "
    "multiply-add does not round, and so not overflow, in between",
}


def assert_close(actual: Any, expected: Any, kind: str, what: str = "") -> None:
    """Assert equal shapes, NaN and infinities, and the rest within the table's bound."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(
        np.where(finite, 0.0, actual), np.where(finite, 0.0, expected), err_msg=what
    )
    if not finite.any():
        return
    scale = max(np.abs(expected[finite]).max(), FLOOR)
    error = np.abs(actual[finite].astype(np.float64) - expected[finite]).max()
    relative, reason = TOLERANCES[kind]
    assert error <= relative * scale, (
        f"{what}: off by {error:.3g} where values reach {scale:.3g}; allowed: {relative:g} of it "
        f"({kind}: {reason})"
    )
