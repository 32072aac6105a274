"""Sample inputs of `ops.rotary`."""

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


def _angles(F: Any, x: Any, options: Mapping[str, Any]) -> Any:
    """Those of the base, or of frequencies of one's own."""
    own = options.get("frequencies")
    if own is None:
        return angles(F, x, options)
    steps = options.get("offset", 0) + F.torch.arange(x.shape[-2], dtype=F.torch.float64)
    return F.torch.outer(steps, F.torch.tensor(own, dtype=F.torch.float64))


def _rotated(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The pair of features as a complex number, times e^(iθ)."""
    first, second = arrays["x"].chunk(2, dim=-1)
    theta = _angles(F, arrays["x"], options)
    turn = F.torch.polar(F.torch.ones_like(theta), theta).to(F.torch.complex(first, second).dtype)
    turned = F.torch.complex(first, second) * turn
    return F.torch.cat([turned.real, turned.imag], dim=-1)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=(
        *POSITIONS,
        row("frequencies", "option", {"x": normal(2, 3, 4)}, frequencies=(0.7, 0.02), offset=2),
    ),
    awkward=AWKWARD,
    small=POSITIONS_SMALL,
    small_cotangent=POSITIONS_COTANGENT,
    random=random_positions,
    torch=_rotated,
)
