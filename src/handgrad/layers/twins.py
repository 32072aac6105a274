"""A model over other arrays, such as those that a step is traced with."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from handgrad.arrays import Array
from handgrad.layers.base import Layer


def twin(model: Layer, arrays: Mapping[str, Array], generators: Mapping[str, Any]) -> Layer:
    """A model like this one with these parameters and buffers, and these generators.

    The model itself and its arrays stay as they are; so what forward writes into attributes stands
    in the twin.
    """
    twins: dict[int, Any] = {}
    for name, array in (*model.parameters.items(), *model.buffers.items()):
        twins[id(array)] = arrays[name]
    for name, generator in model.generators.items():
        twins[id(generator)] = generators[name]
    return copy.deepcopy(model, twins)
