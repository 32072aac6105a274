"""The table of PyTorch's names: what each does to traced arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from handgrad.program.integers import is_whole
from handgrad.program.node import build
from handgrad.program.primitives.table import module_of_scipy, refuse
from handgrad.program.standins import StandIn, shown_module
from handgrad.program.tracer import Tracer

Function = TypeVar("Function", bound=Callable[..., Any])

#: Functions by the name after `torch.`, `torch.nn.functional.` or `Tensor.`; those of its other
#: modules with the module's name, such as `linalg.norm`.
TENSOR_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
#: Names that only tensors have, as methods.
TENSOR_METHODS: Final[dict[str, Callable[..., Any]]] = {}

#: Forwards of modules of torch.nn that make tensors by sizes or ask how they are stored.
FORWARDS: Final[dict[str, Callable[..., Any]]] = {}


#: NumPy and SciPy as a traced function sees them.
xp: Final = shown_module(np)
special: Final = shown_module(module_of_scipy("special"))


#: NumPy's names of arguments that PyTorch takes as well, for its own.
_NUMPY_NAMES: Final = {"axis": "dim", "keepdims": "keepdim"}
#: PyTorch's names of the operands, in their order; the table's functions may have others.
_OPERANDS: Final = (
    *("condition", "input", "self", "tensor", "tensors", "x", "x1", "matrices", "base"),
    *("other", "x2", "mat2", "vec", "vec2", "exponent"),
)
#: Arguments that do not change values.
_WITHOUT_EFFECT: Final = {
    *("device", "layout", "memory_format", "non_blocking", "pin_memory", "requires_grad"),
}
#: Arguments that would, where they are given.
_UNKNOWN: Final = {"out", "generator", "size_average", "reduce"}


def enter(name: str, function: Callable[..., Any]) -> None:
    """Enters a function under a name of PyTorch's, with PyTorch's names of arguments.

    One of its other modules has the name of the override too, such as linalg_norm.
    """
    named = _by_torch_names(name, function)
    TENSOR_FUNCTIONS.update(dict.fromkeys((name, name.replace(".", "_")), named))


def torch_function(*names: str) -> Callable[[Function], Function]:
    """Registers a function under PyTorch's names; its own where none is given."""

    def keep(function: Function) -> Function:
        for name in names or (function.__name__,):
            enter(name, function)
        return function

    return keep


def torch_method(*names: str) -> Callable[[Function], Function]:
    """Registers a method of tensors that is no function of PyTorch's as well."""

    def keep(function: Function) -> Function:
        for name in names or (function.__name__,):
            TENSOR_METHODS[name] = _by_torch_names(name, function)
        return function

    return keep


def torch_module(*names: str) -> Callable[[Function], Function]:
    """Registers a function in the place of the forward of modules of torch.nn."""

    def keep(function: Function) -> Function:
        FORWARDS.update(dict.fromkeys(names, function))
        return function

    return keep


@functools.cache
def shown_class(kind: type) -> type:
    """A class of torch.nn as the traced function sees it: of some with another forward."""
    if not kind.__module__.startswith("torch.nn.modules.") or kind.__name__ not in FORWARDS:
        return kind
    own = {"forward": FORWARDS[kind.__name__], "__module__": kind.__module__}
    return type(kind.__name__, (kind,), own)


def torch_refused(reason: str, *names: str) -> None:
    """Registers a sentence for functions that are not known; `{name}` is the function's."""
    for name in names:

        def refused(*_: Any, name: str = name, **__: Any) -> NoReturn:
            refuse(reason.format(name=name))

        TENSOR_FUNCTIONS[name] = refused


def _by_torch_names(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with PyTorch's and NumPy's names of arguments, changing x with `inplace`."""
    is_numpy = isinstance(function, StandIn)
    signature = inspect.Signature() if is_numpy else inspect.signature(function)
    kinds = {key: each.kind for key, each in signature.parameters.items()}
    several = next((k for k, kind in kinds.items() if kind == inspect.Parameter.VAR_POSITIONAL), "")
    takes_all = is_numpy or inspect.Parameter.VAR_KEYWORD in kinds.values()

    def argument(key: str, value: Any) -> str | None:
        """The name that the function has for a keyword; None where it is left out."""
        own = _NUMPY_NAMES.get(key, key)
        if key in kinds or (own in kinds and own != several):
            return key if key in kinds else own
        if key in _WITHOUT_EFFECT or (key in _UNKNOWN and value is None):
            return None
        if takes_all and key not in _UNKNOWN:
            return key
        return refuse(f"{name} of PyTorch with {key}= is not known to derive")

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        for key in _OPERANDS:
            if key in kwargs and key not in kinds:
                args = (*args, kwargs.pop(key))
        if several in kwargs:
            args = (*args, kwargs.pop(several))
        known = ((argument(key, value), value) for key, value in kwargs.items())
        found = {key: value for key, value in known if key is not None}
        if "inplace" in kinds and signature.bind(*args, **found).arguments.get("inplace"):
            args[0].assign(function(*args, **found))
            return args[0]
        return function(*args, **found)

    return called


def held(value: Any) -> Any:
    """A value that passes no gradient on."""
    return Tracer(build("stop", value.node)) if type(value) is Tracer else value


def is_exactly(value: Any, number: float) -> bool:
    """True for a number of Python; to compare a traced one would hold the trace to the answer."""
    return type(value) in (int, float) and bool(value == number)


def one_tuple(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes or axes that are given one by one, or as one tuple."""
    if len(values) == 1 and not is_whole(values[0]) and isinstance(values[0], tuple | list):
        return tuple(values[0])
    return values


def axes(dim: Any) -> Any:
    """PyTorch's dim as NumPy's axis: an empty list is all."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


def times(factor: Any, x: Any) -> Any:
    """A factor of an argument such as alpha, which is one unless given."""
    return x if is_exactly(factor, 1) else factor * x


def by_channel(parameter: Any, x: Any) -> Any:
    """A parameter of the channels beside an array of them: its axis is the second."""
    return None if parameter is None else xp.reshape(parameter, (-1, *(1,) * (x.ndim - 2)))


def axis_from_0(x: Any, dim: int) -> int:
    return dim if dim >= 0 else dim + x.ndim


def along(x: Any, dim: int, key: Any) -> Any:
    """x[:, …, key], the key at an axis."""
    return x[(*(slice(None),) * axis_from_0(x, dim), key)]
