"""Which layer of a model is wrong? Every part on its own, with the input it gets in the model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from handgrad.layers import Layer


def parts(
    model: Layer, x: np.ndarray, options: Mapping[str, Any]
) -> Iterator[tuple[str, Layer, Any]]:
    """Every layer inside the model with its name and its input, a container after its children."""
    seen: dict[str, Any] = {}
    twin = copy.deepcopy(model)
    for name, layer in _inner_first(twin):
        layer.forward = _recording(layer.forward, name, seen)  # type: ignore[method-assign]
    twin.forward(x, **{"training": True, **options})
    for name, layer in _inner_first(copy.deepcopy(model)):
        if name in seen:
            yield name, layer, seen[name]


def _recording(
    forward: Callable[..., Any], name: str, seen: dict[str, Any]
) -> Callable[..., tuple[Any, Any]]:
    def recorded(x: Any, **options: Any) -> Any:
        seen.setdefault(name, np.array(x))
        return forward(x, **options)

    return recorded


def _inner_first(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Layer]]:
    for name, child in layer.layers.items():
        full = prefix + name
        yield from _inner_first(child, full + ".")
        yield full, child
