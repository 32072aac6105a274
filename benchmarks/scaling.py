"""Growth of time and memory: GPT with its steps and its width, convolutions, attention, threads.

The steps in a batch, or its pixels, stay as many while sequences or images grow, so that only
what does not grow in proportion shows. Ask for these by name: `--only scaling_gpt`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from benchmarks import attention, steps
from benchmarks.peers import precision


class Point(NamedTuple):
    """One comparison of a section; threads: None for what was asked for."""

    label: str
    workload: str
    sizes: dict[str, int]
    threads: int | None = None


LENGTHS: Final = (64, 128, 256, 512, 1024, 2048, 4096)
POINTS: Final = {
    "scaling_gpt": [
        *(
            Point(f"T {t}", "gpt_mini", {"steps": t, "batch": 4096 // t, "blocks": 2})
            for t in LENGTHS
        ),
        *(
            Point(f"width {w}", "gpt_mini", {"width": w, "heads": w // 64, "blocks": 2})
            for w in (64, 128, 256, 512, 1024)
        ),
    ],
    "scaling_attention": [Point(f"T {t}", "attention", {"steps": t}) for t in LENGTHS],
    "scaling_convolution": [
        Point(f"{size}×{size}", "convnet", {"size": size, "batch": 32 * 32 * 32 // size**2})
        for size in (8, 16, 32, 64, 128)
    ],
    "scaling_threads": [
        Point(
            f"{workload}, {threads} {'thread' if threads == 1 else 'threads'}",
            workload,
            {},
            threads,
        )
        for workload in ("mlp", "convnet", "lstm", "gpt_mini")
        for threads in (1, 2)
    ],
}
SECTIONS: Final = tuple(POINTS)
#: Divides the rounds of other workloads: sizes side by side say as much as many rounds.
FEWER_ROUNDS: Final = 3


def measure(
    section: str, peers: Iterable[str], *, threads: int, rounds: int, burst: float, quick: bool
) -> dict[str, dict[str, Any]]:
    """Every point of a section by its label; with `quick` only the first two."""
    peers = [name for name in peers if precision(name) == "float32"]
    found = {}
    for point in POINTS[section][: 2 if quick else None]:
        settings: dict[str, Any] = {
            "threads": threads if point.threads is None else point.threads,
            "rounds": max(1, rounds // FEWER_ROUNDS),
            "burst": burst,
        }
        if point.workload == "attention":
            alone = [name for name in peers if hasattr(attention, name)]
            found[point.label] = attention.measure(**point.sizes, peers=alone, **settings)
        else:
            found[point.label] = steps.measure(point.workload, peers, point.sizes, **settings)
    return found
