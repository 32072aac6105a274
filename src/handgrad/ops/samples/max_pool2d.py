"""Sample inputs of `ops.max_pool2d`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import between, distinct, extreme, few_values, fixed, normal
from handgrad.ops.samples._pooling import SMALL_COTANGENT, random_windows
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", {"x": distinct(2, 3, 4, 6)}, kernel_size=2),
    row("square", "usual", {"x": distinct(2, 2, 4, 4)}, kernel_size=(2, 2)),
    row("one row of pixels", "one row", {"x": distinct(1, 3, 1, 7)}, kernel_size=(1, 2)),
    row("prime sizes", "prime sizes", {"x": distinct(2, 2, 5, 7)}, kernel_size=(2, 3)),
    row("no images", "empty", {"x": distinct(0, 2, 4, 6)}, kernel_size=2),
    row("overlap", "option", {"x": distinct(1, 2, 5, 7)}, kernel_size=3, stride=1),
    row("stride past the kernel", "option", {"x": distinct(1, 1, 9, 7)}, kernel_size=2, stride=4),
    row(
        "padding",
        "option",
        {"x": distinct(2, 2, 5, 6)},
        kernel_size=(2, 4),
        stride=2,
        padding=(1, 2),
    ),
    row(
        "dilation",
        "option",
        {"x": distinct(1, 2, 7, 8)},
        kernel_size=(3, 2),
        stride=(1, 2),
        padding=1,
        dilation=(2, 3),
    ),
    row(
        "ties",
        "extreme values",
        {"x": fixed([[[[1, 1, 0, 2], [1, 0, 2, 2], [-1, -1, 0, 0], [-1, -1, 0, 0]]]])},
        kernel_size=2,
    ),
    row("large and small values", "extreme values", {"x": extreme(2, 2, 5, 6)}, kernel_size=2),
)

_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[[1, 5, 2, 0], [3, 4, 7, 1], [8, 2, 3, 6], [0, 1, 9, 4]]]])},
    kernel_size=2,
)


def _random(rng: np.random.Generator) -> SampleRow:
    dilation = (between(rng, 1, 2), between(rng, 1, 2))
    shape, windows = random_windows(rng, dilation)
    return row("random", "usual", {"x": distinct(*shape)}, **windows, dilation=dilation)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", {"x": normal(1, 1, 1, 1)}, kernel_size=1),
        row(
            "many ties",
            "option",
            {"x": few_values(2, 3, 7, 9)},
            smooth=False,
            kernel_size=3,
            stride=2,
        ),
        row(
            "ties with padding",
            "option",
            {"x": few_values(2, 2, 5, 6)},
            smooth=False,
            kernel_size=3,
            padding=1,
        ),
        row(
            "stride past the kernel by axis",
            "option",
            {"x": normal(1, 1, 9, 7)},
            kernel_size=2,
            stride=(4, 3),
        ),
        row("two columns", "option", {"x": normal(2, 3, 8, 37)}, kernel_size=(2, 2), stride=(3, 2)),
        row(
            "no channels",
            "empty",
            {"x": normal(2, 0, 6, 8)},
            kernel_size=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True),
        row(
            "large overlap",
            "option",
            {"x": few_values(3, 5, 37, 41)},
            smooth=False,
            kernel_size=3,
            stride=2,
            large=True,
        ),
    ),
    small=_SMALL,
    small_cotangent=SMALL_COTANGENT,
    random=_random,
    torch=lambda F, arrays, options: F.max_pool2d(arrays["x"], **options),
)
