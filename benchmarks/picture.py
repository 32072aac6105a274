"""The ratios of a result as a picture: one line for each workload, one dot for each peer."""

from __future__ import annotations

import math
from typing import Any, Final

from benchmarks.peers import TITLES
from examples.picture import Picture

LABEL: Final = "A step's time of every peer over handgrad's, workload by workload"
_COLOURS: Final = {
    "torch": "orange",
    "torch-compile": "green",
    "torch-bf16": "purple",
    "jax": "blue",
    "sklearn": "muted",
}
_WIDTH: Final = 820
_LEFT: Final = 140
_RIGHT: Final = 30
_TOP: Final = 104
_ROW: Final = 28


def drawn(result: dict[str, Any]) -> bool:
    """Return whether there is something to draw."""
    return any(workload["ratios"] for workload in result["sections"].get("steps", {}).values())


def svg(result: dict[str, Any]) -> str:
    """Ratios on an axis of powers of two, with the line at 1: right of it handgrad is faster."""
    workloads = {
        name: {peer: ratio["median"] for peer, ratio in one["ratios"].items()}
        for name, one in result["sections"]["steps"].items()
        if one["ratios"]
    }
    ratios = [ratio for of_workload in workloads.values() for ratio in of_workload.values()]
    low = min(-1, math.floor(math.log2(min(ratios))))
    high = max(2, math.ceil(math.log2(max(ratios))))
    bottom = _TOP + _ROW * len(workloads)
    picture = Picture(_WIDTH, bottom + 58, LABEL)

    def across(ratio: float) -> float:
        share = (math.log2(ratio) - low) / (high - low)
        return _LEFT + share * (_WIDTH - _RIGHT - _LEFT)

    picture.text(
        24, 34, "One training step: a peer's time over handgrad's", "ink", bold=True, size=16
    )
    x = 24.0
    for peer, colour in _COLOURS.items():
        if any(peer in of_workload for of_workload in workloads.values()):
            name = TITLES[peer] + (" (over handgrad bf16)" if peer == "torch-bf16" else "")
            picture.circle(x + 5, 61, 5.5, colour, "paper")
            picture.text(x + 16, 65.5, name)
            x += 34 + 7.2 * len(name)
    for power in range(low, high + 1):
        x_at = across(2.0**power)
        one = power == 0
        ends = [(x_at, _TOP - 8), (x_at, float(bottom))]
        picture.line(ends, "muted" if one else "rule", width=1.5 if one else 1)
        picture.text(x_at, bottom + 20, f"{2.0**power:g}×", anchor="middle")
    picture.text(across(1) + 8, bottom + 42, "handgrad is faster →")
    picture.text(across(1) - 8, bottom + 42, "← slower", anchor="end")
    for i, (name, of_workload) in enumerate(workloads.items()):
        y = _TOP + _ROW * (i + 0.5)
        picture.text(_LEFT - 14, y + 4.5, name, "ink", anchor="end")
        if len(of_workload) > 1:
            picture.line([(across(r), y) for r in sorted(of_workload.values())], "rule", width=3)
        for peer, ratio in of_workload.items():
            picture.circle(across(ratio), y, 6, _COLOURS[peer], "paper")
    return picture.svg()
