"""The ways in which people call a forward and a backward, brought to (y, cache) and (dy, cache).

What each argument of backward is, is told by its name, and where names leave it open by running the
candidates on the inputs: the first whose gradients have the inputs' shapes is meant.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.checking.attributes import RATE, RETURNED, Returned, twin_of
from handgrad.checking.given import Given, chosen, entry_of, flat
from handgrad.checking.tensors import as_arrays, as_tensors, uses_torch
from handgrad.checking.trial import leaves, random_like
from handgrad.checking.withheld import withheld

Function = Callable[..., Any]

_COTANGENT: Final = re.compile(
    r"(d|g|grad|delta|error|err|upstream|ct|cotangent|adjoint|top_diff|accum_grad)"
    r"|g(y|out|output|o|h|c)|d[A-Z_]\w*|\w*grad\w*|\w*gradient\w*|\w*upstream\w*|\w*cotangent\w*"
    r"|d_?(next|prev|cur|l)?_?([a-z]{1,2}\d?|out\w*|value\w*|logits|scores|loss|hidden|pred\w*)"
    r"|(delta|error)_\w+"
)
_CACHE: Final = re.compile(
    r"\w*(cache|ctx|context|saved|memory|tape|residual|intermediate|stash)\w*|res|mem|tmp"
)
_OUTPUT: Final = re.compile(r"y|out|output\w*|a|s|z|y_hat|y_pred|probs?|result", re.IGNORECASE)
_RATE: Final = re.compile(r"lr|eta|alpha|rate|learning_?rate|step_size|learn_rate", re.IGNORECASE)
_TARGET: Final = re.compile(
    r"y|t|target\w*|label\w*|y_?true|truth|true|mask|\w*_true|\w*_target\w*|expected|gt", re.I
)


class Kept(NamedTuple):
    """The cache of a convention: everything that backward may be given again."""

    values: tuple[Any, ...]
    outputs: Any
    caches: tuple[Any, ...]
    context: Any


class Context:
    """Stands for `ctx`, the first argument of a forward and a backward that keep things in it."""

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *arrays: Any) -> None:
        self.saved_tensors = self.saved = self.saved_values = arrays


@dataclass(frozen=True)
class Convention:
    """The way one pair is called.

    `roles` are those of backward's arguments: "dy", "cache", "output", "rate", or the number of an
    argument of forward. `outputs` is how many of forward's results are outputs: None where it
    returns y alone, 0 where y stands in an attribute of the object or an entry of a dictionary.
    """

    given: Given
    #: The names of the arrays that are given, and the numbers of those with a gradient.
    names: tuple[str, ...]
    wanted: tuple[int, ...]
    roles: tuple[str | int, ...]
    outputs: int | None = None
    context: bool = False
    tensors: bool = False
    #: Where y stands in an object's attributes or a dictionary.
    key: str = ""
    rate: float = RATE

    def bound(self, forward: Function, backward: Function) -> tuple[Function, Function]:
        """Functions in the op contract that call these two in this way."""

        @functools.wraps(forward)
        def run(*arrays: Any, **options: Any) -> tuple[Any, Any]:
            result, given, context = self.called(forward, arrays, options)
            outputs, caches = self.split(result, forward)
            kept = Kept(given, outputs, caches, context)
            return (as_arrays(outputs) if self.tensors else outputs), kept

        def back(dy: Any, kept: Kept) -> Any:
            return self.gradients(self.returned(backward, dy, kept), backward)

        back.__qualname__ = getattr(backward, "__qualname__", "backward")
        return run, back

    def withheld(self, forward: Function, backward: Function) -> tuple[str, ...]:
        """Sentences about arguments of backward that forward makes and keeps to itself."""
        names = positional(backward) or []
        if self.context or len(names) != len(self.roles):
            return ()
        return withheld(forward, [*zip(names, self.roles, strict=True)], self.names)

    def called(
        self, forward: Function, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[Any, tuple[Any, ...], Any]:
        """What forward returns, what it was given, and the context that it kept things in."""
        filled = self.given.filled(arrays)
        given = tuple(as_tensors(each) if self.tensors else each for each in filled)
        context = Context() if self.context else None
        result = forward(*((context,) if self.context else ()), *given, **options)
        return result, given, context

    def returned(self, backward: Function, dy: Any, kept: Kept) -> Any:
        """What backward gives, as arrays, times what flows back where it does not ask for that."""
        found = backward(*self.arguments(dy, kept))
        owner = getattr(backward, "__self__", None)
        if found is None and owner is not None:
            names = [self.names[i] for i in self.wanted]
            found = [_attribute(vars(owner), name, len(names) == 1) for name in names]
            found = tuple(each for each in found if each is not None)
        found = as_arrays(found) if self.tensors else found
        return found if "dy" in self.roles else scaled(found, dy)

    def split(self, result: Any, forward: Function) -> tuple[Any, tuple[Any, ...]]:
        """What forward returned, as y and the caches."""
        if self.key:
            owner = getattr(forward, "__self__", None)
            if isinstance(result, Mapping):
                return result[self.key], (result,)
            return vars(owner)[self.key], ()
        if self.outputs is None:
            return result, ()
        y = tuple(result[: self.outputs])
        return (y[0] if self.outputs == 1 else y), tuple(result[self.outputs :])

    def arguments(self, dy: Any, kept: Kept) -> tuple[Any, ...]:
        """What backward is called with."""
        dy = as_tensors(dy) if self.tensors else dy
        cotangents = iter(dy if self.roles.count("dy") > 1 else (dy,))
        several = self.roles.count("cache") > 1
        caches = iter(kept.caches)
        one = kept.caches[0] if len(kept.caches) == 1 else kept.caches
        found: list[Any] = [kept.context] if self.context else []
        for role in self.roles:
            if role == "dy":
                found.append(next(cotangents))
            elif role == "cache":
                found.append(next(caches) if several else one)
            elif role == "output":
                found.append(kept.outputs)
            elif role == "rate":
                found.append(self.rate)
            else:
                found.append(kept.values[int(role)])
        return tuple(found)

    def gradients(self, found: Any, backward: Function) -> Any:
        """The gradients of the wanted inputs; what else came back goes to the object."""
        owner = getattr(backward, "__self__", None)
        names = [self.names[i] for i in self.wanted]
        if isinstance(found, Mapping):
            by_name = _by_name(found)
            keys = [entry_of(by_name, name) for name in names]
            rest = Returned((key, each) for key, each in by_name.items() if key not in keys)
            several = [by_name[key] for key in keys if key is not None]
        else:
            several = flat(found)
            rest = Returned(enumerate(several[len(names) :]))
            several = several if owner is None else several[: len(names)]
        if owner is not None:
            setattr(owner, RETURNED, rest)
        return tuple(several)


def _by_name(found: Mapping[Any, Any], within: str = "") -> dict[str, Any]:
    """Gradients of nested dictionaries and lists by the names of their entries."""
    named: dict[str, Any] = {}
    for key, each in found.items():
        name = f"{within}{key}"
        if isinstance(each, Mapping):
            named |= _by_name(each, f"{name}.")
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
    return None if found is None else np.asarray(found) * dy


def convention_of(
    forward: Function,
    backward: Function,
    arguments: Sequence[str],
    given: Given,
    options: Mapping[str, Any],
) -> Convention | None:
    """The way in which this pair is called; None where it is the op contract, or cannot be told.

    `arguments` are the names of forward's.
    """
    names = tuple(given.names(arguments))
    floats = tuple(i for i, array in enumerate(given.arrays) if array.dtype.kind == "f")
    required = positional(backward)
    base = Convention(given, names, floats, (), context=takes_context(forward))
    first: Convention | None = None
    for tensors in (False, True):
        base = replace(base, tensors=tensors)
        if tensors and not (uses_torch(forward) or uses_torch(backward)):
            continue
        try:
            done = _ran(base, forward, options)
        except (
            Exception,
            SystemExit,
            GeneratorExit,
        ):  # the next may do; what forward raises is told where it is checked
            continue
        is_as_it_is = given.is_plain and not tensors and not base.context
        if is_as_it_is and _is_contract(required, done.result):
            return None
        alone = not is_derivative(backward, required or (), arguments)
        for each in _candidates(base, required, arguments, done, dy_first=alone):
            first = first or each
            try:
                found = _fitting(each, forward, backward, options)
            except (Exception, SystemExit, GeneratorExit):  # another candidate may be the one
                continue
            if found is not None:
                return found
    return first


class _Done(NamedTuple):
    result: Any
    attributes: tuple[str, ...]


def _ran(base: Convention, forward: Function, options: Mapping[str, Any]) -> _Done:
    """Forward's result, and the names of the arrays that it left in its object."""
    forward, _ = on_a_copy(forward, forward)
    owner = getattr(forward, "__self__", None)
    before = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    result, given, _ = base.called(forward, copy.deepcopy(base.given.arrays), options)
    after = vars(owner) if hasattr(owner, "__dict__") else {}
    inputs = {id(each) for each in given}
    written = [
        name
        for name, each in after.items()
        if id(each) not in inputs and before.get(name) is not each and _is_floats(each)
    ]
    return _Done(result, tuple(written))


