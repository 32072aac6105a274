"""Measure handgrad beside its peers, in one run.

    python -m benchmarks [--only mlp_tiny,lstm,gpt_mini,…,matmul,calls,memory,footprint,accuracy]
                         [--peers torch,torch-compile,torch-bf16,jax,sklearn]
                         [--threads N] [--rounds N] [--quick] [--save]
    python -m benchmarks --only matmul_sweep,neighbour,scaling_gpt,scaling_attention,…
    python -m benchmarks --only headlines

The sections of the last two lines are measured only when they are asked for. One contender runs at
a time, in turns; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from typing import Any, Final

from rich.console import Console

from benchmarks import (
    accuracy,
    calls,
    footprint,
    headlines,
    machine,
    matmul,
    memory,
    neighbour,
    peak,
    results,
    scaling,
    steps,
    workloads,
)
from benchmarks.bursts import ContenderError
from benchmarks.peers import INSTALL, installed, libraries
from benchmarks.tables import tables

#: Measurements made without `--only`; the others take long, or make noise on purpose.
DEFAULT: Final = (*workloads.NAMES, "matmul", "calls", "memory", "footprint", "accuracy")
SECTIONS: Final = (*DEFAULT, "matmul_sweep", "headlines", "neighbour", *scaling.SECTIONS)


def _listed(text: str, allowed: tuple[str, ...], option: str) -> list[str]:
    """The names in a comma-separated list, in the order of `allowed`."""
    wanted = [name for name in text.split(",") if name]
    for name in wanted:
        if name not in allowed:
            sys.exit(f"benchmarks: {option} has {name!r}; allowed: {', '.join(allowed)}")
    return [name for name in allowed if name in wanted]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=",".join(DEFAULT), help="what to measure")
    parser.add_argument("--peers", default=",".join(INSTALL), help="libraries beside handgrad")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of every library")
    parser.add_argument("--rounds", type=int, default=30, help="bursts of every contender")
    parser.add_argument("--quick", action="store_true", help="see that it runs; no figures")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    given = parser.parse_args()
    if given.quick and given.save:
        parser.error("--quick with --save; allowed: one of them, because quick figures are rough")
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds; allowed: 1 or more")
    given.only = _listed(given.only, SECTIONS, "--only")
    given.peers = _listed(given.peers, tuple(INSTALL), "--peers")
    return given


def _measure(given: argparse.Namespace, peers: list[str], console: Console) -> dict[str, Any]:
    """Every section asked for, each with the peak of its precision."""
    timing = {
        "threads": given.threads,
        "rounds": 3 if given.quick else given.rounds,
        "burst": 0.02 if given.quick else 0.2,
    }
    meter = {"threads": given.threads, "seconds": 0.1 if given.quick else 2.0}
    limits = peak.measure(**meter)
    if "missing" in limits:
        console.print(limits["missing"])
    found: dict[str, dict[str, Any]] = {}

    def keep(section: str, name: str, measured: dict[str, Any]) -> None:
        if "missing" in measured:
            console.print(measured["missing"])
        else:
            for reason in measured.get("failed", {}).values():
                console.print(f"{name}: {reason}", style="bold")
            found.setdefault(section, {})[name] = measured

    for name in given.only:
        console.print(f"measuring {name}")
        if name in workloads.NAMES:
            keep("steps", name, steps.measure(name, peers, **timing))
        elif name in matmul.SECTIONS:
            for size, precision in matmul.SECTIONS[name]:
                if precision == "bf16" and limits.get("bf16_unit", "none") == "none":
                    continue
                multiplying = [
                    *matmul.always(precision),
                    *(peer for peer in libraries(peers) if hasattr(matmul, peer)),
                ]
                measured = matmul.measure(size, precision, multiplying, **timing)
                keep(name, matmul.title(size, precision), measured)
        elif name == "calls":
            found["calls"] = calls.measure(rounds=timing["rounds"], burst=timing["burst"])
        elif name == "memory":
            examples = 2_000 if given.quick else memory.EXAMPLES
            found["memory"] = memory.measure(
                libraries(peers), threads=given.threads, examples=examples
            )
        elif name == "footprint":
            repeats = 1 if given.quick else 11
            found["footprint"] = footprint.measure(
                libraries(peers), repeats=repeats, wheel=not given.quick
            )
        elif name == "neighbour":
            for workload in neighbour.WORKLOADS[-1 if given.quick else 0 :]:
                keep("neighbour", workload, neighbour.measure(workload, peers, **timing))
        elif name == "headlines":
            for recipe in headlines.HEADLINES:
                measured = headlines.measure(recipe, threads=given.threads, quick=given.quick)
                keep("headlines", recipe, measured)
        elif name in scaling.SECTIONS:
            points = scaling.measure(name, peers, **timing, quick=given.quick)
            for label, measured in points.items():
                keep(name, label, measured)
        else:
            for recipe in accuracy.SEEDS:
                measured = accuracy.measure(recipe, threads=given.threads, quick=given.quick)
                keep("accuracy", recipe, measured)
    limits = peak.highest(limits, peak.measure(**meter))
    for section in ("steps", *matmul.SECTIONS, *scaling.SECTIONS):
        for one in found.get(section, {}).values():
            if one["threads"] != given.threads:
                continue  # the limit is that of the threads of the run
            precision = one.get("precision", "float32")
            one["peak"] = limits.get(precision)
            if precision == "bf16":
                one["unit"] = limits["bf16_unit"]
            if any(name.endswith("-bf16") for name in one["contenders"]):
                one["peak_bf16"] = limits.get("bf16")
    return found


def main() -> int:
    given = _arguments()
    console = Console() if sys.stdout.isatty() else Console(width=140)
    peers, missing = installed(given.peers)
    for line in missing:
        console.print(line)
    load = machine.load()
    noise = machine.warning(load)
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    stolen = machine.Stolen()
    try:
        sections = _measure(given, peers, console)
    except ContenderError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    result = {
        "date": date.today().isoformat(),
        "machine": machine.describe(peers),
        "load": load,
        "stolen": stolen.share(),
        "sections": sections,
    }
    for name, value in result["machine"].items():
        console.print(f"{name:<12} {', '.join(value) if isinstance(value, list) else value}")
    console.print(f"{'load before':<12} {load}; stolen by the hypervisor {result['stolen']:.1%}")
    for table in tables(result):
        console.print(table.rich())
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    if given.save:
        for path in results.save(result):
            console.print(f"saved {path}")
        console.print("now run python -m benchmarks.readme")
    return 0


if __name__ == "__main__":
    sys.exit(main())
