"""PyTorch's modules of one operation on handgrad's kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from handgrad.torch import single_ops
from handgrad.torch.bridge import hand_over
from handgrad.torch.operands import operands


class Linear(nn.Linear):  # type: ignore[misc, unused-ignore]
    """`torch.nn.Linear` on handgrad's kernels."""

    def forward(self, input: Tensor) -> Tensor:
        fits = input.dim() > 0 and input.shape[-1] == self.in_features
        found = operands("Linear", input, self.weight, self.bias) if fits else None
        if found is None:
            return super().forward(input)
        y = single_ops.linear(*found.tensors, found.bf16)
        return found.result(y)


class Conv2d(nn.Conv2d):  # type: ignore[misc, unused-ignore]
    """`torch.nn.Conv2d` on handgrad's kernels; zeros pad."""

    def forward(self, input: Tensor) -> Tensor:
        y = _convolved("Conv2d", self, input, 2)
        return super().forward(input) if y is None else y


class Conv1d(nn.Conv1d):  # type: ignore[misc, unused-ignore]
    """`torch.nn.Conv1d` on handgrad's kernels, as a convolution of images of one row."""

    def forward(self, input: Tensor) -> Tensor:
        y = _convolved("Conv1d", self, input, 1)
        return super().forward(input) if y is None else y


def _convolved(name: str, module: Any, x: Tensor, axes: int) -> Tensor | None:
    """y of a convolution; None where it is not for kernels."""
    padding = _padding(module)
    if padding is None:
        hand_over(
            name, f"its padding, {module.padding!r} with {module.padding_mode}, has no kernel"
        )
        return None
    if x.dim() not in (axes + 1, axes + 2) or x.shape[-axes - 1] != module.in_channels:
        return None
    spans = [d * (k - 1) for k, d in zip(module.kernel_size, module.dilation, strict=True)]
    sizes = zip(x.shape[-axes:], padding, spans, strict=True)
    if any(size + 2 * both <= span for size, both, span in sizes):
        return None
    found = operands(name, x, module.weight, module.bias)
    if found is None:
        return None
    images, weight, bias = found.tensors
    if x.dim() == axes + 1:
        images = images[None]
    rows = (1,) * (2 - axes)
    if axes == 1:
        images, weight = images.unsqueeze(2), weight.unsqueeze(2)
    y = single_ops.conv2d(
        images,
        weight,
        bias,
        (*rows, *module.stride),
        (*(0 for _ in rows), *padding),
        (*rows, *module.dilation),
        module.groups,
        found.bf16,
    )
    if axes == 1:
        y = y.squeeze(2)
    return found.result(y[0] if x.dim() == axes + 1 else y)


def _padding(module: Any) -> Sequence[int] | None:
    """The padding of both sides of every axis; None where zeros do not pad both alike."""
    if module.padding_mode != "zeros":
        return None
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    if module.padding == "same":
        both = [d * (k - 1) for k, d in zip(module.kernel_size, module.dilation, strict=True)]
        return None if any(size % 2 for size in both) else [size // 2 for size in both]
    padding: Sequence[int] = module.padding
    return padding


class LayerNorm(nn.LayerNorm):  # type: ignore[misc, unused-ignore]
    """`torch.nn.LayerNorm` on handgrad's kernels."""

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(self.normalized_shape)
        fits = tuple(input.shape[-len(shape) :]) == shape
        found = operands("LayerNorm", input, self.weight, self.bias) if fits else None
        if found is None:
            return super().forward(input)
        rows, weight, bias = _rows(shape, *found.tensors)
        y, *_ = single_ops.layer_norm_rows(rows, weight, bias, self.eps)
        return found.result(y.reshape(input.shape))


class RMSNorm(nn.RMSNorm):  # type: ignore[misc, unused-ignore]
    """`torch.nn.RMSNorm` on handgrad's kernels."""

    def forward(self, x: Tensor) -> Tensor:
        shape = tuple(self.normalized_shape)
        fits = tuple(x.shape[-len(shape) :]) == shape
        found = operands("RMSNorm", x, self.weight) if fits else None
        if found is None:
            return super().forward(x)
        x, weight = found.tensors
        rows, weight, _ = _rows(shape, x, weight, None)
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        y, *_ = single_ops.rms_norm_rows(rows, weight, eps)
        return found.result(y.reshape(x.shape))


def _rows(
    shape: tuple[int, ...], x: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """x and the weights of a norm over the last axes with one axis in their place; ones stand for
    a weight that is not there.
    """
    size = math.prod(shape)
    if weight is None:
        weight = x.new_ones(size)
    rows = x.reshape(*x.shape[: x.dim() - len(shape)], size)
    return rows, weight.reshape(size), None if bias is None else bias.reshape(size)


class GroupNorm(nn.GroupNorm):  # type: ignore[misc, unused-ignore]
    """`torch.nn.GroupNorm` on handgrad's kernels."""

    def forward(self, input: Tensor) -> Tensor:
        fits = input.dim() >= 2 and input.shape[1] == self.num_channels
        found = operands("GroupNorm", input, self.weight, self.bias) if fits else None
        if found is None:
            return super().forward(input)
        x, weight, bias = found.tensors
        if weight is None:
            weight = x.new_ones(self.num_channels)
        y, *_ = single_ops.group_norm_channels(x, weight, bias, self.num_groups, self.eps)
        return found.result(y)


class CrossEntropyLoss(nn.CrossEntropyLoss):  # type: ignore[misc, unused-ignore]
    """`torch.nn.CrossEntropyLoss` on handgrad's kernels.

    Where all targets are ignored the mean is 0, and PyTorch's is NaN.
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        found = (
            operands("CrossEntropyLoss", input, self.weight) if self._fits(input, target) else None
        )
        if found is None:
            return super().forward(input, target)
        x, weight = found.tensors
        if target.is_floating_point():
            target = target.to(x.dtype)
        loss, *_ = single_ops.cross_entropy(
            x, target, weight, self.label_smoothing, self.ignore_index, self.reduction
        )
        return found.result(loss)

    def _fits(self, x: Tensor, target: Tensor) -> bool:
        """Return whether the target is one that PyTorch takes, and has no gradient."""
        if x.dim() == 0 or target.device != x.device or target.requires_grad:
            return False
        axis = 0 if x.dim() == 1 else 1
        if self.weight is not None and self.weight.shape != x.shape[axis : axis + 1]:
            return False
        if target.dtype is torch.int64:
            return bool(target.shape == x.shape[:axis] + x.shape[axis + 1 :])
        return target.is_floating_point() and bool(target.shape == x.shape)
