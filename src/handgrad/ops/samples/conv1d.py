"""Sample inputs of `ops.conv1d`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.samples._convolution import GRADIENTS, conv, convolved, random_conv
from handgrad.ops.samples._makers import extreme, fixed
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", conv(2, 3, 7, out=4, kernel=(3,))),
    row("square", "usual", conv(3, 3, 5, out=3, kernel=(3,))),
    row("kernel as long as x", "usual", conv(2, 3, 4, out=5, kernel=(4,))),
    row("one step", "one row", conv(1, 3, 1, out=2, kernel=(1,))),
    row("prime sizes", "prime sizes", conv(2, 3, 11, out=7, kernel=(5,))),
    row("no sequences", "empty", conv(0, 3, 7, out=4, kernel=(3,))),
    row("no bias", "option", conv(2, 3, 7, out=4, kernel=(3,), bias=False)),
    row("stride leaves steps out", "option", conv(2, 2, 9, out=3, kernel=(2,)), stride=3),
    row("stride past the kernel", "option", conv(2, 1, 11, out=2, kernel=(2,)), stride=(4,)),
    row("padding", "option", conv(2, 2, 5, out=3, kernel=(3,)), padding=2),
    row("dilation", "option", conv(1, 2, 11, out=3, kernel=(3,)), dilation=(3,)),
    row("groups", "option", conv(2, 4, 7, out=6, kernel=(3,), groups=2), groups=2),
    row("depthwise", "option", conv(2, 3, 7, out=6, kernel=(2,), groups=3), groups=3),
    *(
        row(activation, "option", conv(2, 2, 7, out=3, kernel=(3,)), activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row(
        "everything at once",
        "option",
        conv(2, 4, 13, out=6, kernel=(3,), groups=2),
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

_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[1, 2, 0, -1]]]), "weight": fixed([[[2, -1]]]), "bias": fixed([1])},
)


def _random(rng: np.random.Generator) -> SampleRow:
    return random_conv(rng, axes=1)


SAMPLES: Final = OpSamples(
    gradients=GRADIENTS,
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", conv(1, 1, 1, out=1, kernel=(1,))),
        row("no bias, no overlap", "option", conv(1, 2, 7, out=3, kernel=(2,), bias=False)),
        row("stride of four", "option", conv(2, 3, 12, out=5, kernel=(3,)), stride=4),
        row("stride of five", "option", conv(2, 1, 13, out=2, kernel=(2,)), stride=(5,)),
        row("wide padding", "option", conv(2, 3, 5, out=4, kernel=(5,)), padding=4),
        row(
            "dilation with stride",
            "option",
            conv(1, 2, 17, out=3, kernel=(3,)),
            dilation=(5,),
            stride=2,
            padding=3,
        ),
        row(
            "three groups",
            "option",
            conv(2, 6, 11, out=9, kernel=(3,), groups=3),
            groups=3,
            padding=1,
        ),
        row(
            "depthwise silu",
            "option",
            conv(2, 5, 11, out=10, kernel=(4,), groups=5),
            groups=5,
            activation="silu",
        ),
        row("padded empty batch", "empty", conv(0, 3, 11, out=5, kernel=(3,)), padding=1),
        row(
            "no channels",
            "empty",
            conv(2, 0, 11, out=5, kernel=(3,)),
            padding=1,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no filters",
            "empty",
            conv(2, 3, 11, out=0, kernel=(3,)),
            activation="relu",
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no steps",
            "empty",
            conv(2, 3, 0, out=5, kernel=(3,)),
            padding=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", conv(7, 13, 301, out=37, kernel=(5,)), padding=2, large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[1, -2, 3]]]),
    random=_random,
    torch=convolved("conv1d"),
    open_nonfinite=("weight",),
)
