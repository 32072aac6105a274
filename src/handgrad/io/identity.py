"""The identity of a run: everything that decides its numbers, as plain values in a checkpoint.

A description is made from the objects themselves, whatever they are: the class of each, its
settings, the content of its arrays as a checksum, and of what the user wrote the code, with the
globals and helpers that it refers to. A model's parameters and buffers count with their shapes
alone where training changes them, because the checkpoint has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handgrad.escaping import cut
from handgrad.io.describing import Describer
from handgrad.layers.base import Layer, walk


def describe_model(model: Layer) -> dict[str, Any]:
    """The layers of a model by name, each with its class, settings and shapes."""
    layers = list(walk(model))
    describe = Describer([layer for _, layer in layers])
    return {name or type(layer).__name__: describe.layer(layer) for name, layer in layers}


def describe_settings(value: Any) -> Any:
    """An object by its class and its settings, without its state (private attributes)."""
    return Describer()(value)


def describe_data(source: Any) -> Any:
    """A source of batches with the content of its arrays; what its `fingerprint()` says, if any."""
    if source is None:
        return None
    own = getattr(source, "fingerprint", None)
    return Describer(whole=True)(own() if callable(own) else source)


def compare(saved: Any, found: Any) -> list[tuple[str, Any, Any]]:
    """The differences of two descriptions: the path, the saved value and the one found.

    Private attributes come last, because they are made from public ones as a rule.
    """
    return sorted(differences(saved, found), key=lambda each: "._" in each[0])


def differences(saved: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The same in the order of the descriptions."""
    if isinstance(saved, dict) and isinstance(found, dict):
        for key in dict.fromkeys((*saved, *found)):
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(saved.get(key), found.get(key), inner)
    elif isinstance(saved, list) and isinstance(found, list) and len(saved) == len(found):
        for i, pair in enumerate(zip(saved, found, strict=True)):
            yield from differences(*pair, f"{path}[{i}]")
    elif saved != found:
        yield path, saved, found


def shown(value: Any) -> str:
    """A description in a few words."""
    if isinstance(value, dict):
        return str(value.get("type", "a table"))
    text = repr(value)
    return cut(text, 80)
