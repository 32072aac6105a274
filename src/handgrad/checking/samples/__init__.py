"""Inputs on which every op is checked and shown: fixed situations, random ones, a small example.

One table per family of ops says, a row per line, what to draw; nothing here is particular to an op.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from handgrad.checking.samples import (
    activations,
    attention,
    convolutions,
    losses,
    normalizations,
    pooling,
    products,
    recurrences,
    selections,
)
from handgrad.checking.samples.table import SITUATIONS, OpSamples, Row, Sample, Seed, Situation
from handgrad.ops import OPS
from handgrad.ops.arguments import check_choice

__all__ = [
    "SITUATIONS",
    "Sample",
    "Seed",
    "Situation",
    "forward_arguments",
    "gradient_names",
    "random_sample",
    "samples",
    "small_cotangent",
    "small_example",
]

_TABLE: Final[dict[str, OpSamples]] = {
    **products.TABLE,
    **activations.TABLE,
    **convolutions.TABLE,
    **pooling.TABLE,
    **normalizations.TABLE,
    **selections.TABLE,
    **losses.TABLE,
    **attention.TABLE,
    **recurrences.TABLE,
}

#: How far the values of a fused ReLU stay from its kink, more than a step of a finite difference or
#: the rounding of float32 moves them.
_KINK_MARGIN: Final = 1e-3


def gradient_names(op: str) -> tuple[str, ...]:
    """The differentiable inputs of the op, in the order in which backward returns their gradients.

    Raises ArgumentError for an unknown op, as does every function here.
    """
    return _of(op).gradients


def samples(op: str, rng: np.random.Generator) -> list[Sample]:
    """One sample for every situation and setting of the op; the usual one first."""
    return [_draw(op, row, rng) for row in _of(op).rows]


def random_sample(op: str, rng: np.random.Generator) -> Sample:
    """Random sizes, settings and values; finite differences apply."""
    return _draw(op, _of(op).random(rng), rng)


def small_example(op: str) -> Sample:
    """Fixed whole numbers that fit on a blackboard."""
    return _of(op).small.draw(np.random.default_rng(0))


def small_cotangent(op: str) -> Any:
    """Whole numbers in the shape of the small example's y, not all the same."""
    return _of(op).small_cotangent(np.random.default_rng(0))


def forward_arguments(op: str, sample: Sample) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arrays and settings as `forward(*args, **kwargs)` takes them, every seed a new generator."""
    options = {
        name: np.random.default_rng(value.number) if isinstance(value, Seed) else value
        for name, value in sample.options.items()
    }
    forward = import_module(f"handgrad.ops.{op}").forward
    bound = inspect.signature(forward).bind(**sample.arrays, **options)
    return bound.args, bound.kwargs


def _of(op: str) -> OpSamples:
    check_choice("samples", "op", op, OPS)
    return _TABLE[op]


def _draw(op: str, row: Row, rng: np.random.Generator) -> Sample:
    sample = row.draw(rng)
    while row.smooth and _near_kink(op, sample):
        sample = row.draw(rng)
    return sample


def _near_kink(op: str, sample: Sample) -> bool:
    """Whether a fused ReLU gets a value so small that a finite difference might cross its kink."""
    if sample.options.get("activation") not in ("relu", "leaky_relu"):
        return False
    args, kwargs = forward_arguments(
        op, replace(sample, options={**sample.options, "activation": "identity"})
    )
    a, _ = import_module(f"handgrad.ops.{op}").forward.reference(*args, **kwargs)
    # An exact 0 is a window that holds padding only: it stays 0 wherever the inputs go.
    return bool(np.any((a != 0) & (np.abs(a) < _KINK_MARGIN)))
