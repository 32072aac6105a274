"""Arrays among the attributes of a user's object: parameters, and their gradients beside them.

A layer of the user's own keeps its weights as `self.w` or `self.params["w"]`, and its backward
leaves their gradients as `self.dw` or `self.grads["w"]` while it returns dx alone. A parameter is
an array that forward reads and leaves alone; its gradient is what backward writes under a name of
it. Both are looked for, and judged, on copies of the object.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.naming_heuristics import plain, without_affix
from handgrad.checking.trial import leaves, like_nested, random_like, same_outputs
from handgrad.program.functions import comes_from_library

#: The keys that lead to an array, from the object on.
Path = tuple[Any, ...]
#: Objects within objects that are looked through.
_DEPTH: Final = 4
#: Names of what holds gradients alone.
_CONTAINERS: Final = frozenset({"d", "g", "grad", "grads", "gradient", "gradients", "dparams"})
#: The part of its size by which an array is moved to see that y depends on it.
_MOVED: Final = 0.1


class Attributes(NamedTuple):
    """The parameters of an object by name, with the paths to them and to their gradients.

    `unjudged` are arrays that y depends on too, without a gradient beside them.
    """

    parameters: Mapping[str, np.ndarray]
    paths: Mapping[str, Path]
    gradients: Mapping[str, Path]
    unjudged: tuple[str, ...]


class Held:
    """A copy of the object after its forward, and the cache that this returned.

    It is no array and shows none, because an object may write into itself.
    """

    __slots__ = ("cache", "twin")

    def __init__(self, twin: Any, cache: Any) -> None:
        self.twin = twin
        self.cache = cache


def owner_of(forward: Any, backward: Any) -> Any:
    """The object whose methods both are; None for functions, and for those of a class."""
    owner = getattr(forward, "__self__", None)
    if owner is None or owner is not getattr(backward, "__self__", None):
        return None
    plain_methods = all(isinstance(each, MethodType) for each in (forward, backward))
    is_object = hasattr(owner, "__dict__") and not isinstance(owner, type | ModuleType)
    return owner if plain_methods and is_object else None


def attributes(
    owner: Any,
    forward: Callable[[Any], tuple[Any, Any]],
    backward: Callable[[Any, Any, Any], Any],
    arrays: Sequence[Any],
) -> Attributes:
    """The parameters of an object, found by running copies of it on these inputs.

    `forward(owner, *arrays)` returns y and a cache, `backward(owner, dy, cache)` is as such.
    """
    try:
        return _found(owner, forward, backward, arrays)
    except Exception:  # what the object raises is reported where it is checked
        return Attributes({}, {}, {}, ())


def _found(owner: Any, forward: Any, backward: Any, arrays: Sequence[Any]) -> Attributes:
    def ran(twin: Any) -> tuple[Any, Any]:
        inputs = [np.array(array) for array in arrays]
        result: tuple[Any, Any] = forward(twin, *inputs)
        return result

    twin = twin_of(owner)
    before = {path: (array, array.copy()) for path, array in _arrays(twin)}
    y, cache = ran(twin)
    y = like_nested(y, np.array)
    after = {path: (array, array.copy()) for path, array in _arrays(twin)}
    dy = random_like(y, np.random.default_rng(0))
    kept = like_nested(dy, np.array)
    returned = backward(twin, dy, cache)
    ended = dict(_arrays(twin))
    # The cotangent and dx may have any names: `self.dy` beside labels `self.y`.
    passed = [*leaves(kept), *list(leaves(returned))[: len(arrays)]]
    steady = {
        path: array
        for path, (array, _) in after.items()
        if path in before and _same(before, path, array)
    }
    written = {path for path, array in ended.items() if not _same(after, path, array)}
    own = [each for each in ended if each in written and not _is_one_of(ended[each], passed)]
    names: dict[int, list[Path]] = {}
    for path, array in steady.items():
        names.setdefault(id(array), []).append(path)
    weights = [min(paths, key=len) for paths in names.values()]

    def moves(path: Path) -> bool:
        rng, other = np.random.default_rng(0), twin_of(owner)
        array = dict(_arrays(other))[path]
        size = float(np.sqrt(np.mean(array * array))) or 1.0
        put(other, path, array + _MOVED * size * rng.standard_normal(array.shape))
        return not same_outputs(ran(other)[0], y, rtol=1e-12, atol=0.0)

    parameters: dict[str, np.ndarray] = {}
    paths: dict[str, Path] = {}
    gradients: dict[str, Path] = {}
    unjudged = []
    for path in weights:
        name = ".".join(map(str, path))
        aliases = names[id(steady[path])]
        beside = [each for each in own if _is_beside(each, aliases)]
        same = all(np.array_equal(ended[each], ended[beside[0]]) for each in beside)
        viewed = any(
            array is not steady[path] and np.may_share_memory(array, steady[path])
            for array, _ in before.values()
        )
        if beside and same and not viewed and path not in written:
            parameters[name] = np.array(steady[path])
            paths[name], gradients[name] = path, beside[0]
        elif moves(path):
            unjudged.append(name)
    return Attributes(parameters, paths, gradients, tuple(unjudged))


def _same(kept: Mapping[Path, tuple[Any, Any]], path: Path, array: np.ndarray) -> bool:
    """Return whether an array is the very one that was kept, with the same values."""
    if path not in kept:
        return False
    one, values = kept[path]
    return one is array and np.array_equal(values, array, equal_nan=True)


def _is_one_of(array: np.ndarray, others: list[np.ndarray]) -> bool:
    return any(np.array_equal(array, each) for each in others)


def _is_beside(gradient: Path, parameters: list[Path]) -> bool:
    return any(_belongs(gradient, each) for each in parameters)


def _belongs(gradient: Path, parameter: Path) -> bool:
    """Return whether a path is that of the gradient of a parameter, by its last names.

    `dw` for `w`, `grads.w` for `params.w` or `w`, `w.grad` for `w.data`.
    """
    *home, name = map(str, parameter)
    *beside, found = map(str, gradient)
    if beside == home and plain(name) in map(plain, without_affix(found)):
        return True
    if beside == home and home and plain(found) in ("g", "grad", "gradient"):
        return plain(name) in ("data", "value", "values", "array", "v")
    if not beside or not _is_of_gradients(beside[-1]):
        return False
    *around, container = beside
    alike = plain(name) in map(plain, (found, *without_affix(found)))
    return alike and (
        around == home or (bool(home) and around == home[:-1] and container != home[-1])
    )


def _is_of_gradients(container: str) -> bool:
    return plain(container) in _CONTAINERS


def twin_of(owner: Any) -> Any:
    """A copy of the object; modules in it, such as an array library, are shared."""
    modules = [value for _, value in _values(owner) if isinstance(value, ModuleType)]
    return copy.deepcopy(owner, {id(each): each for each in modules})


def _arrays(owner: Any) -> Iterator[tuple[Path, Any]]:
    """The arrays of floats that an object holds, also within dicts, lists and objects in it."""
    for path, value in _values(owner):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            yield path, value


def _values(
    owner: Any, path: Path = (), within: frozenset[int] = frozenset()
) -> Iterator[tuple[Path, Any]]:
    if len(path) > _DEPTH or id(owner) in within:
        return
    for key, value in _items(owner):
        yield (*path, key), value
        yield from _values(value, (*path, key), within | {id(owner)})


def _items(owner: Any) -> list[tuple[Any, Any]]:
    if isinstance(owner, dict):
        return [(key, value) for key, value in owner.items() if isinstance(key, str | int)]
    if isinstance(owner, list):
        return list(enumerate(owner))
    is_code = isinstance(owner, type | ModuleType | FunctionType | MethodType)
    if is_code or comes_from_library(type(owner)) or not hasattr(owner, "__dict__"):
        return []
    return list(vars(owner).items())


def _container(owner: Any, path: Path) -> Any:
    """The dict or list that holds what a path leads to."""
    for key in path[:-1]:
        owner = (owner if isinstance(owner, dict | list) else vars(owner))[key]
    return owner if isinstance(owner, dict | list) else vars(owner)


def get(owner: Any, path: Path) -> Any:
    return _container(owner, path)[path[-1]]


def put(owner: Any, path: Path, value: Any) -> None:
    """Put an array where another one is, by all the names that this has in the object."""
    old = get(owner, path)
    for each in [at for at, array in _arrays(owner) if array is old] or [path]:
        _container(owner, each)[each[-1]] = value


def clear(owner: Any, path: Path, start: Any, like: Any) -> None:
    """Put a gradient back to what it was before any backward, and to 0 where that was an array."""
    container = _container(owner, path)
    try:
        old = get(start, path)
    except (KeyError, IndexError, TypeError):
        if isinstance(container, dict):
            container.pop(path[-1], None)
        return
    if not isinstance(old, np.ndarray):
        container[path[-1]] = old
    elif isinstance(like, np.ndarray):
        put(owner, path, np.zeros(old.shape, like.dtype))
    else:
        put(owner, path, np.zeros(old.shape))
