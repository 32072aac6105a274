"""Max pooling: of every window the largest value goes on, and takes the whole gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.windows import inner_window, output_size, per_axis
from handgrad.ops.windows import check_pooling, crop, kernel_offsets, pad, scatter, window

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """For every output the number of the kernel offset that won; of x only its rows and columns.

    Kernel and padding are those of `inner_window`.
    """

    winner: Int[Array, "N C HO WO"]
    input_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


def validate(
    x: Array,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> None:
    check_pooling(
        "max_pool2d", "N, C, H, W", tuple(x.shape), kernel_size, stride, padding, dilation
    )


@operation
def forward(
    x: Float[Array, "N C H W"],
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
) -> tuple[Float[Array, "N C HO WO"], Cache]:
    """Largest value of every window.

    Forward:  y = max_{m,n} V[:, :, m·d :: s, n·d :: s]
    Backward: dV = dy at the position of the largest value, summed where windows overlap

    V is x with −∞ around it, which is never taken: of equal values the first of x in row-major
    order takes the gradient, as in PyTorch. A NaN makes its windows NaN, and the first takes their
    gradient. `stride` is the kernel's size where it is not given.

    Shapes: x (N, C, H, W) with H and W at least 1, y (N, C, HO, WO) with
    HO = ⌊(H + 2·padding − dilation·(KH − 1) − 1) / stride⌋ + 1, and WO likewise.
    Raises ShapeError where a window does not fit, ArgumentError for an impossible setting, among
    them a padding of more than half the kernel, which could leave a window without values.
    Source: Goodfellow, Bengio, Courville, Deep Learning (2016), section 9.3.
    """
    xp = array_namespace(x)
    kernel, paddings, dilations = (
        per_axis(kernel_size, 2),
        per_axis(padding, 2),
        per_axis(dilation, 2),
    )
    strides = kernel if stride is None else per_axis(stride, 2)
    input_size = x.shape[2:]
    size = output_size(input_size, kernel, strides, paddings, dilations)
    kernel, paddings = inner_window(input_size, kernel, strides, paddings, dilations)
    v = pad(x, paddings, -xp.inf)
    v_windows = [
        window(v, kernel_offset, strides, dilations, size)
        for kernel_offset in kernel_offsets(kernel)
    ]
    candidates = xp.stack(v_windows, axis=-1)
    y = xp.max(candidates, axis=-1)
    inside = pad(xp.ones((1, 1, *input_size), dtype=xp.bool, device=device(x)), paddings, False)
    inside_windows = [
        window(inside, kernel_offset, strides, dilations, size)
        for kernel_offset in kernel_offsets(kernel)
    ]
    largest = (candidates == xp.expand_dims(y, axis=-1)) | xp.isnan(candidates)
    won = largest & xp.stack(inside_windows, axis=-1)
    winner = xp.argmax(xp.astype(won, xp.int8), axis=-1)
    return y, Cache(winner, input_size, kernel, strides, paddings, dilations)


@operation
def backward(dy: Float[Array, "N C HO WO"], cache: Cache) -> Float[Array, "N C H W"]:
    """dV, summed over the kernel offsets, = dy where the offset won, scattered."""
    winner, input_size, kernel, strides, paddings, dilations = cache
    xp = array_namespace(dy)
    padded_size = tuple(n + 2 * p for n, p in zip(input_size, paddings, strict=True))
    nothing = xp.zeros_like(dy)
    dv_windows = [
        xp.where(winner == number, dy, nothing) for number, _ in enumerate(kernel_offsets(kernel))
    ]
    dv = sum(
        scatter(dv_window, kernel_offset, strides, dilations, padded_size)
        for kernel_offset, dv_window in zip(kernel_offsets(kernel), dv_windows, strict=True)
    )
    dx = crop(dv, paddings)
    return dx
