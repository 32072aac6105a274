"""Windows of convolutions and poolings: settings for every axis, and the sizes that they make."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

Setting = int | Sequence[int]

_INTEGERS: Final = (int, np.integer)
#: Results that follow from shapes and settings alone are kept for the latest 512 of these.
once_per_shape: Final = functools.lru_cache(512)


def per_axis(setting: Setting, axes: int) -> tuple[int, ...]:
    """One number for every axis; an int counts for all of them."""
    if type(setting) is int:
        return (setting,) * axes
    return tuple(map(int, (setting,) * axes if isinstance(setting, _INTEGERS) else setting))


def where_it_counts(setting: Sequence[int], count: Sequence[int]) -> tuple[int, ...]:
    """A stride or dilation, but 1 along an axis with one position or offset, where it has no part.

    No loop and no memory then grows with a stride that is larger than the image.
    """
    return tuple(1 if n == 1 else step for step, n in zip(setting, count, strict=True))


def output_size(
    input_size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:
    """The number of output positions along each axis."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(input_size, kernel, stride, padding, dilation, strict=True)
    )


def unpadded_size(
    input_size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:
    """The size of a transposed convolution's output before the padding is cut off."""
    return tuple(
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, k, s, extra, d in zip(
            input_size, kernel, stride, output_padding, dilation, strict=True
        )
    )


def inner_window(
    input_size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Kernel and padding of a pooling without the offsets before and after that read padding only.

    What is left is no longer than twice the input, however large the window was.
    """
    size = output_size(input_size, kernel, stride, padding, dilation)
    before = [
        max((p - (count - 1) * s) // d, 0)
        for s, p, d, count in zip(stride, padding, dilation, size, strict=True)
    ]
    end = [
        min(k, (n - 1 + p) // d + 1)
        for n, k, p, d in zip(input_size, kernel, padding, dilation, strict=True)
    ]
    return (
        tuple(last - first for first, last in zip(before, end, strict=True)),
        tuple(p - first * d for first, p, d in zip(before, padding, dilation, strict=True)),
    )
