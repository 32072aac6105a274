"""Padding, windows, and convolutions over the last axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from handgrad.program.integers import is_whole
from handgrad.program.tensors.table import (
    along,
    axis_from_0,
    by_channel,
    enter,
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


def padded(x: Any, widths: Sequence[tuple[Any, Any]], value: Any = 0) -> Any:
    """The last axes with elements before and after; without some where a width is negative."""
    widths = [*((0, 0) for _ in range(x.ndim - len(widths))), *widths]
    for axis, ends in enumerate(widths):
        first, last = (-n if n < 0 else None for n in ends)
        if first is not None or last is not None:
            x = along(x, axis, slice(first, None if last is None else x.shape[axis] - last))
    more = [tuple(n if n > 0 else 0 for n in ends) for ends in widths]
    if all(is_exactly(n, 0) for ends in more for n in ends):
        return x
    return xp.pad(x, more, constant_values=value)


@torch_function("pad", "constant_pad_nd")
def pad(x: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    """PyTorch's widths begin with the last axis."""
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    if mode == "constant":
        return padded(x, pairs, 0 if value is None else value)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return xp.pad(x, [*((0, 0) for _ in range(x.ndim - len(pairs))), *pairs], mode=modes[mode])


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


def _correlated(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[Any],
    dilation: Sequence[Any],
    groups: Any,
) -> Any:
    """The product of every window with a weight (out, in, offsets…)."""
    axes = len(stride)
    places, offsets = _LETTERS[:axes], _LETTERS[:axes].upper()
    view = windows(x, weight.shape[2:], stride, dilation)
    if is_exactly(groups, 1):
        y = xp.einsum(f"nc{places}{offsets},oc{offsets}->no{places}", view, weight)
    else:
        n, c, *rest = view.shape
        out, per_group, *kernel = weight.shape
        view = xp.reshape(view, (n, groups, c // groups, *rest))
        parts = xp.reshape(weight, (groups, out // groups, per_group, *kernel))
        y = xp.einsum(f"ngc{places}{offsets},goc{offsets}->ngo{places}", view, parts)
        y = xp.reshape(y, (n, out, *y.shape[3:]))
    return y if bias is None else y + by_channel(bias, y)


def _margins(padding: Any, kernel: Sequence[Any], dilation: Sequence[Any]) -> list[Any]:
    """The widths of a convolution's padding, by numbers or by PyTorch's words."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(p, p) for p in per_axis(padding, len(kernel))]


def _convolution(axes: int) -> Callable[..., Any]:
    def convolution(
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        if x.ndim == axes + 1:  # one image, without an axis for the batch
            return convolution(x[None], weight, bias, stride, padding, dilation, groups)[0]
        spread = per_axis(dilation, axes)
        x = padded(x, _margins(padding, weight.shape[2:], spread))
        return _correlated(x, weight, bias, per_axis(stride, axes), spread, groups)

    return convolution


def _transposed(axes: int) -> Callable[..., Any]:
    def transposed(
        x: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Any:
        """The convolution's transpose: of x with zeros between, by the weight turned round."""
        if x.ndim == axes + 1:
            return transposed(
                x[None], weight, bias, stride, padding, output_padding, groups, dilation
            )[0]
        spread = per_axis(dilation, axes)
        x = _with_zeros_between(x, per_axis(stride, axes))
        kernel = weight.shape[2:]
        reach = [d * (k - 1) for k, d in zip(kernel, spread, strict=True)]
        ends = zip(reach, per_axis(padding, axes), per_axis(output_padding, axes), strict=True)
        x = padded(x, [(r - p, r - p + more) for r, p, more in ends])
        turned = xp.flip(weight, tuple(range(2, weight.ndim)))
        if is_exactly(groups, 1):
            turned = xp.swapaxes(turned, 0, 1)
        else:
            c, out, *_ = weight.shape
            turned = xp.reshape(turned, (groups, c // groups, out, *kernel))
            turned = xp.reshape(xp.swapaxes(turned, 1, 2), (groups * out, c // groups, *kernel))
        return _correlated(x, turned, bias, (1,) * axes, spread, groups)

    return transposed


def _with_zeros_between(x: Any, stride: Sequence[Any]) -> Any:
    for axis, step in enumerate(stride, x.ndim - len(stride)):
        if is_exactly(step, 1):
            continue
        before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
        apart = xp.expand_dims(x, axis + 1)
        widths = [(0, step - 1 if k == axis + 1 else 0) for k in range(apart.ndim)]
        x = xp.reshape(xp.pad(apart, widths), (*before, size * step, *after))
        x = along(x, axis, slice(0, size * step - (step - 1)))
    return x


for _axes in (1, 2, 3):
    enter(f"conv{_axes}d", _convolution(_axes))
    enter(f"conv_transpose{_axes}d", _transposed(_axes))


@torch_function("unfold")
def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """torch.nn.functional.unfold: (N, C·K·K, places)."""
    x = padded(x, [(p, p) for p in per_axis(padding, 2)])
    view = windows(x, per_axis(kernel_size, 2), per_axis(stride, 2), per_axis(dilation, 2))
    n, c, h, w, kh, kw = view.shape
    return xp.reshape(xp.transpose(view, (0, 1, 4, 5, 2, 3)), (n, c * kh * kw, h * w))


@torch_function()
def fold(
    x: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """The transpose of unfold: a transposed convolution whose weight puts each column in place."""
    kernel, steps, spread = (per_axis(each, 2) for each in (kernel_size, stride, dilation))
    sizes, margins = per_axis(output_size, 2), per_axis(padding, 2)
    ends = tuple(zip(sizes, margins, kernel, steps, spread, strict=True))
    h, w = ((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, p, k, s, d in ends)
    n, columns, _ = x.shape
    count = kernel[0] * kernel[1]
    images = xp.reshape(x, (n * (columns // count), count, h, w))
    weight = xp.reshape(xp.eye(count), (count, 1, *kernel))
    left = tuple((size + 2 * p - d * (k - 1) - 1) % s for size, p, k, s, d in ends)
    y = _transposed(2)(images, weight, None, steps, margins, left, 1, spread)
    return xp.reshape(y, (n, columns // count, *sizes))


def _shuffled(x: Any) -> tuple[Any, ...]:
    *batch, c, h, w = x.shape
    return tuple(batch), len(batch), c, h, w


@torch_function()
def pixel_shuffle(x: Any, upscale_factor: Any) -> Any:
    batch, k, c, h, w = _shuffled(x)
    r = upscale_factor
    parts = xp.reshape(x, (*batch, c // (r * r), r, r, h, w))
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return xp.reshape(xp.transpose(parts, order), (*batch, c // (r * r), h * r, w * r))


@torch_function()
def pixel_unshuffle(x: Any, downscale_factor: Any) -> Any:
    batch, k, c, h, w = _shuffled(x)
    r = downscale_factor
    parts = xp.reshape(x, (*batch, c, h // r, r, w // r, r))
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return xp.reshape(xp.transpose(parts, order), (*batch, c * r * r, h // r, w // r))
