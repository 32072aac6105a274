"""Sample inputs that convolutions share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.samples._makers import between, normal, pick
from handgrad.ops.samples._table import Maker, SampleRow, row
from handgrad.ops.samples._torch import activated, as_input

GRADIENTS: Final = ("x", "weight", "bias")


def conv(
    *x_shape: int,
    out: int,
    kernel: tuple[int, ...],
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
) -> dict[str, Maker]:
    """x (N, C, ...), weight (out, C / groups, ...) or transposed (C, out / groups, ...), bias."""
    channels = x_shape[1]
    planes = (channels, out // groups) if transposed else (out, channels // groups)
    makers = {"x": normal(*x_shape), "weight": normal(*planes, *kernel)}
    return makers | ({"bias": normal(out)} if bias else {})


def several(rng: np.random.Generator, axes: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(between(rng, low, high) for _ in range(axes))


def random_settings(rng: np.random.Generator, axes: int) -> dict[str, Any]:
    return {
        "stride": several(rng, axes, 1, 3),
        "dilation": several(rng, axes, 1, 2),
        "groups": pick(rng, 1, 1, 2, 3),
    }


def random_makers(
    rng: np.random.Generator,
    sizes: Iterable[int],
    kernel: tuple[int, ...],
    groups: int,
    *,
    transposed: bool = False,
) -> dict[str, Maker]:
    """x of these sizes, with random numbers of images, channels and filters, and with or without a
    bias. The sizes are drawn after images and channels where they come from a generator."""
    return conv(
        between(rng, 1, 3),
        groups * between(rng, 1, 2),
        *sizes,
        out=groups * between(rng, 1, 2),
        kernel=kernel,
        groups=groups,
        bias=pick(rng, True, True, False),
        transposed=transposed,
    )


def random_conv(rng: np.random.Generator, axes: int) -> SampleRow:
    settings = random_settings(rng, axes)
    kernel, padding = several(rng, axes, 1, 3), several(rng, axes, 0, 2)
    groups = settings["groups"]
    sizes = (
        max(d * (k - 1) + 1 - 2 * p, 1) + between(rng, 0, 4)
        for k, p, d in zip(kernel, padding, settings["dilation"], strict=True)
    )
    makers = random_makers(rng, sizes, kernel, groups)
    activation = pick(rng, *ACTIVATIONS)
    return row("random", "usual", makers, padding=padding, activation=activation, **settings)


def random_transposed(rng: np.random.Generator, axes: int) -> SampleRow:
    settings = random_settings(rng, axes)
    kernel, groups = several(rng, axes, 1, 3), settings["groups"]
    output_padding = tuple(
        between(rng, 0, max(s, d) - 1)
        for s, d in zip(settings["stride"], settings["dilation"], strict=True)
    )
    # At most half of what one value of x becomes, so that some of it is left.
    padding = tuple(
        between(rng, 0, (d * (k - 1) + extra) // 2)
        for k, d, extra in zip(kernel, settings["dilation"], output_padding, strict=True)
    )
    sizes = (between(rng, 1, 4) for _ in range(axes))
    makers = random_makers(rng, sizes, kernel, groups, transposed=True)
    return row(
        "random", "usual", makers, padding=padding, output_padding=output_padding, **settings
    )


def convolved(convolution: str) -> Callable[..., Any]:
    def run(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        settings = {name: value for name, value in options.items() if name != "activation"}
        return activated(F, getattr(F, convolution)(**as_input(arrays), **settings), options)

    return run
