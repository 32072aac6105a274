"""The modules of PyTorch as a traced function sees them, and the attributes of its tensors."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from contextlib import ContextDecorator
from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.program.node import as_node, world
from handgrad.program.nodes import mapped
from handgrad.program.primitives.table import refuse
from handgrad.program.standins import MODULES
from handgrad.program.tensors import kinds, methods, shapes
from handgrad.program.tensors.choosing import where
from handgrad.program.tensors.kinds import tensor_type, type_of
from handgrad.program.tensors.parameters import is_tensor
from handgrad.program.tensors.table import TENSOR_FUNCTIONS, TENSOR_METHODS
from handgrad.program.tracer import OVERRIDES, Tracer, traced

#: Modules whose functions are in the table without the module's name.
_PLAIN: Final = ("torch", "torch.nn.functional", "torch.special", "torch.functional", "torch.nn")
#: Attributes that every traced array has alike.
_PLAIN_ANSWERS: Final = {
    **dict.fromkeys(("is_cuda", "is_sparse", "is_nested", "is_quantized", "is_meta"), False),
    "requires_grad": False,
    "grad": None,
}
#: Methods with an underscore that give the array other axes.
_RESHAPING: Final = ("unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_")


class _TensorType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is Tracer


class Tensor(metaclass=_TensorType):
    """torch.Tensor as the traced function sees it: the type of traced arrays."""


class _SizeType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, tuple)

    def __call__(cls, lengths: Any = ()) -> Any:
        return methods.TensorLengths(lengths)


class TensorSize(metaclass=_SizeType):
    """torch.Size as the traced function sees it: the type of shapes, whose lengths are letters."""


class Stopped(ContextDecorator):
    """no_grad and its relatives as the traced function sees them: what is computed is constant."""

    def __init__(self, is_stopped: bool = True) -> None:
        self.is_stopped = is_stopped
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(world().is_stopped)
        world().is_stopped = self.is_stopped

    def __exit__(self, *_: object) -> None:
        world().is_stopped = self._before.pop()

    def clone(self) -> Stopped:
        return Stopped(self.is_stopped)


class Switched(Stopped):
    """set_grad_enabled, which holds from where it is called, or within its block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(not mode)
        self._own = world().is_stopped
        world().is_stopped = self.is_stopped

    def __enter__(self) -> None:
        super().__enter__()
        self._before[-1] = self._own


_STOPPING: Final[dict[str, Callable[..., Any]]] = {
    "no_grad": Stopped,
    "inference_mode": Stopped,
    "enable_grad": lambda: Stopped(False),
    "set_grad_enabled": Switched,
}


class TensorModule:
    """torch, or a module of it, as the traced function sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, types.ModuleType):
            return TensorModule(value)
        if name in _STOPPING:
            return _STOPPING[name]
        if name in ("finfo", "iinfo"):
            return getattr(kinds, name)
        home = self._module.__name__
        key = name if home in _PLAIN else f"{home.removeprefix('torch.')}.{name}"
        if key in TENSOR_FUNCTIONS:
            return TENSOR_FUNCTIONS[key]
        if (found := _shown_type(value)) is not None:
            return found
        return value if isinstance(value, type) or not callable(value) else _unknown(value, name)


def _shown_type(value: Any) -> Any:
    """The stand-in of the type of tensors, of shapes, or of elements; else None."""
    if type(value).__name__ == "dtype":
        return tensor_type(value)
    if getattr(value, "__module__", "") == "torch.autograd.variable":
        return TENSOR_FUNCTIONS["autograd.Variable"]
    is_own = isinstance(value, type) and value.__module__ == "torch"
    return {"Tensor": Tensor, "Size": TensorSize}.get(value.__name__) if is_own else None


def _known(name: str) -> Callable[..., Any] | None:
    """A function by its own name, which of those in torch.special begins with the module's."""
    return TENSOR_FUNCTIONS.get(name) or TENSOR_FUNCTIONS.get(name.removeprefix("special_"))


