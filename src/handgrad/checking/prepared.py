"""Objects that are told the shape of their input before forward: what they are told, and by what.

Frameworks of layers give each its input shape as a network is put together, by a method such as
`setup(input_shape)`, `build(input_dim)` or `initialize()`. Without it forward finds no weights.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MethodType
from typing import Any, Final

import numpy as np

from handgrad.checking.attributes import owner_of
from handgrad.checking.object_arrays import twin_of, values_of
from handgrad.checking.tensors import is_tensor
from handgrad.checking.trial import leaves
from handgrad.seeding import seeded

#: Methods that get a layer ready: those that tell it shapes, and behind them others.
_TELLS: Final = re.compile(r"_*(set|compute|calc\w*)_(\w*_)?(shapes?|sizes?)|_*set_?up|connect\w*")
_MAKES: Final = re.compile(
    r"_*(build|compile)\w*|_*(init|initiali[sz]e|reset|create|make)(_?(weight|param|bias)\w*)?",
    re.I,
)
_SHAPE: Final = re.compile(r"\w*shape\w*|\w*dims|input_?size")
_WIDTH: Final = re.compile(r"\w*(dim|size|features|units|channels)|n_?in\w*|in_\w+|\w*inputs?|d_in")

_BEFORE: Final = re.compile(r"(prev|previous|input|last)_?layer|incoming|prev", re.I)
_INPUT: Final = re.compile(r"x|a|inputs?|(input_)?data", re.I)

#: Attributes that say whether an object trains.
_MODE: Final = re.compile(r"_*(is_?|in_?)?train(ing)?(_mode)?", re.I)


class _Before:
    """Stands for the layer before, of which a layer asks the shape or the width."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def __getattr__(self, name: str) -> Any:
        if _SHAPE.fullmatch(name):
            return self._shape
        if _WIDTH.fullmatch(name) or name in ("n_out", "units"):
            return self._shape[-1]
        raise AttributeError(name)


Pair = tuple[Callable[..., Any], Callable[..., Any]]


def prepared(methods: Pair, arrays: Sequence[Any], options: Mapping[str, Any]) -> Pair:
    """The methods of a copy of their object that is ready; the same where they run as they are.

    Also where no way is known by which they would.
    """
    owner = owner_of(*methods)
    if owner is None or not len(arrays) or _runs(methods[0], arrays, options):
        return methods
    shape = np.shape(arrays[0])
    for known in (shape[1:], shape):
        twin = twin_of(owner)
        with seeded(0):
            called = [_called(twin, name, known, arrays[0]) for name in _methods(owner)]
        bound = tuple(MethodType(each.__func__, twin) for each in methods)  # type: ignore[attr-defined]
        if any(called) and _runs(bound[0], arrays, options):
            return bound[0], bound[1]
    return methods


def in_training(methods: Pair) -> tuple[Pair, str]:
    """The methods of a copy of their object that trains, which backward is for, and a remark on it.

    The same, and none, where it says that it trains, or its constructor takes whether it does.
    """
    owner = owner_of(*methods)
    if owner is None:
        return methods, ""
    made_by = getattr(type(owner).__init__, "__code__", None)
    known = () if made_by is None else made_by.co_varnames
    modes = [
        name
        for name, value in vars(owner).items()
        if value is False and _MODE.fullmatch(name) and name.strip("_") not in known
    ]
    if not modes:
        return methods, ""
    twin = twin_of(owner)
    vars(twin).update(dict.fromkeys(modes, True))
    forward, backward = (MethodType(each.__func__, twin) for each in methods)  # type: ignore[attr-defined]
    return (forward, backward), f"self.{modes[0]} is False: judged is what it gives in training"


def in_float64(methods: Pair) -> Pair:
    """The methods of a copy of their object whose tensors are of float64, as the inputs are."""
    owner = owner_of(*methods)
    held = () if owner is None else values_of(owner)
    narrow = [each for _, each in held if is_tensor(each) and each.dtype.itemsize == 4]
    floats = [each for each in narrow if each.is_floating_point()]
    if not floats:
        return methods
    twin = copy.deepcopy(owner, {id(each): each.detach().double() for each in floats})
    forward, backward = (MethodType(each.__func__, twin) for each in methods)  # type: ignore[attr-defined]
    return forward, backward


def _runs(forward: Callable[..., Any], arrays: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Return whether forward gives numbers, on a copy of its object."""
    try:
        twin = twin_of(forward.__self__)  # type: ignore[attr-defined]
        run = MethodType(forward.__func__, twin)  # type: ignore[attr-defined]
        found = run(*(np.array(each) for each in arrays), **options)
        first = found[0] if isinstance(found, tuple) and found else found
        return first is None or all(each.dtype.kind in "fiub" for each in leaves(first))
    except Exception:  # what it raises is told where it is checked
        return False


def _methods(owner: Any) -> list[str]:
    """The names of methods that get an object ready, in the order in which they are called."""
    known = [*dict.fromkeys(name for kind in type(owner).__mro__[::-1] for name in vars(kind))]
    return [name for each in (_TELLS, _MAKES) for name in known if each.fullmatch(name)]


def _called(owner: Any, name: str, shape: tuple[int, ...], array: np.ndarray) -> bool:
    """Call a method of an object, if it has it and takes nothing but what is known."""
    method = getattr(owner, name, None)
    if not callable(method):
        return False
    try:
        given = dict(_arguments(method, shape, array))
        inspect.signature(method).bind(**given)
        method(**given)
    except Exception:  # it wants what only its network knows
        return False
    return True


def _arguments(
    method: Callable[..., Any], shape: tuple[int, ...], array: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """The input, its shape or its width, for arguments that are called after them."""
    for name, each in inspect.signature(method).parameters.items():
        if each.default is not each.empty and each.default is not None:
            continue
        if _SHAPE.fullmatch(name):
            yield name, shape
        elif _WIDTH.fullmatch(name):
            yield name, shape[-1]
        elif each.default is each.empty and _BEFORE.fullmatch(name):
            yield name, _Before(shape)
        elif each.default is each.empty and _INPUT.fullmatch(name):
            yield name, array
        elif each.default is each.empty and name in ("optimizer", "rng", "loss"):
            yield name, None
