"""Pooling."""

from __future__ import annotations

from tests.op_cases.case import add
from tests.op_cases.makers import few_values, normal

_EMPTY = "PyTorch refuses an axis of length 0 here"
_TIES = "where values tie, the derivative jumps"

add("max_pool2d", "one by one", {"x": normal(1, 1, 1, 1)}, kernel_size=1)
add("max_pool2d", "plain", {"x": normal(2, 3, 6, 8)}, kernel_size=2)
add("max_pool2d", "rows and columns left out", {"x": normal(2, 3, 7, 11)}, kernel_size=(2, 3))
add("max_pool2d", "overlap", {"x": normal(1, 2, 7, 9)}, kernel_size=3, stride=1)
add(
    "max_pool2d",
    "ties",
    {"x": few_values(2, 3, 7, 9)},
    kernel_size=3,
    stride=2,
    no_differences=_TIES,
)
add(
    "max_pool2d",
    "ties with padding",
    {"x": few_values(2, 2, 5, 6)},
    kernel_size=3,
    padding=1,
    no_differences=_TIES,
)
add(
    "max_pool2d", "padding", {"x": normal(2, 2, 5, 6)}, kernel_size=(2, 4), stride=2, padding=(1, 2)
)
add(
    "max_pool2d",
    "dilation",
    {"x": normal(1, 2, 9, 8)},
    kernel_size=(3, 2),
    stride=(1, 2),
    padding=1,
    dilation=(2, 3),
)
add("max_pool2d", "stride past the kernel", {"x": normal(1, 1, 9, 7)}, kernel_size=2, stride=(4, 3))
add("max_pool2d", "two columns", {"x": normal(2, 3, 8, 37)}, kernel_size=(2, 2), stride=(3, 2))
add("max_pool2d", "empty batch", {"x": normal(0, 3, 6, 8)}, kernel_size=2)
add("max_pool2d", "no channels", {"x": normal(2, 0, 6, 8)}, kernel_size=2, not_in_torch=_EMPTY)
add("max_pool2d", "large", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True)
add(
    "max_pool2d",
    "large overlap",
    {"x": few_values(3, 5, 37, 41)},
    kernel_size=3,
    stride=2,
    large=True,
)

add("avg_pool2d", "one by one", {"x": normal(1, 1, 1, 1)}, kernel_size=1)
add("avg_pool2d", "plain", {"x": normal(2, 3, 6, 8)}, kernel_size=2)
add("avg_pool2d", "rows and columns left out", {"x": normal(2, 3, 7, 11)}, kernel_size=(2, 3))
add("avg_pool2d", "overlap", {"x": normal(1, 2, 7, 9)}, kernel_size=3, stride=1)
add(
    "avg_pool2d", "padding", {"x": normal(2, 2, 5, 6)}, kernel_size=(2, 4), stride=2, padding=(1, 2)
)
add(
    "avg_pool2d",
    "padding not counted",
    {"x": normal(2, 2, 5, 6)},
    kernel_size=(3, 4),
    stride=(2, 1),
    padding=(1, 2),
    count_include_pad=False,
)
add("avg_pool2d", "stride past the kernel", {"x": normal(1, 1, 9, 7)}, kernel_size=2, stride=(4, 3))
add("avg_pool2d", "global", {"x": normal(2, 5, 7, 3)}, kernel_size="global")
add("avg_pool2d", "empty batch", {"x": normal(0, 3, 6, 8)}, kernel_size=2)
add("avg_pool2d", "no channels", {"x": normal(2, 0, 6, 8)}, kernel_size=2, not_in_torch=_EMPTY)
add("avg_pool2d", "large", {"x": normal(7, 13, 26, 28)}, kernel_size=2, large=True)
