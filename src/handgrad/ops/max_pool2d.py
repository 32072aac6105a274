"""Max pooling: of every window the largest value goes on, and takes the whole gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.ops.windows import (
    check_pooling,
    crop,
    met_window,
    moves,
    pad,
    per_axis,
    spread,
    taps,
    window,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """For every output the number of the tap that won; of x only its rows and columns.

    Kernel and padding are those of `met_window`.
    """

    winner: Int[Array, "N C HO WO"]
    places: tuple[int, ...]
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
    check_pooling("max_pool2d", tuple(x.shape), kernel_size, stride, padding, dilation)


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
    places = x.shape[2:]
    size = moves(places, kernel, strides, paddings, dilations)
    kernel, paddings = met_window(places, kernel, strides, paddings, dilations)
    v = pad(x, paddings, -xp.inf)
    v_taps = [window(v, tap, strides, dilations, size) for tap in taps(kernel)]
    candidates = xp.stack(v_taps, axis=-1)
    y = xp.max(candidates, axis=-1)
    inside = pad(xp.ones((1, 1, *places), dtype=xp.bool, device=device(x)), paddings, False)
    inside_taps = [window(inside, tap, strides, dilations, size) for tap in taps(kernel)]
    largest = (candidates == xp.expand_dims(y, axis=-1)) | xp.isnan(candidates)
    won = largest & xp.stack(inside_taps, axis=-1)
    winner = xp.argmax(xp.astype(won, xp.int8), axis=-1)
    return y, Cache(winner, places, kernel, strides, paddings, dilations)


@operation
def backward(dy: Float[Array, "N C HO WO"], cache: Cache) -> Float[Array, "N C H W"]:
    """dV, summed over the taps, = dy where the tap won, put in place."""
    winner, places, kernel, strides, paddings, dilations = cache
    xp = array_namespace(dy)
    padded_places = tuple(n + 2 * p for n, p in zip(places, paddings, strict=True))
    nothing = xp.zeros_like(dy)
    dv_taps = [xp.where(winner == number, dy, nothing) for number, _ in enumerate(taps(kernel))]
    dv = sum(
        spread(dv_tap, tap, strides, dilations, padded_places)
        for tap, dv_tap in zip(taps(kernel), dv_taps, strict=True)
    )
    dx = crop(dv, paddings)
    return dx
