"""Arguments and results of other frameworks' functions, as NumPy arrays and constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from handgrad.errors import ArgumentError
from handgrad.forward_backward import Nested


@dataclass(frozen=True)
class FunctionArguments:
    """Positional arguments of a function: arrays, which vary, among constants, which do not."""

    names: tuple[str, ...]  # of the arrays
    positions: tuple[int, ...]  # of the arrays, among all arguments
    values: tuple[Any, ...]

    @classmethod
    def of(
        cls,
        what: str,
        function: Callable[..., Any],
        values: Sequence[Any],
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> FunctionArguments:
        """Arrays named as in the function's signature; those of `*xs` are xs0, xs1, ...

        `options`, by name, go in by position behind the values, as a PyTorch Function takes them.

        Raises ArgumentError where the function cannot be called with so many.
        """
        signature = inspect.signature(function)
        try:
            together = signature.bind(*values, **options)
            values = together.args
            bound = signature.bind(*values)
            if together.kwargs:
                raise TypeError("an argument by name only")
        except TypeError:
            raise ArgumentError(
                f"{what}: {len(values)} inputs given; allowed: what forward{signature} takes"
            ) from None
        names: list[str] = []
        for name, value in bound.arguments.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            names += [f"{name}{i}" for i in range(len(value))] if several else [name]
        positions = tuple(i for i, value in enumerate(values) if isinstance(value, np.ndarray))
        return cls(tuple(names[i] for i in positions), positions, tuple(values))

    @property
    def arrays(self) -> list[Any]:
        return [self.values[position] for position in self.positions]

    def filled(self, arrays: Sequence[Any]) -> list[Any]:
        """All the arguments, with these in the positions of the arrays."""
        values = list(self.values)
        for position, array in zip(self.positions, arrays, strict=True):
            values[position] = array
        return values


def nested(what: str, value: Any, is_array: Callable[[Any], bool], convert: Any) -> Nested:
    """A framework's result with every array converted, lists as tuples, and without None.

    Raises ArgumentError for anything else in it.
    """
    if is_array(value):
        return convert(value)
    if isinstance(value, (tuple, list)):
        parts = [part for part in value if part is not None]
        return tuple(nested(what, part, is_array, convert) for part in parts)
    raise ArgumentError(
        f"{what}: forward returns a {type(value).__name__}; allowed: an array or a tuple of arrays"
    )


def leaves(value: Nested) -> Iterator[Any]:
    """The arrays of nested tuples, in order."""
    if not isinstance(value, tuple):
        yield value
        return
    for part in value:
        yield from leaves(part)


def bare(gradients: Sequence[Any]) -> Any:
    """Gradients as a backward returns them: one bare, several as a tuple."""
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def takes_float64(forward: Callable[..., tuple[Nested, Any]], arrays: Sequence[Any]) -> bool:
    """False where float32 goes in, but float64 is refused or comes out as another float type.

    Found by trying. Where forward fails on both, float64 is not the reason.
    """

    def attempt(dtype: type) -> list[Any]:
        y, _ = forward(*[a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays])
        return [part.dtype for part in leaves(y) if part.dtype.kind == "f"]

    try:
        return all(dtype == np.float64 for dtype in attempt(np.float64))
    except Exception:
        pass
    try:
        attempt(np.float32)
    except Exception:
        return True
    return False
