"""The tables of docs/scaling.md: the cost model with what was measured here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from benchmarks.cluster.cost import Layout, Machine, pays_to, step, strong, weak

MEASURED: Final = Path(__file__).with_name("measured.json")
PAGE: Final = Path(__file__).parents[2] / "docs" / "scaling.md"
_BEGIN, _END = "<!-- plan: begin -->", "<!-- plan: end -->"

LAYOUTS: Final = (
    Layout("gpt2_124m", width=768, blocks=12, steps=1024),
    Layout("1.3 billion", width=2048, blocks=24, steps=2048),
)
#: Sequences of the batch that ranks share, about half a million and two million tokens, and those
#: of each rank where the batch grows with them.
BATCHES: Final = {"gpt2_124m": (1024, 8), "1.3 billion": (1024, 2)}
#: Cores of a node for each core that was measured.
NODE_CORES: Final = 64


def machines(measured: dict[str, Any]) -> tuple[tuple[Machine, int], ...]:
    """A node and an accelerator with their networks, and how many there are of each.

    The node's compute is measured, times its cores; all else is assumed, as docs/scaling.md says.
    """
    node = Machine("CPU node", NODE_CORES * measured["flops"], 300e9, 2e-6, 1 / 12.5e9)
    accelerator = Machine("accelerator", 400e12, 3.35e12, 5e-6, 1 / 50e9, 2, 32 << 20)
    return (node, 1024), (accelerator, 256)


def tables(measured: dict[str, Any]) -> str:
    """The plan as Markdown: for each machine and layout the speed of more and more ranks."""
    lines = [
        f"Measured on {measured['cpu']}, {measured['date']}: "
        f"{measured['flops'] / 1e9:.0f} GFLOP/s of one core in a step of {measured['workload']}; "
        f"between two ranks of one machine α = {1e6 * measured['alpha']:.1f} µs and "
        f"β = {1e9 * measured['beta']:.2f} ns/byte.",
    ]
    for machine, most in machines(measured):
        for layout in LAYOUTS:
            lines += ["", *_table(layout, machine, most)]
    return "\n".join([*lines, "", *_limits(measured)])


def _limits(measured: dict[str, Any]) -> list[str]:
    """Where sharing a batch stops paying, by its size."""
    batches = (64, 256, 1024)
    found = [
        "### Where it stops paying",
        "",
        "The largest power of two of ranks that share a batch at half of their speed or more:",
        "",
        "| model | ranks | " + " | ".join(f"{batch:,} sequences" for batch in batches) + " |",
        "| --- | --- | " + " | ".join("---:" for _ in batches) + " |",
    ]
    for machine, most in machines(measured):
        for layout in LAYOUTS:
            limits = [f"{pays_to(layout, batch, most, machine):,}" for batch in batches]
            found.append(
                f"| {layout.name} | up to {most:,} {machine.name}s | {' | '.join(limits)} |"
            )
    return found


def _table(layout: Layout, machine: Machine, most: int) -> list[str]:
    batch, own = BATCHES[layout.name]
    found = [
        f"### {layout.name} on up to {most:,} {machine.name}s",
        "",
        f"{layout.parameters / 1e6:,.0f} million parameters; strong scaling shares {batch:,} "
        f"sequences of {layout.steps:,} steps, weak scaling has {own} on each rank.",
        "",
        "| ranks | s per step, shared batch | waiting for the sum | efficiency, strong | weak | "
        "weak without overlap |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    ranks = 1
    while ranks <= most:
        shared = step(layout, batch / ranks, ranks, machine)
        alone = step(layout, own, 1, machine).seconds
        apart = step(layout, own, ranks, machine, overlap=False).seconds
        found.append(
            f"| {ranks:,} | {shared.seconds:,.3g} | {100 * shared.exposed / shared.seconds:.1f} % "
            f"| {100 * strong(layout, batch, ranks, machine):.1f} % "
            f"| {100 * weak(layout, own, ranks, machine):.1f} % | {100 * alone / apart:.1f} % |"
        )
        ranks *= 4
    return found


def page(text: str, measured: dict[str, Any]) -> str:
    """A page whose plan is that of these measurements."""
    block = f"{_BEGIN}\n\n{tables(measured)}\n\n{_END}"
    return re.sub(re.escape(_BEGIN) + ".*" + re.escape(_END), lambda _: block, text, flags=re.S)


def measured() -> dict[str, Any]:
    """The last measurements."""
    found: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return found


def write() -> None:
    """Write the plan into docs/scaling.md."""
    PAGE.write_text(page(PAGE.read_text("utf-8"), measured()), "utf-8")
