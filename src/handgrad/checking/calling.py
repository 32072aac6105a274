"""One way of calling a forward and a backward, brought to (y, cache) and (dy, cache)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from handgrad.checking.attributes import RATE, Returned
from handgrad.checking.given import Given, entries_of, flat
from handgrad.checking.object_arrays import RETURNED
from handgrad.checking.tensors import as_arrays, as_tensors
from handgrad.errors import ArgumentError

Function = Callable[..., Any]


class KeptArray(NamedTuple):
    """The cache of a convention: everything that backward may be given again."""

    values: tuple[Any, ...]
    outputs: Any
    caches: tuple[Any, ...]
    context: Any
    options: Mapping[str, Any]


class Context:
    """Stands for `ctx`, the first argument of a forward and a backward that keep things in it.

    What it is asked to save, by whatever name, is what it gives under any name of what is saved.
    """

    saved: tuple[Any, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        self.saved = arrays

    def __getattr__(self, name: str) -> Any:
        if name.startswith("saved_"):
            return self.saved
        if name.startswith(("save", "store", "keep")):
            return self.save_for_backward
        raise AttributeError(name)


@dataclass(frozen=True)
class Convention:
    """The way one pair is called.

    `roles` are those of backward's arguments: "dy", "cache", "output", "rate", "store" for a
    dictionary that takes in gradients, or the number of an argument of forward; "one" stands for
    the 1 that a loss is called with where it ends a network, and ".p" for the attribute `p` that
    forward left in its object.
    `outputs` is how many of forward's results are outputs: None where it returns y alone, 0 where y
    stands in an attribute of the object or an entry of a dictionary.
    """

    given: Given
    #: The names of the arrays that are given, and the numbers of those with a gradient.
    names: tuple[str, ...]
    wanted: tuple[int, ...]
    roles: tuple[str | int, ...]
    outputs: int | None = None
    context: bool = False
    tensors: bool = False
    #: Where y stands in an object's attributes, a dictionary, or among what forward returns.
    key: str = ""
    rate: float = RATE
    #: Other roles of the only argument, where by none of them the gradient is right.
    rivals: tuple[str | int, ...] = ()
    #: Backward is that of a loss, and is given what went into it, and no cotangent.
    is_of_loss: bool = False
    #: "mean" or "sum" where forward gives the losses of examples, and backward ends a network.
    over_examples: str = ""

    @property
    def note(self) -> str:
        """A remark on a backward that is right in this way; "" for the usual."""
        if self.over_examples:
            said = f"judged is the gradient of their {self.over_examples}"
            return f"forward gives a loss for each example: {said}"
        if self.roles == ("one",):
            return "backward does not use what flows back: right where a network ends in this loss"
        if self.roles == ("output",):
            return "the derivative is one of the output: right when it is called with y, not x"
        return ""

    def bound(self, forward: Function, backward: Function) -> tuple[Function, Function]:
        """Functions in the op contract that call these two in this way."""

        @functools.wraps(forward)
        def run(*arrays: Any, **options: Any) -> tuple[Any, Any]:
            result, given, context = self.called(forward, arrays, options)
            outputs, caches = self.split(result, forward)
            kept = KeptArray(given, outputs, caches, context, options)
            return (as_arrays(outputs) if self.tensors else outputs), kept

        def back(dy: Any, kept: KeptArray) -> Any:
            return self.gradients(self.returned(backward, dy, kept), backward)

        back.__qualname__ = getattr(backward, "__qualname__", "backward")
        return run, back

    def called(
        self, forward: Function, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Any, tuple[Any, ...], Any]:
        """What forward returns, what it was given, and the context that it kept things in."""
        filled = self.given.filled(arrays)
        given = tuple(as_tensors(each) if self.tensors else each for each in filled)
        context = Context() if self.context else None
        result = forward(*((context,) if self.context else ()), *given, **options)
        return result, given, context

    def returned(self, backward: Function, dy: Any, kept: KeptArray) -> Any:
        """What backward gives, as arrays, times what flows back where it does not ask for that."""
        owner = getattr(backward, "__self__", None)
        arguments = self.arguments(dy, kept, owner)
        values, settings = with_settings(backward, arguments, kept.options)
        found = backward(*values, **settings)
        if owner is not None:
            stored = (each for each in arguments if isinstance(each, Returned))
            setattr(owner, RETURNED, next(stored, Returned()))
        if found is None and owner is not None:
            names = [self.names[i] for i in self.wanted]
            found = [_attribute(vars(owner), name, len(names) == 1) for name in names]
            found = tuple(each for each in found if each is not None)
        found = as_arrays(found) if self.tensors else found
        return found if "dy" in self.roles else scaled(found, dy)

    def split(self, result: Any, forward: Function) -> tuple[Any, tuple[Any, ...]]:
        """What forward returned, as y and the caches."""
        y, caches = self._parted(result, forward)
        return (getattr(y, self.over_examples)() if self.over_examples else y), caches

    def _parted(self, result: Any, forward: Function) -> tuple[Any, tuple[Any, ...]]:
        if self.key:
            owner = getattr(forward, "__self__", None)
            if isinstance(result, Mapping):
                return result[self.key], (result,)
            if isinstance(result, tuple):
                return result[int(self.key)], result
            return vars(owner)[self.key], ()
        if self.outputs is None:
            return result, ()
        y = tuple(result[: self.outputs])
        return (y[0] if self.outputs == 1 else y), tuple(result[self.outputs :])

    def arguments(self, dy: Any, kept: KeptArray, owner: Any) -> tuple[Any, ...]:
        """The arguments that backward is called with, of this object if it is a method."""
        dy = as_tensors(dy) if self.tensors else dy
        cotangents = iter(dy if self.roles.count("dy") > 1 else (dy,))
        several = self.roles.count("cache") > 1
        one = kept.caches[0] if len(kept.caches) == 1 else kept.caches
        caches = iter(one if isinstance(one, tuple | list) else kept.caches)
        found: list[Any] = [kept.context] if self.context else []
        for role in self.roles:
            if role == "dy":
                found.append(_following(cotangents, "cotangents"))
            elif role == "cache":
                found.append(_following(caches, "caches") if several else one)
            elif role == "output":
                found.append(kept.outputs)
            elif role == "rate":
                found.append(self.rate)
            elif role == "store":
                found.append(Returned())
            elif role == "one":
                found.append(1.0)
            elif str(role).startswith("."):
                found.append(vars(owner)[str(role)[1:]])
            else:
                found.append(kept.values[int(role)])
        return tuple(found)

    def gradients(self, found: Any, backward: Function) -> Any:
        """The gradients of the wanted inputs; what else came back goes to the object."""
        owner = getattr(backward, "__self__", None)
        names = [self.names[i] for i in self.wanted]
        if isinstance(found, Mapping):
            by_name = gradients_by_name(found)
            shapes = {self.names[i]: np.shape(self.given.arrays[i]) for i in self.wanted}
            keys = entries_of(by_name, shapes)
            taken = set(keys.values())
            rest = Returned((key, each) for key, each in by_name.items() if key not in taken)
            several = [by_name[keys[name]] for name in names if name in keys]
        else:
            several = flat(found)
            rest = Returned(enumerate(several[len(names) :]))
            parts = found if isinstance(found, tuple) else ()
            of_inputs = flat([each for each in parts if not isinstance(each, Mapping)])
            if parts and len(of_inputs) == len(names):  # behind them those of parameters by name
                called = [gradients_by_name(e) for e in parts if isinstance(e, Mapping)]
                rest = Returned(pair for each in called for pair in each.items())
            several = several if owner is None else several[: len(names)]
        if owner is not None:
            vars(owner)[RETURNED] |= rest
        return tuple(several)


def with_settings(
    backward: Function, values: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a backward, with those settings of forward that it has arguments for."""
    if not options:
        return values, {}
    try:
        names = list(inspect.signature(backward).parameters)
    except (TypeError, ValueError):
        return values, {}
    settings = {name: options[name] for name in names if name in options}
    if not settings:
        return values, {}
    others = [name for name in names if name not in settings]
    if len(others) < len(values):
        return values, {}
    return (), {**dict(zip(others, values, strict=False)), **settings}


