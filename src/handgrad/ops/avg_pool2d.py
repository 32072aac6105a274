"""Average pooling: of every window the mean goes on, and every value takes an equal share back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.windows import inner_window, output_size, per_axis
from handgrad.ops.windows import check_pooling, crop, pad, scatter, window

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The number of values in each window; nothing of x but its rows and columns.

    Kernel and padding are those of `inner_window`.
    """

    count: Float[Array, "1 1 HO WO"]
    input_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


def validate(
    x: Array,
    kernel_size: int | tuple[int, int] | str,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    *,
    count_include_pad: bool = True,
) -> None:
    check_pooling(
        "avg_pool2d",
        "N, C, H, W",
        tuple(x.shape),
        kernel_size,
        stride,
        padding,
        (1, 1),
        can_be_global=True,
    )


@operation
def forward(
    x: Float[Array, "N C H W"],
    kernel_size: int | tuple[int, int] | str,
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    *,
    count_include_pad: bool = True,
) -> tuple[Float[Array, "N C HO WO"], Cache]:
    """Mean of every window; of the whole image with kernel_size="global".

    Forward:  y = Σ_{m,n} V[:, :, m :: s, n :: s] / count
    Backward: dV[:, :, m :: s, n :: s] = dy / count, summed over (m, n)

    V is x with zeros around it; `count_include_pad` says whether these count as values. Rows are
    added before columns, KH + KW steps for KH · KW offsets. `stride` is the kernel's size where it
    is not given.

    Shapes: x (N, C, H, W) with H and W at least 1, y (N, C, HO, WO) with
    HO = ⌊(H + 2·padding − KH) / stride⌋ + 1, and WO likewise; y (N, C, 1, 1) for "global".
    Raises ShapeError where a window does not fit, ArgumentError for an impossible setting.
    Source: Goodfellow, Bengio, Courville, Deep Learning (2016), section 9.3; Lin, Chen, Yan,
    Network in network (2014), section 3.2, for the global mean.
    """
    xp = array_namespace(x)
    input_size = x.shape[2:]
    kernel = input_size if isinstance(kernel_size, str) else per_axis(kernel_size, 2)
    strides, paddings = kernel if stride is None else per_axis(stride, 2), per_axis(padding, 2)
    inner, paddings = inner_window(input_size, kernel, strides, paddings, (1, 1))
    v = pad(x, paddings)
    inside = pad(xp.ones((1, 1, *input_size), dtype=x.dtype, device=device(x)), paddings)
    count = window_sum(inside, inner, strides)
    if count_include_pad:
        count = xp.full_like(count, kernel[0] * kernel[1])
    y = window_sum(v, inner, strides) / count
    return y, Cache(count, input_size, inner, strides, paddings)


@operation
def backward(dy: Float[Array, "N C HO WO"], cache: Cache) -> Float[Array, "N C H W"]:
    """dV, summed over the kernel offsets, = dy / count scattered."""
    count, (height, width), (kernel_h, kernel_w), (stride_h, stride_w), paddings = cache
    padded_h, padded_w = height + 2 * paddings[0], width + 2 * paddings[1]
    rows = dy.shape[2]
    share = dy / count
    drow_sums = sum(
        scatter(share, (0, n), (1, stride_w), (1, 1), (rows, padded_w)) for n in range(kernel_w)
    )
    dv = sum(
        scatter(drow_sums, (m, 0), (stride_h, 1), (1, 1), (padded_h, padded_w))
        for m in range(kernel_h)
    )
    dx = crop(dv, paddings)
    return dx


def window_sum(v: Array, kernel: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """Σ_{m,n} V[:, :, m :: s, n :: s], first over m."""
    (kernel_h, kernel_w), (stride_h, stride_w), width = kernel, stride, v.shape[3]
    rows, columns = output_size(v.shape[2:], kernel, stride, (0, 0), (1, 1))
    row_sums = sum(window(v, (m, 0), (stride_h, 1), (1, 1), (rows, width)) for m in range(kernel_h))
    return sum(
        window(row_sums, (0, n), (1, stride_w), (1, 1), (rows, columns)) for n in range(kernel_w)
    )
