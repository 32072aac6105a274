"""Functions on tapes: numbers and arrays that remember what made them, and go back by it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from handgrad.checking.given import Given, leaves_of, tape_data
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward


def forward_backward(
    function: Callable[..., Any], given: Given, arguments: Sequence[str]
) -> ForwardBackward:
    """A function of tapes, such as micrograd's numbers, on these arguments.

    Every backward runs on tapes of its own. y.backward takes the cotangent where it has an argument
    for it; where it has none it starts from 1, so that of an array the sum of its elements is
    judged. A tape that has no gradient afterwards has the gradient 0, as y does not depend on it.

    Raises ArgumentError where `function` is none, or what it returns is no tape.
    """
    if not callable(function):
        raise ArgumentError(
            f"check: target is {function!r}; allowed with tapes: a function of them"
        )
    names = tuple(given.names(arguments))
    wanted = [leaf.index for leaf in leaves_of(given.template) if leaf.tape is not None]

    def ran(arrays: Sequence[Any]) -> tuple[list[Any], Any, Any]:
        """The tapes, y and its data."""
        values = given.filled(arrays)
        y = function(*values)
        attribute = tape_data(y)
        if attribute is None:
            raise ArgumentError(
                f"check: the inputs are tapes, and y is a {type(y).__name__}; allowed: a tape"
            )
        return given.placed(values), y, np.asarray(getattr(y, attribute), dtype=np.float64)

    def forward(*arrays: Any) -> tuple[Any, Any]:
        _, y, data = ran(arrays)
        return (data if _takes_cotangent(y) else np.sum(data)), tuple(map(np.array, arrays))

    def backward(dy: Any, cache: Any) -> Any:
        tapes, y, data = ran(cache)
        if _takes_cotangent(y):
            y.backward(np.asarray(dy) if data.ndim else float(dy))
            return tuple(_gradient(tapes[i], cache[i]) for i in wanted)
        y.backward()
        return tuple(dy * _gradient(tapes[i], cache[i]) for i in wanted)

    return ForwardBackward(
        name=getattr(function, "__name__", type(function).__name__),
        inputs=names,
        gradients=tuple(names[i] for i in wanted),
        forward=forward,
        backward=backward,
        is_adapted=True,
    )


def _gradient(tape: Any, array: Any) -> Any:
    """The gradient that a tape holds; it may be a tape itself."""
    gradient = tape.grad
    data = tape_data(gradient)
    gradient = gradient if data is None else getattr(gradient, data)
    return np.zeros(np.shape(array)) if gradient is None else np.asarray(gradient, np.float64)


def _takes_cotangent(y: Any) -> bool:
    """Return whether y.backward has an argument for what flows back."""
    try:
        parameters = inspect.signature(y.backward).parameters
    except (TypeError, ValueError):
        return False
    first = next(iter(parameters), "")
    return any(part in first.lower() for part in ("grad", "dy", "dout", "cotangent", "upstream"))
