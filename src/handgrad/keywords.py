"""Keyword settings that several functions share, each declared once with its kind and default.

    class Settings(TypedDict, total=False):
        eps: Annotated[float, 1e-5]

    def __init__(self, size: int, **settings: Unpack[Settings]) -> None:
        chosen = with_defaults("Layer", Settings, settings)

A caller writes `eps=0.1` as for any keyword. Type checkers read the declaration, and
`full_signature` puts every setting into the signature, from which help, errors and saved
descriptions have it.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    Final,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from handgrad.errors import ArgumentError
from handgrad.suggestions import did_you_mean

Settings = TypeVar("Settings", bound=Mapping[str, Any])

_EMPTY: Final = inspect.Parameter.empty
#: The modules before the names of classes.
_MODULES: Final = re.compile(r"[a-z_.]+\.(?=[A-Z])")


def with_defaults(name: str, kind: type[Settings], given: Settings) -> Settings:
    """All settings of this kind: those given, and the others at their default.

    Raises ArgumentError for a setting that the kind has not; `name` is named in it.
    """
    parameters = declared(kind)
    unknown = next((key for key in given if key not in parameters), None)
    if unknown is not None:
        raise ArgumentError(
            f"{name}: {unknown} is unknown; allowed: {', '.join(parameters)}"
            f"{did_you_mean(unknown, list(parameters))}"
        )
    defaults = {key: each.default for key, each in parameters.items() if each.default is not _EMPTY}
    return {**defaults, **given}  # type: ignore[return-value]


def selected(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """Those of the given settings that are of this kind."""
    return {key: given[key] for key in declared(kind) if key in given}  # type: ignore[return-value]


def full_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, where `**settings: Unpack[Kind]` stands for every setting."""
    found = inspect.signature(function)
    *others, last = found.parameters.values() or (None,)
    kind = None if last is None else _unpacked(function, last)
    if kind is None:
        return found
    return found.replace(parameters=[*others, *declared(kind).values()])


@functools.cache
def declared(kind: type[Any]) -> Mapping[str, inspect.Parameter]:
    """The settings of a kind as parameters, in the order of their declaration."""
    return {
        key: _parameter(key, hint)
        for key, hint in get_type_hints(kind, include_extras=True).items()
    }


def _parameter(key: str, hint: Any) -> inspect.Parameter:
    kind, default = get_args(hint) if get_origin(hint) is Annotated else (hint, _EMPTY)
    text = kind.__name__ if isinstance(kind, type) else _MODULES.sub("", str(kind))
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=text)


def _unpacked(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The class in `**settings: Unpack[Class]`; None for any other parameter."""
    kind = parameter.annotation
    if parameter.kind is not parameter.VAR_KEYWORD:
        return None
    if isinstance(kind, str):  # an annotation that was not evaluated
        kind = getattr(function, "__globals__", {}).get(kind.removeprefix("Unpack[")[:-1])
    else:
        kind = next(iter(get_args(kind)), None)
    return kind if is_typeddict(kind) else None