def on_a_copy(forward: Function, backward: Function) -> tuple[Function, Function]:
    """The same methods of a copy of their object; functions as they are."""
    owner = getattr(forward, "__self__", None)
    if not isinstance(forward, MethodType) or isinstance(owner, type):
        return forward, backward
    twin = twin_of(owner)
    if isinstance(backward, MethodType) and backward.__self__ is owner:
        backward = MethodType(backward.__func__, twin)
    return MethodType(forward.__func__, twin), backward


def _fitting(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> Convention | None:
    """The candidate with the inputs that backward has gradients for; None where it does not fit."""
    forward, backward = on_a_copy(forward, backward)
    run, _ = convention.bound(forward, backward)
    arrays = convention.given.arrays
    y, kept = run(*copy.deepcopy(arrays), **options)
    if not all(each.dtype.kind in "fiub" for each in leaves(y)):
        return None
    found = convention.returned(backward, random_like(y, np.random.default_rng(0)), kept)
    has_owner = hasattr(getattr(backward, "__self__", None), "__dict__")
    floats = convention.wanted
    likely = [i for i in floats if not _TARGET.fullmatch(convention.names[i])]
    if isinstance(found, Mapping):
        by_name = _by_name(found)
        there = tuple(i for i in floats if entry_of(by_name, convention.names[i]) is not None)
        return replace(convention, wanted=there) if there or has_owner else None
    several = flat(found)
    if len(several) > len(floats) and has_owner:
        several = several[: len(floats)]
    wanted = chosen(several, arrays, floats, likely)
    if wanted is None:
        return None
    is_whole = {i for i in likely if np.ndim(arrays[i])} <= {*wanted}
    return replace(convention, wanted=wanted) if is_whole or "dy" not in convention.roles else None


def is_derivative(backward: Function, required: Sequence[str], arguments: Sequence[str]) -> bool:
    """Return whether this takes the inputs alone, by its name and theirs, and no cotangent."""
    name = getattr(backward, "__name__", "").casefold()
    is_backward = any(part in name for part in ("back", "bwd", "vjp", "bprop"))
    given_again = all(each in arguments for each in required)
    return given_again and (not is_backward or len(required) > 1 or not required)


def value_and_gradients(
    function: Function, arguments: Sequence[str], given: Given, options: Mapping[str, Any]
) -> tuple[tuple[Function, Function], Convention] | None:
    """A function that returns a number and its gradients as a pair, and the way that is called.

    None for any other function, and for one that raises.
    """
    owner = getattr(function, "__self__", None)
    backward: Function = _given_back if owner is None else MethodType(_given_back_by, owner)
    names = tuple(given.names(arguments))
    floats = tuple(i for i, array in enumerate(given.arrays) if array.dtype.kind == "f")
    for tensors in (False, True):
        base = Convention(given, names, floats, ("cache",), 1, tensors=tensors)
        try:
            result = as_arrays(_ran(base, function, options).result)
            if not isinstance(result, tuple) or len(result) != 2 or np.size(result[0]) != 1:
                return None
            found = _fitting(base, function, backward, options)
        except (Exception, SystemExit, GeneratorExit):  # tensors may be wanted; or it is none such
            continue
        return None if found is None else ((function, backward), found)
    return None


def _given_back(gradients: Any) -> Any:
    return gradients


def _given_back_by(_: Any, gradients: Any) -> Any:
    return gradients


def positional(function: Function) -> list[str] | None:
    """The names of the arguments that have to be given by position; None where nobody can tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return None
    required = [e.name for e in parameters if e.kind in kinds and e.default is e.empty]
    if not required:  # backward(dout=1)
        optional = [each.name for each in parameters if each.kind in kinds]
        required = [each for each in optional[:1] if _COTANGENT.fullmatch(each)]
    return required


def _is_contract(required: list[str] | None, result: Any) -> bool:
    """Return whether these are (y, cache) and (dy, cache), for all that the names say."""
    if not isinstance(result, tuple) or len(result) != 2:
        return False
    if required is None or len(required) != 2:
        return required is None
    first, second = (len(each) > 1 and bool(_COTANGENT.fullmatch(each)) for each in required)
    return not second or (first and not all(each.startswith(("d", "D")) for each in required))


def takes_context(forward: Function) -> bool:
    try:
        first = next(iter(inspect.signature(forward).parameters), "")
    except (TypeError, ValueError):
        return False
    return first in ("ctx", "context")


def _candidates(
    base: Convention,
    required: list[str] | None,
    arguments: Sequence[str],
    done: _Done,
    *,
    dy_first: bool,
) -> Iterator[Convention]:
    """The ways in which backward may be meant, the likeliest first."""
    results = len(done.result) if isinstance(done.result, tuple) else None
    found = _roles(required, arguments, results, context=base.context)
    if dy_first and required is not None and len(required) == 1:
        found = itertools.chain([("dy",)], found)
    for roles in found:
        for outputs, key in _outputs(roles, done):
            yield replace(base, roles=roles, outputs=outputs, key=key)


def _roles(
    required: list[str] | None, names: Sequence[str], results: int | None, *, context: bool
) -> Iterator[tuple[str | int, ...]]:
    inputs: tuple[int, ...] = tuple(range(len(names)))
    if required is None:
        if results is not None:
            yield ("dy", *("cache",) * (results - 1))
        yield ("dy",)
        yield ("dy", *inputs)
        return
    required = required[1:] if context else required
    known: list[str | int | None] = []
    for name in required:
        if name in names and not (_COTANGENT.fullmatch(name) and len(name) > 2):
            known.append(names.index(name))
        elif _RATE.fullmatch(name):
            known.append("rate")
        elif _COTANGENT.fullmatch(name):
            known.append("dy")
        elif _CACHE.fullmatch(name):
            known.append("cache")
        else:
            known.append(None)
    if "dy" not in known and None in known:
        known[known.index(None)] = "dy"
    yield from _completed(known, required, names, results)
    for i, role in enumerate(known):  # an input of the same name as what flows back
        if role not in ("dy", "cache", "rate") and "dy" not in known:
            yield from _completed([*known[:i], "dy", *known[i + 1 :]], required, names, results)


def _completed(
    known: Sequence[str | int | None],
    required: Sequence[str],
    names: Sequence[str],
    results: int | None,
) -> Iterator[tuple[str | int, ...]]:
    """The arguments whose names say nothing: caches, the output, or inputs in order."""
    open_ = [i for i, role in enumerate(known) if role is None]
    fillings: list[list[str | int]] = []
    if results is not None:
        fillings.append(["cache"] * len(open_))
    if open_ and _OUTPUT.fullmatch(required[open_[0]]):
        fillings.append(["output", *range(len(open_) - 1)])
    left = [i for i in range(len(names)) if i not in known]
    fillings.append([*left, *range(len(names))][: len(open_)])
    fillings.append(["output"] * len(open_))
    for filling in fillings if open_ else [[]]:
        if len(filling) == len(open_):
            filled = dict(zip(open_, filling, strict=True))
            yield tuple(filled.get(i, role) or 0 for i, role in enumerate(known))


def _outputs(roles: Sequence[str | int], done: _Done) -> Iterator[tuple[int | None, str]]:
    """How many of the results are outputs, or the name of the one."""
    result = done.result
    cotangents, caches = roles.count("dy"), roles.count("cache")
    if isinstance(result, Mapping):
        keys = [str(key) for key, value in result.items() if _is_floats(value)]
        for key in (*(each for each in keys if _OUTPUT.fullmatch(each)), *reversed(keys)):
            yield 0, key
    elif result is None:
        likely = [each for each in done.attributes if _OUTPUT.fullmatch(each)]
        for key in dict.fromkeys((*likely, *reversed(done.attributes))):
            yield 0, key
    elif not isinstance(result, tuple):
        yield None, ""
    else:
        size = len(result)
        if cotangents > 1:
            yield cotangents, ""
        elif cotangents and caches > 1 and size > caches:
            yield size - caches, ""
        elif cotangents and caches == 1:
            yield from ((each, "") for each in dict.fromkeys((size - 1, 1)) if each < size)
        else:
            if all(_is_floats(each) for each in result):
                yield size, ""
            yield 1, ""


def _attribute(attributes: Mapping[str, Any], name: str, alone: bool) -> Any:
    """The gradient of an input, where backward returns nothing and leaves it in its object."""
    spelled = (f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"d{name.upper()}")
    general = ("dinputs", "dinput", "dx", "dX", "grad_input", "grad_in", "input_grad")
    for each in (*spelled, *(general if alone else ())):
        if attributes.get(each) is not None:
            return attributes[each]
    return None


def _is_floats(value: Any) -> bool:
    dtype = str(getattr(value, "dtype", ""))
    return "float" in dtype or isinstance(value, float)
