"""Sample inputs of `ops.positional_encoding`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handgrad.ops.samples._makers import normal
from handgrad.ops.samples._positions import (
    AWKWARD,
    POSITIONS,
    POSITIONS_COTANGENT,
    POSITIONS_SMALL,
    angles,
    random_positions,
)
from handgrad.ops.samples._table import OpSamples, row


def _encoded(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x = arrays["x"]
    each = angles(F, x, options)
    table = F.torch.zeros((x.shape[-2], 2 * each.shape[1]), dtype=F.torch.float64)
    table[:, 0::2], table[:, 1::2] = F.torch.sin(each), F.torch.cos(each)
    return x + table[:, : x.shape[-1]].to(x.dtype)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=POSITIONS,
    awkward=(
        *AWKWARD,
        row("odd features", "usual", {"x": normal(2, 5, 7)}),
        row("one feature", "one row", {"x": normal(2, 5, 1)}),
    ),
    small=POSITIONS_SMALL,
    small_cotangent=POSITIONS_COTANGENT,
    random=random_positions,
    torch=_encoded,
)
