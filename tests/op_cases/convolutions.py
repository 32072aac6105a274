"""Convolutions."""

from __future__ import annotations

from functools import partial

from tests.op_cases.case import add
from tests.op_cases.makers import Maker, normal

_EMPTY = "PyTorch refuses an axis of length 0 here, or takes it as another"


def _conv1d(
    batch: int,
    channels: int,
    length: int,
    out: int,
    kernel: int,
    groups: int = 1,
    bias: bool = True,
) -> dict[str, Maker]:
    makers = {
        "x": normal(batch, channels, length),
        "weight": normal(out, channels // groups, kernel),
    }
    return makers | ({"bias": normal(out)} if bias else {})


add("conv1d", "one by one", _conv1d(1, 1, 1, 1, 1))
add("conv1d", "plain", _conv1d(2, 3, 11, 5, 3))
add("conv1d", "no bias", _conv1d(1, 2, 7, 3, 2, bias=False))
add("conv1d", "stride leaves steps out", _conv1d(2, 3, 12, 5, 3), stride=4)
add("conv1d", "stride past the kernel", _conv1d(2, 1, 13, 2, 2), stride=(5,))
add("conv1d", "padding", _conv1d(2, 3, 5, 4, 5), padding=4)
add("conv1d", "dilation", _conv1d(1, 2, 17, 3, 3), dilation=(5,), stride=2, padding=3)
add("conv1d", "groups", _conv1d(2, 6, 11, 9, 3, groups=3), groups=3, padding=1)
add("conv1d", "depthwise", _conv1d(2, 5, 11, 10, 4, groups=5), groups=5, activation="silu")
add("conv1d", "kernel as long as input", _conv1d(3, 2, 7, 5, 7), activation="relu")
add("conv1d", "empty batch", _conv1d(0, 3, 11, 5, 3), padding=1)
add("conv1d", "no channels", _conv1d(2, 0, 11, 5, 3), padding=1, not_in_torch=_EMPTY)
add("conv1d", "no filters", _conv1d(2, 3, 11, 0, 3), activation="relu", not_in_torch=_EMPTY)
add("conv1d", "no steps", _conv1d(2, 3, 0, 5, 3), padding=2, not_in_torch=_EMPTY)
add("conv1d", "large", _conv1d(7, 13, 301, 37, 5), padding=2, large=True)


def _conv2d(
    batch: int,
    channels: int,
    size: tuple[int, int],
    out: int,
    kernel: tuple[int, int],
    groups: int = 1,
    bias: bool = True,
    transposed: bool = False,
) -> dict[str, Maker]:
    planes = (channels, out // groups) if transposed else (out, channels // groups)
    makers = {"x": normal(batch, channels, *size), "weight": normal(*planes, *kernel)}
    return makers | ({"bias": normal(out)} if bias else {})


add("conv2d", "one by one", _conv2d(1, 1, (1, 1), 1, (1, 1)))
add("conv2d", "plain", _conv2d(2, 3, (5, 7), 4, (3, 2)))
add("conv2d", "one channel", _conv2d(2, 1, (7, 9), 3, (3, 3)), padding=1)
add("conv2d", "no bias", _conv2d(1, 2, (4, 5), 3, (2, 3), bias=False))
add("conv2d", "pointwise", _conv2d(2, 7, (3, 5), 11, (1, 1)), activation="relu")
add("conv2d", "stride leaves places out", _conv2d(2, 2, (8, 12), 3, (3, 2)), stride=(3, 4))
add("conv2d", "stride two same", _conv2d(1, 3, (7, 8), 5, (3, 3)), stride=2, padding=1)
add("conv2d", "padding beyond the kernel", _conv2d(1, 2, (3, 2), 2, (2, 2)), padding=(3, 2))
add("conv2d", "dilation", _conv2d(1, 2, (9, 8), 3, (3, 2)), dilation=(2, 3), padding=(2, 1))
add(
    "conv2d",
    "everything at once",
    _conv2d(2, 4, (11, 9), 6, (3, 2), groups=2),
    stride=(2, 3),
    padding=(1, 2),
    dilation=(3, 2),
    groups=2,
    activation="gelu",
)
add("conv2d", "groups", _conv2d(2, 6, (5, 4), 9, (2, 3), groups=3), groups=3)
add("conv2d", "depthwise", _conv2d(2, 5, (6, 5), 10, (3, 3), groups=5), groups=5, padding=1)
add("conv2d", "kernel as large as input", _conv2d(3, 2, (4, 5), 7, (4, 5)))
add("conv2d", "one row of pixels", _conv2d(1, 3, (1, 23), 5, (1, 3)), padding=(0, 1))
for _activation in ("relu", "leaky_relu", "sigmoid", "tanh", "silu"):
    add("conv2d", _activation, _conv2d(1, 2, (5, 6), 3, (3, 3)), activation=_activation, padding=1)
add("conv2d", "many channels", _conv2d(1, 17, (5, 5), 19, (3, 3)), padding=1)
add("conv2d", "empty batch", _conv2d(0, 3, (5, 7), 4, (3, 2)), activation="relu")
add("conv2d", "no channels", _conv2d(2, 0, (5, 7), 4, (3, 2)), stride=2, not_in_torch=_EMPTY)
add(
    "conv2d",
    "groups without channels",
    _conv2d(2, 0, (5, 7), 4, (3, 2), groups=2),
    groups=2,
    activation="silu",
    not_in_torch=_EMPTY,
)
add("conv2d", "no filters", _conv2d(2, 3, (5, 7), 0, (3, 2)), padding=1, not_in_torch=_EMPTY)
add("conv2d", "nothing at all", _conv2d(2, 0, (5, 7), 0, (3, 2)), not_in_torch=_EMPTY)
add("conv2d", "no rows", _conv2d(2, 3, (0, 7), 4, (2, 2)), padding=1, not_in_torch=_EMPTY)
add("conv2d", "no columns", _conv2d(2, 3, (5, 0), 4, (2, 2)), padding=1, not_in_torch=_EMPTY)
add("conv2d", "large", _conv2d(5, 13, (17, 19), 37, (3, 3)), padding=1, large=True)
add("conv2d", "large strided", _conv2d(3, 16, (21, 20), 33, (3, 3)), stride=2, large=True)

# A transposed kernel has channels and filters the other way round.
_transposed = partial(_conv2d, transposed=True)

add("conv_transpose2d", "one by one", _transposed(1, 1, (1, 1), 1, (1, 1)))
add("conv_transpose2d", "plain", _transposed(2, 3, (4, 5), 5, (3, 2)))
add("conv_transpose2d", "no bias", _transposed(1, 2, (3, 4), 3, (2, 3), bias=False))
add("conv_transpose2d", "stride", _transposed(2, 3, (3, 4), 2, (2, 3)), stride=(2, 3))
add("conv_transpose2d", "stride past the kernel", _transposed(1, 2, (3, 2), 3, (2, 1)), stride=4)
add("conv_transpose2d", "padding", _transposed(1, 2, (5, 4), 3, (3, 4)), padding=(2, 1))
add(
    "conv_transpose2d",
    "output padding",
    _transposed(2, 2, (3, 4), 3, (3, 2)),
    stride=(2, 3),
    padding=1,
    output_padding=(1, 2),
)
add(
    "conv_transpose2d",
    "everything at once",
    _transposed(2, 4, (3, 4), 6, (2, 3), groups=2),
    stride=(3, 2),
    padding=(1, 2),
    output_padding=(2, 1),
    groups=2,
    dilation=(2, 3),
)
add("conv_transpose2d", "depthwise", _transposed(1, 3, (4, 4), 6, (3, 3), groups=3), groups=3)
add("conv_transpose2d", "empty batch", _transposed(0, 3, (4, 5), 5, (3, 2)))
add("conv_transpose2d", "no channels", _transposed(2, 0, (4, 5), 5, (3, 2)), not_in_torch=_EMPTY)
add(
    "conv_transpose2d",
    "no filters",
    _transposed(2, 3, (4, 5), 0, (3, 2)),
    stride=2,
    not_in_torch=_EMPTY,
)
add(
    "conv_transpose2d",
    "groups without filters",
    _transposed(2, 4, (4, 5), 0, (3, 2), groups=2),
    groups=2,
    not_in_torch=_EMPTY,
)
add("conv_transpose2d", "large", _transposed(3, 17, (11, 13), 23, (3, 3)), stride=2, large=True)
