"""Arrays among the attributes of a user's object: parameters, and their gradients beside them.

A layer of the user's own keeps its weights as `self.w` or `self.params["w"]`, and its backward
leaves their gradients as `self.dw` or `self.grads["w"]` while it returns dx alone. A parameter is
an array that forward reads and leaves alone; its gradient is what backward writes under a name of
it, returns behind that of x, or, where backward descends itself, its step divided by the learning
rate. All are looked for, and judged, on copies of the object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MethodType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.affixes import abbreviates, plain, without_affix
from handgrad.checking.object_arrays import (
    HANDED,
    RETURNED,
    Path,
    arrays_of,
    get,
    names_of,
    place_of,
    put,
    rate_paths,
    set_rates,
    twin_of,
    values_of,
)
from handgrad.checking.trial import leaves, like_nested, random_like, same_outputs
from handgrad.seeding import seeded

#: Names of what holds gradients alone.
_CONTAINERS: Final = frozenset(
    {"d", "g", "grad", "grads", "gradient", "gradients", "dparams", HANDED, RETURNED}
)

#: Ends of names of gradients: what flows back is kept as `dy`, seldom as `b_gradients`.
_TOLD: Final = ("gradients", "grads")

#: The learning rate at which a layer that descends within backward is run: large, so that little of
#: the gradient is lost to the rounding of the weights, and a power of two.
RATE: Final = 2.0**20

#: The part of its size by which an array is moved to see that y depends on it.
_MOVED: Final = 0.1


#: A function that tells if two names are of one thing.
Alike = Callable[[str, str], bool]


class Attributes(NamedTuple):
    """The parameters of an object by name, with the paths to them and to their gradients.

    `steps` are those that backward itself moves against their gradient, at the learning rates to
    which `rates` lead; they are set to `rate`, which is 0 where only so the parameters stay.
    `unjudged` are arrays that y depends on too, without a gradient beside them. `is_stateful` says
    that a second call on the same object gives something else than the first.
    """

    parameters: Mapping[str, np.ndarray]
    paths: Mapping[str, Path]
    gradients: Mapping[str, Path]
    unjudged: tuple[str, ...]
    steps: frozenset[str] = frozenset()
    rates: tuple[Path, ...] = ()
    is_stateful: bool = False
    rate: float = RATE


class Returned(dict[Any, Any]):
    """Gradients by the name of their entry, or by their number where they came in a tuple."""


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


class Methods(NamedTuple):
    """The two methods of an object, called on a copy: forward gives y and a cache."""

    forward: Callable[..., tuple[Any, Any]]
    #: With the copy, dy, the cache and the learning rate.
    backward: Callable[[Any, Any, Any, float], Any]
    #: Backward is given the learning rate.
    takes_rate: bool


def warmed(owner: Any, methods: Methods, arrays: Sequence[Any]) -> Any:
    """A copy of the object that has been called once, where its first call makes its weights.

    None where it draws nothing and makes no arrays, and where it cannot be copied or called.
    """
    found = []
    try:
        for seed in (0, 1):
            twin = twin_of(owner)
            with seeded(seed):
                y, _ = methods.forward(twin, *(np.array(array) for array in arrays))
            found.append((like_nested(y, np.array), twin))
    except Exception:  # what the object raises is reported where it is checked
        return None
    (y, warm), (other, _) = found
    before = {path for path, _ in arrays_of(owner)}
    was_none = {path for path, value in values_of(owner) if value is None}
    new = (path for path, _ in arrays_of(warm) if path not in before)
    makes = any(len(path) > 1 or path in was_none for path in new)
    is_drawn = not same_outputs(y, other, rtol=0.0, atol=0.0)
    return warm if is_drawn or makes else None


def attributes(owner: Any, methods: Methods, arrays: Sequence[Any]) -> Attributes:
    """The parameters of an object, found by running copies of it on these inputs."""
    try:
        found = _Search(owner, methods, arrays).found()
        rates = rate_paths(owner)
        if not found.unjudged or not (rates or methods.takes_rate):
            return found
        # An optimizer within backward, such as one with momentum, moves what is to be judged.
        frozen = twin_of(owner)
        set_rates(frozen, rates, 0.0)
        still = _Search(frozen, methods, arrays, 0.0).found()
        fewer = len(still.unjudged) < len(found.unjudged)
        return still._replace(rates=rates, rate=0.0) if fewer else found
    except Exception:  # what the object raises is reported where it is checked
        return Attributes({}, {}, {}, ())


class _Search:
    """One run of a copy, and what its attributes were before and after."""

    def __init__(
        self, owner: Any, methods: Methods, arrays: Sequence[Any], rate: float = RATE
    ) -> None:
        self.owner, self.methods, self.arrays, self.rate = owner, methods, arrays, rate
        self.twin = twin = twin_of(owner)
        self.before = {path: (array, array.copy()) for path, array in arrays_of(twin)}
        y, cache = self.ran(twin)
        self.y = like_nested(y, np.array)
        self.after = {path: (array, array.copy()) for path, array in arrays_of(twin)}
        self.dy = random_like(self.y, np.random.default_rng(0))
        kept = like_nested(self.dy, np.array)
        self.returned = methods.backward(twin, self.dy, cache, rate)
        self.ended = dict(arrays_of(twin))
        # The cotangent and dx may have any names: `self.dy` beside labels `self.y`.
        passed = [*leaves(kept), *list(leaves(self.returned))[: len(arrays)]]
        steady = {
            path: array
            for path, (array, values) in self.after.items()
            if path in self.before
            and place_of(self.before[path][0]) == place_of(array)
            and np.array_equal(self.before[path][1], values, equal_nan=True)
        }
        self.written = {
            path for path, array in self.ended.items() if not _same(self.after, path, array)
        }
        self.own = [
            each
            for each in self.ended
            if each in self.written and (_is_told(each) or not _is_one_of(self.ended[each], passed))
        ]
        self.names: dict[Any, list[Path]] = {}
        for path, array in steady.items():
            self.names.setdefault(place_of(array), []).append(path)
        self.steady = steady
        self.weights = [min(paths, key=len) for paths in self.names.values()]
        self.moving: dict[Path, bool] = {}

    def ran(self, twin: Any) -> tuple[Any, Any]:
        with seeded(0):
            return self.methods.forward(twin, *(np.array(array) for array in self.arrays))

    def found(self) -> Attributes:
        parameters: dict[str, np.ndarray] = {}
        paths: dict[str, Path] = {}
        gradients: dict[str, Path] = {}
        unjudged = []
        by_number = self._by_number()
        stepped, rates = self._stepped()
        named = self._by_name()
        for path in self.weights:
            name = ".".join(map(str, path))
            beside = named[path] + ([by_number[path]] if path in by_number else [])
            same = all(np.array_equal(self.ended[e], self.ended[beside[0]]) for e in beside)
            moved = path in self.written and (bool(self.rate) or self._has_moved(path))
            is_stepped = path in stepped and self._moves(path)  # no buffer of a momentum
            if not self._is_viewed(path) and (is_stepped or (beside and same and not moved)):
                parameters[name] = np.array(self.after[path][1])
                paths[name] = path
                gradients[name] = path if is_stepped else beside[0]
            elif self._moves(path):
                unjudged.append(name)
        steps = frozenset(name for name, path in paths.items() if path in stepped)
        stateful = self._is_stateful()
        return Attributes(parameters, paths, gradients, tuple(unjudged), steps, rates, stateful)

    def _by_name(self) -> dict[Path, list[Path]]:
        """Gradients under the names of the weights; of those left, under their beginnings alone."""
        called = {path: self.names[place_of(self.steady[path])] for path in self.weights}
        found = {
            path: [each for each in self.own if _is_beside(each, aliases, _is_alike)]
            for path, aliases in called.items()
        }
        taken = [each for several in found.values() for each in several]
        left = [each for each in self.own if each not in taken]
        for path in [path for path, several in found.items() if not several]:
            found[path] = [each for each in left if _is_beside(each, called[path], abbreviates)]
        claims = Counter(each for several in found.values() for each in several)
        for path, several in found.items():  # what an object keeps beside, and does not use, yields
            shared = any(claims[each] > 1 for each in several)
            found[path] = (
                [e for e in several if claims[e] == 1 or self._moves(path)] if shared else several
            )
        return found

    def _is_viewed(self, path: Path) -> bool:
        """Return whether an attribute is a part of this array, or the other way round."""
        array = self.steady[path]
        return any(
            place_of(each) != place_of(array) and np.may_share_memory(each, array)
            for each, _ in self.before.values()
        )

    def _moves(self, path: Path) -> bool:
        """Return whether y depends on an array."""
        if path not in self.moving:
            self.moving[path] = self._has_effect(path)
        return self.moving[path]

    def _has_effect(self, path: Path) -> bool:
        rng, other = np.random.default_rng(0), twin_of(self.owner)
        array = dict(arrays_of(other))[path]
        size = float(np.sqrt(np.mean(array * array))) or 1.0
        put(other, names_of(other, path), array + _MOVED * size * rng.standard_normal(array.shape))
        return not same_outputs(self.ran(other)[0], self.y, rtol=1e-12, atol=0.0)

    def _by_number(self) -> dict[Path, Path]:
        """Gradients returned in a tuple behind those of the inputs: of the weights in order."""
        numbered = [
            each for each in self.ended if each[0] == RETURNED and isinstance(each[-1], int)
        ]
        found: dict[Path, Path] = {}
        for each in numbered:
            shape = self.ended[each].shape
            fitting = (p for p in self.weights if p not in found and self.steady[p].shape == shape)
            if (path := next(filter(self._moves, fitting), None)) is not None:
                found[path] = each
        return found

    def _stepped(self) -> tuple[set[Path], tuple[Path, ...]]:
        """The weights that backward moves by the learning rate times what is linear in dy."""
        moved = [path for path in self.weights if path in self.ended and self._has_moved(path)]
        rates = rate_paths(self.owner)
        if not moved or not self.rate or not (rates or self.methods.takes_rate):
            return set(), ()

        def steps(rate: float, factor: float) -> dict[Path, np.ndarray]:
            twin = twin_of(self.owner)
            set_rates(twin, rates, rate)
            cache = self.ran(twin)[1]
            start = {path: np.array(get(twin, path)) for path in moved}
            dy = like_nested(self.dy, lambda array: factor * array)
            self.methods.backward(twin, dy, cache, rate)
            return {path: get(twin, path) - start[path] for path in moved}

        once, faster, larger = steps(RATE, 1.0), steps(2.0 * RATE, 1.0), steps(RATE, 2.0)
        plainly = {
            path
            for path, step in once.items()
            if np.any(step)
            and np.allclose(faster[path], 2.0 * step, rtol=1e-6)
            and np.allclose(larger[path], 2.0 * step, rtol=1e-6)
        }
        return plainly, rates

    def _has_moved(self, path: Path) -> bool:
        kept, now = self.after[path][1], self.ended.get(path)
        if now is None:
            return True
        return kept.shape == now.shape and not np.array_equal(kept, now)

    def _is_stateful(self) -> bool:
        """Return whether a call on one object depends on those before it.

        A first call on another object gives what the first did; one after other inputs shows what
        is left over from these.
        """
        rng = np.random.default_rng(0)
        others = [
            array * rng.uniform(0.5, 1.5, array.shape) if array.dtype.kind == "f" else array
            for array in map(np.asarray, self.arrays)
        ]

        def called(twin: Any, arrays: Sequence[Any]) -> Any:
            with seeded(0):
                y, cache = self.methods.forward(twin, *map(np.array, arrays))
            y = like_nested(y, np.array)
            dy = random_like(y, np.random.default_rng(0))
            return y, self.methods.backward(twin, dy, cache, self.rate)

        def differs(one: Any, other: Any) -> bool:
            return not same_outputs(one, other, rtol=1e-9, atol=1e-12)

        first = (self.y, self.returned)
        if differs(called(twin_of(self.owner), self.arrays), first):
            return False  # random, which is said elsewhere
        if differs(called(self.twin, self.arrays), first):
            return True
        try:
            return differs(called(self.twin, others), called(twin_of(self.owner), others))
        except Exception:  # forward does not take other values
            return False


def _same(kept: Mapping[Path, tuple[Any, Any]], path: Path, array: np.ndarray) -> bool:
    """Return whether an array is the very one that was kept, with the same values."""
    if path not in kept:
        return False
    one, values = kept[path]
    return place_of(one) == place_of(array) and np.array_equal(values, array, equal_nan=True)


def _is_told(path: Path) -> bool:
    """Return whether an array is a gradient by its name alone, and no cotangent that is kept."""
    return (
        path[0] == RETURNED
        or HANDED in path
        or any(plain(str(key)).endswith(_TOLD) for key in path)
    )


def _is_one_of(array: np.ndarray, others: list[np.ndarray]) -> bool:
    return any(np.array_equal(array, each) for each in others)


def _is_beside(gradient: Path, parameters: list[Path], alike: Alike) -> bool:
    return any(_belongs(gradient, each, alike) for each in parameters)


def _is_alike(one: str, other: str) -> bool:
    return plain(one) == plain(other)


def _belongs(gradient: Path, parameter: Path, alike: Alike) -> bool:
    """Return whether a path is that of the gradient of a parameter, by its last names.

    `dw` for `w`, `grads.w` for `params.w` or `w`, `w.grad` for `w.data`; the first entry of a list
    that backward appends to counts as the list.
    """
    *home, name = map(str, parameter)
    *beside, found = map(str, gradient)
    if found == "0" and beside and not _is_of_gradients(beside[-1]):
        found = beside.pop()
    if beside == home and any(alike(name, each) for each in without_affix(found)):
        return True
    if beside == home and home and plain(found) in ("g", "grad", "grads", "gradient", "gradients"):
        return plain(name) in ("data", "value", "values", "array", "v", "val", "param", "params")
    if not beside or not _is_of_gradients(beside[-1]):
        return False
    if found in ("/" in name and name, ".".join((*home, name))):  # a name within the network
        return True
    *around, container = beside
    is_named = any(alike(name, each) for each in (found, *without_affix(found)))
    return is_named and (
        around == home or (bool(home) and around == home[:-1] and container != home[-1])
    )


def _is_of_gradients(container: str) -> bool:
    return plain(container) in _CONTAINERS
