"""The shapes of a derived forward's arguments: an axis of another length would be broadcast."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from handgrad.deriving.arguments import Arguments, Spec, at
from handgrad.program.sizes import Size


def with_lengths(function: Callable[..., Any], arguments: Arguments) -> Callable[..., Any]:
    """A function that raises ValueError where an array does not have the axes of its letters.

    An axis of 1 in the place of a longer one is broadcast by the operations of a forward, so that
    its gradient would have the longer one.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # which the function itself says
            return function(*args, **kwargs)
        _check(arguments, given)
        return function(*args, **kwargs)

    return forward


def shapes_of(
    arguments: Arguments, given: Mapping[str, Any]
) -> tuple[list[tuple[Spec, tuple[int, ...]]], dict[str, int]]:
    """The shapes of the arrays that are given, and the lengths of letters in them."""
    shapes: list[tuple[Spec, tuple[int, ...]]] = []
    for spec in arguments.specs:
        try:
            shapes.append((spec, np.shape(at(given, spec.path))))
        except (KeyError, IndexError, TypeError, AttributeError):  # left out, or in another tree
            continue
    lengths: dict[str, int] = {}
    for spec, shape in shapes:
        if len(shape) == len(spec.shape):
            for size, n in zip(spec.shape, shape, strict=True):
                letter = str(size)
                if size == Size.of(letter) and lengths.get(letter, 1) == 1:
                    lengths[letter] = n
    return shapes, lengths


def _check(arguments: Arguments, given: Mapping[str, Any]) -> None:
    """Raises ValueError for an array of other axes than it was derived with."""
    shapes, lengths = shapes_of(arguments, given)
    for spec, shape in shapes:
        known = [s.number(lengths) if s.letters <= lengths.keys() else None for s in spec.shape]
        if len(shape) == len(known) and all(
            m is None or m == n for m, n in zip(known, shape, strict=True)
        ):
            continue
        letters = ", ".join(map(str, spec.shape)) + ("," if len(spec.shape) == 1 else "")
        numbers = ", ".join(f"{x} = {lengths[x]}" for x in sorted(_letters(spec) & lengths.keys()))
        where = f" where {numbers}" if numbers else ""
        raise ValueError(
            f"{arguments.text(spec.path)} has shape {shape}; allowed: ({letters}){where}"
        )


def _letters(spec: Spec) -> set[str]:
    return {letter for size in spec.shape for letter in size.letters}
