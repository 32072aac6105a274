"""Pooling and interpolation over the last axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from handgrad.program.integers import is_whole
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.reductions import first_largest
from handgrad.program.tensors.table import (
    along,
    enter,
    is_exactly,
    torch_function,
    torch_refused,
    xp,
)
from handgrad.program.tensors.windows import padded, per_axis, windows


def _ends(
    x: Any,
    kernel: Sequence[Any],
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    ceil_mode: bool,
) -> list[tuple[Any, Any]]:
    """The widths of the padding; with ceil_mode after the end what a last window needs."""
    found = []
    sizes = x.shape[x.ndim - len(kernel) :]
    for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        more: Any = 0
        if ceil_mode:
            left = size + 2 * p - d * (k - 1) - 1
            last = (left + s - 1) // s
            if not (is_exactly(p, 0) and s <= k) and bool(last * s >= size + p):
                last = last - 1  # a window that begins behind the end
            more = last * s - left
            more = 0 if bool(more == 0) else more
        found.append((p, p + more))
    return found


def _settings(
    x: Any,
    axes: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Any, ...]:
    kernel, spread = per_axis(kernel_size, axes), per_axis(dilation, axes)
    steps = kernel if stride is None or stride in ((), []) else per_axis(stride, axes)
    margins = per_axis(padding, axes)
    return kernel, steps, spread, _ends(x, kernel, steps, margins, spread, ceil_mode)


def _max_pooling(axes: int) -> Callable[..., Any]:
    def pooling(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """The largest of each window; of equal ones the first has the gradient."""
        if return_indices:
            refuse("max_pool with return_indices is not known; write unfold and max")
        kernel, steps, spread, ends = _settings(
            x, axes, kernel_size, stride, padding, dilation, ceil_mode
        )
        view = windows(padded(x, ends, -xp.inf), kernel, steps, spread)
        whole: Any = 1
        for size in view.shape[view.ndim - axes :]:
            whole = whole * size
        view = xp.reshape(view, (*view.shape[: view.ndim - axes], whole))
        return first_largest(view, -1).values[..., 0]

    return pooling


def _mean_pooling(axes: int) -> Callable[..., Any]:
    last = tuple(range(-axes, 0))

    def pooling(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        """Means of windows: of what is padded as well unless count_include_pad is false."""
        kernel, steps, spread, ends = _settings(x, axes, kernel_size, stride, padding, 1, ceil_mode)
        view = windows(padded(x, ends), kernel, steps, spread)
        if divisor_override is not None:
            return xp.sum(view, axis=last) / divisor_override
        margins = per_axis(padding if count_include_pad else 0, axes)
        counted = [(p, p) for p in margins]
        rest = [(a - b, c - d) for (a, c), (b, d) in zip(ends, counted, strict=True)]
        if all(is_exactly(n, 0) for each in rest for n in each):
            return xp.mean(view, axis=last)
        ones = padded(xp.ones(x.shape[x.ndim - axes :]), counted, 1.0)
        counts = xp.sum(windows(padded(ones, rest), kernel, steps, spread), axis=last)
        return xp.sum(view, axis=last) / counts

    return pooling


def _power_pooling(axes: int) -> Callable[..., Any]:
    mean_pooling = _mean_pooling(axes)

    def pooling(
        x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        count = 1
        for k in per_axis(kernel_size, axes):
            count = count * k
        powers = mean_pooling(x**norm_type, kernel_size, stride, 0, ceil_mode)
        return (xp.sign(powers) * xp.maximum(xp.absolute(powers), 0) * count) ** (1 / norm_type)

    return pooling


def adaptive(x: Any, sizes: Sequence[Any], pooled: Callable[[Any, int], Any]) -> Any:
    """Each of the last axes in as many windows as asked for, of sizes that differ by one or two.

    pooled: the reduction along an axis, which stays.
    """
    for axis, count in enumerate(sizes, x.ndim - len(sizes)):
        size = x.shape[axis]
        if count is None:
            continue
        if is_exactly(count, 1):
            x = pooled(x, axis)
        elif bool(size % count == 0):
            parts = xp.reshape(x, (*x.shape[:axis], count, size // count, *x.shape[axis + 1 :]))
            x = xp.squeeze(pooled(parts, axis + 1), axis=axis + 1)
        else:
            ends = [
                (k * size // count, ((k + 1) * size + count - 1) // count) for k in range(count)
            ]
            pieces = [pooled(along(x, axis, slice(a, b)), axis) for a, b in ends]
            x = xp.concatenate(pieces, axis=axis)
    return x


def _mean(x: Any, axis: int) -> Any:
    return xp.mean(x, axis=axis, keepdims=True)


def _largest(x: Any, axis: int) -> Any:
    return first_largest(x, axis).values


def _adaptive(axes: int, largest: bool) -> Callable[..., Any]:
    def pooling(x: Any, output_size: Any, return_indices: bool = False) -> Any:
        if return_indices:
            refuse("adaptive_max_pool with return_indices is not known; write unfold and max")
        sizes = per_axis(output_size, axes)
        if not largest and all(is_exactly(n, 1) for n in sizes):
            return xp.mean(x, axis=tuple(range(-axes, 0)), keepdims=True)
        return adaptive(x, sizes, _largest if largest else _mean)

    return pooling


for _axes in (1, 2, 3):
    enter(f"max_pool{_axes}d", _max_pooling(_axes))
    enter(f"avg_pool{_axes}d", _mean_pooling(_axes))
    enter(f"lp_pool{_axes}d", _power_pooling(_axes))
    enter(f"adaptive_avg_pool{_axes}d", _adaptive(_axes, largest=False))
    enter(f"adaptive_max_pool{_axes}d", _adaptive(_axes, largest=True))


@torch_function()
def local_response_norm(
    x: Any, size: Any, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0
) -> Any:
    """Krizhevsky and others, ImageNet classification (2012), section 3.3, with a mean."""
    squares = padded(xp.moveaxis(x * x, 1, -1), [(size // 2, (size - 1) // 2)])
    means = xp.mean(windows(squares, (size,), (1,), (1,)), axis=-1)
    return x / (k + alpha * xp.moveaxis(means, -1, 1)) ** beta


@torch_function("interpolate", "upsample")
def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Any:
    """Along each of the last axes: the nearest, or the two or four nearest by their distance."""
    axes = x.ndim - 2
    if mode not in (*_TAPS, "nearest", "nearest-exact", "area") or antialias:
        refuse(f"interpolate as {mode!r} or with antialias is not known; write mode='bilinear'")
    factors: tuple[Any, ...] = (None,) * axes
    if size is None:
        factors = per_axis(scale_factor, axes)
        sizes = [_scaled(n, factor) for n, factor in zip(x.shape[2:], factors, strict=True)]
        if recompute_scale_factor:
            factors = (None,) * axes
    else:
        sizes = list(per_axis(size, axes))
    if mode == "area":
        return adaptive(x, sizes, _mean)
    for axis, (count, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        x = _stretched(x, axis, count, factor, mode, bool(align_corners))
    return x


@torch_function("upsample_nearest")
def upsample_nearest(x: Any, size: Any = None, scale_factor: Any = None) -> Any:
    return interpolate(x, size, scale_factor)


@torch_function("upsample_bilinear")
def upsample_bilinear(x: Any, size: Any = None, scale_factor: Any = None) -> Any:
    return interpolate(x, size, scale_factor, "bilinear", align_corners=True)


_TAPS = {"linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 4}


def _scaled(size: Any, factor: Any) -> Any:
    """The size by a factor, rounded down."""
    if is_whole(factor):
        return size * factor
    part = Fraction(factor).limit_denominator(1000)
    return size * part.numerator // part.denominator


def _stretched(x: Any, axis: int, count: Any, factor: Any, mode: str, corners: bool) -> Any:
    size = x.shape[axis]
    if mode == "nearest" and factor is not None and float(factor).is_integer():
        return xp.repeat(x, int(factor), axis=axis)
    at = xp.arange(count)
    if mode in ("nearest", "nearest-exact"):
        half = 0.5 if mode == "nearest-exact" else 0.0
        step = size / count if factor is None else 1.0 / factor
        places = xp.floor((at + half) * step).astype(int)
        return xp.take(x, xp.minimum(places, size - 1), axis=axis)
    if corners:
        where = at * ((size - 1) / (count - 1)) if not is_exactly(count, 1) else at * 0.0
    else:
        where = (at + 0.5) * (size / count if factor is None else 1.0 / factor) - 0.5
        where = xp.maximum(where, 0) if _TAPS[mode] == 2 else where
    first = xp.floor(where)
    beyond = where - first
    shape = tuple(-1 if k == axis else 1 for k in range(x.ndim))
    weights = (1 - beyond, beyond) if _TAPS[mode] == 2 else _cubic(beyond)
    total: Any = 0
    for offset, weight in enumerate(weights, 0 if _TAPS[mode] == 2 else -1):
        places = xp.minimum(xp.maximum(first.astype(int) + offset, 0), size - 1)
        total = total + xp.take(x, places, axis=axis) * xp.reshape(weight, shape)
    return total


def _cubic(t: Any, a: float = -0.75) -> tuple[Any, ...]:
    """The weights of four neighbours (Keys, Cubic convolution interpolation, 1981)."""

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


torch_refused(
    "{name} of PyTorch is not known to derive; write interpolate, or x[..., rows, columns]",
    *("max_unpool1d", "max_unpool2d", "max_unpool3d"),
    *("fractional_max_pool2d", "fractional_max_pool3d"),
)
