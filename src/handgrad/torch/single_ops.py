"""Operators of single kernels: `handgrad::linear`, `conv2d`, three norms and `cross_entropy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.dispatch import SKIP
from handgrad.ops import conv2d as conv2d_op
from handgrad.ops import cross_entropy as cross_entropy_op
from handgrad.ops import dense as dense_op
from handgrad.ops import group_norm as group_norm_op
from handgrad.ops import layer_norm as layer_norm_op
from handgrad.ops import rms_norm as rms_norm_op
from handgrad.torch.bridge import Tensors, as_array, as_set_in_torch, as_tensor, differentiable

if kernels.native is not None:  # without, the bridge refuses every call
    from handgrad.kernels import conv2d as conv2d_kernel
    from handgrad.kernels import cross_entropy as cross_entropy_kernel
    from handgrad.kernels import dense, group_norm, layer_norm, rms_norm

Wanted = Sequence[bool]


def _arrays(tensors: Tensors) -> list[Any]:
    return [as_array(tensor) for tensor in tensors]


def _buffers(wanted: Wanted, count: int) -> tuple[Any, ...]:
    """The `out` of a kernel for its first `count` gradients."""
    return tuple(None if is_wanted else SKIP for is_wanted in wanted[:count])


def _found(gradients: Sequence[Any], wanted: Wanted) -> list[Tensor]:
    """The gradients that are wanted, as tensors."""
    pairs = zip(gradients, wanted, strict=False)
    return [as_tensor(gradient) for gradient, is_wanted in pairs if is_wanted]


def _validate_linear(x: Array, weight: Array, bias: Array | None, bf16: bool) -> None:
    dense_op.validate(x, weight, bias)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, bf16: bool) -> Tensor:
    with as_set_in_torch(bf16):
        y, _ = dense.forward(as_array(x), as_array(weight), as_array(bias))
    return as_tensor(y)


def _linear_backward(
    dy: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    x, weight, bias = _arrays(inputs[:3])
    with as_set_in_torch(inputs[3]):
        cache = dense.Cache(x, weight, bias, None, 0, 0.0)
        return _found(dense.backward(as_array(dy[0]), cache, _buffers(wanted, 3)), wanted)


linear: Final = differentiable(
    "linear",
    "(Tensor x, Tensor weight, Tensor? bias, bool bf16) -> Tensor",
    validate=_validate_linear,
    forward=_linear,
    backward=_linear_backward,
    fake=lambda x, weight, bias, bf16: x.new_empty(*x.shape[:-1], weight.shape[0]),
    again=lambda x, weight, bias, bf16: (functional.linear(x, weight, bias),),
    reads=(),
)


def _validate_conv2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    bf16: bool,
) -> None:
    conv2d_op.validate(
        x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


def _conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    bf16: bool,
) -> Tensor:
    with as_set_in_torch(bf16):
        y, _ = conv2d_kernel.forward(
            *map(as_array, (x, weight, bias)),
            stride=tuple(stride),
            padding=tuple(padding),
            dilation=tuple(dilation),
            groups=groups,
        )
    return as_tensor(y)


def _conv2d_backward(
    dy: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    x, weight, bias = _arrays(inputs[:3])
    stride, padding, dilation = map(tuple, inputs[3:6])
    groups, bf16 = inputs[6:]
    _, sizes = conv2d_kernel.sizes_of(x.shape, weight.shape, stride, padding, dilation, groups)
    cache = conv2d_kernel.Cache(x, weight, bias, None, sizes, 0)
    with as_set_in_torch(bf16):
        return _found(conv2d_kernel.backward(as_array(dy[0]), cache, _buffers(wanted, 3)), wanted)


def _conv2d_fake(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, *_: Any
) -> Tensor:
    sizes = [
        (x.shape[i + 2] + 2 * padding[i] - dilation[i] * (weight.shape[i + 2] - 1) - 1) // stride[i]
        + 1
        for i in range(2)
    ]
    return x.new_empty(x.shape[0], weight.shape[0], *sizes)


conv2d: Final = differentiable(
    "conv2d",
    "(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
    "int groups, bool bf16) -> Tensor",
    validate=_validate_conv2d,
    forward=_conv2d,
    backward=_conv2d_backward,
    fake=_conv2d_fake,
    again=lambda *inputs: (functional.conv2d(*inputs[:7]),),
    reads=(),
)


def _validate_layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> None:
    layer_norm_op.validate(x, weight, weight if bias is None else bias, eps=eps)


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
    gamma: Any = as_array(weight)
    beta = np.zeros_like(gamma) if bias is None else as_array(bias)
    with as_set_in_torch(False):
        y, cache = layer_norm.forward(as_array(x), gamma, beta, eps=eps)
    return as_tensor(y), as_tensor(cache.statistics)


def _layer_norm_backward(
    dy: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    cache = layer_norm.Cache(*map(as_array, (inputs[0], inputs[1], outputs[1])))
    with as_set_in_torch(False):
        return _found(layer_norm.backward(as_array(dy[0]), cache, _buffers(wanted, 3)), wanted)


layer_norm_rows: Final = differentiable(
    "layer_norm",
    "(Tensor x, Tensor weight, Tensor? bias, float eps) -> (Tensor, Tensor)",
    validate=_validate_layer_norm,
    forward=_layer_norm,
    backward=_layer_norm_backward,
    fake=lambda x, weight, bias, eps: (_like(x), x.new_empty(*x.shape[:-1], 2)),
    again=lambda x, weight, bias, eps: (functional.layer_norm(x, x.shape[-1:], weight, bias, eps),),
    reads=(1,),
)


def _validate_rms_norm(x: Array, weight: Array, eps: float) -> None:
    rms_norm_op.validate(x, weight, eps=eps)


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, ...]:
    with as_set_in_torch(False):
        y, cache = rms_norm.forward(as_array(x), as_array(weight), eps=eps)
    return as_tensor(y), as_tensor(cache.statistics)


def _rms_norm_backward(
    dy: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    cache = rms_norm.Cache(*map(as_array, (inputs[0], inputs[1], outputs[1])))
    with as_set_in_torch(False):
        return _found(rms_norm.backward(as_array(dy[0]), cache, _buffers(wanted, 2)), wanted)


rms_norm_rows: Final = differentiable(
    "rms_norm",
    "(Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)",
    validate=_validate_rms_norm,
    forward=_rms_norm,
    backward=_rms_norm_backward,
    fake=lambda x, weight, eps: (_like(x), x.new_empty(*x.shape[:-1], 2)),
    again=lambda x, weight, eps: (functional.rms_norm(x, x.shape[-1:], weight, eps),),
    reads=(1,),
)


def _validate_group_norm(
    x: Array, weight: Array, bias: Array | None, groups: int, eps: float
) -> None:
    # Without positions y is empty, which the op refuses and PyTorch does not.
    filled = np.broadcast_to(x.dtype.type(0), (*x.shape[:2], *(max(n, 1) for n in x.shape[2:])))
    group_norm_op.validate(
        filled, weight, weight if bias is None else bias, num_groups=groups, eps=eps
    )


def _group_norm(
    x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, ...]:
    gamma: Any = as_array(weight)
    beta = np.zeros_like(gamma) if bias is None else as_array(bias)
    with as_set_in_torch(False):
        y, cache = group_norm.forward(as_array(x), gamma, beta, num_groups=groups, eps=eps)
    return as_tensor(y), as_tensor(cache.statistics)


def _group_norm_backward(
    dy: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    cache = group_norm.Cache(*map(as_array, (inputs[0], inputs[1], outputs[1])))
    with as_set_in_torch(False):
        return _found(group_norm.backward(as_array(dy[0]), cache, _buffers(wanted, 3)), wanted)


group_norm_channels: Final = differentiable(
    "group_norm",
    "(Tensor x, Tensor weight, Tensor? bias, int groups, float eps) -> (Tensor, Tensor)",
    validate=_validate_group_norm,
    forward=_group_norm,
    backward=_group_norm_backward,
    fake=lambda x, weight, bias, groups, eps: (_like(x), x.new_empty(x.shape[0], groups, 2)),
    again=lambda x, weight, bias, groups, eps: (
        functional.group_norm(x, groups, weight, bias, eps),
    ),
    reads=(1,),
)


def _validate_cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None,
    smoothing: float,
    ignore_index: int,
    reduction: str,
) -> None:
    cross_entropy_op.validate(
        x,
        target,
        weight=weight,
        label_smoothing=smoothing,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def _cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    smoothing: float,
    ignore_index: int,
    reduction: str,
) -> tuple[Tensor, ...]:
    with as_set_in_torch(False):
        loss, cache = cross_entropy_kernel.forward(
            *map(as_array, (x, target)),
            weight=as_array(weight),
            label_smoothing=smoothing,
            ignore_index=ignore_index,
            reduction=reduction,
        )
    # With "none" the losses are a part of what is kept; outputs of an operator share no memory.
    losses = loss.copy() if reduction == "none" else loss
    divisor = np.zeros((), np.float64) if cache.divisor is None else cache.divisor
    return as_tensor(losses), as_tensor(cache.kept), as_tensor(divisor)


def _cross_entropy_backward(
    dloss: Tensors, inputs: Sequence[Any], outputs: Tensors, wanted: Wanted
) -> list[Tensor]:
    x, target, weight = _arrays(inputs[:3])
    smoothing, ignore_index, reduction = inputs[3:]
    axis = 0 if x.ndim == 1 else 1
    outer = x.shape[0] if axis else 1
    sizes = (outer, x.shape[axis], x.size // max(outer * x.shape[axis], 1))
    kept, divisor = map(as_array, outputs[1:])
    options = (smoothing, ignore_index) if target.ndim < x.ndim else (smoothing,)
    divided = None if reduction == "none" else divisor
    cache = cross_entropy_kernel.Cache(x, target, weight, kept, sizes, options, divided)
    with as_set_in_torch(False):
        dx = cross_entropy_kernel.backward(as_array(dloss[0]), cache)
    return _found((dx,), wanted)


def _cross_entropy_fake(
    x: Tensor, target: Tensor, weight: Any, smoothing: Any, ignore_index: Any, reduction: str
) -> tuple[Tensor, ...]:
    axis = 0 if x.dim() == 1 else 1
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    rows = 1
    for size in shape:
        rows = rows * size
    loss = x.new_empty(shape if reduction == "none" else ())
    return loss, x.new_empty(4, rows), x.new_empty((), dtype=torch.float64)


cross_entropy: Final = differentiable(
    "cross_entropy",
    "(Tensor x, Tensor target, Tensor? weight, float smoothing, int ignore_index, str reduction) "
    "-> (Tensor, Tensor, Tensor)",
    validate=_validate_cross_entropy,
    forward=_cross_entropy,
    backward=_cross_entropy_backward,
    fake=_cross_entropy_fake,
    again=lambda x, target, weight, smoothing, ignore_index, reduction: (
        functional.cross_entropy(
            x,
            target,
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=smoothing,
        ),
    ),
    reads=(1, 2),
)


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)
