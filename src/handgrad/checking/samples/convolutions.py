"""Convolutions: conv1d, conv2d, conv_transpose2d."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from handgrad.checking.samples.makers import between, extreme, fixed, normal, pick
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops.activation import ACTIVATIONS

_GRADIENTS: Final = ("x", "weight", "bias")


def _conv(
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


_transposed: Final = partial(_conv, transposed=True)


_CONV1D: Final = (
    row("usual", "usual", _conv(2, 3, 7, out=4, kernel=(3,))),
    row("square", "usual", _conv(3, 3, 5, out=3, kernel=(3,))),
    row("kernel as long as x", "usual", _conv(2, 3, 4, out=5, kernel=(4,))),
    row("one step", "one row", _conv(1, 3, 1, out=2, kernel=(1,))),
    row("prime sizes", "prime sizes", _conv(2, 3, 11, out=7, kernel=(5,))),
    row("no sequences", "empty", _conv(0, 3, 7, out=4, kernel=(3,))),
    row("no bias", "option", _conv(2, 3, 7, out=4, kernel=(3,), bias=False)),
    row("stride leaves steps out", "option", _conv(2, 2, 9, out=3, kernel=(2,)), stride=3),
    row("stride past the kernel", "option", _conv(2, 1, 11, out=2, kernel=(2,)), stride=(4,)),
    row("padding", "option", _conv(2, 2, 5, out=3, kernel=(3,)), padding=2),
    row("dilation", "option", _conv(1, 2, 11, out=3, kernel=(3,)), dilation=(3,)),
    row("groups", "option", _conv(2, 4, 7, out=6, kernel=(3,), groups=2), groups=2),
    row("depthwise", "option", _conv(2, 3, 7, out=6, kernel=(2,), groups=3), groups=3),
    *(
        row(activation, "option", _conv(2, 2, 7, out=3, kernel=(3,)), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row(
        "everything at once",
        "option",
        _conv(2, 4, 13, out=6, kernel=(3,), groups=2),
        stride=2,
        padding=3,
        dilation=2,
        groups=2,
        activation="gelu",
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 2, 7), "weight": extreme(3, 2, 3), "bias": extreme(3)},
        padding=1,
    ),
)

_CONV1D_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[1, 2, 0, -1]]]), "weight": fixed([[[2, -1]]]), "bias": fixed([1])},
)

_CONV2D: Final = (
    row("usual", "usual", _conv(2, 3, 5, 6, out=4, kernel=(3, 2))),
    row("square", "usual", _conv(2, 2, 4, 4, out=2, kernel=(2, 2))),
    row("pointwise", "usual", _conv(2, 3, 2, 4, out=5, kernel=(1, 1))),
    row("kernel as large as x", "usual", _conv(2, 2, 3, 4, out=5, kernel=(3, 4))),
    row("one row of pixels", "one row", _conv(1, 2, 1, 7, out=3, kernel=(1, 3))),
    row("prime sizes", "prime sizes", _conv(1, 3, 7, 5, out=5, kernel=(2, 3))),
    row("no images", "empty", _conv(0, 2, 5, 6, out=3, kernel=(3, 2))),
    row("no bias", "option", _conv(2, 2, 4, 5, out=3, kernel=(2, 3), bias=False)),
    row("stride", "option", _conv(1, 2, 8, 9, out=3, kernel=(3, 2)), stride=(2, 3)),
    row("stride past the kernel", "option", _conv(1, 2, 9, 7, out=3, kernel=(2, 1)), stride=4),
    row("padding", "option", _conv(2, 2, 4, 3, out=3, kernel=(3, 2)), padding=(2, 1)),
    row("dilation", "option", _conv(1, 2, 7, 8, out=3, kernel=(3, 2)), dilation=(2, 3)),
    row("groups", "option", _conv(2, 4, 4, 5, out=6, kernel=(2, 3), groups=2), groups=2),
    row("depthwise", "option", _conv(2, 3, 4, 5, out=6, kernel=(3, 3), groups=3), groups=3),
    *(
        row(activation, "option", _conv(1, 2, 4, 5, out=3, kernel=(2, 3)), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row(
        "everything at once",
        "option",
        _conv(1, 4, 7, 6, out=6, kernel=(3, 2), groups=2),
        stride=(2, 3),
        padding=(1, 2),
        dilation=(3, 2),
        groups=2,
        activation="gelu",
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 2, 4, 5), "weight": extreme(3, 2, 3, 2), "bias": extreme(3)},
        padding=1,
    ),
)

_CONV2D_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[[1, 2, 3], [0, 1, -1], [2, 0, 1]]]]),
        "weight": fixed([[[[1, 0], [-1, 2]]]]),
        "bias": fixed([1]),
    },
)

_CONV_TRANSPOSE2D: Final = (
    row("usual", "usual", _transposed(2, 3, 3, 5, out=4, kernel=(3, 2))),
    row("square", "usual", _transposed(2, 2, 3, 3, out=2, kernel=(2, 2))),
    row("pointwise", "usual", _transposed(2, 3, 2, 4, out=5, kernel=(1, 1))),
    row("one row of pixels", "one row", _transposed(1, 2, 1, 5, out=3, kernel=(1, 3))),
    row("prime sizes", "prime sizes", _transposed(1, 3, 5, 3, out=5, kernel=(2, 3))),
    row("no images", "empty", _transposed(0, 2, 4, 5, out=3, kernel=(3, 2))),
    row("no bias", "option", _transposed(2, 2, 3, 4, out=3, kernel=(2, 3), bias=False)),
    row("stride", "option", _transposed(1, 2, 3, 4, out=3, kernel=(2, 3)), stride=(2, 3)),
    row(
        "stride past the kernel", "option", _transposed(1, 2, 3, 2, out=3, kernel=(2, 1)), stride=4
    ),
    row("padding", "option", _transposed(1, 2, 4, 3, out=3, kernel=(3, 4)), padding=(2, 1)),
    row("dilation", "option", _transposed(1, 2, 3, 4, out=3, kernel=(3, 2)), dilation=(2, 3)),
    row("groups", "option", _transposed(2, 4, 3, 4, out=6, kernel=(2, 3), groups=2), groups=2),
    row("depthwise", "option", _transposed(2, 3, 3, 4, out=6, kernel=(3, 3), groups=3), groups=3),
    row(
        "output padding",
        "option",
        _transposed(2, 2, 2, 3, out=3, kernel=(3, 2)),
        stride=(2, 3),
        padding=1,
        output_padding=(1, 2),
    ),
    row(
        "everything at once",
        "option",
        _transposed(1, 4, 3, 2, out=6, kernel=(2, 3), groups=2),
        stride=(3, 2),
        padding=(1, 2),
        output_padding=(2, 1),
        groups=2,
        dilation=(2, 3),
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 2, 4, 3), "weight": extreme(2, 3, 3, 2), "bias": extreme(3)},
        stride=2,
    ),
)

_CONV_TRANSPOSE2D_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[[1, 2], [3, -1]]]]),
        "weight": fixed([[[[1, -1], [2, 1]]]]),
        "bias": fixed([1]),
    },
)


def _tuple(rng: np.random.Generator, axes: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(between(rng, low, high) for _ in range(axes))


def _random_settings(rng: np.random.Generator, axes: int) -> dict[str, Any]:
    return {
        "stride": _tuple(rng, axes, 1, 3),
        "dilation": _tuple(rng, axes, 1, 2),
        "groups": pick(rng, 1, 1, 2, 3),
    }


def _random_conv(rng: np.random.Generator, axes: int) -> Row:
    settings = _random_settings(rng, axes)
    kernel, padding = _tuple(rng, axes, 1, 3), _tuple(rng, axes, 0, 2)
    groups = settings["groups"]
    places = (
        max(d * (k - 1) + 1 - 2 * p, 1) + between(rng, 0, 4)
        for k, p, d in zip(kernel, padding, settings["dilation"], strict=True)
    )
    makers = _conv(
        between(rng, 1, 3),
        groups * between(rng, 1, 2),
        *places,
        out=groups * between(rng, 1, 2),
        kernel=kernel,
        groups=groups,
        bias=pick(rng, True, True, False),
    )
    activation = pick(rng, *ACTIVATIONS)
    return row("random", "usual", makers, padding=padding, activation=activation, **settings)


def _random_conv1d(rng: np.random.Generator) -> Row:
    return _random_conv(rng, axes=1)


def _random_conv2d(rng: np.random.Generator) -> Row:
    return _random_conv(rng, axes=2)


def _random_conv_transpose2d(rng: np.random.Generator) -> Row:
    settings = _random_settings(rng, axes=2)
    kernel, groups = _tuple(rng, 2, 1, 3), settings["groups"]
    output_padding = tuple(
        between(rng, 0, max(s, d) - 1)
        for s, d in zip(settings["stride"], settings["dilation"], strict=True)
    )
    # At most half of what one value of x becomes, so that some of it is left.
    padding = tuple(
        between(rng, 0, (d * (k - 1) + extra) // 2)
        for k, d, extra in zip(kernel, settings["dilation"], output_padding, strict=True)
    )
    makers = _transposed(
        between(rng, 1, 3),
        groups * between(rng, 1, 2),
        *_tuple(rng, 2, 1, 4),
        out=groups * between(rng, 1, 2),
        kernel=kernel,
        groups=groups,
        bias=pick(rng, True, True, False),
    )
    return row(
        "random", "usual", makers, padding=padding, output_padding=output_padding, **settings
    )


TABLE: Final = {
    "conv1d": OpSamples(_GRADIENTS, _CONV1D, _CONV1D_SMALL, fixed([[[1, -2, 3]]]), _random_conv1d),
    "conv2d": OpSamples(
        _GRADIENTS, _CONV2D, _CONV2D_SMALL, fixed([[[[1, 2], [-1, 3]]]]), _random_conv2d
    ),
    "conv_transpose2d": OpSamples(
        _GRADIENTS,
        _CONV_TRANSPOSE2D,
        _CONV_TRANSPOSE2D_SMALL,
        fixed([[[[1, 2, -1], [0, 3, 1], [2, -2, 1]]]]),
        _random_conv_transpose2d,
    ),
}
