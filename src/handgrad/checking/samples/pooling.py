"""Pooling: max_pool2d, avg_pool2d."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.checking.samples.makers import between, distinct, extreme, fixed, normal, pick
from handgrad.checking.samples.table import OpSamples, Row, row

_MAX: Final = (
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

_AVERAGE: Final = (
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

_MAX_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[[1, 5, 2, 0], [3, 4, 7, 1], [8, 2, 3, 6], [0, 1, 9, 4]]]])},
    kernel_size=2,
)
_AVERAGE_SMALL: Final = row(
    "small",
    "usual",
    {"x": fixed([[[[1, 5, 2, 0], [2, 4, 7, -1], [8, 3, 3, -2], [1, 4, -1, 4]]]])},
    kernel_size=2,
)
_SMALL_COTANGENT: Final = fixed([[[[4, -8], [12, 16]]]])


def _random_windows(
    rng: np.random.Generator, dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The shape of x, and windows that fit into it without the padding: none holds padding only."""
    kernel = (between(rng, 1, 3), between(rng, 1, 3))
    places = (d * (k - 1) + 1 + between(rng, 0, 4) for k, d in zip(kernel, dilation, strict=True))
    windows = {
        "kernel_size": kernel,
        "stride": pick(rng, None, (between(rng, 1, 3), between(rng, 1, 3))),
        "padding": tuple(between(rng, 0, k // 2) for k in kernel),
    }
    return (between(rng, 1, 3), between(rng, 1, 3), *places), windows


def _random_max(rng: np.random.Generator) -> Row:
    dilation = (between(rng, 1, 2), between(rng, 1, 2))
    shape, windows = _random_windows(rng, dilation)
    return row("random", "usual", {"x": distinct(*shape)}, **windows, dilation=dilation)


def _random_average(rng: np.random.Generator) -> Row:
    shape, windows = _random_windows(rng, (1, 1))
    if rng.random() < 1 / 8:
        windows = {"kernel_size": "global"}
    count_include_pad = pick(rng, True, False)
    return row(
        "random", "usual", {"x": normal(*shape)}, **windows, count_include_pad=count_include_pad
    )


TABLE: Final = {
    "max_pool2d": OpSamples(("x",), _MAX, _MAX_SMALL, _SMALL_COTANGENT, _random_max),
    "avg_pool2d": OpSamples(("x",), _AVERAGE, _AVERAGE_SMALL, _SMALL_COTANGENT, _random_average),
}
