"""Descriptions of objects: their classes, settings and arrays, and the code of the user's."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.io.code import (
    Cells,
    Globals,
    acts,
    attributes_read,
    code_sum,
    is_library,
    methods_of,
    unwrapped,
)
from handgrad.layers.base import Layer

#: Lists that are longer, such as a data set's texts, count by their checksum.
_LONGEST: Final = 64
#: Types of which a value says everything.
_PLAIN: Final = (bool, int, float, str, tuple, list, dict, frozenset, range, np.ndarray, np.number)
#: Bytes of an array that are copied at a time where its memory is not in one piece.
_PIECE: Final = 1 << 24
#: Where handgrad's classes are whose objects are settings of a training.
_SETTING: Final = (
    "handgrad.layers",
    "handgrad.losses",
    "handgrad.models",
    "handgrad.optimizers",
    "handgrad.training.augmentation",
)


class Describer:
    """Descriptions of objects that may refer to one another.

    layers: those that are described elsewhere, and of which the class says enough; whole: whether
    private attributes count as well, for objects that have been made for this and have no history;
    remembers: whether those of the user's objects stand in it under `memory`, as what a checkpoint
    keeps and no setting.

    `places` has, by the path in the description, the mapping or list that a value stands in.
    """

    def __init__(
        self, layers: Sequence[Layer] = (), *, whole: bool = False, remembers: bool = False
    ) -> None:
        self.places: dict[str, Any] = {}
        self._layers = {id(layer) for layer in layers}
        self._known: set[int] = set()
        self._whole = whole
        self._remembers = remembers
        self._inside: set[int] = set()
        self._told: dict[int, Any] = {}  # kept, so that no other object gets the same id
        self._outside = 0

    def know(self, *values: Any) -> None:
        """Take these as described elsewhere, wherever something refers to them."""
        self._known.update(id(value) for value in values if value is not None)

    def root(self, value: Any, path: str) -> Any:
        """The description of one of the objects that are known, at its own place."""
        self._known.discard(id(value))
        try:
            return self(value, path)
        finally:
            self.know(value)

    def __call__(self, value: Any, path: str = "") -> Any:
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
            case ModuleType():
                return value.__name__
            case np.random.Generator():
                return self._generator(value)
            case CodeType():
                return code_sum(value)
        if id(value) in self._inside:
            return f"a {_name(type(value))} around this"
        self._inside.add(id(value))
        try:
            return self._compound(value, path)
        finally:
            self._inside.discard(id(value))

    def _compound(self, value: Any, path: str) -> Any:
        if id(value) in self._known:
            return _name(type(value))
        match value:
            case type():
                return self._class(value, path)
            case Mapping():
                plain = type(value) is dict and all(type(key) is str for key in value)
                return self._items(value, path, value if plain else None)
            case list() | tuple() | deque():
                return self._list(value, path)
            case set() | frozenset():
                return {"type": _name(type(value)), "values": self._list(sorted(value, key=repr))}
            case Layer() if not self._outside:
                return _name(type(value)) if id(value) in self._layers else self.layer(value, path)
            case functools.partial():
                parts = {"args": value.args, "keywords": value.keywords}
                return {"type": self(value.func, f"{path}.type"), **self._items(parts, path)}
            case MethodType():
                function = self(value.__func__, path)
                named = function if isinstance(function, dict) else {"type": function}
                return {**named, "of": self(value.__self__, f"{path}.of")}
            case BuiltinFunctionType():
                return value.__qualname__
        function = unwrapped(value)
        if isinstance(function, FunctionType):
            return self._function(function, path)
        if self._outside and not self._counts(value):
            return _name(type(value))
        settings = self._items(self._settings(value), path, getattr(value, "__dict__", None))
        return {"type": _name(type(value)), **settings, **self._own(value, path)}

    def _counts(self, value: Any) -> bool:
        """Return whether an object that code refers to is described here, and by its attributes."""
        if id(value) in self._told or not is_setting(value):
            return False
        self._told[id(value)] = value
        return True

    def layer(self, layer: Layer, path: str = "") -> dict[str, Any]:
        """One layer without its children."""
        trained = {*layer.parameter_names, *layer.buffer_names} - {*layer.constant_names}
        arrays = [array for name in trained if (array := getattr(layer, name)) is not None]
        settings: dict[str, Any] = {"type": _name(type(layer))}
        self.places[path] = vars(layer)
        for name, value in {**_of_class(type(layer)), **vars(layer)}.items():
            shared = isinstance(value, np.ndarray) and any(
                np.may_share_memory(value, array) for array in arrays
            )
            if name in layer.generator_names and value is not None:
                settings[name] = type(value.bit_generator).__name__
            elif name not in ("layers", "_construction"):
                settings[name] = _shape(value) if shared else self(value, f"{path}.{name}")
        return {**settings, **self._code(type(layer), path)}

    def callback(self, callback: Any, path: str) -> dict[str, Any]:
        """A callback by its settings, and by the code and attributes with which it acts.

        Its attributes are its memory where it has no `state` of its own, and settings too where it
        does not say which are.
        """
        kind = type(callback)
        found: dict[str, Any] = {"type": kind.__name__, **self(callback.settings(), path)}
        if is_library(kind.__module__):
            return found
        methods = methods_of(kind)
        acting = {name: each for name, each in methods.items() if acts(each)}
        acting.pop("__init__", None)
        read = frozenset[str]().union(*map(attributes_read, acting.values()))
        attributes = {
            name: value for name, value in vars(callback).items() if not isinstance(value, Layer)
        }
        with self._far():
            self.places[path] = vars(callback)
            if "settings" not in methods:
                decide = {**_of_class(kind), **attributes}
                decide = {name: each for name, each in decide.items() if name in read}
                found |= self._items(decide, path, vars(callback))
            if self._remembers and "state" not in methods:
                rest = {name: each for name, each in attributes.items() if name not in found}
                inner = f"{path}.memory"
                found["memory"] = self._items(rest, inner, vars(callback))
            code = self._items(acting, f"{path}.code")
        return {**found, **({"code": code} if code else {})}

    def _own(self, value: Any, path: str) -> dict[str, Any]:
        """What an object of the user's has beside its settings: its code, and what it remembers."""
        found = self._code(type(value), path)
        kept = self._remembers and hasattr(value, "__dict__")
        if kept and not is_library(type(value).__module__):
            settings = self._settings(value)
            rest = {name: item for name, item in vars(value).items() if name not in settings}
            with self._far():
                found["memory"] = self._items(rest, f"{path}.memory", vars(value))
        return found

    def _code(self, kind: type, path: str) -> dict[str, Any]:
        """The code of a class of the user's, unless it has been described."""
        if is_library(kind.__module__) or id(kind) in self._told:
            return {}
        self._told[id(kind)] = kind
        with self._far():
            code = self._items(methods_of(kind), f"{path}.code")
        return {"code": code} if code else {}

    def _class(self, kind: type, path: str) -> Any:
        if not self._outside or is_library(kind.__module__):
            return _name(kind)
        return {"type": _name(kind), **_of_class(kind), **self._code(kind, path)}

    @contextmanager
    def _far(self) -> Iterator[None]:
        """Describe what code refers to: of packages' objects there, the class says enough."""
        self._outside += 1
        try:
            yield
        finally:
            self._outside -= 1

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

    def _items(self, values: Mapping[Any, Any], path: str, place: Any = None) -> dict[str, Any]:
        if place is not None:
            self.places[path] = place
        return {str(key): self(item, f"{path}.{key}") for key, item in values.items()}

    def _list(self, values: Sequence[Any] | deque[Any], path: str = "") -> Any:
        if len(values) <= _LONGEST:
            return [self(value, f"{path}[{i}]") for i, value in enumerate(values)]
        found = hashlib.sha256()
        for value in values:
            found.update(json.dumps(self(value)).encode() + b"\n")
        return f"{len(values)} values, sha256 {found.hexdigest()}"

    def _function(self, value: FunctionType, path: str) -> Any:
        library = is_library(value.__module__ or "")
        if (library and self._outside) or id(value) in self._told:
            return value.__qualname__
        self._told[id(value)] = value
        found: dict[str, Any] = {
            "type": value.__qualname__,
            "code": code_sum(value.__code__, value.__doc__),
        }
        defaults = {"defaults": value.__defaults__, "keywords": value.__kwdefaults__}
        with self._far():
            found |= self._items({name: d for name, d in defaults.items() if d}, path)
            around = {"closure": Cells(value)} | ({} if library else {"globals": Globals(value)})
            for name, place in around.items():
                if place:
                    found[name] = self._items(place, f"{path}.{name}", place)
        return found

    def _generator(self, value: np.random.Generator) -> Any:
        kind = type(value.bit_generator).__name__
        if not self._remembers:
            return kind
        state = repr(sorted(value.bit_generator.state.items())).encode()
        return f"{kind}, state {hashlib.sha256(state).hexdigest()}"

    def _array(self, array: Array) -> str:
        if array.dtype.hasobject:
            return f"{_shape(array)}, {self(array.tolist())}"
        found = hashlib.sha256()
        if array.flags.c_contiguous:
            found.update(array.reshape(-1).view(np.uint8).data)
        else:
            rows = max(1, _PIECE * len(array) // max(array.nbytes, 1)) if array.ndim else 1
            for first in range(0, len(array), rows):
                found.update(array[first : first + rows].tobytes())
        return f"{_shape(array)}, sha256 {found.hexdigest()}"


def is_setting(value: Any) -> bool:
    """Return whether an object is of the user's, or one of handgrad's that decide numbers."""
    module = type(value).__module__
    return module.startswith(_SETTING) or not is_library(module)


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
