"""Optimizers that an object waits for: what its backward hands them are its gradients.

A layer from a network keeps `self.optimizer`, or `self.w_opt` for each weight, which is None until
the network is put together, and whose `update(w, dw)` or `update(self, grads)` backward calls. Here
an optimizer that moves nothing stands there, and what it is given is kept beside the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MethodType
from typing import Any, Final

import numpy as np

from handgrad.checking.object_arrays import HANDED, arrays_of, get, place_of, twin_of, values_of

_NAME: Final = re.compile(r"_*((?P<weight>\w+)_)?opt(imi[sz]er)?s?(_(?P<of>\w+))?", re.I)

Pair = tuple[Callable[..., Any], Callable[..., Any]]


class Waited:
    """An optimizer with any method: each keeps the gradients and gives the parameters back."""

    def __init__(self, owner: Any, weight: str) -> None:
        self.owner = owner
        self.weight = weight

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._take

    def _take(self, *given: Any, **named: Any) -> Any:
        values = [*given, *named.values()]
        kept = vars(self.owner)[HANDED]
        for mapping in (each for each in values if isinstance(each, Mapping)):
            kept.update({key: np.array(each) for key, each in mapping.items() if _is_array(each)})
        arrays = [each for value in values for each in _arrays(value)]
        names = {place_of(array): path[-1] for path, array in arrays_of(self.owner)}
        weights = [each for each in arrays if place_of(each) in names]
        others = [each for each in arrays if place_of(each) not in names]
        if len(weights) == len(others):
            for weight, gradient in zip(weights, others, strict=True):
                kept[names[place_of(weight)]] = np.array(gradient)
        if len(others) == 1 and not weights:  # the step is asked for
            kept[self.weight] = np.array(others[0])
            return np.zeros_like(others[0])
        return next(
            (each for each in values if any(place_of(array) in names for array in _arrays(each))),
            None,
        )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _arrays(value: Any) -> Iterator[Any]:
    """An array, or those of a list."""
    yield from filter(_is_array, value if isinstance(value, list | tuple) else (value,))


def with_optimizers(methods: Pair, owner: Any) -> Pair:
    """The methods of a copy of their object that has an optimizer where it waits for one."""
    if owner is None:
        return methods
    waits = {
        path: found
        for path, value in values_of(owner)
        if value is None and (found := _NAME.fullmatch(str(path[-1])))
    }
    if not waits:
        return methods
    twin = twin_of(owner)
    for path, found in waits.items():
        holder = get(twin, path[:-1]) if len(path) > 1 else twin
        if hasattr(holder, "__dict__"):
            vars(holder)[path[-1]] = Waited(holder, found["weight"] or found["of"] or "")
            vars(holder)[HANDED] = {}
    bound = tuple(MethodType(each.__func__, twin) for each in methods)  # type: ignore[attr-defined]
    return bound[0], bound[1]
