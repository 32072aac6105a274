"""Measure training on ranks of this machine, and draw it to clusters.

    python -m benchmarks.cluster speed [--workloads lstm,gpt_mini,…] [--rounds N]
    python -m benchmarks.cluster overlap [--workload gpt_mini]
    python -m benchmarks.cluster kills [--times 20]
    python -m benchmarks.cluster measure     # α, β and compute, into measured.json
    python -m benchmarks.cluster plan        # the tables of docs/scaling.md, from measured.json

`speed` compares two ranks of one thread with one process of two threads on the same batch, in
turns. It needs `pip install 'handgrad[mpi]' mpich`, or another MPI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import machine
from benchmarks.cluster import kills, plan

ROOT: Final = Path(__file__).parents[2]
#: What a rank computes in the plan, measured here: FLOP/s of a step of this workload.
PLANNED: Final = "gpt_mini"


def mpirun(ranks: int) -> list[str]:
    """The start of a command on so many ranks: of the mpirun beside Python, or on the path."""
    near = Path(sys.executable).with_name("mpirun")
    found = str(near) if near.exists() else shutil.which("mpirun")
    if found is None:
        sys.exit("benchmarks: mpirun is not here; allowed: after pip install mpich")
    return [found, "-n", str(ranks)]


def worker(ranks: int, threads: int, *arguments: str) -> dict[str, Any]:
    """What `worker` prints on so many ranks; 0 for one process without mpirun."""
    begin = mpirun(ranks) if ranks else []
    found = subprocess.run(
        [*begin, sys.executable, "-m", "benchmarks.cluster.worker", *arguments],
        env={**os.environ, "HANDGRAD_THREADS": str(threads)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return result


def speed(names: Sequence[str], rounds: int) -> None:
    """One process of two threads against two ranks of one, in turns."""
    print("workload      2 threads  2 ranks  speed")
    for name in names:
        times: dict[str, list[float]] = {"threads": [], "ranks": []}
        for _ in range(rounds):
            for key, ranks, threads in (("threads", 0, 2), ("ranks", 2, 1)):
                found = worker(ranks, threads, "speed", "--workload", name)
                times[key].append(1e3 * found["seconds"])
        one, two = (median(times[key]) for key in ("threads", "ranks"))
        ratios = sorted(a / b for a, b in zip(times["threads"], times["ranks"], strict=True))
        spread = f"{100 * ratios[0]:.0f}–{100 * ratios[-1]:.0f} %"
        print(f"{name:12} {one:7.1f} ms {two:7.1f} ms {100 * one / two:5.0f} %  ({spread})")


def overlap(name: str) -> None:
    """Waiting for the sum on networks that are slow on purpose, beside what the model says."""
    print("α, β                          step      waited       model   sum, not overlapped")
    for alpha, beta in ((1e-4, 1e-10), (1e-4, 1e-9), (1e-3, 1e-9), (1e-4, 5e-9), (1e-4, 2e-8)):
        given = ("--workload", name, "--alpha", str(alpha), "--beta", str(beta))
        found = worker(0, 1, "overlap", *given)
        times = [1e3 * found[key] for key in ("step", "waited", "model", "apart")]
        shown = " ".join(f"{each:8.1f} ms" for each in times)
        print(f"{1e6 * alpha:5.0f} µs, {1e9 * beta:4.1f} ns/byte {shown}")


def measure() -> None:
    """α and β between two ranks, and the compute of one, for `plan`."""
    sums = worker(2, 1, "network")
    alpha = sums["8"] / 2
    sizes = [int(size) for size in sums if int(size) >= 1 << 20]
    beta = median((sums[str(size)] - 2 * alpha) / size for size in sizes)
    step = worker(0, 1, "speed", "--workload", PLANNED)
    found = {
        "date": date.today().isoformat(),
        "cpu": machine.describe([])["cpu"],
        "load": machine.load(),
        "workload": PLANNED,
        "flops": step["flops"] / step["least"],
        "alpha": alpha,
        "beta": beta,
        "sums": sums,
    }
    plan.MEASURED.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(found, indent=2, ensure_ascii=False))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("speed", "overlap", "kills", "measure", "plan"))
    parser.add_argument("--workloads", default="lstm,gpt_mini,convnet,mlp")
    parser.add_argument("--workload", default=PLANNED)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    match given.what:
        case "speed":
            speed(given.workloads.split(","), given.rounds)
        case "overlap":
            overlap(given.workload)
        case "kills":
            kills.run(mpirun(2), given.times)
        case "measure":
            measure()
        case "plan":
            plan.write()


if __name__ == "__main__":
    main()
