"""A `ForwardBackward` of what a user has: an op, a layer, two functions, a framework's object."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MethodType, ModuleType
from typing import Any, Final

import numpy as np

from handgrad import interop
from handgrad.checking import tapes
from handgrad.checking.attributes import (
    RATE,
    Held,
    Methods,
    attributes,
    clear,
    get,
    owner_of,
    put,
    set_rates,
    twin_of,
)
from handgrad.checking.conventions import (
    Convention,
    convention_of,
    is_derivative,
    on_a_copy,
    takes_context,
    value_and_gradients,
)
from handgrad.checking.given import Given
from handgrad.checking.rounding.bounded import Bounded
from handgrad.checking.trial import in_order, leaves, random_like
from handgrad.dispatch import engine
from handgrad.errors import ArgumentError
from handgrad.forward_backward import ForwardBackward
from handgrad.layers import Layer
from handgrad.layers.base import reads_tokens, walk
from handgrad.layers.flat import FlatArrays
from handgrad.ops import OPS
from handgrad.ops.samples import Seed, gradient_names
from handgrad.targets import op_of, pair_of

Arrays = Mapping[str, np.ndarray]

#: Said of an object that is no function of its inputs.
_STATEFUL: Final = (
    "forward and backward give something else on a second call of the same object: something is "
    "left over from the last call; every call here is on a fresh copy"
)


def op_module(like: Any) -> ModuleType | None:
    """The op that `like` names or is; None for None. Raises ArgumentError for anything else."""
    op = op_of(like)
    if op is None and like is not None:
        raise ArgumentError(
            f"check: like is {like!r}; allowed: an op such as hg.ops.layer_norm, of "
            f"{', '.join(OPS)}"
        )
    return op


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
        return _of_op(op, op.forward, op.backward, arrays, options, source=op)
    if isinstance(target, Layer):
        return _of_layer(target, arrays, options)
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
        forward, backward = _stateless(*methods)
        return _of_op(like, forward, backward, arrays, options, source=backward)
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
        return tapes.forward_backward(target, given, _input_names(target, len(given.template)))
    if interop.function_of(target) is None:
        return _of_pair(target, given, wrt, options)

    def flat(*arrays: Any) -> Any:
        return target(*given.filled(arrays), **options)

    foreign = interop.of_callable(target, flat, given.arrays)
    return _renamed(foreign, given.names(_input_names(target, len(given.template))))


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
        names = _input_names(target, count)
        found = value_and_gradients(target, names, given, accepted(target, options))
        if found is not None:
            methods, convention = found
        elif (foreign := interop.of_tensors(target, given.filled, arrays)) is not None:
            return _renamed(foreign, given.names(names))
    if methods is None:
        methods = _functions(target, None)
    forward, backward = methods
    taken = accepted(forward, options)
    wanted(wrt or (), tuple(given.names(_input_names(forward, count, context=True))))
    if convention is None and not _keeps_its_cache(*methods, given, taken):
        names = _input_names(forward, count, context=True)
        convention = convention_of(forward, backward, names, given, taken)
    inputs = given.names(_input_names(forward, count, context=True))
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
    pair = Called(methods, convention, options)
    run, back = pair.on(None)
    functions = ForwardBackward(
        name=_name(target, backward),
        inputs=tuple(inputs),
        gradients=tuple(wanted(wrt, tuple(inputs)) if wrt is not None else floats),
        forward=run,
        backward=back,
        unjudged=tuple(left_out),
        is_adapted=convention is not None,
        withheld=() if convention is None else convention.withheld(forward, backward),
        source=inspect.unwrap(back),
        forward_source=None if convention is not None else inspect.unwrap(pair.stateless(None)[0]),
        forward_options=taken,
    )
    owner = owner_of(*methods) if wrt is None else None
    return functions if owner is None else _with_attributes(functions, owner, pair, arrays)


def _keeps_its_cache(
    forward: Callable[..., Any], backward: Callable[..., Any], given: Given, options: Any
) -> bool:
    """Return whether these are methods that keep the cache in their object, and nothing else."""
    required = _positional(backward)
    if not hasattr(backward, "__self__") or len(required) != 1 or not given.is_plain:
        return False
    if is_derivative(backward, required, _input_names(forward, len(given.arrays), context=True)):
        return False
    floats = [np.shape(each) for each in given.arrays if np.asarray(each).dtype.kind == "f"]
    try:
        ahead, back = on_a_copy(forward, backward)
        y = ahead(*copy.deepcopy(given.arrays), **options)
        found = back(random_like(y, np.random.default_rng(0)))
        kinds = {each.dtype.kind for each in leaves(y)}
        return kinds == {"f"} and [np.shape(each) for each in leaves(found)] == floats
    except (Exception, SystemExit, GeneratorExit):  # not so, or it raises however it is called
        return False


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
        return _stateless(*methods)

    def on(self, twin: Any, rate: float = RATE) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The same, with forward's settings bound."""
        forward, backward = self.stateless(twin, rate)
        return _with_options(forward, self.options), backward

    @property
    def takes_rate(self) -> bool:
        return self.convention is not None and "rate" in self.convention.roles


