"""The arguments of forward and backward: their names, and the settings that are taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from handgrad.checking.conventions import (
    takes_context,
)
from handgrad.errors import ArgumentError
from handgrad.targets import op_of


def required_names(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that a function has to be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is each.empty]


def input_names(
    forward: Callable[..., Any], count: int, *, context: bool = False
) -> tuple[str, ...]:
    """The names of the first `count` arguments; a `ctx` before them is none where there may be."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return tuple(f"input{i}" for i in range(count))
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds]
    names = names[1:] if context and takes_context(forward) else names
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        names += [f"input{i}" for i in range(len(names), count)]
    if len(names) < count:
        raise ArgumentError(
            f"check: {count} arrays are given, but forward takes {len(names)}: {', '.join(names)}"
        )
    return tuple(names[:count])


def accepted(forward: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this forward takes."""
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        return dict(options)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return dict(options)
    return {name: value for name, value in options.items() if name in parameters}


def check_options(target: Any, like: ModuleType | None, options: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a setting that the target's forward does not take."""
    target = op_of(target) or target
    forward = target[0] if isinstance(target, tuple) and target else target
    forward = getattr(forward, "forward", forward if isinstance(target, tuple) else None)
    if not callable(forward):
        forward = None if like is None else like.forward
    for name in options if forward is not None else ():
        if not takes(forward, {name: options[name]}):
            raise ArgumentError(
                f"check: forward takes no argument {name!r}; allowed: forward"
                f"{inspect.signature(forward)}"
            )


def takes(forward: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    """Return whether forward takes every one of these options."""
    return len(accepted(forward, options)) == len(options)


def wanted(wrt: Sequence[str], names: tuple[str, ...]) -> Sequence[str]:
    """wrt. Raises ArgumentError where it has what is none of these names."""
    for name in wrt:
        if name not in names:
            raise ArgumentError(f"check: wrt has {name!r}; allowed: {', '.join(names)}")
    return wrt
