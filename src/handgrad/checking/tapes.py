"""Functions on tapes: numbers and arrays that remember what made them, and go back by it.

A function may be meant for tapes where it is given arrays: a method of a class of them, a function
beside one, or that class itself, of which every operation is judged.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from handgrad.checking.given import Given, Leaf, leaves_of, on_tape, tape_data
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.program.functions import comes_from_library


def forward_backward(
    function: Callable[..., Any],
    given: Given,
    arguments: Sequence[str],
    options: Mapping[str, Any],
) -> ForwardBackward:
    """A function of tapes, such as micrograd's numbers, on these arguments.

    Every backward runs on tapes of its own. y.backward takes the cotangent where it has an argument
    for it; where it has none it starts from 1, so that of an array the sum of its elements is
    judged, times a number where tapes can be multiplied. A tape that has no gradient afterwards has
    the gradient 0, as y does not depend on it.

    Raises ArgumentError where `function` is none, or what it returns is no tape.
    """
    if not callable(function):
        raise ArgumentError(
            f"check: target is {function!r}; allowed with tapes: a function of them"
        )
    names = tuple(given.names(arguments))
    leaves = [leaf for leaf in leaves_of(given.template) if leaf.tape is not None]
    wanted = [leaf.index for leaf in leaves]
    weighs = _weighs(leaves[0])

    def ran(arrays: Sequence[Any]) -> tuple[list[Any], list[Any], Any]:
        """The tapes, those that are outputs, and the data of these."""
        values = given.filled(arrays)
        y = function(*values, **options)
        outputs = [*y] if isinstance(y, tuple) else [y]
        for each in outputs:
            if tape_data(each) is None:
                raise ArgumentError(
                    f"check: the inputs are tapes, and y is a {type(each).__name__}; allowed: a "
                    "tape"
                )
        data = tuple(np.asarray(_data(each), dtype=np.float64) for each in outputs)
        return given.placed(values), outputs, (data if isinstance(y, tuple) else data[0])

    def forward(*arrays: Any) -> tuple[Any, Any]:
        _, outputs, data = ran(arrays)
        several = data if isinstance(data, tuple) else (data,)
        found = tuple(
            each if _takes_cotangent(y) else np.sum(each)
            for y, each in zip(outputs, several, strict=True)
        )
        return (found if isinstance(data, tuple) else found[0]), tuple(map(np.array, arrays))

    def backward(dy: Any, cache: Any) -> Any:
        tapes, outputs, data = ran(cache)
        total = [np.zeros(np.shape(cache[i])) for i in wanted]
        for y, each in zip(outputs, dy if isinstance(data, tuple) else (dy,), strict=True):
            before = [_gradient(tapes[i], cache[i]) for i in wanted]
            scale = _go_back(y, each, weighs=weighs)
            for k, i in enumerate(wanted):
                total[k] = total[k] + scale * (_gradient(tapes[i], cache[i]) - before[k])
        return tuple(total)

    return ForwardBackward(
        name=getattr(function, "__name__", type(function).__name__),
        inputs=names,
        gradients=tuple(names[i] for i in wanted),
        forward=forward,
        backward=backward,
        is_adapted=True,
        notes=getattr(function, "notes", ()),
    )


def _go_back(y: Any, dy: Any, *, weighs: bool) -> float:
    """Go back from a tape; returns the factor by which the gradients are to be multiplied yet."""
    if _takes_cotangent(y):
        shape = np.shape(_data(y))
        y.backward(np.broadcast_to(dy, shape).copy() if shape else float(dy))
        return 1.0
    if weighs:
        (y * float(dy)).backward()
        return 1.0
    y.backward()
    return float(dy)


def taped(target: Any, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """A function of tapes and the tapes for these arrays, where the target is meant for such.

    None for any other target.
    """
    if isinstance(target, type):
        (array,) = inputs if len(inputs) == 1 else (None,)
        return None if array is None or not _is_kind(target, array) else _operations(target, array)
    is_function = isinstance(target, FunctionType)
    called = target if is_function else inspect.getattr_static(target, "__call__", None)
    if not isinstance(called, FunctionType) or comes_from_library(called) or not inputs:
        return None
    for kind in _kinds(called):
        if not _is_kind(kind, inputs[0]):
            continue
        for made in (partial(_tape, kind), partial(_tapes, kind)):
            try:
                values = [made(np.asarray(each)) for each in inputs]
                y = target(*values, **options)
            except Exception:  # it wants others, or arrays
                continue
            if tape_data(y) is not None:
                return (target, values) if called is target else _with_parameters(target, values)
    return None


def _with_parameters(
    target: Callable[..., Any], values: list[Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """An object that is called as a function, of the tapes that are its parameters too."""
    count = len(values)
    try:
        parameters = [*target.parameters()]  # type: ignore[attr-defined]
    except Exception:  # it has none, or others
        parameters = []
    parameters = [each for each in parameters if tape_data(each) is not None]

    def called(*tapes: Any) -> Any:
        own = zip(parameters, tapes[count:], strict=True)
        return copy.deepcopy(target, {id(old): new for old, new in own})(*tapes[:count])

    names = [f"input{i}" for i in range(count)] + [f"parameter{i}" for i in range(len(parameters))]
    return _named(called, type(target).__name__, names), [*values, *parameters]


def _named(function: Callable[..., Any], name: str, arguments: Sequence[str]) -> Callable[..., Any]:
    kinds = (inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in arguments)
    function.__dict__["__signature__"] = inspect.Signature([*kinds])
    function.__name__ = name
    return function


def _kinds(function: FunctionType) -> Iterator[type]:
    """The classes that a function may be meant for: its own, and those that its module knows."""
    known = function.__globals__
    own = known.get(function.__qualname__.partition(".")[0])
    yield from (own,) if isinstance(own, type) else ()
    yield from {id(each): each for each in known.values() if isinstance(each, type)}.values()


def _is_kind(kind: type, array: Any) -> bool:
    """Return whether an object of this class, made of this array, is a tape."""
    if not callable(getattr(kind, "backward", None)):
        return False
    try:
        return tape_data(_tape(kind, np.asarray(array))) is not None
    except Exception:  # it is made of something else
        return False


def _tape(kind: type, array: np.ndarray) -> Any:
    asks = "requires_grad" in inspect.signature(kind).parameters
    return kind(array if array.ndim else float(array), **({"requires_grad": True} if asks else {}))


def _tapes(kind: type, array: np.ndarray) -> Any:
    """Nested lists of tapes of numbers."""
    return [_tapes(kind, each) for each in array] if array.ndim else _tape(kind, array)


def _operations(kind: type, array: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Every operation of a class of tapes as one function, with tapes of its own for each."""
    values: list[Any] = []
    names: list[str] = []
    calls: list[tuple[Callable[..., Any], int]] = []
    notes: list[str] = []
    x = np.array(array, np.float64)
    other = x * np.random.default_rng(0).uniform(0.5, 1.5, x.shape)
    for name, method in vars(kind).items():
        if not isinstance(method, FunctionType) or name == "backward":
            continue
        for count in (1, 2):
            given = [_tape(kind, each) for each in (x, other)[:count]]
            try:
                found = method(*given)
                is_one = type(found) is kind and bool(np.all(np.isfinite(_data(found))))
            except Exception:  # it takes more, or something else
                continue
            if not is_one:
                continue
            try:
                _go_back(found, 1.0, weighs=False)
            except Exception as error:
                notes.append(f"{name} was not judged: {type(error).__name__}: {error}")
                break
            calls.append((method, count))
            values += [_tape(kind, each) for each in (x, other)[:count]]
            names += [f"{name.strip('_')}_{each}" for each in ("self", "other")[:count]]
            break

    def operations(*tapes: Any) -> tuple[Any, ...]:
        left = iter(tapes)
        return tuple(method(*(next(left) for _ in range(count))) for method, count in calls)

    operations.__dict__["notes"] = tuple(notes)
    return _named(operations, kind.__name__, names), values


def _data(tape: Any) -> Any:
    attribute = tape_data(tape)
    return getattr(tape, attribute) if attribute is not None else None


def _gradient(tape: Any, array: Any) -> Any:
    """The gradient that a tape holds; it may be a tape itself."""
    gradient = tape.grad
    gradient = gradient if tape_data(gradient) is None else _data(gradient)
    return np.zeros(np.shape(array)) if gradient is None else np.array(gradient, np.float64)


def _weighs(leaf: Leaf) -> bool:
    """Return whether a tape times a number is right, so that another 1 can be made to flow back."""
    x = on_tape(leaf, np.float64(2.0))
    try:
        y = x * 3.0
        y.backward()
        return bool(_data(y) == 6.0) and bool(np.all(_gradient(x, 2.0) == 3.0))
    except Exception:  # it cannot be multiplied by a number
        return False


def _takes_cotangent(y: Any) -> bool:
    """Return whether y.backward has an argument for what flows back."""
    try:
        parameters = inspect.signature(y.backward).parameters
    except (TypeError, ValueError):
        return False
    first = next(iter(parameters), "")
    return any(part in first.lower() for part in ("grad", "dy", "dout", "cotangent", "upstream"))