def _with_attributes(
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
    unjudged = (*functions.unjudged, *found.unjudged)
    notes = (_STATEFUL,) if found.is_stateful and not found.steps else ()
    if not found.parameters and not found.is_stateful and not pair.takes_rate:
        return replace(functions, unjudged=unjudged)
    start = twin_of(owner)
    set_rates(start, found.rates, RATE)
    named = {
        f"self.{name}" if name in functions.inputs else name: name for name in found.parameters
    }
    count = len(functions.inputs)
    shapes = {name: np.shape(array) for name, array in zip(functions.inputs, arrays, strict=True)}

    def forward(*given: Any) -> Any:
        twin = twin_of(start)
        for name, array in zip(named.values(), given[count:], strict=True):
            put(twin, found.paths[name], array)
        result = pair.on(twin)[0](*given[:count])
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
        returned = pair.on(twin)[1](dy, cache)
        of_inputs = in_order(functions, shapes, returned) if functions.gradients else ()
        if len(of_inputs) != len(functions.gradients):
            return returned

        def gradient(name: str) -> Any:
            now = get(twin, found.gradients[name])
            return (begun[name] - now) / RATE if name in found.steps else now

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
        source=backward,
        forward_source=None,
    )


def computes_as(functions: ForwardBackward, arrays: Arrays) -> ForwardBackward:
    """The same, known to compute in float32 where float64 is refused or comes out as float32."""

    def types(dtype: Any) -> set[Any] | None:
        """The types of floats that come out; None where forward raises (reported elsewhere)."""
        given = [np.asarray(arrays[name]) for name in functions.inputs]
        converted = [np.array(x, dtype=dtype if x.dtype.kind == "f" else None) for x in given]
        try:
            result = functions.forward(*converted)
            found = list(leaves(result[0]))
        except Exception:
            return None
        return {each.dtype for each in found if each.dtype.kind == "f"}

    if not functions.takes_float64:
        return functions
    wide = types(np.float64)
    narrow = {np.dtype(np.float32)}
    only_float32 = wide == narrow or (wide is None and types(np.float32) == narrow)
    return replace(functions, takes_float64=False) if only_float32 else functions


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


def in_float64(functions: ForwardBackward) -> ForwardBackward:
    """Functions of float32 for arrays of float64: converted on the way in and out."""
    if functions.takes_float64:
        return functions

    def converted(nested: Any, dtype: Any) -> Any:
        if isinstance(nested, tuple | list):
            return tuple(converted(part, dtype) for part in nested)
        is_floats = isinstance(nested, np.ndarray | np.generic) and nested.dtype.kind == "f"
        return nested.astype(dtype) if is_floats else nested

    def forward(*arrays: Any) -> tuple[Any, Any]:
        y, cache = functions.forward(*converted(arrays, np.float32))
        return converted(y, np.float64), cache

    def backward(dy: Any, cache: Any) -> Any:
        return converted(functions.backward(converted(dy, np.float32), cache), np.float64)

    return replace(functions, forward=forward, backward=backward)


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


