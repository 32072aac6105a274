"""The subject of notes: two functions and their inputs."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Subject:
    """A pair of functions and inputs to run them on.

    `cotangent` is the gradient that comes in; None where the output is the loss itself, whose
    gradient is 1 and not written.
    """

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    arrays: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    cotangent: Any = None
    gradients: tuple[str, ...] | None = None
    #: Raises for inputs whose sizes do not fit, before anything is computed.
    validate: Callable[..., None] | None = None

    def fresh_options(self) -> dict[str, Any]:
        """The settings, with every generator in them as it was."""
        return copy.deepcopy(dict(self.options))


class Parameter(NamedTuple):
    """An argument: its name, the shape in its annotation, and whether it may be left out."""

    name: str
    shape: str
    optional: bool


def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The arguments of a function with the shapes that their annotations say."""
    found = inspect.signature(function).parameters.values()
    return tuple(
        Parameter(each.name, _shape(each.annotation), each.default is not each.empty)
        for each in found
    )


def _shape(annotation: Any) -> str:
    """The shape in `Float[Array, "N D"]`; of alternatives, all of them with "or"."""
    if not isinstance(annotation, str):
        own = getattr(annotation, "dim_str", None)
        return str(own).strip() if own is not None else ""
    try:
        return _written_shape(ast.parse(annotation.strip(), mode="eval").body)
    except SyntaxError:
        return ""


def _written_shape(annotation: ast.expr) -> str:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return " or ".join(filter(None, (_written_shape(left), _written_shape(right))))
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str() as shape)])):
            return shape.strip()
    return ""
