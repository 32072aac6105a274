"""The identity of a run: everything that decides its numbers, as plain values in a checkpoint.

A description is made from the objects themselves, whatever they are: the class of each, its
settings, and the content of its arrays as a checksum. A model's parameters and buffers count with
their shapes alone where training changes them, because the checkpoint has them.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.layers.base import Layer, walk

#: Lists that are longer, such as a data set's texts, count by their checksum.
_LONGEST: Final = 64
#: Types of which a value says everything.
_PLAIN: Final = (bool, int, float, str, tuple)
#: Bytes of an array that are copied at a time where its memory is not in one piece.
_PIECE: Final = 1 << 24


def describe_model(model: Layer) -> dict[str, Any]:
    """The layers of a model by name, each with its class, settings and shapes."""
    layers = list(walk(model))
    describe = _Describer([layer for _, layer in layers])
    return {name or type(layer).__name__: describe.layer(layer) for name, layer in layers}


def describe_settings(value: Any) -> Any:
    """An object by its class and its settings, without its state (private attributes)."""
    return _Describer()(value)


def describe_data(source: Any) -> Any:
    """A source of batches with the content of its arrays; what its `fingerprint()` says, if any."""
    if source is None:
        return None
    own = getattr(source, "fingerprint", None)
    return _Describer(whole=True)(own() if callable(own) else source)


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
    return text if len(text) <= 80 else f"{text[:77]}..."


class _Describer:
    """Descriptions of objects that may refer to one another.

    layers: those that are described elsewhere, and of which the class says enough; whole: whether
    private attributes count as well, for objects that have been made for this and have no history.
    """

    def __init__(self, layers: Sequence[Layer] = (), *, whole: bool = False) -> None:
        self._layers = {id(layer) for layer in layers}
        self._whole = whole
        self._inside: set[int] = set()

    def __call__(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else repr(value)
            case np.generic():
                return f"{value.dtype} {value!s}"
            case np.ndarray():
                return self._array(value)
            case bytes() | bytearray():
                return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()}"
            case complex() | PurePath() | range() | slice() | np.dtype():
                return str(value)
            case type():
                return _name(value)
            case ModuleType():
                return value.__name__
            case np.random.Generator():
                return type(value.bit_generator).__name__
            case CodeType():
                return _code(value)
        if id(value) in self._inside:
            return f"a {_name(type(value))} around this"
        self._inside.add(id(value))
        try:
            return self._compound(value)
        finally:
            self._inside.discard(id(value))

    def _compound(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {str(key): self(item) for key, item in value.items()}
            case list() | tuple():
                return self._list(value)
            case set() | frozenset():
                return {"type": _name(type(value)), "values": self._list(sorted(value, key=repr))}
            case Layer():
                return _name(type(value)) if id(value) in self._layers else self.layer(value)
            case functools.partial():
                parts = {"args": value.args, "keywords": value.keywords}
                return {"type": self(value.func), **self._attributes(parts)}
            case MethodType():
                return {"type": value.__func__.__qualname__, "of": self(value.__self__)}
            case FunctionType():
                return self._function(value)
            case BuiltinFunctionType():
                return value.__qualname__
        return {"type": _name(type(value)), **self._attributes(self._settings(value))}

    def layer(self, layer: Layer) -> dict[str, Any]:
        """One layer without its children."""
        trained = {*layer.parameter_names, *layer.buffer_names} - {*layer.constant_names}
        arrays = [array for name in trained if (array := getattr(layer, name)) is not None]
        settings: dict[str, Any] = {"type": _name(type(layer))}
        for name, value in {**_of_class(type(layer)), **vars(layer)}.items():
            shared = isinstance(value, np.ndarray) and any(
                np.may_share_memory(value, array) for array in arrays
            )
            if name not in ("layers", "_construction"):
                settings[name] = _shape(value) if shared else self(value)
        return settings

    def _settings(self, value: Any) -> dict[str, Any]:
        """The attributes that count: public ones, and private ones that `__init__` was given."""
        kinds = type(value).__mro__
        slots = [name for kind in kinds for name in kind.__dict__.get("__slots__", ())]
        found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        found |= getattr(value, "__dict__", {})
        if not self._whole:
            given = _parameters(kinds[0])
            found = {
                name: item
                for name, item in found.items()
                if not name.startswith("_") or name.lstrip("_") in given
            }
        return {**_of_class(type(value)), **found}

    def _attributes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self(value) for name, value in values.items()}

    def _list(self, values: Sequence[Any]) -> Any:
        if len(values) <= _LONGEST:
            return [self(value) for value in values]
        found = hashlib.sha256()
        for value in values:
            found.update(json.dumps(self(value)).encode() + b"\n")
        return f"{len(values)} values, sha256 {found.hexdigest()}"

    def _function(self, value: FunctionType) -> dict[str, Any]:
        cells = [_cell(cell) for cell in value.__closure__ or ()]
        parts = {"defaults": value.__defaults__, "closure": cells}
        given = {name: item for name, item in parts.items() if item}
        return {
            "type": value.__qualname__,
            "code": _code(value.__code__),
            **self._attributes(given),
        }

    def _array(self, array: Array) -> str:
        if array.dtype.hasobject:
            return f"{_shape(array)}, {self(array.tolist())}"
        found = hashlib.sha256()
        if array.flags.c_contiguous:
            found.update(memoryview(array.reshape(-1).view(np.uint8)))
        else:
            rows = max(1, _PIECE * len(array) // max(array.nbytes, 1)) if array.ndim else 1
            for first in range(0, len(array), rows):
                found.update(array[first : first + rows].tobytes())
        return f"{_shape(array)}, sha256 {found.hexdigest()}"


def _shape(array: Array) -> str:
    return f"{array.dtype.str} {array.shape}"


def _name(kind: type) -> str:
    """The name of a class; those of a program keep theirs whether it is run or imported."""
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package != "numpy" else f"numpy.{kind.__qualname__}"


def _is_own(kind: type) -> bool:
    """Return whether a class is handgrad's or Python's."""
    return kind.__module__.partition(".")[0] in ("handgrad", "builtins", "typing", "abc")


def _of_class(kind: type) -> dict[str, Any]:
    """Plain values that a class of the user's sets for all its objects."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if not _is_own(base):
            found |= {
                name: value
                for name, value in vars(base).items()
                if not name.startswith("__") and isinstance(value, _PLAIN)
            }
    return found


@functools.cache
def _parameters(kind: type) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(kind).parameters)
    except (TypeError, ValueError):  # some classes of C have none
        return frozenset()


def _code(code: CodeType) -> str:
    """The code of a function, without its documentation, names of files and line numbers."""
    found = hashlib.sha256(code.co_code)
    found.update(repr(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(_code(constant).encode())
        else:  # a set has no order of its own
            several = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            found.update(repr(several).encode())
    return found.hexdigest()


def _cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return None
