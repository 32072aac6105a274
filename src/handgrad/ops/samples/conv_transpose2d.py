"""Sample inputs of `ops.conv_transpose2d`."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from handgrad.ops.samples._convolution import (
    GRADIENTS,
    conv,
    convolved,
    random_transposed,
)
from handgrad.ops.samples._makers import extreme, fixed
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

transposed: Final = partial(conv, transposed=True)

_ROWS: Final = (
    row("usual", "usual", transposed(2, 3, 3, 5, out=4, kernel=(3, 2))),
    row("square", "usual", transposed(2, 2, 3, 3, out=2, kernel=(2, 2))),
    row("pointwise", "usual", transposed(2, 3, 2, 4, out=5, kernel=(1, 1))),
    row("one row of pixels", "one row", transposed(1, 2, 1, 5, out=3, kernel=(1, 3))),
    row("prime sizes", "prime sizes", transposed(1, 3, 5, 3, out=5, kernel=(2, 3))),
    row("no images", "empty", transposed(0, 2, 4, 5, out=3, kernel=(3, 2))),
    row("no bias", "option", transposed(2, 2, 3, 4, out=3, kernel=(2, 3), bias=False)),
    row("stride", "option", transposed(1, 2, 3, 4, out=3, kernel=(2, 3)), stride=(2, 3)),
    row("stride past the kernel", "option", transposed(1, 2, 3, 2, out=3, kernel=(2, 1)), stride=4),
    row("padding", "option", transposed(1, 2, 4, 3, out=3, kernel=(3, 4)), padding=(2, 1)),
    row("dilation", "option", transposed(1, 2, 3, 4, out=3, kernel=(3, 2)), dilation=(2, 3)),
    row("groups", "option", transposed(2, 4, 3, 4, out=6, kernel=(2, 3), groups=2), groups=2),
    row("depthwise", "option", transposed(2, 3, 3, 4, out=6, kernel=(3, 3), groups=3), groups=3),
    row(
        "output padding",
        "option",
        transposed(2, 2, 2, 3, out=3, kernel=(3, 2)),
        stride=(2, 3),
        padding=1,
        output_padding=(1, 2),
    ),
    row(
        "everything at once",
        "option",
        transposed(1, 4, 3, 2, out=6, kernel=(2, 3), groups=2),
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

_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[[1, 2], [3, -1]]]]),
        "weight": fixed([[[[1, -1], [2, 1]]]]),
        "bias": fixed([1]),
    },
)


def _random(rng: np.random.Generator) -> SampleRow:
    return random_transposed(rng, axes=2)


SAMPLES: Final = OpSamples(
    gradients=GRADIENTS,
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", transposed(1, 1, 1, 1, out=1, kernel=(1, 1))),
        row(
            "stride of two images",
            "option",
            transposed(2, 3, 3, 4, out=2, kernel=(2, 3)),
            stride=(2, 3),
        ),
        row(
            "everything at once, two images",
            "option",
            transposed(2, 4, 3, 4, out=6, kernel=(2, 3), groups=2),
            stride=(3, 2),
            padding=(1, 2),
            output_padding=(2, 1),
            groups=2,
            dilation=(2, 3),
        ),
        row(
            "depthwise square",
            "option",
            transposed(1, 3, 4, 4, out=6, kernel=(3, 3), groups=3),
            groups=3,
        ),
        row(
            "no channels",
            "empty",
            transposed(2, 0, 4, 5, out=5, kernel=(3, 2)),
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "no filters",
            "empty",
            transposed(2, 3, 4, 5, out=0, kernel=(3, 2)),
            stride=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "groups without filters",
            "empty",
            transposed(2, 4, 4, 5, out=0, kernel=(3, 2), groups=2),
            groups=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row(
            "large", "usual", transposed(3, 17, 11, 13, out=23, kernel=(3, 3)), stride=2, large=True
        ),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[[1, 2, -1], [0, 3, 1], [2, -2, 1]]]]),
    random=_random,
    torch=convolved("conv_transpose2d"),
    open_nonfinite=("weight",),
)