def _stateless(
    forward: Callable[..., Any], backward: Callable[..., Any]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two functions; methods that keep the cache in their object take it and return it."""
    if not hasattr(backward, "__self__") or len(_positional(backward)) != 1:
        return forward, backward

    @functools.wraps(forward)
    def keeping(*arrays: Any, **options: Any) -> tuple[Any, Any]:
        return forward(*arrays, **options), None

    def kept(dy: Any, cache: Any) -> Any:
        return backward(dy)

    kept.__qualname__ = getattr(backward, "__qualname__", "backward")
    return keeping, kept


def _positional(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that a function has to be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in parameters if each.kind in kinds and each.default is each.empty]


def _name(target: Any, backward: Callable[..., Any]) -> str:
    if isinstance(target, ModuleType | type):
        return target.__name__
    return getattr(backward, "__qualname__", type(target).__name__)


def _of_op(
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
    op_names = tuple(itertools.compress(_input_names(op.forward, len(arrays)), given))
    own = source is op
    if not own and forward is op.forward.reference:
        forward = _on_reference(op)
    names = tuple(itertools.compress(_input_names(forward, len(arrays)), given))
    named = dict(zip(op_names, names, strict=True))
    return ForwardBackward(
        name=op_name if own else _name(source, backward),
        inputs=names,
        gradients=tuple(named[name] for name in gradient_names(op_name) if name in named),
        forward=_at_positions(
            _with_options(forward, options if own else accepted(forward, options)), given
        ),
        backward=_given(backward, op_name, op_names),
        source=inspect.unwrap(backward),
        op=op_name,
    )


def _meant_as(functions: ForwardBackward, op: ModuleType) -> ForwardBackward:
    """A framework's functions, meant to be an op."""
    return replace(functions, op=op.__name__.rpartition(".")[2])


def _with_options(forward: Callable[..., Any], options: Mapping[str, Any]) -> Callable[..., Any]:
    """Forward with its settings bound, those that are arrays in the type of the inputs.

    Where rounding is counted they are rounded too, as a computation in that type has them. Every
    call draws from the same state of a generator.
    """

    def run(*arrays: Any) -> Any:
        counted = next((each for each in arrays if isinstance(each, Bounded)), None)
        dtype = next((each.dtype for each in arrays if _is_floats(each)), np.dtype(np.float64))
        fresh = {name: _fresh(value, dtype) for name, value in options.items()}
        if counted is not None:
            fresh = {
                name: counted.arithmetic.rounded(value) if _is_floats(value) else value
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


def _is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _fresh(value: Any, dtype: Any) -> Any:
    if isinstance(value, Seed):
        return np.random.default_rng(value.number)
    if isinstance(value, np.random.Generator):
        return copy.deepcopy(value)
    return value.astype(dtype) if _is_floats(value) else value


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


def _input_names(
    forward: Callable[..., Any], count: int, *, context: bool = False
) -> tuple[str, ...]:
    """The names of the first `count` arguments; a `ctx` before them is none where there may be."""
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return tuple(f"input{i}" for i in range(count))
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds]
    names = names[1:] if context and takes_context(forward) else names
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        names += [f"input{i}" for i in range(len(names), count)]
    if len(names) < count:
        raise ArgumentError(
            f"check: {count} arrays are given, but forward takes {len(names)}: {', '.join(names)}"
        )
    return tuple(names[:count])


def accepted(forward: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this forward takes."""
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):
        return dict(options)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return dict(options)
    return {name: value for name, value in options.items() if name in parameters}


def check_options(target: Any, like: ModuleType | None, options: Mapping[str, Any]) -> None:
    """Raise ArgumentError for a setting that the target's forward does not take."""
    target = op_of(target) or target
    forward = target[0] if isinstance(target, tuple) and target else target
    forward = getattr(forward, "forward", forward if isinstance(target, tuple) else None)
    if not callable(forward):
        forward = None if like is None else like.forward
    for name in options if forward is not None else ():
        if not takes(forward, {name: options[name]}):
            raise ArgumentError(
                f"check: forward takes no argument {name!r}; allowed: forward"
                f"{inspect.signature(forward)}"
            )


def takes(forward: Callable[..., Any], options: Mapping[str, Any]) -> bool:
    """Return whether forward takes every one of these options."""
    return len(accepted(forward, options)) == len(options)


def wanted(wrt: Sequence[str], names: tuple[str, ...]) -> Sequence[str]:
    """wrt. Raises ArgumentError where it has what is none of these names."""
    for name in wrt:
        if name not in names:
            raise ArgumentError(f"check: wrt has {name!r}; allowed: {', '.join(names)}")
    return wrt


def _of_layer(layer: Layer, arrays: Sequence[Any], options: Mapping[str, Any]) -> ForwardBackward:
    """A layer or model; its parameters follow the inputs, in the type of these.

    Every forward starts from the same buffers and generators, so that dropout draws one mask.
    """
    start = copy.deepcopy(layer)
    parameters = start.parameters
    names = _input_names(layer.forward, len(arrays))
    floats = _differentiable(layer, names, arrays)

    def forward(*arrays: np.ndarray) -> tuple[Any, Any]:
        inputs, weights = arrays[: len(names)], arrays[len(names) :]
        model = copy.deepcopy(start)
        given = dict(zip(parameters, weights, strict=True))
        if given:
            model.bind(FlatArrays.of(given))
            model.update_parameters(given)
            _convert_buffers(model, weights[0].dtype)
        y, cache = model.forward(*inputs, **{"training": True, **options})
        return y, (model, cache)

    def backward(dy: Any, cache: Any) -> Any:
        model, kept = cache
        dinputs, gradients = model.backward(dy, kept)
        several = dinputs if isinstance(dinputs, tuple) else (dinputs,)
        of_inputs = dict(zip(names, several, strict=False))  # the state's, where it is not given
        found = [of_inputs[name] for name in floats]
        found += [gradients[name] for name in parameters]
        return tuple(found) if len(found) > 1 else found[0]

    return ForwardBackward(
        name=type(layer).__name__,
        inputs=(*names, *parameters),
        gradients=(*floats, *parameters),
        forward=forward,
        backward=backward,
        parameters={name: np.asarray(array, np.float64) for name, array in parameters.items()},
    )


def _convert_buffers(model: Layer, dtype: Any) -> None:
    for _, part in walk(model):
        for name in (*part.buffer_names, *part.frozen):
            if (buffer := getattr(part, name)) is not None:
                setattr(part, name, buffer.astype(dtype))


def _differentiable(layer: Layer, names: Sequence[str], arrays: Sequence[Any]) -> list[str]:
    """The inputs that have a gradient: all but integers beside x, and tokens in the place of x."""
    first, *others = zip(names, arrays, strict=True)
    found = [] if reads_tokens(layer) else [first[0]]
    return found + [name for name, array in others if _is_floats(array)]
