"""Which op is this? A forward that gives the same as one of ours, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from handgrad.checking.samples import gradient_names
from handgrad.checking.trial import leaves, same_outputs
from handgrad.dispatch import engine
from handgrad.ops import OPS
from handgrad.pair import Pair


def recognised(pair: Pair, arrays: Mapping[str, np.ndarray]) -> str | None:
    """The op that the pair's forward is, with default settings; None if there is none.

    Only a pair with the op's gradients counts, and only a value that is not simply an input again.
    """
    if pair.parameters:
        return None
    inputs = [arrays[name] for name in pair.inputs]
    try:
        y = pair.forward(*inputs)[0]
    except Exception:  # what forward raises is reported where it is run
        return None
    if any(each.dtype.kind != "f" or each.size == 0 for each in leaves(y)):
        return None
    if any(_same(y, each) for each in inputs):
        return None
    for name in OPS:
        if len(pair.gradients) != len(gradient_names(name)):
            continue
        try:
            with engine("reference"):
                expected, _ = import_module(f"handgrad.ops.{name}").forward(*inputs)
        except Exception:  # other inputs than this op takes
            continue
        if _same(expected, y):
            return name
    return None


def _same(one: Any, other: Any) -> bool:
    return same_outputs(one, other, rtol=1e-9, atol=1e-12)
