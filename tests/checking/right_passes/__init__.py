"""Right backward passes as people write them, each with a wrong twin."""

from __future__ import annotations

from tests.checking.right_passes import (
    attention,
    elementwise,
    kinks,
    layers,
    losses,
    objects,
    recurrent,
    reductions,
    returned,
)

CASES = tuple(
    case
    for module in (
        elementwise,
        kinks,
        reductions,
        losses,
        layers,
        attention,
        recurrent,
        objects,
        returned,
    )
    for case in module.CASES
)
