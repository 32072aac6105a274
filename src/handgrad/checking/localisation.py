"""Find the wrong layer of a model: check every part alone, on its input in the model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from handgrad.layers import Layer


def parts(
    model: Layer, inputs: Sequence[np.ndarray], options: Mapping[str, Any]
) -> Iterator[tuple[str, Layer, tuple[np.ndarray, ...], Mapping[str, Any]]]:
    """Every layer inside the model with its name, its inputs and its options in the model.

    A container comes after its children.
    """
    seen: dict[str, tuple[tuple[np.ndarray, ...], Mapping[str, Any]]] = {}
    twin = copy.deepcopy(model)
    for name, layer in _inner_first(twin):
        layer.forward = _recording(layer.forward, name, seen)  # type: ignore[method-assign]
    twin.forward(*inputs, **{"training": True, **options})
    for name, layer in _inner_first(copy.deepcopy(model)):
        if name in seen:
            given, settings = seen[name]
            mode = {key: options[key] for key in ("training",) if key in options}
            yield name, layer, given, {**settings, **mode}


def _recording(
    forward: Callable[..., Any], name: str, seen: dict[str, Any]
) -> Callable[..., tuple[Any, Any]]:
    def recorded(*inputs: Any, **options: Any) -> Any:
        given = tuple(np.array(x) for x in inputs if x is not None)
        settings = {k: value for k, value in options.items() if k not in ("training", "residual")}
        seen.setdefault(name, (given, settings))
        return forward(*inputs, **options)

    return recorded


def _inner_first(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Layer]]:
    for name, child in layer.layers.items():
        full = prefix + name
        yield from _inner_first(child, full + ".")
        yield full, child
