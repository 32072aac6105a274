"""Sample inputs of `ops.conv2d`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.samples._convolution import GRADIENTS, conv, convolved, random_conv
from handgrad.ops.samples._makers import extreme, fixed
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", conv(2, 3, 5, 6, out=4, kernel=(3, 2))),
    row("square", "usual", conv(2, 2, 4, 4, out=2, kernel=(2, 2))),
    row("pointwise", "usual", conv(2, 3, 2, 4, out=5, kernel=(1, 1))),
    row("kernel as large as x", "usual", conv(2, 2, 3, 4, out=5, kernel=(3, 4))),
    row("one row of pixels", "one row", conv(1, 2, 1, 7, out=3, kernel=(1, 3))),
    row("prime sizes", "prime sizes", conv(1, 3, 7, 5, out=5, kernel=(2, 3))),
    row("no images", "empty", conv(0, 2, 5, 6, out=3, kernel=(3, 2))),
    row("no bias", "option", conv(2, 2, 4, 5, out=3, kernel=(2, 3), bias=False)),
    row("stride", "option", conv(1, 2, 8, 9, out=3, kernel=(3, 2)), stride=(2, 3)),
    row("stride past the kernel", "option", conv(1, 2, 9, 7, out=3, kernel=(2, 1)), stride=4),
    row("padding", "option", conv(2, 2, 4, 3, out=3, kernel=(3, 2)), padding=(2, 1)),
    row("dilation", "option", conv(1, 2, 7, 8, out=3, kernel=(3, 2)), dilation=(2, 3)),
    row("groups", "option", conv(2, 4, 4, 5, out=6, kernel=(2, 3), groups=2), groups=2),
    row("depthwise", "option", conv(2, 3, 4, 5, out=6, kernel=(3, 3), groups=3), groups=3),
    *(
        row(activation, "option", conv(1, 2, 4, 5, out=3, kernel=(2, 3)), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row(
        "everything at once",
        "option",
        conv(1, 4, 7, 6, out=6, kernel=(3, 2), groups=2),
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

_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[[1, 2, 3], [0, 1, -1], [2, 0, 1]]]]),
        "weight": fixed([[[[1, 0], [-1, 2]]]]),
        "bias": fixed([1]),
    },
)


def _random(rng: np.random.Generator) -> SampleRow:
    return random_conv(rng, axes=2)


SAMPLES: Final = OpSamples(
    gradients=GRADIENTS,
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", conv(1, 1, 1, 1, out=1, kernel=(1, 1))),
        row("one channel", "usual", conv(2, 1, 7, 9, out=3, kernel=(3, 3)), padding=1),
        row(
            "pointwise relu",
            "option",
            conv(2, 7, 3, 5, out=11, kernel=(1, 1)),
            activation="relu",
        ),
        row(
            "stride leaves positions out",
            "option",
            conv(2, 2, 8, 12, out=3, kernel=(3, 2)),
            stride=(3, 4),
        ),
        row(
            "stride two same",
            "option",
            conv(1, 3, 7, 8, out=5, kernel=(3, 3)),
            stride=2,
            padding=1,
        ),
        row(
            "padding beyond the kernel",
            "option",
            conv(1, 2, 3, 2, out=2, kernel=(2, 2)),
            padding=(3, 2),
        ),
        row(
            "dilation with padding",
            "option",
            conv(1, 2, 9, 8, out=3, kernel=(3, 2)),
            dilation=(2, 3),
            padding=(2, 1),
        ),
        row(
            "everything at once, two images",
            "option",
            conv(2, 4, 11, 9, out=6, kernel=(3, 2), groups=2),
            stride=(2, 3),
            padding=(1, 2),
            dilation=(3, 2),
            groups=2,
            activation="gelu",
        ),
        row("three groups", "option", conv(2, 6, 5, 4, out=9, kernel=(2, 3), groups=3), groups=3),
        row(
            "padded depthwise",
            "option",
            conv(2, 5, 6, 5, out=10, kernel=(3, 3), groups=5),
            groups=5,
            padding=1,
        ),
        row(
            "one long row of pixels",
            "one row",
            conv(1, 3, 1, 23, out=5, kernel=(1, 3)),
            padding=(0, 1),
        ),
        *(
            row(
                f"padded {activation}",
                "option",
                conv(1, 2, 5, 6, out=3, kernel=(3, 3)),
                activation=activation,
                padding=1,
            )
            for activation in ("relu", "leaky_relu", "sigmoid", "tanh", "silu", "erf", "sin")
        ),
        row("many channels", "usual", conv(1, 17, 5, 5, out=19, kernel=(3, 3)), padding=1),
        row(
            "relu of no images", "empty", conv(0, 3, 5, 7, out=4, kernel=(3, 2)), activation="relu"
        ),
        row(
            "no channels",
            "empty",
            conv(2, 0, 5, 7, out=4, kernel=(3, 2)),
            stride=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "groups without channels",
            "empty",
            conv(2, 0, 5, 7, out=4, kernel=(3, 2), groups=2),
            groups=2,
            activation="silu",
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no filters",
            "empty",
            conv(2, 3, 5, 7, out=0, kernel=(3, 2)),
            padding=1,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "nothing at all",
            "empty",
            conv(2, 0, 5, 7, out=0, kernel=(3, 2)),
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no rows",
            "empty",
            conv(2, 3, 0, 7, out=4, kernel=(2, 2)),
            padding=1,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no columns",
            "empty",
            conv(2, 3, 5, 0, out=4, kernel=(2, 2)),
            padding=1,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", conv(5, 13, 17, 19, out=37, kernel=(3, 3)), padding=1, large=True),
        row(
            "large strided",
            "option",
            conv(3, 16, 21, 20, out=33, kernel=(3, 3)),
            stride=2,
            large=True,
        ),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[[1, 2], [-1, 3]]]]),
    random=_random,
    torch=convolved("conv2d"),
    open_nonfinite=("weight",),
)
