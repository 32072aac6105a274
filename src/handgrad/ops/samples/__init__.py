"""SampleInput inputs of every op, on which it is checked, shown and tested.

`samples/<op name>.py` holds all that is particular to an op; modules that several share begin with
an underscore.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from handgrad.ops import OPS
from handgrad.ops.arguments import check_choice
from handgrad.ops.samples._table import (
    SITUATIONS,
    OpSamples,
    SampleInput,
    SampleRow,
    Seed,
    Situation,
)

__all__ = [
    "SITUATIONS",
    "OpSamples",
    "SampleInput",
    "SampleRow",
    "Seed",
    "Situation",
    "draw",
    "forward_arguments",
    "gradient_names",
    "op_samples",
    "random_sample_input",
    "sample_inputs",
    "small_cotangent",
    "small_example",
]

#: The distance of a fused ReLU's values from its kink, more than a step of a finite difference or
#: the rounding of float32 moves them.
_KINK_MARGIN: Final = 1e-3


def gradient_names(op: str) -> tuple[str, ...]:
    """The differentiable inputs of the op, in the order in which backward returns their gradients.

    Raises ArgumentError for an unknown op, as does every function here.
    """
    return op_samples(op).gradients


def sample_inputs(op: str, rng: np.random.Generator) -> list[SampleInput]:
    """Inputs for every situation and setting of the op; the usual ones first."""
    return [draw(op, row, rng) for row in op_samples(op).rows]


def random_sample_input(op: str, rng: np.random.Generator) -> SampleInput:
    """Random sizes, settings and values; finite differences apply."""
    return draw(op, op_samples(op).random(rng), rng)


def small_example(op: str) -> SampleInput:
    """Fixed whole numbers that fit on a blackboard."""
    return op_samples(op).small.draw(np.random.default_rng(0))


def small_cotangent(op: str) -> Any:
    """Whole numbers in the shape of the small example's y, not all the same."""
    return op_samples(op).small_cotangent(np.random.default_rng(0))


def forward_arguments(op: str, sample: SampleInput) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arrays and settings as `forward(*args, **kwargs)` takes them, every seed a new generator."""
    options = {
        name: np.random.default_rng(value.number) if isinstance(value, Seed) else value
        for name, value in sample.options.items()
    }
    forward = import_module(f"handgrad.ops.{op}").forward
    bound = inspect.signature(forward).bind(**sample.arrays, **options)
    return bound.args, bound.kwargs


def op_samples(op: str) -> OpSamples:
    """All that the op says of itself."""
    check_choice("samples", "op", op, OPS)
    found: OpSamples = import_module(f"handgrad.ops.samples.{op}").SAMPLES
    return found


def draw(op: str, row: SampleRow, rng: np.random.Generator) -> SampleInput:
    """The row with arrays, drawn again while a value is too near to the kink of a fused ReLU."""
    sample = row.draw(rng)
    while row.smooth and _near_kink(op, sample):
        sample = row.draw(rng)
    return sample


def _near_kink(op: str, sample: SampleInput) -> bool:
    """Return whether a fused ReLU gets a value so small that a difference might cross its kink."""
    if sample.options.get("activation") not in ("relu", "leaky_relu"):
        return False
    args, kwargs = forward_arguments(
        op, replace(sample, options={**sample.options, "activation": "identity"})
    )
    a, _ = import_module(f"handgrad.ops.{op}").forward.reference(*args, **kwargs)
    # An exact 0 is a window that holds padding only: it stays 0 wherever the inputs go.
    return bool(np.any((a != 0) & (np.abs(a) < _KINK_MARGIN)))
