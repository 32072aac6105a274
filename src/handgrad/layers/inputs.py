"""The inputs of a layer as callers give them, in the type of its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import array_api_compat
import numpy as np

from handgrad.calls import check_call
from handgrad.conversion import converted
from handgrad.dispatch.values import remedy, shown
from handgrad.errors import ArgumentError

Method = TypeVar("Method", bound=Callable[..., object])


class TakesInputs(Protocol):
    """What a layer says of its inputs."""

    @property
    def parameter_names(self) -> tuple[str, ...]: ...
    @property
    def buffer_names(self) -> tuple[str, ...]: ...
    @property
    def takes_tokens(self) -> bool: ...
    @property
    def layers(self) -> Mapping[str, TakesInputs]: ...


def in_own_type(written: Method) -> Method:
    """A layer's forward, called with inputs in the type of the layer's parameters.

    One array of that type costs a comparison. The function as written stays reachable as
    `.reference`, which is what notes read.
    """
    forward = _of_any_inputs(written)
    if _names(written)[:2] == ("x", "training"):
        forward = _of_one_input(written, forward)
    forward.reference = written  # type: ignore[attr-defined]
    return forward  # type: ignore[return-value]


def _of_one_input(written: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """The same for `forward(x, *, training)`, which passes an array on without unpacking.

    `other` takes what is not one array of the layer's type.
    """
    ndarray = np.ndarray

    @functools.wraps(written)
    def forward(self: Any, x: Any, *others: Any, training: bool = False, **settings: Any) -> Any:
        try:
            plain = type(x) is ndarray and x.dtype is self._input_type
        except AttributeError:  # it has met no input yet
            plain = False
        if plain and not others and not settings:
            return written(self, x, training=training)
        return other(self, x, *others, training=training, **settings)

    return forward


def _of_any_inputs(written: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(written)
    def forward(self: Any, *inputs: Any, **settings: Any) -> Any:
        try:
            (x,) = inputs
            plain = type(x) is np.ndarray and x.dtype is self._input_type
        except (AttributeError, ValueError):
            plain = False
        if not plain:
            inputs, settings = _settled(self, _names(written), inputs, settings)
        try:
            return written(self, *inputs, **settings)
        except TypeError:
            check_call(f"{type(self).__name__}.forward", written, inputs, settings)
            raise

    return forward


@functools.cache
def _names(forward: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a forward without self."""
    return tuple(inspect.signature(forward).parameters)[1:]


def _settled(
    layer: Any, names: tuple[str, ...], inputs: tuple[Any, ...], settings: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with arrays of floats, and x whatever numbers it has, in the layer's type."""
    own = _own_type(layer)
    if own is not None:
        first, tokens = names[0], reads_tokens(layer)
        if first in settings:
            settings[first] = _first(layer, first, settings[first], own, tokens)
        elif inputs:
            inputs = (_first(layer, first, inputs[0], own, tokens), *inputs[1:])
        others = (_other(layer, names, i, inputs[i], own) for i in range(1, len(inputs)))
        inputs = (*inputs[:1], *others)
    # The next input of this type, which may be that of tokens, is not looked at.
    layer._input_type = getattr(inputs[0], "dtype", None) if inputs else own
    return inputs, settings


def _own_type(layer: TakesInputs) -> np.dtype[Any] | None:
    """The type of the first array of floats among parameters and buffers; None without one."""
    for name in (*layer.parameter_names, *layer.buffer_names):
        dtype = getattr(getattr(layer, name), "dtype", None)
        if isinstance(dtype, np.dtype) and dtype.kind == "f":
            return dtype
    return next(filter(None, map(_own_type, layer.layers.values())), None)


def _first(layer: TakesInputs, name: str, x: Any, own: np.dtype[Any], tokens: bool) -> Any:
    if type(x) is np.ndarray:
        return (
            x
            if tokens or x.dtype.kind not in "fiub"
            else converted(layer, name, x, own, "the parameters")
        )
    is_own = type(layer).__module__.startswith("handgrad.")
    if is_own and not array_api_compat.is_array_api_obj(x):
        line = remedy(name, x, np.dtype(np.int64) if tokens else own)
        raise ArgumentError(
            f"{type(layer).__name__}: {name} is {shown(x)}; allowed: an array{line}"
        )
    return x


def _other(
    layer: TakesInputs, names: tuple[str, ...], i: int, value: Any, own: np.dtype[Any]
) -> Any:
    """Another input, such as a memory or a state; integers are lengths or tokens."""
    if type(value) is tuple:
        return tuple(_other(layer, names, i, each, own) for each in value)
    if type(value) is np.ndarray and value.dtype.kind == "f":
        return converted(layer, names[min(i, len(names) - 1)], value, own, "the parameters")
    return value


def reads_tokens(layer: TakesInputs) -> bool:
    """Return whether the layer, or the first of those in it, takes tokens.

    A class that says False itself makes tokens for its layers.
    """
    if vars(type(layer)).get("takes_tokens") is False:
        return False
    first = next(iter(layer.layers.values()), None)
    return layer.takes_tokens or (first is not None and reads_tokens(first))
