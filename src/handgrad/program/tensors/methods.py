"""Methods and attributes that tensors have where PyTorch has no function."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.repeating import elements
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import held, torch_function, torch_method, xp
from handgrad.program.tracer import Tracer, wrap


class TensorLengths(tuple[Any, ...]):
    """The shape of a tensor, as torch.Size is one: a tuple that knows its product."""

    def numel(self) -> Any:
        return prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return TensorLengths(found) if isinstance(key, slice) else found


def shape(x: Any) -> TensorLengths:
    return TensorLengths(wrap(each) for each in x.node.shape)


@torch_method()
def size(x: Any, dim: Any = None) -> Any:
    return shape(x) if dim is None else shape(x)[dim]


@torch_method("dim", "ndimension")
def dim(x: Any) -> int:
    count: int = x.ndim
    return count


@torch_method()
def stride(x: Any, dim: Any = None) -> Any:
    """The elements between neighbours along each axis, of an array in the order of C."""
    if not np.asarray(x.node.value).flags.c_contiguous:
        refuse("the strides of an array in another order than that of C")
    found = tuple(map(wrap, elements(x.node.shape)))
    return found if dim is None else found[dim]


@torch_function()
@torch_method("nelement")
def numel(x: Any) -> Any:
    whole: Any = 1
    for length in x.shape:
        whole = whole * length
    return whole


@torch_function("clone")
@torch_method("contiguous", "cpu", "cuda", "requires_grad_", "pin_memory", "double", "resolve_conj")
def same(x: Any, *_: Any, **__: Any) -> Any:
    return Tracer(x.node)


@torch_method("float", "half", "bfloat16")
def as_floats(x: Any, *_: Any, **__: Any) -> Any:
    """Floats; in how many bits they are computed does not matter for a derivation."""
    return x if x.node.kind == "f" else x.astype(float)


@torch_method("long", "int", "short", "byte", "char")
def as_integers(x: Any, *_: Any, **__: Any) -> Any:
    return x if x.node.kind == "i" else x.astype(int)


@torch_method("bool")
def as_truths(x: Any, *_: Any, **__: Any) -> Any:
    return x if x.node.kind == "b" else x.astype(bool)


@torch_method("to", "type")
def to(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Another type, or another device, where a traced array is everywhere."""
    for each in (*args, kwargs.get("dtype")):
        if type(each) is Tracer:
            return type_as(x, each)
        if each is None or isinstance(each, str | bool):
            continue
        try:
            return _in_kind(x, np.dtype(each).kind)
        except TypeError:
            continue
    return x


@torch_method()
def type_as(x: Any, other: Any) -> Any:
    return _in_kind(x, other.node.kind)


def _in_kind(x: Any, kind: str) -> Any:
    casts = {"f": as_floats, "i": as_integers, "b": as_truths}
    return casts[kind.replace("u", "i")](x)


@torch_function()
@torch_method("detach")
def detach(x: Any) -> Any:
    """The values, which pass no gradient on."""
    return held(x)


@torch_function("autograd.Variable")
def variable(x: Any, requires_grad: bool = False, *_: Any) -> Any:
    """As before PyTorch 0.4: a tensor of its own, on which no gradient is handed on."""
    return held(x)


@torch_function()
def is_floating_point(x: Any) -> bool:
    kind: str = x.node.kind
    return kind == "f"


@torch_function()
def is_tensor(x: Any) -> bool:
    return type(x) is Tracer


@torch_function()
def is_complex(x: Any) -> bool:
    kind: str = x.node.kind
    return kind == "c"


@torch_method("is_contiguous")
def is_contiguous(x: Any, *_: Any, **__: Any) -> bool:
    return True


@torch_method("numpy")
def numpy(x: Any, *_: Any, **__: Any) -> Any:
    """The numbers: of places, lengths and truths those of the example, which are guarded."""
    if x.node.kind not in "ib":
        refuse("the numbers of a tensor are asked for")
    return np.asarray(constant(x.node))


@torch_method()
def tolist(x: Any) -> Any:
    return numpy(x).tolist()


@torch_method("backward")
def backward(x: Any, *_: Any, **__: Any) -> Any:
    refuse("a backward pass is made here; give the forward alone")


@torch_method("zero_")
def zero_(x: Any) -> Any:
    x.assign(0)
    return x


@torch_method("fill_diagonal_")
def fill_diagonal_(x: Any, value: Any, wrap: bool = False) -> Any:
    xp.fill_diagonal(x, value)
    return x


@torch_method("fill_", "copy_")
def fill_(x: Any, value: Any, *_: Any) -> Any:
    x.assign(value)
    return x