def _unknown(function: Any, name: str) -> Callable[..., Any]:
    """A function that is not in the table.

    One that PyTorch has in Python may do with what is; one that no array is given to answers by
    itself what is no tensor, such as a type.
    """

    def unknown(*args: Any, **kwargs: Any) -> Any:
        is_traced = traced((*args, *kwargs.values()))
        if is_traced and not isinstance(function, types.FunctionType):
            refuse(f"{name} of PyTorch is not known to derive")
        given, named = mapped(kinds.own_type, args), mapped(kinds.own_type, kwargs)
        with sys.modules["torch"].random.fork_rng(devices=()):  # one that draws is refused
            result = function(*given, **named)
        if not is_traced and is_tensor(result):
            refuse(f"{name} of PyTorch is not known to derive")
        shown = _shown_type(result)
        return result if shown is None else shown

    return unknown


def shown_function_of(x: Any) -> Any:
    """The stand-in of what was imported from PyTorch by its name, if it is one."""
    if (found := _shown_type(x)) is not None:
        return found
    home = getattr(x, "__module__", None) or type(getattr(x, "__self__", None)).__module__
    if str(home).split(".")[0] != "torch":
        return None
    own = x if isinstance(x, type) else type(x)
    if own.__name__ in _STOPPING:  # of an object: as a decorator has it
        return _STOPPING[own.__name__] if isinstance(x, type) else Stopped(_stops(x))
    if not isinstance(x, types.FunctionType | types.BuiltinFunctionType):
        return None
    name = str(getattr(x, "__name__", ""))
    return _known(name) or _unknown(x, name)


def _stops(context: Any) -> bool:
    """True for an object that stops gradients: no_grad, or set_grad_enabled(False)."""
    is_enabled = type(context).__name__ == "enable_grad"
    return not getattr(context, "mode", is_enabled) or type(context).__name__ == "inference_mode"


def overridden(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that PyTorch's own code, such as a module's, calls on a traced array."""
    args = tuple(map(_traced, args))
    name = str(getattr(function, "__name__", function))
    known = _known(name) or TENSOR_METHODS.get(name)
    if known is not None:
        return known(*args, **{key: _traced(value) for key, value in kwargs.items()})
    if name.startswith("__") and hasattr(Tracer, name):
        return getattr(args[0], name)(*args[1:])
    return refuse(f"{name} of PyTorch is not known to derive")


def _traced(value: Any) -> Any:
    """A tensor of PyTorch's own code as a traced array."""
    array = of_tensor(value)
    return value if array is None else Tracer(as_node(array))


def of_tensor(value: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of a tensor, floats in double; None for anything else."""
    if not is_tensor(value):
        return None
    plain = value.detach().cpu()
    return np.asarray(plain.double() if plain.is_floating_point() else plain)


def _changing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method with an underscore: its result takes the array's place."""

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        change = x.become if name in _RESHAPING else x.assign
        change(function(x, *args, **kwargs))
        return x

    return method


def _constant(value: Any, _: Any) -> Any:
    return value


def _device(_: Any) -> Any:
    """The processor, as PyTorch says it where it is there, so that its type may be asked."""
    return sys.modules["torch"].device("cpu") if "torch" in sys.modules else "cpu"


def _layout(_: Any) -> Any:
    return sys.modules["torch"].strided


def _attributes() -> dict[str, Callable[[Any], Any]]:
    """For every attribute of tensors what it is of a traced array."""
    found = {**TENSOR_FUNCTIONS, **TENSOR_METHODS}
    found["where"] = lambda x, condition, other: where(condition, x, other)
    named = {f"{name}_": f for name, f in found.items() if "." not in name}
    changing = {name: _changing(name, f) for name, f in named.items()}
    bound: dict[str, Callable[[Any], Any]] = {
        name: partial(partial, function) for name, function in {**changing, **found}.items()
    }
    bound.update({name: partial(_constant, value) for name, value in _PLAIN_ANSWERS.items()})
    bound.update(
        dict.fromkeys(("mH", "H"), shapes.adjoint), data=methods.detach, shape=methods.shape
    )
    bound |= {"dtype": type_of, "device": _device, "layout": _layout}
    return bound


ATTRIBUTES: Final = _attributes()
MODULES["torch"] = TensorModule
OVERRIDES["torch"] = overridden
