"""Padding, windows, convolutions and pooling over the last axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from handgrad.program.integers import is_whole
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import (
    TENSOR_FUNCTIONS,
    along,
    axis_from_0,
    by_channel,
    is_exactly,
    torch_function,
    torch_method,
    xp,
)

_LETTERS: Final = "hwd"


def per_axis(value: Any, axes: int) -> tuple[Any, ...]:
    """A setting for each axis, from one or from a tuple."""
    if isinstance(value, tuple | list) and not is_whole(value):
        return tuple(value) * (axes if len(value) == 1 else 1)
    return (value,) * axes


@torch_function()
def pad(x: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    """PyTorch's widths begin with the last axis."""
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    widths = [*((0, 0) for _ in range(x.ndim - len(pairs))), *reversed(pairs)]
    if mode == "constant":
        return xp.pad(x, widths, constant_values=0 if value is None else value)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return xp.pad(x, widths, mode=modes[mode])


@torch_method("unfold")
def windows_of(x: Any, dimension: int, size: Any, step: Any) -> Any:
    """Tensor.unfold: windows along an axis, their elements in a new last one."""
    view = xp.lib.stride_tricks.sliding_window_view(x, size, axis=dimension)
    return along(view, axis_from_0(x, dimension), slice(None, None, step))


def windows(x: Any, kernel: Sequence[Any], stride: Sequence[Any], dilation: Sequence[Any]) -> Any:
    """Windows over the last axes: (…, places…, offsets…)."""
    axes = tuple(range(x.ndim - len(kernel), x.ndim))
    reach = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    view = xp.lib.stride_tricks.sliding_window_view(x, reach, axis=axes)
    whole = (slice(None),) * axes[0]
    return view[
        (*whole, *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    ]


def _padded(x: Any, padding: Sequence[Any], value: Any = 0) -> Any:
    if all(is_exactly(p, 0) for p in padding):
        return x
    widths = [*((0, 0) for _ in range(x.ndim - len(padding))), *((p, p) for p in padding)]
    return xp.pad(x, widths, constant_values=value)


def _convolution(axes: int) -> Callable[..., Any]:
    places, offsets = _LETTERS[:axes], _LETTERS[:axes].upper()

    def convolution(
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        if isinstance(padding, str):
            refuse(f"padding is {padding!r}; give numbers")
        steps, spread = per_axis(stride, axes), per_axis(dilation, axes)
        x = _padded(x, per_axis(padding, axes))
        view = windows(x, weight.shape[2:], steps, spread)
        if is_exactly(groups, 1):
            equation = f"nc{places}{offsets},oc{offsets}->no{places}"
            y = xp.einsum(equation, view, weight)
        else:
            n, c, *rest = view.shape
            out, per_group, *kernel = weight.shape
            view = xp.reshape(view, (n, groups, c // groups, *rest))
            parts = xp.reshape(weight, (groups, out // groups, per_group, *kernel))
            equation = f"ngc{places}{offsets},goc{offsets}->ngo{places}"
            y = xp.einsum(equation, view, parts)
            y = xp.reshape(y, (n, out, *y.shape[3:]))
        return y if bias is None else y + by_channel(bias, y)

    return convolution


def _pooling(axes: int, largest: bool) -> Callable[..., Any]:
    last = tuple(range(-axes, 0))

    def pooling(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        **options: Any,
    ) -> Any:
        if ceil_mode or any(options.values()):
            refuse("pooling with ceil_mode or other settings is not known")
        kernel = per_axis(kernel_size, axes)
        steps = kernel if stride is None else per_axis(stride, axes)
        x = _padded(x, per_axis(padding, axes), -xp.inf if largest else 0)
        view = windows(x, kernel, steps, per_axis(dilation, axes))
        return xp.max(view, axis=last) if largest else xp.mean(view, axis=last)

    return pooling


def _mean_pooling(axes: int) -> Callable[..., Any]:
    pooling = _pooling(axes, largest=False)

    def mean_pooling(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False
    ) -> Any:
        return pooling(x, kernel_size, stride, padding, ceil_mode=ceil_mode)

    return mean_pooling


def _adaptive(axes: int) -> Callable[..., Any]:
    last = tuple(range(-axes, 0))

    def adaptive(x: Any, output_size: Any) -> Any:
        if not all(is_exactly(n, 1) for n in per_axis(output_size, axes)):
            refuse("adaptive pooling is known to one element; write avg_pool")
        return xp.mean(x, axis=last, keepdims=True)

    return adaptive


for _axes in (1, 2, 3):
    TENSOR_FUNCTIONS[f"conv{_axes}d"] = _convolution(_axes)
    TENSOR_FUNCTIONS[f"max_pool{_axes}d"] = _pooling(_axes, largest=True)
    TENSOR_FUNCTIONS[f"avg_pool{_axes}d"] = _mean_pooling(_axes)
    TENSOR_FUNCTIONS[f"adaptive_avg_pool{_axes}d"] = _adaptive(_axes)


@torch_function("unfold")
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """torch.nn.functional.unfold: (N, C·K·K, places)."""
    steps, spread = per_axis(stride, 2), per_axis(dilation, 2)
    view = windows(_padded(x, per_axis(padding, 2)), per_axis(kernel_size, 2), steps, spread)
    n, c, h, w, kh, kw = view.shape
    return xp.reshape(xp.transpose(view, (0, 1, 4, 5, 2, 3)), (n, c * kh * kw, h * w))


@torch_function()
def pixel_shuffle(x: Any, upscale_factor: Any) -> Any:
    n, c, h, w = x.shape
    r = upscale_factor
    parts = xp.reshape(x, (n, c // (r * r), r, r, h, w))
    return xp.reshape(xp.transpose(parts, (0, 1, 4, 2, 5, 3)), (n, c // (r * r), h * r, w * r))


@torch_function()
def pixel_unshuffle(x: Any, downscale_factor: Any) -> Any:
    n, c, h, w = x.shape
    r = downscale_factor
    parts = xp.reshape(x, (n, c, h // r, r, w // r, r))
    return xp.reshape(xp.transpose(parts, (0, 1, 3, 5, 2, 4)), (n, c * r * r, h // r, w // r))


@torch_function("interpolate", "upsample")
def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", **options: Any
) -> Any:
    factors = per_axis(scale_factor, x.ndim - 2)
    whole = all(type(f) is int or (type(f) is float and f.is_integer()) for f in factors)
    if mode != "nearest" or size is not None or not whole or any(options.values()):
        refuse("interpolate is known as nearest by a whole scale_factor")
    for axis, factor in enumerate(factors):
        x = xp.repeat(x, int(factor), axis=axis + 2)
    return x
