"""Modules of handgrad.torch beside PyTorch's own: one training step in PyTorch's loop.

    python -m benchmarks.torch_modules [--only lstm,…] [--threads N] [--rounds N] [--quick] [--save]

Network, loss, backward and Adam are PyTorch's in both, but for the modules that handgrad.torch has.
`--save` adds to benchmarks/results; see docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from functools import partial
from typing import Any, Final

import numpy as np
from rich.console import Console

from benchmarks import machine, results, steps
from benchmarks.bursts import ContenderError, compare
from benchmarks.peers import installed, precision
from benchmarks.tables import tables

#: The workloads, and how many times as fast as PyTorch's module ours is to be.
AIMS: Final = {
    "lstm": 1.3,
    "gru": 2.0,
    "lstm_projection": 2.0,
    "lstm_ragged": 4.0,
    "encoder_block": 1.5,
}


def with_own_modules(module: Any) -> None:
    """Make modules of handgrad.torch of those that it has, in place."""
    from handgrad.torch import accelerate

    accelerate(module)


handgrad = partial(steps.torch_job, change=with_own_modules)
handgrad_bf16 = partial(steps.torch_job, change=with_own_modules, autocast=True)
torch = steps.torch
torch_bf16 = steps.torch_bf16


def measure(workload: str, **settings: Any) -> dict[str, Any]:
    """Times of both, and in bf16 too where this CPU multiplies it."""
    names = ["handgrad", "torch"]
    if steps.multiplies_bf16():
        names += ["handgrad-bf16", "torch-bf16"]
    arguments = {"workload": workload, "sizes": {}}
    found = compare([(name, arguments) for name in names], "benchmarks.torch_modules", **settings)
    own = np.array(found["contenders"]["handgrad"]["losses"])
    found["differs"] = [
        name
        for name, about in found["contenders"].items()
        if not steps.same_losses(own, np.array(about["losses"]), precision(name))
    ]
    return {**found, "aim": AIMS[workload]}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_modules", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=",".join(AIMS), help="workloads, with commas between")
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of both")
    parser.add_argument("--rounds", type=int, default=30, help="bursts of every contender")
    parser.add_argument("--quick", action="store_true", help="see that it runs; no figures")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    given = parser.parse_args()
    if given.quick and given.save:
        parser.error("--quick with --save; allowed: one of them, because quick figures are rough")
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds; allowed: 1 or more")
    given.only = given.only.split(",")
    for name in given.only:
        if name not in AIMS:
            parser.error(f"--only has {name!r}; allowed: {', '.join(AIMS)}")
    return given


def main() -> int:
    given = _arguments()
    here, missing = installed(["torch"])
    if not here:
        sys.exit("\n".join(missing))
    console = Console() if sys.stdout.isatty() else Console(width=140)
    load_before = machine.load()
    stolen = machine.Stolen()
    noise = machine.warning(load_before)
    if noise:
        console.print(f"Warning: {noise}.", style="bold")
    timing = {
        "threads": given.threads,
        "rounds": 3 if given.quick else given.rounds,
        "burst": 0.02 if given.quick else 0.2,
    }
    found = {}
    try:
        for name in given.only:
            console.print(f"measuring {name}")
            found[name] = measure(name, **timing)
    except ContenderError as error:
        print(f"benchmarks.torch_modules: {error}", file=sys.stderr)
        return 1
    result = {
        "date": date.today().isoformat(),
        "machine": machine.describe(["torch"]),
        "load": load_before,
        "stolen": stolen.share(),
        "sections": {"torch_modules": found},
    }
    for table in tables(result):
        console.print(table.rich())
    if given.save:
        for path in results.save(result):
            console.print(f"saved {path}")
        console.print("now run python -m benchmarks.readme")
    return 0


if __name__ == "__main__":
    sys.exit(main())