def gradients_by_name(found: Mapping[Any, Any], within: str = "") -> dict[str, Any]:
    """Gradients of nested dictionaries and lists by the names of their entries."""
    named: dict[str, Any] = {}
    for key, each in found.items():
        name = f"{within}{key}"
        if isinstance(each, Mapping):
            named |= gradients_by_name(each, f"{name}.")
        elif isinstance(each, list | tuple):
            named |= {f"{name}{i}": part for i, part in enumerate(each)}
        else:
            named[name] = each
    return named


def scaled(found: Any, dy: Any) -> Any:
    """Derivatives, or gradients of a number, times what flows back."""
    if isinstance(found, Mapping):
        return {key: scaled(each, dy) for key, each in found.items()}
    if isinstance(found, tuple | list):
        return type(found)([scaled(each, dy) for each in found])
    return None if found is None else _times(np.asarray(found), np.asarray(dy))


def _following(values: Iterator[Any], wanted: str) -> Any:
    """The next value. Raises ArgumentError where backward takes more than forward gives."""
    try:
        return next(values)
    except StopIteration:
        raise ArgumentError(
            f"backward takes more {wanted} than forward gives; allowed: arguments named as what "
            "forward takes, gives, or keeps in its object"
        ) from None


def _times(found: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """A derivative times what flows back, or a Jacobian: of each row, or of all the values."""
    if not dy.ndim:  # the gradient of a number has the form of x, also where that is 1 × 1
        return np.asarray(found * dy)
    rows = dy[..., 0] if dy.ndim > 1 and dy.shape[-1] == 1 else dy  # a column for each example
    if found.ndim == rows.ndim + 1 and found.shape == (*rows.shape, *rows.shape[-1:]):
        return np.asarray(np.einsum("...i,...ij->...j", rows, found).reshape(dy.shape))
    if found.shape == (dy.size, dy.size) != dy.shape:
        return np.asarray((dy.ravel() @ found).reshape(dy.shape))
    return np.asarray(found * dy)


def _attribute(attributes: Mapping[str, Any], name: str, alone: bool) -> Any:
    """The gradient of an input, where backward returns nothing and leaves it in its object."""
    spelled = (f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"d{name.upper()}")
    general = ("dinputs", "dinput", "dx", "dX", "grad_input", "grad_in", "input_grad")
    for each in (*spelled, *(general if alone else ())):
        if attributes.get(each) is not None:
            return attributes[each]
    return None
