"""Sample inputs of `ops.squared_error`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops import squared_error
from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._table import NO_MEAN, Maker, OpSamples, SampleRow, row


def _compared(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape), "target": normal(*x_shape)}


_ROWS: Final = (
    row("usual", "usual", _compared(3, 5)),
    row("square", "usual", _compared(4, 4)),
    row("four axes", "usual", _compared(2, 3, 4, 5)),
    row("one row", "one row", _compared(1, 7)),
    row("one value", "one row", _compared()),
    row("prime sizes", "prime sizes", _compared(7, 11)),
    row("no rows", "empty", _compared(0, 5), not_in_torch=NO_MEAN),
    *(
        row(reduction, "option", _compared(3, 5), reduction=reduction)
        for reduction in squared_error.REDUCTIONS[1:]
    ),
    row("right everywhere", "extreme values", {"x": fixed([1, 2]), "target": fixed([1, 2])}),
    row("large and small values", "extreme values", {"x": extreme(3, 5), "target": extreme(3, 5)}),
)

_SMALL: Final = row(
    "small", "usual", {"x": fixed([[2, 1], [3, 5]]), "target": fixed([[1, 3], [0, 1]])}
)


def _random(rng: np.random.Generator) -> SampleRow:
    reduction = pick(rng, *squared_error.REDUCTIONS)
    return row("random", "usual", _compared(*random_shape(rng, 0, 4)), reduction=reduction)


def _squared_error(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    reduction = options.get("reduction", "mean")
    if reduction == "half_sum":
        return 0.5 * F.mse_loss(arrays["x"], arrays["target"], reduction="sum")
    return F.mse_loss(arrays["x"], arrays["target"], reduction=reduction)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("one vector of one", "one row", _compared(1)),
        row("large", "usual", _compared(301, 131), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed(2),
    random=_random,
    torch=_squared_error,
)
