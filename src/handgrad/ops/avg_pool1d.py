"""Average pooling in one dimension: the mean of every window, and an equal share back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.windows import inner_window, output_size, per_axis
from handgrad.ops.windows import check_pooling, crop, kernel_offsets, pad, scatter, window

if TYPE_CHECKING:
    from jaxtyping import Float


class Cache(NamedTuple):
    """The number of values in each window; nothing of x but its length.

    Kernel and padding are those of `inner_window`.
    """

    count: Float[Array, "1 1 TO"]
    input_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


def validate(
    x: Array,
    kernel_size: int | tuple[int] | str,
    stride: int | tuple[int] | None = None,
    padding: int | tuple[int] = 0,
    *,
    count_include_pad: bool = True,
) -> None:
    check_pooling(
        "avg_pool1d",
        "N, C, T",
        tuple(x.shape),
        kernel_size,
        stride,
        padding,
        (1,),
        can_be_global=True,
    )


@operation
def forward(
    x: Float[Array, "N C T"],
    kernel_size: int | tuple[int] | str,
    stride: int | tuple[int] | None = None,
    padding: int | tuple[int] = 0,
    *,
    count_include_pad: bool = True,
) -> tuple[Float[Array, "N C TO"], Cache]:
    """Mean of every window; of the whole sequence with kernel_size="global".

    Forward:  y = Σ_m V[:, :, m :: s] / count
    Backward: dV[:, :, m :: s] = dy / count, summed over m

    V is x with zeros around it; `count_include_pad` says whether these count as values. `stride` is
    the kernel's size where it is not given.

    Shapes: x (N, C, T) with T at least 1, y (N, C, TO) with
    TO = ⌊(T + 2·padding − K) / stride⌋ + 1; y (N, C, 1) for "global".
    Raises ShapeError where a window does not fit, ArgumentError for an impossible setting.
    Source: Goodfellow, Bengio, Courville, Deep Learning (2016), section 9.3, on one axis;
    Lin, Chen, Yan, Network in network (2014), section 3.2, for the global mean.
    """
    xp = array_namespace(x)
    input_size = x.shape[2:]
    kernel = input_size if isinstance(kernel_size, str) else per_axis(kernel_size, 1)
    strides, paddings = kernel if stride is None else per_axis(stride, 1), per_axis(padding, 1)
    size = output_size(input_size, kernel, strides, paddings, (1,))
    inner, paddings = inner_window(input_size, kernel, strides, paddings, (1,))
    v = pad(x, paddings)
    inside = pad(xp.ones((1, 1, *input_size), dtype=x.dtype, device=device(x)), paddings)
    count = sum(window(inside, (m,), strides, (1,), size) for (m,) in kernel_offsets(inner))
    if count_include_pad:
        count = xp.full_like(count, kernel[0])
    y = sum(window(v, (m,), strides, (1,), size) for (m,) in kernel_offsets(inner)) / count
    return y, Cache(count, input_size, inner, strides, paddings)


@operation
def backward(dy: Float[Array, "N C TO"], cache: Cache) -> Float[Array, "N C T"]:
    """dV, summed over the kernel offsets, = dy / count scattered."""
    count, (length,), kernel, strides, paddings = cache
    padded_size = (length + 2 * paddings[0],)
    share = dy / count
    dv = sum(scatter(share, (m,), strides, (1,), padded_size) for (m,) in kernel_offsets(kernel))
    dx = crop(dv, paddings)
    return dx
