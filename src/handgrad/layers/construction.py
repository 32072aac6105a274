"""Calls of layers' constructors: kept as settings, and put off while something is left open.

A size that the input decides may be None, and a generator may be left out. Then the constructor
runs later, in `Layer.build` or at the first fit, once the shape of an example and a seed are known.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from handgrad.calls import Explained, check_call, construct, constructor_of, is_own

Shape = tuple[int, ...]

#: The shapes of two inputs, such as source and target.
PairShape: TypeAlias = tuple[Shape, Shape]

#: An integer, or None for the size that the input of the layer has.
InputSize: TypeAlias = int | None


def known(size: InputSize) -> int:
    """The size that a constructor has as it runs: one that is given None is put off."""
    assert size is not None
    return size


class _FromSeed:
    """The generator of a layer that was given none: the model's seed makes it."""

    def __repr__(self) -> str:
        return "FROM_SEED"

    def __reduce__(self) -> str:
        return "FROM_SEED"


#: The default of `rng`: the generator comes from the seed that the model is built with.
FROM_SEED: Final[Any] = _FromSeed()

#: Arguments that may be None because an example of this shape decides them.
FROM_SHAPE: Final[Mapping[str, Callable[[Shape], Any]]] = {
    **dict.fromkeys(
        ("in_features", "input_size", "features", "d_model", "q_size"), lambda shape: shape[-1]
    ),
    **dict.fromkeys(("in_channels", "channels"), lambda shape: shape[0]),
}


@dataclass
class Construction:
    """The arguments that a constructor was called with, by parameter, and those left open."""

    kind: type
    arguments: dict[str, Any]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, kind: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Construction:
        """The call of this class's constructor. Raises TypeError where it cannot take them."""
        given = constructor_of(kind).bind(*args, **kwargs).arguments
        parameters = constructor_of(kind).parameters
        missing = tuple(
            name
            for name, parameter in parameters.items()
            if (name not in given and parameter.default is FROM_SEED)
            or (name in FROM_SHAPE and given.get(name, ...) is None and _is_required(parameter))
        )
        return cls(kind, {name: _kept(value) for name, value in given.items()}, missing)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are left open."""
        return tuple(name for name in self.missing if name in FROM_SHAPE)

    def filled(self, shape: Shape | None, rng: np.random.Generator) -> inspect.BoundArguments:
        """The call with what was left open, for an example of this shape."""
        for name in self.missing:
            self.arguments[name] = rng if name not in FROM_SHAPE else FROM_SHAPE[name](shape or ())
        self.missing = ()
        signature = constructor_of(self.kind)
        ordered = {n: self.arguments[n] for n in signature.parameters if n in self.arguments}
        return inspect.BoundArguments(signature, ordered)

    def settings(self) -> dict[str, Any]:
        """See `Layer.settings`."""
        return dict(self._settings())

    def _settings(self) -> Iterator[tuple[str, Any]]:
        for name, parameter in constructor_of(self.kind).parameters.items():
            if name not in self.arguments:
                continue
            value = self.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield f"*{name}", value
            elif parameter.kind is parameter.VAR_KEYWORD:
                yield from value.items()
            elif not isinstance(value, np.random.Generator) and not _is(value, parameter.default):
                yield name, value


class LayerType(Explained, ABCMeta):
    """The type of layers: their constructors wait while an argument is missing, and keep all."""

    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            init = cls.__init__
            if init is object.__init__:
                return super().__call__(*args, **kwargs)
            made, record = cls.__new__(cls, *args, **kwargs), None
            with suppress(TypeError):  # the constructor says in its own words what is wrong
                record = made._construction = Construction.of(cls, args, kwargs)
            if record is None or not record.missing:
                construct(made, args, kwargs)
            elif is_own(init):
                check_call(cls.__name__, init, args, kwargs)
            return made


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def _is(value: Any, default: Any) -> bool:
    return value is default or (not isinstance(value, np.ndarray) and bool(value == default))


def _kept(value: Any) -> Any:
    """The argument as it is now, whatever its owner does with it later."""
    if isinstance(value, list | tuple):
        return tuple(_kept(each) for each in value)
    if isinstance(value, dict):
        return {key: _kept(each) for key, each in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
