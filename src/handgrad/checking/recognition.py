"""Recognise an op: a forward that gives the same as one of ours, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from handgrad.checking.trial import leaves, same_outputs
from handgrad.dispatch import engine
from handgrad.forward_backward import ForwardBackward
from handgrad.ops import OPS
from handgrad.ops.samples import gradient_names


def recognised(functions: ForwardBackward, arrays: Mapping[str, np.ndarray]) -> str | None:
    """The op that this forward is, with default settings; None if there is none.

    Only functions with the op's gradients count, and only a value that is no input again.
    """
    if functions.parameters:
        return None
    inputs = [arrays[name] for name in functions.inputs]
    try:
        y = functions.forward(*inputs)[0]
    except Exception:  # what forward raises is reported where it is run
        return None
    if any(each.dtype.kind != "f" or each.size == 0 for each in leaves(y)):
        return None
    if any(_same(y, each) for each in inputs):
        return None
    for name in OPS:
        if len(functions.gradients) != len(gradient_names(name)):
            continue
        try:
            with engine("reference"):
                expected, _ = import_module(f"handgrad.ops.{name}").forward(*inputs)
        except Exception:  # other inputs than this op takes
            continue
        if _same(expected, y) and _is_elsewhere(name, functions, inputs):
            return name
    return None


def _is_elsewhere(name: str, functions: ForwardBackward, inputs: Sequence[np.ndarray]) -> bool:
    """Return whether the op gives the same on other values too, and not by chance as zeros do."""
    rng = np.random.default_rng(0)
    moved = [
        np.where(x == 0.0, 0.1, x) * rng.uniform(0.9, 1.1, x.shape) if x.dtype.kind == "f" else x
        for x in inputs
    ]
    try:
        y = functions.forward(*moved)[0]
        with engine("reference"):
            expected, _ = import_module(f"handgrad.ops.{name}").forward(*moved)
    except Exception:  # values that one of them does not take
        return False
    return _same(expected, y)


def _same(one: Any, other: Any) -> bool:
    return same_outputs(one, other, rtol=1e-9, atol=1e-12)
