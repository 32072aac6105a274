"""A module of PyTorch as a function of its inputs and of its parameters."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def is_module(x: Any) -> bool:
    """True for an object of torch.nn.Module."""
    homes = ((kind.__module__, kind.__name__) for kind in type(x).__mro__)
    return ("torch.nn.modules.module", "Module") in homes


def library_module(error: BaseException) -> str | None:
    """The class of PyTorch's own module whose code raised, the innermost; None for no such code."""
    selves = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    own = [each for each in selves if type(each).__module__.startswith("torch.nn.")]
    return type(own[-1]).__name__ if own else None


def function_of(module: Any) -> Callable[..., Any]:
    """The module's forward with its parameters as further arguments, which have their values.

    They are called by their paths, with an underscore for every dot: fc_weight, part_0_weight.
    """
    paths = {_name(path): path for path, _ in module.named_parameters()}

    def forward(*args: Any, **kwargs: Any) -> Any:
        values = {path: kwargs.pop(name) for name, path in paths.items() if name in kwargs}
        with substituted(module, values):
            return module.forward(*args, **kwargs)

    given = inspect.signature(module.forward).parameters.values()
    own = (
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=module.get_parameter(path))
        for name, path in paths.items()
    )
    forward.__signature__ = inspect.Signature([*given, *own])  # type: ignore[attr-defined]
    forward.__name__ = type(module).__name__
    forward.takes_tensors = True  # type: ignore[attr-defined]
    return forward


def _name(path: str) -> str:
    name = path.replace(".", "_")
    return name if name.isidentifier() else f"part_{name}"


@contextmanager
def substituted(module: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """The module with other parameters, and with its buffers in double as the parameters are.

    A parameter that stands in several places is replaced in all of them.
    """
    before: list[tuple[dict[str, Any], str, Any]] = []

    def put(slots: dict[str, Any], name: str, value: Any) -> None:
        before.append((slots, name, slots[name]))
        slots[name] = value

    try:
        own = [(value, _parameter(module, path)) for path, value in values.items()]
        tables = [part._parameters for part in module.modules()]
        for value, parameter in own:
            for each in tables:  # all of them, for a parameter may be tied to several
                for name in [name for name, known in each.items() if known is parameter]:
                    put(each, name, value)
        for part in module.modules():
            for name, buffer in part._buffers.items():
                if buffer is not None and buffer.is_floating_point():
                    put(part._buffers, name, buffer.double())
        yield
    finally:
        for slots, name, value in reversed(before):
            slots[name] = value


def _parameter(module: Any, path: str) -> Any:
    owner, _, name = path.rpartition(".")
    return module.get_submodule(owner)._parameters[name]
