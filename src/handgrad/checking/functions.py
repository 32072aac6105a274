"""A `ForwardBackward` of what a user has: an op, a layer, two functions, a framework's object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from handgrad import interop
from handgrad.checking import tapes
from handgrad.checking.arguments import accepted, input_names, required_names, wanted
from handgrad.checking.attributes import owner_of
from handgrad.checking.calling import Convention
from handgrad.checking.conventions import (
    convention_of,
    is_derivative,
    on_a_copy,
    value_and_gradients,
    withheld_from,
)
from handgrad.checking.given import Given
from handgrad.checking.object_functions import Called, stateless, with_attributes
from handgrad.checking.op_functions import name_of, of_op, unwritten
from handgrad.checking.optimizers import with_optimizers
from handgrad.checking.prepared import in_float64, in_training, prepared
from handgrad.checking.trial import leaves, like_nested, random_like, same_outputs
from handgrad.differences.layers import of_layer
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.layers import Layer
from handgrad.targets import op_of, pair_of

Arrays = Mapping[str, np.ndarray]


def forward_backward(
    target: Any,
    arrays: Sequence[Any],
    *,
    like: ModuleType | None = None,
    wrt: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> ForwardBackward:
    """`target` as `ForwardBackward`, for these inputs.

    `options` are keyword settings of forward. Raises ArgumentError for what is none of: an op, a
    layer, a pair of functions, a module or class with both, a backward alone with `like`, a
    torch.autograd.Function, a torch.nn.Module, a function of JAX.
    """
    options = options or {}
    if (op := op_of(target)) is not None:
        return of_op(op, op.forward, op.backward, arrays, options, source=op)
    if isinstance(target, Layer):
        names = input_names(target.forward, len(arrays))
        return of_layer(target, names, arrays, options)
    if isinstance(target, type) and issubclass(target, Layer):
        raise ArgumentError(
            f"check: target is the class {target.__name__}; allowed: a layer, such as "
            f"{target.__name__}(...)"
        )
    foreign = interop.forward_backward(target, arrays, options)
    if foreign is not None:
        return foreign if like is None else _meant_as(foreign, like)
    if isinstance(target, Structured):
        given = replace(target.given, arrays=tuple(arrays))
        return _of_structured(target.function, given, wrt, options)
    if like is not None:
        methods = _functions(target, like)
        forward, backward = stateless(*methods)
        return of_op(like, forward, backward, arrays, options, source=backward)
    return _of_pair(target, Given.of(arrays), wrt, options)


@dataclass(frozen=True)
class Structured:
    """A target, and its arguments where some of them are no arrays."""

    function: Any
    given: Given


def _of_structured(
    target: Any, given: Given, wrt: Sequence[str] | None, options: Mapping[str, Any]
) -> ForwardBackward:
    """A target whose arguments are dictionaries, lists or tapes of arrays."""
    if given.tapes:
        names = input_names(target, len(given.template))
        return tapes.forward_backward(target, given, names, accepted(target, options))
    if interop.function_of(target) is None:
        return _of_pair(target, given, wrt, options)

    def flat(*arrays: Any) -> Any:
        return target(*given.filled(arrays), **options)

    foreign = interop.of_callable(target, flat, given.arrays)
    return _renamed(foreign, given.names(input_names(target, len(given.template))))


def _renamed(functions: ForwardBackward, names: Sequence[str]) -> ForwardBackward:
    """The same with other names of its inputs."""
    named = dict(zip(functions.inputs, names, strict=True))
    return replace(
        functions,
        inputs=tuple(names),
        gradients=tuple(named[key] for key in functions.gradients),
        is_adapted=True,
    )


def _of_pair(
    target: Any, given: Given, wrt: Sequence[str] | None, options: Mapping[str, Any]
) -> ForwardBackward:
    """Two functions, or a function that returns a number and its gradients."""
    count, arrays = len(given.template), given.arrays
    methods = pair_of(target)
    convention: Convention | None = None
    if methods is None and callable(target):
        names = input_names(target, count)
        found = value_and_gradients(target, names, given, accepted(target, options))
        if found is not None:
            methods, convention = found
        elif (foreign := interop.of_tensors(target, given.filled, arrays)) is not None:
            return _renamed(foreign, given.names(names))
    if methods is None:
        methods = _functions(target, None)
    forward, backward = methods
    taken = {name: unwritten(value) for name, value in accepted(forward, options).items()}
    methods, remark = in_training(in_float64(methods))
    if given.is_plain:
        methods = prepared(methods, arrays, taken)
        forward, backward = methods = with_optimizers(methods, owner_of(*methods))
    wanted(wrt or (), tuple(given.names(input_names(forward, count, context=True))))
    if convention is None and not _keeps_its_cache(*methods, given, taken):
        names = input_names(forward, count, context=True)
        convention = convention_of(forward, backward, names, given, taken)
    inputs = given.names(input_names(forward, count, context=True))
    floats = [
        name
        for name, array in zip(inputs, arrays, strict=True)
        if np.asarray(array).dtype.kind == "f"
    ]
    left_out: list[str] = []
    if convention is not None and wrt is None:
        gradients = [inputs[i] for i in convention.wanted]
        left_out = [
            name for name in floats if name not in gradients and np.ndim(arrays[inputs.index(name)])
        ]
        floats = gradients
    judged = tuple(wanted(wrt, tuple(inputs)) if wrt is not None else floats)

    def called(convention: Convention | None) -> ForwardBackward:
        pair = Called(methods, convention, options)
        run, back = pair.on(None)
        functions = ForwardBackward(
            name=name_of(target, backward),
            inputs=tuple(inputs),
            gradients=judged,
            forward=run,
            backward=back,
            unjudged=tuple(left_out),
            is_adapted=convention is not None,
            notes=tuple(filter(None, (remark, "" if convention is None else convention.note))),
            withheld=withheld_from(convention, forward, backward),
        )
        owner = owner_of(*methods) if wrt is None else None
        return functions if owner is None else with_attributes(functions, owner, pair, arrays)

    if convention is None:
        return called(None)
    others = (replace(convention, roles=(each,), rivals=()) for each in convention.rivals)
    return replace(called(convention), rivals=tuple(map(called, others)))


def _keeps_its_cache(
    forward: Callable[..., Any], backward: Callable[..., Any], given: Given, options: Any
) -> bool:
    """Return whether these are methods that keep the cache in their object, and nothing else.

    A backward that is not linear in its argument takes something else than what flows back.
    """
    required = required_names(backward)
    if not hasattr(backward, "__self__") or len(required) != 1 or not given.is_plain:
        return False
    if is_derivative(backward, required, input_names(forward, len(given.arrays), context=True)):
        return False
    floats = [np.shape(each) for each in given.arrays if np.asarray(each).dtype.kind == "f"]
    try:
        ahead, back = on_a_copy(forward, backward)
        y = ahead(*copy.deepcopy(given.arrays), **options)
        dy = random_like(y, np.random.default_rng(0))
        found = back(dy)
        is_nested = isinstance(found, tuple | list) and any(map(_is_several, found))
        shapes = [np.shape(each) for each in leaves(found)]
        if is_nested or shapes != floats or {each.dtype.kind for each in leaves(y)} != {"f"}:
            return False
        ahead, back = on_a_copy(forward, backward)
        ahead(*copy.deepcopy(given.arrays), **options)
        opposite = like_nested(back(like_nested(dy, np.negative)), np.negative)
        return same_outputs(found, opposite, rtol=1e-6, atol=1e-9)
    except (Exception, SystemExit, GeneratorExit):  # not so, or it raises however it is called
        return False


def _is_several(value: Any) -> bool:
    return isinstance(value, tuple | list)


def selected(functions: ForwardBackward, names: Sequence[str]) -> ForwardBackward:
    """The same with these of its gradients only."""

    def backward(dy: Any, cache: Any) -> Any:
        found = functions.backward(dy, cache)
        several = found if isinstance(found, tuple | list) else (found,)
        if len(several) != len(functions.gradients):
            return found
        return tuple(
            each for name, each in zip(functions.gradients, several, strict=True) if name in names
        )

    kept = tuple(name for name in functions.gradients if name in names)
    return replace(functions, gradients=kept, backward=backward)


def _functions(
    target: Any, like: ModuleType | None
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions of a pair, of an object that has both, or of a backward and `like`."""
    pair = pair_of(target)
    if pair is not None:
        return pair
    if callable(target) and like is not None:
        return like.forward.reference, target
    raise ArgumentError(
        f"check: target is {target!r}; allowed: an op or its name, a layer, a pair (forward, "
        "backward), a module or class with both, a backward alone with like=, a "
        "torch.autograd.Function, a torch.nn.Module, a jax.custom_vjp"
    )


def _meant_as(functions: ForwardBackward, op: ModuleType) -> ForwardBackward:
    """A framework's functions, meant to be an op."""
    return replace(functions, op=op.__name__.rpartition(".")[2])
