"""The way in which a forward and a backward are meant to be called, found by names and by running.

What each argument of backward is, is told by its name, and where names leave it open by running the
candidates on the inputs: the first whose gradients have the inputs' shapes is meant.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Final

import numpy as np

from handgrad.checking.calling import Convention, Function, gradients_by_name
from handgrad.checking.given import Given, chosen, entries_of, flat
from handgrad.checking.object_arrays import twin_of
from handgrad.checking.roles import COTANGENT, OUTPUT, Ran, candidates, is_floats
from handgrad.checking.tensors import as_arrays, uses_torch
from handgrad.checking.trial import leaves, like_nested, random_like, same_outputs
from handgrad.checking.withheld import withheld
from handgrad.differences.directional import directional
from handgrad.seeding import seeded
from handgrad.targets import CONTEXTS

#: The part of its size by which a right derivative may differ from differences, beside their own
#: error: enough to tell one reading of an argument from another.
_AGREES: Final = 1e-6

#: The part of its size within which differences have to know a derivative that tells readings.
_KNOWN: Final = 1e-2

#: Names of labels and masks, which have no gradient as a rule.
TARGET: Final = re.compile(
    r"y|t|target\w*|label\w*|y_?true|truth|true|real|actual|mask|\w*_true|\w*_target\w*|expected"
    r"|gt",
    re.I,
)


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
    asked = positional(backward)
    required = None if asked is None else [name for name in asked if name not in options]
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
        is_given_again = bool(required) and {*(required or ())} <= {*arguments}
        is_whole = is_as_it_is and required == asked and not is_given_again
        is_whole = is_whole and _is_contract(required, done.result)
        if is_whole and not isinstance(forward, MethodType):
            return None
        alone = not is_derivative(backward, required or (), arguments)
        likely = [*candidates(base, required, arguments, done, dy_first=alone)]
        is_loss = any(each.is_of_loss for each in likely)
        readings: list[Convention] = []
        for each in likely:
            first = first or each
            try:
                found = _fitting(each, forward, backward, options)
            except (Exception, SystemExit, GeneratorExit):  # another candidate may be the one
                continue
            readings += [] if found is None or found in readings else [found]
        if readings:
            found = _right_one(readings, forward, backward, options)
            return found if is_loss else _read(found, forward, backward, options)
    if first is not None:
        return _without_labels(first, forward, backward, options)
    # What it raises with its context is told, not that it is called without.
    return replace(base, roles=("dy",), tensors=False) if base.context else None


def _without_labels(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> Convention:
    """The same without the gradients of labels, where backward gives as many as that leaves.

    Of a loss of two arrays alike, of which no name tells the labels, the one whose gradient it is.
    """
    names = convention.names
    likely = tuple(i for i in convention.wanted if not TARGET.fullmatch(names[i]))
    try:
        run, _ = convention.bound(*on_a_copy(forward, backward))
        y, kept = run(*copy.deepcopy(convention.given.arrays), **options)
        dy = random_like(y, np.random.default_rng(0))
        found = flat(convention.returned(on_a_copy(forward, backward)[1], dy, kept))
    except (Exception, SystemExit, GeneratorExit):  # it is told where it is checked
        return convention
    if len(found) == len(likely) > 0:
        return replace(convention, wanted=likely)
    shapes = {np.shape(convention.given.arrays[i]) for i in likely}
    if len(found) > 1 or np.size(y) > 1 or shapes != {np.shape(each) for each in found}:
        return convention
    alone = (replace(convention, wanted=(i,)) for i in likely)
    return next((e for e in alone if _agrees(e, forward, backward, options)), convention)


def _right_one(
    readings: Sequence[Convention],
    forward: Function,
    backward: Function,
    options: Mapping[str, Any],
) -> Convention:
    """The reading by which the gradient is right, or the first that may be meant.

    What is not linear in its argument is not given a cotangent.
    """
    if len(readings) == 1:
        return readings[0]
    right = next((e for e in readings if _agrees(e, forward, backward, options)), None)
    meant = (
        each
        for each in readings
        if each.is_of_loss or ("dy" in each.roles and _is_linear(each, forward, backward, options))
    )
    return right or next(meant, readings[0])


def _is_linear(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> bool:
    """Return whether −dy gives the opposite of the gradients of dy."""
    found = []
    for turned in (np.positive, np.negative):
        run, back = convention.bound(*on_a_copy(forward, backward))
        with seeded(0):
            y, kept = run(*copy.deepcopy(convention.given.arrays), **options)
        dy = random_like(y, np.random.default_rng(0))
        found.append(like_nested(back(like_nested(dy, turned), kept), np.array))
    return same_outputs(found[0], like_nested(found[1], np.negative), rtol=1e-6, atol=1e-9)


def _ran(base: Convention, forward: Function, options: Mapping[str, Any]) -> Ran:
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
        if (id(each) not in inputs or OUTPUT.fullmatch(name))
        and before.get(name) is not each
        and is_floats(each)
    ]
    return Ran(result, tuple(written))


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
    dy = random_like(y, np.random.default_rng(0))
    found = convention.returned(backward, dy, kept)
    has_owner = hasattr(getattr(backward, "__self__", None), "__dict__")
    floats = convention.wanted
    likely = [i for i in floats if not TARGET.fullmatch(convention.names[i])]
    if isinstance(found, tuple) and not found:  # self.dinputs is that of what is no target
        convention = replace(convention, wanted=tuple(likely))
        found, floats = convention.returned(backward, dy, kept), convention.wanted
    if isinstance(found, Mapping):
        by_name = gradients_by_name(found)
        shapes = {convention.names[i]: np.shape(arrays[i]) for i in floats}
        keys = entries_of(by_name, shapes)
        there = tuple(i for i in floats if convention.names[i] in keys)
        return replace(convention, wanted=there) if there or has_owner else None
    several = flat(found)
    if len(several) > len(floats) and has_owner:
        several = several[: len(floats)]
    wanted = chosen(several, arrays, floats, likely)
    if wanted is None:
        return None
    if not wanted:  # it leaves the gradients of parameters, or steps along them, and no other
        return replace(convention, wanted=()) if has_owner and "dy" in convention.roles else None
    is_whole = {i for i in likely if np.ndim(arrays[i])} <= {*wanted}
    return replace(convention, wanted=wanted) if is_whole or "dy" not in convention.roles else None


def _read(
    found: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> Convention:
    """The reading of backward's only argument by which it is right; as found where none is.

    A derivative takes x, or y as 1 − y² does, and its name seldom says so.
    """
    if len(found.roles) != 1 or len(found.wanted) != 1 or found.roles[0] not in ("dy", 0):
        return found
    for role in dict.fromkeys((found.roles[0], "dy", 0, "output")):
        each = replace(found, roles=(role,))
        try:
            if role == "dy" and _ends(found, forward, backward, options):
                return replace(found, roles=("one",))
        except (Exception, SystemExit, GeneratorExit):  # not meant in this way
            continue
        if _agrees(each, forward, backward, options):
            return each
    if found.roles != (0,) and _is_backward(backward):
        return found
    name = next((each for each in positional(backward) or () if each not in options), "")
    x, y = (0, "output") if name in found.names or not OUTPUT.fullmatch(name) else ("output", 0)
    return replace(found, roles=(x,), rivals=(y,))


def _ends(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> bool:
    """Return whether this is a loss, one number, whose backward does not use what flows back."""
    found = []
    for dy in (1.0, -1.0):
        run, back = convention.bound(*on_a_copy(forward, backward))
        y, kept = run(*copy.deepcopy(convention.given.arrays), **options)
        found.append(back(np.full(np.shape(y), dy), kept))
    return np.size(y) == 1 and same_outputs(*found, rtol=0.0, atol=0.0)


def _agrees(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> bool:
    """Return whether the gradient is right in this way; not so where a function raises in it."""
    try:
        return _is_right(convention, *on_a_copy(forward, backward), options)
    except (Exception, SystemExit, GeneratorExit):
        return False


def _is_right(
    convention: Convention, forward: Function, backward: Function, options: Mapping[str, Any]
) -> bool:
    """Return whether the gradient is that of forward along one random direction."""
    rng = np.random.default_rng(0)
    run, back = convention.bound(forward, backward)
    arrays = {str(i): np.array(each) for i, each in enumerate(convention.given.arrays)}
    with seeded(0):
        y, kept = run(*copy.deepcopy([*arrays.values()]), **options)
    dy = random_like(y, rng)
    names = [str(i) for i in convention.wanted]
    direction = {name: rng.standard_normal(arrays[name].shape) for name in names}
    gradients = [np.asarray(each) for each in back(copy.deepcopy(dy), kept)]

    def value(at: Mapping[str, Any]) -> float:
        with seeded(0):
            found = run(*(np.array(at[name]) for name in arrays), **options)[0]
        pairs = zip(leaves(dy), leaves(found), strict=True)
        return float(sum(np.sum(a * b) for a, b in pairs))

    if [each.shape for each in gradients] != [direction[name].shape for name in names]:
        return False
    found = directional(value, arrays, direction)
    terms = [dx * direction[name] for name, dx in zip(names, gradients, strict=True)]
    size = sum(np.sum(np.abs(each)) for each in terms) + np.abs(found.value)
    apart = np.abs(sum(np.sum(each) for each in terms) - found.value)
    return bool(apart <= found.bound + _AGREES * size and found.bound <= _KNOWN * size)


def is_derivative(backward: Function, required: Sequence[str], arguments: Sequence[str]) -> bool:
    """Return whether this takes the inputs alone, by its name and theirs, and no cotangent."""
    given_again = all(each in arguments for each in required)
    return given_again and (not _is_backward(backward) or len(required) > 1 or not required)


def _is_backward(backward: Function) -> bool:
    """Return whether its name, or that of the method it is, is of a backward and no derivative."""
    own = getattr(backward, "__func__", backward)
    kinds = type(getattr(backward, "__self__", None)).__mro__
    held = (name for kind in kinds for name, each in vars(kind).items() if each is own)
    names = (getattr(backward, "__name__", ""), *held)
    parts = ("back", "bwd", "vjp", "bprop")
    return any(part in name.casefold() for name in names for part in parts)


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
            if not isinstance(result, tuple) or len(result) < 2 or np.size(result[0]) != 1:
                return None
            found = _fitting(base, function, backward, options)
            is_of_labels = found is None or any(TARGET.fullmatch(names[i]) for i in found.wanted)
            if is_of_labels and len(result) > 2 and owner is None:  # (loss, gradient, predictions)
                alone = _fitting(base, function, _first_given_back, options)
                found, backward = (found, backward) if alone is None else (alone, _first_given_back)
        except (Exception, SystemExit, GeneratorExit):  # tensors may be wanted; or it is none such
            continue
        return None if found is None else ((function, backward), found)
    return None


def _given_back(gradients: Any) -> Any:
    return gradients


def _first_given_back(values: tuple[Any, ...]) -> Any:
    return values[0]


def _given_back_by(_: Any, gradients: Any) -> Any:
    return gradients


def withheld_from(
    convention: Convention | None, forward: Function, backward: Function
) -> tuple[str, ...]:
    """Sentences about arguments of backward that forward makes and keeps to itself."""
    names = positional(backward) or []
    if convention is None or convention.context or len(names) != len(convention.roles):
        return ()
    return withheld(forward, [*zip(names, convention.roles, strict=True)], convention.names)


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
        required = [each for each in optional[:1] if COTANGENT.fullmatch(each)]
    return required


def _is_contract(required: list[str] | None, result: Any) -> bool:
    """Return whether these are (y, cache) and (dy, cache), for all that the names say."""
    if not isinstance(result, tuple) or len(result) != 2:
        return False
    if required is None or len(required) != 2:
        return required is None
    first, second = (len(each) > 1 and bool(COTANGENT.fullmatch(each)) for each in required)
    return not second or (first and not all(each.startswith(("d", "D")) for each in required))


def takes_context(forward: Function) -> bool:
    try:
        first = next(iter(inspect.signature(forward).parameters), "")
    except (TypeError, ValueError):
        return False
    return first in CONTEXTS
