"""A `ForwardBackward` of the two methods of a user's object, each run on a fresh copy of it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Final

import numpy as np

from handgrad.checking.arguments import accepted, required_names
from handgrad.checking.attributes import RATE, Held, Methods, attributes, warmed
from handgrad.checking.calling import Convention, scaled
from handgrad.checking.conventions import on_a_copy
from handgrad.checking.object_arrays import (
    RETURNED,
    clear,
    get,
    names_of,
    put,
    set_rates,
    twin_of,
)
from handgrad.checking.op_functions import with_options
from handgrad.checking.trial import in_order
from handgrad.forward_backward import ForwardBackward

#: Said of an object that is no function of its inputs.
_STATEFUL: Final = (
    "forward and backward give something else on a second call of the same object: something is "
    "left over from the last call; every call here is on a fresh copy"
)


class Called:
    """The two functions that a target has, in the op contract, on any copy of their object."""

    def __init__(
        self,
        methods: tuple[Callable[..., Any], Callable[..., Any]],
        convention: Convention | None,
        options: Mapping[str, Any],
    ) -> None:
        self.methods = methods
        self.convention = convention
        self.options = accepted(methods[0], options)
        self._keeps = _keeps_its_cache(methods[1])

    def stateless(
        self, twin: Any, rate: float = RATE
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Forward with all its arguments, and backward; methods are those of the copy."""
        methods = self.methods
        if twin is not None:
            forward, backward = (MethodType(each.__func__, twin) for each in methods)  # type: ignore[attr-defined]
            methods = forward, backward
        if self.convention is not None:
            return replace(self.convention, rate=rate).bound(*methods)
        return _keeping(*methods) if self._keeps else methods

    def on(self, twin: Any, rate: float = RATE) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The same, with forward's settings bound."""
        forward, backward = self.stateless(twin, rate)
        return with_options(forward, self.options), backward

    @property
    def takes_cotangent(self) -> bool:
        """Return whether backward is given what flows back, and not the 1 of a loss."""
        return self.convention is None or "dy" in self.convention.roles

    @property
    def takes_rate(self) -> bool:
        return self.convention is not None and "rate" in self.convention.roles


def with_attributes(
    functions: ForwardBackward, owner: Any, pair: Called, arrays: Sequence[Any]
) -> ForwardBackward:
    """The same with the parameters that the object keeps, where it keeps their gradients too.

    Every forward is that of a new copy of the object, so that what backward adds to, and what
    forward leaves behind, is of this run alone.
    """
    methods = Methods(
        lambda twin, *inputs: pair.on(twin)[0](*inputs),
        lambda twin, dy, cache, rate: pair.on(twin, rate)[1](dy, cache),
        pair.takes_rate,
    )
    found = attributes(owner, methods, arrays)
    if (warm := warmed(owner, methods, arrays)) is not None:
        drawn = attributes(warm, methods, arrays)
        if len(drawn.parameters) > len(found.parameters):
            owner, found = warm, drawn
    unjudged = (*functions.unjudged, *found.unjudged)
    notes = tuple(functions.notes)
    notes += (_STATEFUL,) if found.is_stateful and not found.steps else ()
    try:
        start = twin_of(owner)
    except Exception:  # an object that cannot be copied is called itself
        return replace(functions, unjudged=unjudged)
    set_rates(start, found.rates, found.rate)
    named = {
        f"self.{name}" if name in functions.inputs else name: name for name in found.parameters
    }
    places = {name: names_of(start, found.paths[name]) for name in named.values()}
    count = len(functions.inputs)
    shapes = {name: np.shape(array) for name, array in zip(functions.inputs, arrays, strict=True)}

    def forward(*given: Any) -> Any:
        twin = twin_of(start)
        for name, array in zip(named.values(), given[count:], strict=True):
            put(twin, places[name], array)
        result = pair.on(twin, found.rate)[0](*given[:count])
        is_pair = isinstance(result, tuple) and len(result) == 2
        return (result[0], Held(twin, result[1])) if is_pair else result

    def backward(dy: Any, held: Any) -> Any:
        # A copy again: a second backward starts from what forward left, not from what backward did.
        changes = found.steps or found.is_stateful or pair.takes_rate
        twin, cache = copy.deepcopy((held.twin, held.cache)) if changes else (held.twin, held.cache)
        for name, path in found.gradients.items():
            if name not in found.steps:
                clear(twin, path, start, get(twin, found.paths[name]))
        begun = {name: np.array(get(twin, found.paths[name])) for name in found.steps}
        returned = pair.on(twin, found.rate)[1](dy, cache)
        of_inputs = in_order(functions, shapes, returned) if functions.gradients else ()
        if len(of_inputs) != len(functions.gradients):
            return returned

        def gradient(name: str) -> Any:
            now = get(twin, found.gradients[name])
            now = (begun[name] - now) / RATE if name in found.steps else now
            is_scaled = pair.takes_cotangent or found.gradients[name][0] == RETURNED
            return now if is_scaled or np.size(dy) != 1 else scaled(now, dy)

        return (*of_inputs, *(gradient(name) for name in found.gradients))

    return replace(
        functions,
        inputs=(*functions.inputs, *named),
        gradients=(*functions.gradients, *named),
        forward=forward,
        backward=backward,
        parameters={new: found.parameters[name] for new, name in named.items()},
        unjudged=unjudged,
        notes=notes,
    )


def stateless(
    forward: Callable[..., Any], backward: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions; of methods that keep the cache in their object, those of a fresh copy."""
    if not _keeps_its_cache(backward):
        return forward, backward

    @functools.wraps(forward)
    def on_another(*arrays: Any, **options: Any) -> tuple[Any, Any]:
        ahead, back = on_a_copy(forward, backward)
        return ahead(*arrays, **options), Held(back, None)

    def back_on_it(dy: Any, held: Held) -> Any:
        return held.twin(dy)

    back_on_it.__qualname__ = getattr(backward, "__qualname__", "backward")
    return on_another, back_on_it


def _keeps_its_cache(backward: Callable[..., Any]) -> bool:
    return hasattr(backward, "__self__") and len(required_names(backward)) == 1


def _keeping(
    forward: Callable[..., Any], backward: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    @functools.wraps(forward)
    def keeping(*arrays: Any, **options: Any) -> tuple[Any, Any]:
        return forward(*arrays, **options), None

    def kept(dy: Any, cache: Any) -> Any:
        return backward(dy)

    kept.__qualname__ = getattr(backward, "__qualname__", "backward")
    return keeping, kept
