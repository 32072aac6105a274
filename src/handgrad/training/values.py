"""Values of Python and NumPy as JSON and arrays, and back, to the same bits."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.io.checkpoint import generator_state, restore_generator

#: Sequences and sets, each with how it is made of a list.
_SERIES: Final[dict[type, str]] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_MADE: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
#: Integers beyond that many bits are no numbers that decide a training.
_BITS: Final = 1024


class UnkeptError(ValueError):
    """A checkpoint has no form for a value."""


def encoded(value: Any, arrays: dict[str, Array]) -> Any:
    """The value for JSON; its arrays go into `arrays`. Raises UnkeptError where there is no form.

    Classes derived from Python's are refused, because more may belong to them.
    """
    kind = type(value)
    if value is None or kind in (bool, str) or (kind is int and value.bit_length() < _BITS):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is complex:
        return {"complex": [encoded(value.real, arrays), encoded(value.imag, arrays)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind in (np.ndarray, *_SCALARS) and value.dtype.kind in "biuf":
        name = f"moved{len(arrays)}"
        arrays[name] = np.array(value)
        return {"array" if kind is np.ndarray else "number": name}
    if kind is list:
        return [encoded(each, arrays) for each in value]
    if kind in _SERIES:
        return {_SERIES[kind]: [encoded(each, arrays) for each in value]}
    if kind is deque:
        return {"deque": [value.maxlen, *(encoded(each, arrays) for each in value)]}
    if kind is dict:
        pairs = [[encoded(key, arrays), encoded(each, arrays)] for key, each in value.items()]
        return {"dict": pairs}
    if kind is np.random.Generator:
        return {"generator": generator_state(value)}
    raise UnkeptError(f"a {kind.__qualname__}")


_SCALARS: Final = tuple(
    np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["Float"] + "?"
)


def decoded(found: Any, arrays: Mapping[str, Array]) -> Any:
    """What `encoded` took. Raises ValueError, TypeError or KeyError where it returned no such."""
    if isinstance(found, list):
        return [decoded(each, arrays) for each in found]
    if not isinstance(found, dict):
        return found
    ((kind, inner),) = found.items()
    if kind == "float":
        return float(inner)
    if kind == "bytes":
        return bytes.fromhex(inner)
    if kind == "array":
        return np.array(arrays[inner])
    if kind == "number":
        return arrays[inner][()]
    if kind == "generator":
        generator = np.random.Generator(getattr(np.random, inner["bit_generator"])())
        restore_generator(generator, inner)
        return generator
    parts = [decoded(each, arrays) for each in inner]
    if kind == "complex":
        return complex(*parts)
    if kind == "deque":
        return deque(parts[1:], parts[0])
    if kind == "dict":
        return dict(parts)
    return _MADE[kind](parts)


def put(place: Any, name: str, value: Any) -> None:
    """Set a value, in place where what stands there can take it, as others may refer to it."""
    old = place.get(name)
    if type(old) is not type(value) or old is None:
        place[name] = value
    elif isinstance(value, list):
        old[:] = value
    elif isinstance(value, dict | set):
        old.clear()
        old.update(value)
    elif isinstance(value, deque) and old.maxlen == value.maxlen:
        old.clear()
        old.extend(value)
    elif isinstance(value, np.random.Generator):
        restore_generator(old, generator_state(value))
    elif _takes(old, value):
        old[...] = value
    else:
        place[name] = value


def _takes(old: Any, value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and old.flags.writeable
        and (old.shape, old.dtype) == (value.shape, value.dtype)
    )
