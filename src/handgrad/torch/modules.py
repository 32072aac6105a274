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
        y = None if found is None else single_ops.linear(*found.tensors, found.bf16)
        return super().forward(input) if found is None or y is None else found.result(y)


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
    stride, dilation = (_per_axis(each, axes) for each in (module.stride, module.dilation))
    if x.dim() not in (axes + 1, axes + 2) or x.shape[-axes - 1] != module.in_channels:
        return None
    if stride is None or dilation is None:
        return None
    padding = _padding(module, dilation)
    if padding is None:
        hand_over(
            name, f"its padding, {module.padding!r} with {module.padding_mode}, has no kernel"
        )
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
        (*rows, *stride),
        (*(0 for _ in rows), *padding),
        (*rows, *dilation),
        module.groups,
        found.bf16,
    )
    if y is None:
        return None
    if axes == 1:
        y = y.squeeze(2)
    return found.result(y[0] if x.dim() == axes + 1 else y)


def _per_axis(setting: Any, axes: int) -> Sequence[Any] | None:
    """One number for every axis; None where there are others, which PyTorch has the words for."""
    given = (setting,) * axes if isinstance(setting, int) else setting
    return given if isinstance(given, tuple | list) and len(given) == axes else None


def _padding(module: Any, dilation: Sequence[Any]) -> Sequence[Any] | None:
    """The padding of both sides of every axis; None where zeros do not pad both alike."""
    if module.padding_mode != "zeros":
        return None
    if module.padding == "valid":
        return (0,) * len(dilation)
    if module.padding == "same":
        both = [d * (k - 1) for k, d in zip(module.weight.shape[2:], dilation, strict=True)]
        return None if any(size % 2 for size in both) else [size // 2 for size in both]
    return _per_axis(module.padding, len(dilation))


class LayerNorm(nn.LayerNorm):  # type: ignore[misc, unused-ignore]
    """`torch.nn.LayerNorm` on handgrad's kernels."""

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(self.normalized_shape)
        fits = tuple(input.shape[-len(shape) :]) == shape and _weighs(shape, self.weight, self.bias)
        found = operands("LayerNorm", input, self.weight, self.bias) if fits else None
        if found is None:
            return super().forward(input)
        rows, weight, bias = _rows(shape, *found.tensors)
        outputs = single_ops.layer_norm_rows(rows, weight, bias, self.eps)
        if outputs is None:
            return super().forward(input)
        return found.result(outputs[0].reshape(input.shape))


class RMSNorm(nn.RMSNorm):  # type: ignore[misc, unused-ignore]
    """`torch.nn.RMSNorm` on handgrad's kernels."""

    def forward(self, x: Tensor) -> Tensor:
        shape = tuple(self.normalized_shape)
        fits = tuple(x.shape[-len(shape) :]) == shape and _weighs(shape, self.weight)
        found = operands("RMSNorm", x, self.weight) if fits else None
        if found is None:
            return super().forward(x)
        given, weight = found.tensors
        rows, weight, _ = _rows(shape, given, weight, None)
        eps = torch.finfo(given.dtype).eps if self.eps is None else self.eps
        outputs = single_ops.rms_norm_rows(rows, weight, eps)
        if outputs is None:
            return super().forward(x)
        return found.result(outputs[0].reshape(x.shape))


def _weighs(shape: tuple[int, ...], *weights: Any) -> bool:
    """Return whether the weights of a norm, where they are there, have the shape of its axes."""
    return all(each is None or tuple(each.shape) == shape for each in weights)


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
        fits = fits and (self.weight is not None or self.bias is None)
        found = operands("GroupNorm", input, self.weight, self.bias) if fits else None
        if found is None:
            return super().forward(input)
        x, weight, bias = found.tensors
        if weight is None:
            weight = x.new_ones(self.num_channels)
        outputs = single_ops.group_norm_channels(x, weight, bias, self.num_groups, self.eps)
        return super().forward(input) if outputs is None else found.result(outputs[0])


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
        outputs = single_ops.cross_entropy(
            x, target, weight, self.label_smoothing, self.ignore_index, self.reduction
        )
        return super().forward(input, target) if outputs is None else found.result(outputs[0])

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
