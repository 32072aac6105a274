"""A module of PyTorch as a function of its inputs and of its parameters."""

from __future__ import annotations

import inspect
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from handgrad.errors import ArgumentError


def is_module(x: Any) -> bool:
    """True for an object of torch.nn.Module."""
    return _is_of(x, "torch.nn.modules.module", "Module")


def is_tensor(x: Any) -> bool:
    """True for an object of torch.Tensor."""
    return _is_of(x, "torch", "Tensor")


def is_autograd_function(x: Any) -> bool:
    """True for a subclass of torch.autograd.Function."""
    return isinstance(x, type) and _is_kind(x, "torch.autograd.function", "Function")


class FunctionContext:
    """Takes what a torch.autograd.Function keeps for its backward, which nobody reads here."""

    def __init__(self, count: int) -> None:
        self.needs_input_grad = (True,) * count

    def save_for_backward(self, *_: Any) -> None:
        """Keeps nothing."""

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = (
        save_for_backward
    )


def scripted(x: Any) -> Any:
    """The function that torch.jit.script compiled; None for other things."""
    is_scripted = _is_of(x, "torch.jit", "ScriptFunction")
    return getattr(x, "_torchdynamo_inline", None) if is_scripted else None


def _is_of(x: Any, module: str, name: str) -> bool:
    return _is_kind(type(x), module, name)


def _is_kind(kind: type, module: str, name: str) -> bool:
    return any((each.__module__, each.__name__) == (module, name) for each in kind.__mro__)


def library_module(error: BaseException) -> str | None:
    """The class of PyTorch's own module whose code raised, the innermost; None for no such code."""
    selves = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    own = [each for each in selves if type(each).__module__.startswith("torch.nn.")]
    return type(own[-1]).__name__ if own else None


def written(target: Any) -> Any:
    """The function or module as somebody wrote it: before torch.compile, and without no_grad."""
    while True:
        code = getattr(target, "__code__", None)
        if is_module(target):
            is_compiled = type(target).__name__ == "OptimizedModule"
            own = target._orig_mod if is_compiled else None
        elif code is not None and code.co_name == "decorate_context":
            own = target.__wrapped__
        else:
            own = getattr(target, "_torchdynamo_orig_callable", None)
        if own is None:
            return target
        target = own


def function_of(module: Any) -> Callable[..., Any]:
    """A call of the module with its parameters as further arguments, which have their values.

    They are called by their paths, with an underscore for every dot: fc_weight, part_0_weight.
    Those that are frozen are named in `frozen`. Raises ArgumentError for a parameter that has no
    shape yet.
    """
    if type(module).__module__.startswith("torch.jit."):
        raise ArgumentError(
            f"derive: target is a {type(module).__name__}, whose source is not Python; "
            "allowed: the module that it was made from"
        )
    called = type(module).__call__
    own = module.forward if called.__module__.startswith("torch.") else module.__call__
    given = list(inspect.signature(own).parameters.values())
    taken = {parameter.name for parameter in given}
    paths: dict[str, str] = {}
    parameters = dict(module.named_parameters())
    for path, parameter in parameters.items():
        if type(parameter).__name__ == "UninitializedParameter":
            raise ArgumentError(
                f"derive: {path} has no shape yet; allowed: a module that has been run once"
            )
        name = path.replace(".", "_")
        is_free = name.isidentifier() and name not in taken
        paths[name if is_free else f"part_{name}"] = path

    def forward(*args: Any, **kwargs: Any) -> Any:
        values = {path: kwargs.pop(name) for name, path in paths.items() if name in kwargs}
        with substituted(module, values):
            return module(*args, **kwargs)

    further = (
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=parameters[path])
        for name, path in paths.items()
    )
    last = given[-1:] if given and given[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    signature = inspect.Signature([*given[: len(given) - len(last)], *further, *last])
    forward.__signature__ = signature  # type: ignore[attr-defined]
    forward.__name__ = type(module).__name__
    forward.takes_tensors = True  # type: ignore[attr-defined]
    forward.paths = paths  # type: ignore[attr-defined]
    frozen = {name for name, path in paths.items() if not parameters[path].requires_grad}
    forward.frozen = frozen  # type: ignore[attr-defined]
    return forward


@contextmanager
def substituted(module: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """The module with other parameters; one that stands in several places is replaced in all."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        own = [(value, _parameter(module, path)) for path, value in values.items()]
        tables = [part._parameters for part in module.modules()]
        for value, parameter in own:
            for each in tables:  # all of them, for a parameter may be tied to several
                for name in [name for name, known in each.items() if known is parameter]:
                    before.append((each, name, parameter))
                    each[name] = value
        yield
    finally:
        for slots, name, value in reversed(before):
            slots[name] = value


def _parameter(module: Any, path: str) -> Any:
    owner, _, name = path.rpartition(".")
    return module.get_submodule(owner)._parameters[name]


@contextmanager
def unchanged(keepers: Iterable[Any]) -> Iterator[None]:
    """Modules and objects on copies of all that they keep, floats in double; then on their own."""
    parts = {
        id(part): part for x in keepers for part in (x.modules() if is_module(x) else [x])
    }.values()
    own = [vars(part) for part in parts]
    before = [dict(each) for each in own]
    copies: dict[int, Any] = {}
    try:
        for each in own:  # not all objects let their dict be replaced, such as open files
            each.update({name: _copied(value, copies) for name, value in each.items()})
        yield
    finally:
        for each, values in zip(own, before, strict=True):
            each.clear()
            each.update(values)


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    """Arrays and what holds them anew, each once; other things as they are."""
    if type(value) in (bool, int, float, str, type(None)):
        return value
    if id(value) in copies:
        return copies[id(value)]
    made = value
    if isinstance(value, dict):
        made = copies[id(value)] = copy(value)
        made.update((key, _copied(each, copies)) for key, each in value.items())
    elif type(value) in (list, set, deque):
        made = copies[id(value)] = type(value)()
        (made.update if type(value) is set else made.extend)(_copied(x, copies) for x in value)
    elif type(value) is tuple:
        made = tuple(_copied(each, copies) for each in value)
    elif isinstance(value, np.ndarray):
        made = value.copy()
    elif is_tensor(value):
        wide = value.detach().double() if value.is_floating_point() else value.detach()
        is_parameter = type(value).__name__ == "Parameter"
        made = type(value)(wide.clone(), requires_grad=False) if is_parameter else wide.clone()
    copies[id(value)] = made
    return made
