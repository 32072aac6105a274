"""Arrays of a fitted estimator as bytes of safetensors, which pickling keeps in their place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load, save

from handgrad.arrays import Array


def packed(**groups: Mapping[str, Array]) -> bytes:
    """Every group's arrays, named `<group>.<name>`."""
    return save(
        {
            f"{group}.{name}": np.ascontiguousarray(array).reshape(array.shape)
            for group, arrays in groups.items()
            for name, array in arrays.items()
        }
    )


def unpacked(data: bytes) -> dict[str, dict[str, Array]]:
    """The groups that `packed` was given; those without arrays are missing."""
    groups: dict[str, dict[str, Array]] = {}
    for key, array in load(data).items():
        group, _, name = key.partition(".")
        groups.setdefault(group, {})[name] = array
    return groups
