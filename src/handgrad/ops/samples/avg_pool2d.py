"""Sample inputs of `ops.avg_pool2d`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick
from handgrad.ops.samples._pooling import SMALL_COTANGENT, random_windows
from handgrad.ops.samples._table import NO_EMPTY_AXIS, OpSamples, SampleRow, row

_ROWS: Final = (
    row("usual", "usual", {"x": normal(2, 3, 4, 6)}, kernel_size=2),
    row("square", "usual", {"x": normal(2, 2, 4, 4)}, kernel_size=(2, 2)),
    row("one row of pixels", "one row", {"x": normal(1, 3, 1, 7)}, kernel_size=(1, 2)),
    row("prime sizes", "prime sizes", {"x": normal(2, 2, 5, 7)}, kernel_size=(2, 3)),
    row("no images", "empty", {"x": normal(0, 2, 4, 6)}, kernel_size=2),
    row("overlap", "option", {"x": normal(1, 2, 5, 7)}, kernel_size=3, stride=1),
    row("stride past the kernel", "option", {"x": normal(1, 1, 9, 7)}, kernel_size=2, stride=4),
    row(
        "padding", "option", {"x": normal(2, 2, 5, 6)}, kernel_size=(2, 4), stride=2, padding=(1, 2)
    ),
    row(
        "padding not counted",
        "option",
        {"x": normal(2, 2, 5, 6)},
        kernel_size=(3, 4),
        stride=(2, 1),
        padding=(1, 2),
        count_include_pad=False,
    ),
    row("global", "option", {"x": normal(2, 3, 5, 4)}, kernel_size="global"),
    row("large and small values", "extreme values", {"x": extreme(2, 2, 5, 6)}, kernel_size=2),
)

_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[[1, 5, 2, 0], [2, 4, 7, -1], [8, 3, 3, -2], [1, 4, -1, 4]]]])},
    kernel_size=2,
)


def _random(rng: np.random.Generator) -> SampleRow:
    shape, windows = random_windows(rng, (1, 1))
    if rng.random() < 1 / 8:
        windows = {"kernel_size": "global"}
    count_include_pad = pick(rng, True, False)
    return row(
        "random", "usual", {"x": normal(*shape)}, **windows, count_include_pad=count_include_pad
    )


def _average_pooled(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    if options["kernel_size"] == "global":
        return F.adaptive_avg_pool2d(arrays["x"], 1)
    return F.avg_pool2d(arrays["x"], **options)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("one by one", "one row", {"x": normal(1, 1, 1, 1)}, kernel_size=1),
        row(
            "stride past the kernel by axis",
            "option",
            {"x": normal(1, 1, 9, 7)},
            kernel_size=2,
            stride=(4, 3),
        ),
        row(
            "no channels",
            "empty",
            {"x": normal(2, 0, 6, 8)},
            kernel_size=2,
            not_in_torch=NO_EMPTY_AXIS,
        ),
        row("large", "usual", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True),
    ),
    small=_SMALL,
    small_cotangent=SMALL_COTANGENT,
    random=_random,
    torch=_average_pooled,
)
