"""Sample inputs of `ops.max_pool1d`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import between, distinct, extreme, few_values, fixed, normal
from handgrad.ops.samples._pooling import SMALL_COTANGENT_1D, random_windows
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", {"x": distinct(2, 3, 8)}, kernel_size=2),
    row("square", "usual", {"x": distinct(4, 4, 4)}, kernel_size=(2,)),
    row("kernel as long as x", "usual", {"x": distinct(2, 3, 4)}, kernel_size=4),
    row("one step", "one row", {"x": distinct(1, 3, 1)}, kernel_size=1),
    row("prime sizes", "prime sizes", {"x": distinct(2, 5, 11)}, kernel_size=3),
    row("no sequences", "empty", {"x": distinct(0, 2, 6)}, kernel_size=2),
    row("overlap", "option", {"x": distinct(1, 2, 9)}, kernel_size=3, stride=1),
    row("stride past the kernel", "option", {"x": distinct(1, 1, 11)}, kernel_size=2, stride=(4,)),
    row("padding", "option", {"x": distinct(2, 2, 7)}, kernel_size=4, stride=2, padding=2),
    row(
        "dilation",
        "option",
        {"x": distinct(1, 2, 9)},
        kernel_size=3,
        stride=2,
        padding=1,
        dilation=(3,),
    ),
    row("ties", "extreme values", {"x": fixed([[[1, 1, 0, 2, -1, -1, 3, 3]]])}, kernel_size=2),
    row("large and small values", "extreme values", {"x": extreme(2, 2, 9)}, kernel_size=2),
)

_SMALL: Final = row("small", "usual", {"x": fixed([[[1, 5, 2, 0], [3, 4, 7, 8]]])}, kernel_size=2)


def _random(rng: np.random.Generator) -> SampleRow:
    dilation = (between(rng, 1, 2),)
    shape, windows = random_windows(rng, dilation)
    return row("random", "usual", {"x": distinct(*shape)}, **windows, dilation=dilation)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", {"x": normal(1, 1, 1)}, kernel_size=1),
        row(
            "many ties",
            "option",
            {"x": few_values(2, 3, 23)},
            smooth=False,
            kernel_size=3,
            stride=2,
        ),
        row(
            "ties with padding",
            "option",
            {"x": few_values(2, 2, 13)},
            smooth=False,
            kernel_size=3,
            padding=1,
        ),
        row(
            "no channels",
            "empty",
            {"x": normal(2, 0, 8)},
            kernel_size=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", {"x": normal(7, 13, 523)}, kernel_size=2, large=True),
        row(
            "large overlap",
            "option",
            {"x": few_values(3, 5, 521)},
            smooth=False,
            kernel_size=5,
            stride=2,
            large=True,
        ),
    ),
    small=_SMALL,
    small_cotangent=SMALL_COTANGENT_1D,
    random=_random,
    torch=lambda F, arrays, options: F.max_pool1d(arrays["x"], **options),
)
