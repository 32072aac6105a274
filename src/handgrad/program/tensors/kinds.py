"""PyTorch's types of elements, and what it says about itself, as a traced function sees them."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from handgrad.program.node import world
from handgrad.program.tensors.table import enter

#: NumPy's types of PyTorch's that NumPy does not have, or calls otherwise.
_NUMPYS: Final = {"bfloat16": "float32", "half": "float32", "float16": "float32"}
#: Questions of PyTorch's about who runs the function, of which none is true of a trace.
_UNTRUE: Final = (
    *("jit.is_scripting", "jit.is_tracing", "compiler.is_compiling", "cuda.is_available"),
    *("compiler.is_dynamo_compiling", "is_autocast_enabled", "is_autocast_cpu_enabled"),
)


class TensorType:
    """A type of elements, which NumPy takes for its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.dtype = np.dtype(_NUMPYS.get(name, name))

    kind = property(lambda self: self.dtype.kind)
    is_floating_point = property(lambda self: self.dtype.kind == "f")
    is_complex = property(lambda self: self.dtype.kind == "c")
    itemsize = property(lambda self: self.dtype.itemsize)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if "torch" in str(other) else bool(self.dtype == other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"torch.{self._name}"


def type_of(x: Any) -> TensorType:
    """The type of a traced array."""
    return TensorType(np.asarray(x.held.value).dtype.name)


def tensor_type(dtype: Any) -> TensorType:
    """One of PyTorch's types."""
    return TensorType(str(dtype).removeprefix("torch."))


def own_type(value: Any) -> Any:
    """A type of elements as PyTorch has it; anything else as it is."""
    return getattr(sys.modules["torch"], str(value)[6:]) if type(value) is TensorType else value


def finfo(kind: Any = np.float64) -> Any:
    return np.finfo(np.dtype(kind))


def iinfo(kind: Any) -> Any:
    return np.iinfo(np.dtype(kind))


def _untrue(*_: Any) -> bool:
    return False


for _name in _UNTRUE:
    enter(_name, _untrue)
enter("_assert_async", lambda *_: None)
enter("is_grad_enabled", lambda: not world().is_stopped)
