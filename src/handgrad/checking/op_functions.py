"""A `ForwardBackward` of an op, or of functions that are meant to be that op."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from handgrad.checking.arguments import accepted, input_names
from handgrad.checking.rounding.bounded import Bounded
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.ops import OPS
from handgrad.ops.samples import Seed, gradient_names
from handgrad.targets import op_of


def op_module(like: Any) -> ModuleType | None:
    """The op that `like` names or is; None for None. Raises ArgumentError for anything else."""
    op = op_of(like)
    if op is None and like is not None:
        raise ArgumentError(
            f"check: like is {like!r}; allowed: an op such as hg.ops.layer_norm, of "
            f"{', '.join(OPS)}"
        )
    return op


def name_of(target: Any, backward: Callable[..., Any]) -> str:
    if isinstance(target, ModuleType | type):
        return target.__name__
    function = getattr(backward, "func", backward)  # of one that a flag makes a derivative
    return getattr(function, "__qualname__", type(target).__name__)


def of_op(
    op: ModuleType,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    arrays: Sequence[Any],
    options: Mapping[str, Any],
    *,
    source: Any,
) -> ForwardBackward:
    """An op, or functions that are meant to be that op; arrays are None for inputs left out."""
    op_name = op.__name__.rpartition(".")[2]
    given = [array is not None for array in arrays]
    op_names = tuple(itertools.compress(input_names(op.forward, len(arrays)), given))
    own = source is op
    if not own and forward is op.forward.reference:
        forward = _on_reference(op)
    names = tuple(itertools.compress(input_names(forward, len(arrays)), given))
    named = dict(zip(op_names, names, strict=True))
    return ForwardBackward(
        name=op_name if own else name_of(source, backward),
        inputs=names,
        gradients=tuple(named[name] for name in gradient_names(op_name) if name in named),
        forward=_at_positions(
            with_options(forward, options if own else accepted(forward, options)), given
        ),
        backward=_given(backward, op_name, op_names),
        op=op_name,
    )


def with_options(forward: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """Forward with its settings bound, those that are arrays in the type of the inputs.

    Where rounding is counted they are rounded too, as a computation in that type has them. Every
    call draws from the same state of a generator.
    """

    def run(*arrays: Any) -> Any:
        counted = next((each for each in arrays if isinstance(each, Bounded)), None)
        dtype = next((each.dtype for each in arrays if is_floats(each)), np.dtype(np.float64))
        fresh = {name: _fresh(value, dtype) for name, value in options.items()}
        if counted is not None:
            fresh = {
                name: counted.arithmetic.rounded(value) if is_floats(value) else value
                for name, value in fresh.items()
            }
        return forward(*arrays, **fresh)

    return run if options else forward


def _at_positions(forward: Callable[..., Any], given: Sequence[bool]) -> Callable[..., Any]:
    """Forward with None for every input that is not given."""
    if all(given):
        return forward

    def run(*arrays: Any) -> Any:
        rest = iter(arrays)
        return forward(*(next(rest) if there else None for there in given))

    return run


def is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _fresh(value: Any, dtype: Any) -> Any:
    if isinstance(value, Seed):
        return np.random.default_rng(value.number)
    if isinstance(value, np.random.Generator | dict | list):  # which forward may write into
        return unwritten(value)
    return value.astype(dtype) if is_floats(value) else value


def unwritten(value: Any) -> Any:
    """A copy of a setting, so that what is written into it is there in one call alone."""
    try:
        return copy.deepcopy(value)
    except Exception:  # something in it, such as a module, has no copy
        return value


def _on_reference(op: ModuleType) -> Callable[..., Any]:
    """The op's forward with the cache of its reference, which is what the contract describes."""

    def forward(*arrays: Any, **options: Any) -> Any:
        with engine("reference"):
            return op.forward(*arrays, **options)

    forward.__signature__ = inspect.signature(op.forward)  # type: ignore[attr-defined]
    return forward


def _given(
    backward: Callable[..., Any], op_name: str, names: tuple[str, ...]
) -> Callable[..., Any]:
    """Backward without the gradients of optional inputs that were not given."""
    every = gradient_names(op_name)
    kept = [i for i, name in enumerate(every) if name in names]
    if len(kept) == len(every):
        return backward

    def given(dy: Any, cache: Any) -> Any:
        found = backward(dy, cache)
        if not isinstance(found, tuple) or len(found) != len(every):
            return found
        return tuple(found[i] for i in kept) if len(kept) > 1 else found[kept[0]]

    return given
