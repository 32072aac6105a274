"""Sample inputs of `ops.rotary`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from handgrad.ops.samples._positions import (
    AWKWARD,
    POSITIONS,
    POSITIONS_COTANGENT,
    POSITIONS_SMALL,
    angles,
    random_positions,
)
from handgrad.ops.samples._table import OpSamples


def _rotated(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The pair of features as a complex number, times e^(iθ)."""
    first, second = arrays["x"].chunk(2, dim=-1)
    theta = angles(F, arrays["x"], options)
    turn = F.torch.polar(F.torch.ones_like(theta), theta).to(F.torch.complex(first, second).dtype)
    turned = F.torch.complex(first, second) * turn
    return F.torch.cat([turned.real, turned.imag], dim=-1)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=POSITIONS,
    awkward=AWKWARD,
    small=POSITIONS_SMALL,
    small_cotangent=POSITIONS_COTANGENT,
    random=random_positions,
    torch=_rotated,
)
