"""The arrays and learning rates that an object holds, by the keys that lead to them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from handgrad.checking.tensors import as_arrays, as_tensors, is_tensor
from handgrad.program.functions import comes_from_library

#: The keys that lead to an array, from the object on.
Path = tuple[Any, ...]

#: Objects within objects that are looked through.
_DEPTH: Final = 4

#: The attribute of a copy in which the gradients are that backward returned behind those of inputs.
RETURNED: Final = "gradients returned"

#: That of an object in which the gradients are that backward handed to an optimizer.
HANDED: Final = "gradients handed on"

_RATE: Final = re.compile(r"_?(lr|eta|alpha|rate|learning_?rate|step_?size|learn_rate)", re.I)


def place_of(array: np.ndarray) -> Any:
    """The memory of an array, by which a tensor is known again as well."""
    return array.__array_interface__["data"][0], array.shape, array.strides


def twin_of(owner: Any) -> Any:
    """A copy of the object; modules in it, such as an array library, are shared."""
    modules = [value for _, value in values_of(owner) if isinstance(value, ModuleType)]
    return copy.deepcopy(owner, {id(each): each for each in modules})


def arrays_of(owner: Any) -> Iterator[tuple[Path, Any]]:
    """The arrays of floats that an object holds, also within dicts, lists and objects in it.

    A sum over all axes is a number of NumPy's, which a gradient of the wrong shape may be.
    """
    for path, value in values_of(owner):
        array = as_arrays(value) if is_tensor(value) else value
        if isinstance(array, np.ndarray | np.floating) and array.dtype.kind == "f" and array.size:
            yield path, array


def rate_paths(owner: Any) -> tuple[Path, ...]:
    """The learning rates that an object holds, also within objects in it."""
    return tuple(
        path
        for path, value in values_of(owner)
        if isinstance(value, float) and _RATE.fullmatch(str(path[-1]))
    )


def set_rates(owner: Any, paths: Sequence[Path], rate: float) -> None:
    for path in paths:
        _container(owner, path)[path[-1]] = rate


def values_of(
    owner: Any, path: Path = (), within: frozenset[int] = frozenset()
) -> Iterator[tuple[Path, Any]]:
    if len(path) > _DEPTH or id(owner) in within:
        return
    for key, value in _items(owner):
        yield (*path, key), value
        yield from values_of(value, (*path, key), within | {id(owner)})


def _items(owner: Any) -> list[tuple[Any, Any]]:
    if isinstance(owner, dict):
        return [(key, value) for key, value in owner.items() if isinstance(key, str | int)]
    if isinstance(owner, list):
        return list(enumerate(owner))
    is_users = has_fields(owner) and not comes_from_library(type(owner))
    return list(vars(owner).items()) if is_users else []


def has_fields(value: Any) -> bool:
    """Return whether this is an object that holds values, which may be called as well."""
    is_code = isinstance(value, type | ModuleType | FunctionType | MethodType)
    return hasattr(value, "__dict__") and not is_code


def _container(owner: Any, path: Path) -> Any:
    """The dict or list that holds what a path leads to."""
    for key in path[:-1]:
        owner = (owner if isinstance(owner, dict | list) else vars(owner))[key]
    return owner if isinstance(owner, dict | list) else vars(owner)


def get(owner: Any, path: Path) -> Any:
    value = _container(owner, path)[path[-1]]
    return as_arrays(value) if is_tensor(value) else value


def names_of(owner: Any, path: Path) -> list[Path]:
    """All the paths that lead to the array that this one leads to."""
    old = get(owner, path)
    if not isinstance(old, np.ndarray):
        return [path]
    place = place_of(old)
    return [at for at, array in arrays_of(owner) if place_of(array) == place] or [path]


def put(owner: Any, paths: Sequence[Path], value: Any) -> None:
    """Put an array at each of these paths, which led to another one."""
    for each in paths:
        container = _container(owner, each)
        wants_tensor = is_tensor(container.get(each[-1])) if isinstance(container, dict) else False
        container[each[-1]] = as_tensors(value) if wants_tensor else value


def clear(owner: Any, path: Path, start: Any, like: Any) -> None:
    """Put a gradient back to what it was before any backward, and to 0 where that was an array."""
    if path[0] == RETURNED:
        return
    try:
        container = _container(owner, path)
    except (KeyError, IndexError, TypeError):  # backward makes it anew
        return
    try:
        old = get(start, path)
    except (KeyError, IndexError, TypeError):
        if isinstance(container, dict):
            container.pop(path[-1], None)
        elif isinstance(container, list):
            del container[path[-1] :]
        return
    if not isinstance(old, np.ndarray):
        container[path[-1]] = old
    else:
        dtype = like.dtype if isinstance(like, np.ndarray) else None
        put(owner, names_of(owner, path), np.zeros(old.shape, dtype))
