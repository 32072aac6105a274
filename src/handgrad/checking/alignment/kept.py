"""What runs of a target change outside of their arguments: kept, and put back after each.

Functions keep things: a layer its running mean, a module its generator. A changed function would
leave there what no right one does, and the next run would begin with it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import is_
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.pieces import is_users

#: Objects that are looked at; a target that holds more than these is not run with changes.
_MOST: Final = 20_000


class TooMuchError(Exception):
    """A target holds more than is put back."""


class StateBefore:
    """The contents of all that functions hold, by which they are put back."""

    def __init__(self, roots: Iterable[Any], *, draws: bool = True) -> None:
        """draws: the functions may draw from the generators that everybody shares."""
        self._shared = [*_shared()] if draws else []
        self._restored: list[Callable[[], Any]] = []
        self._seen: dict[int, Any] = {}
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if id(value) in self._seen or isinstance(value, ModuleType | type):
                continue
            self._seen[id(value)] = value
            if len(self._seen) > _MOST:
                raise TooMuchError
            waiting += self._held(value)

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """A block after which everything is as it was."""
        try:
            yield
        finally:
            self.restore()

    @property
    def draws(self) -> bool:
        return bool(self._shared)

    def note_draws(self) -> None:
        """Leave shared generators alone from now on, where what was run has drawn from none."""
        if all(_same(get(), state) for get, _, state in self._shared):
            self._shared = []

    def restore(self) -> None:
        """Put everything back as it was."""
        for _, put, state in self._shared:
            put(state)
        for restore in self._restored:
            restore()

    def _held(self, value: Any) -> list[Any]:
        """What a value holds; how it is restored is noted."""
        if isinstance(value, FunctionType):
            return [*(value.__closure__ or ()), *(value.__defaults__ or ()), *self._globals(value)]
        if isinstance(value, MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, partial):
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, CellType):
            return self._of_cell(value)
        if isinstance(value, np.ndarray):
            if value.flags.writeable:
                self._restored.append(partial(_put, value, value.copy()))
            return [*value.flat] if value.dtype == object else []
        if isinstance(value, list):
            self._restored.append(partial(list.__setitem__, value, slice(None), value[:]))
            return value[:]
        if isinstance(value, dict):
            self._restored.append(partial(_fill, value, dict(value)))
            return [*value.values()]
        if isinstance(value, tuple | set | frozenset):
            if isinstance(value, set):
                self._restored.append(partial(_refill, value, set(value)))
            return [*value]
        return self._of_object(value)

    def _globals(self, function: FunctionType) -> list[Any]:
        """What a user's function names of its module; it may set it anew."""
        if not is_users(function.__code__):
            return []
        scope = function.__globals__
        named = {name: scope[name] for name in function.__code__.co_names if name in scope}
        self._restored.append(partial(scope.update, named))
        return [*named.values()]

    def _of_cell(self, cell: CellType) -> list[Any]:
        try:
            content = cell.cell_contents
        except ValueError:  # a name that has no value yet
            return []
        self._restored.append(partial(setattr, cell, "cell_contents", content))
        return [content]

    def _of_object(self, value: Any) -> list[Any]:
        if isinstance(value, np.random.Generator):
            bits = value.bit_generator
            self._restored.append(partial(setattr, bits, "state", bits.state))
            return []
        if isinstance(value, np.random.RandomState):
            self._restored.append(partial(value.set_state, value.get_state()))
            return []
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            kept = value.detach().clone()
            self._restored.append(partial(value.detach().copy_, kept))
            return []
        slots = dict(_slots(value))
        for name, content in slots.items():
            self._restored.append(partial(object.__setattr__, value, name, content))
        fields = getattr(value, "__dict__", None)
        if not isinstance(fields, dict):
            return [*slots.values()]
        self._restored.append(partial(_fill, fields, dict(fields)))
        return [*slots.values(), *fields.values()]


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that an object of a class with `__slots__` keeps in them."""
    for kind in type(value).__mro__:
        names = getattr(kind, "__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if not name.startswith("__") and hasattr(value, name):
                yield name, getattr(value, name)


def _shared() -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any], Any]]:
    """Functions that get and put the state of each shared generator, and its state now.

    That of NumPy is behind `np.random.rand` and its like, which strangers' code uses.
    """
    every: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (random.getstate, random.setstate),
        (np.random.get_state, np.random.set_state),
    ]
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_rng_state"):
        every.append((torch.get_rng_state, torch.set_rng_state))
    yield from ((get, put, get()) for get, put in every)


def _same(one: Any, other: Any) -> bool:
    """Return whether two states are equal: numbers and arrays in tuples."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return np.array_equal(one, other)


def _put(array: np.ndarray, content: np.ndarray) -> None:
    if array.shape == content.shape:
        array[...] = content


def _fill(held: dict[Any, Any], content: dict[Any, Any]) -> None:
    same = len(held) == len(content) and all(map(is_, held, content))
    if not same or not all(map(is_, held.values(), content.values())):
        held.clear()
        held.update(content)


def _refill(held: set[Any], content: set[Any]) -> None:
    if held != content:
        held.clear()
        held.update(content)
