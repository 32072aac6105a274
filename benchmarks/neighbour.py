"""A training step beside other programs that run on the same cores.

    python -m benchmarks.neighbour THREADS

spins on the first so many cores, and is what stands beside handgrad and PyTorch here: none, one
and two of it. With two cores a fair share makes a step 1.5 and 2 times as long.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any, Final

from benchmarks.bursts import ROOT, Contender, Spread
from benchmarks.machine import pin

WORKLOADS: Final = ("lstm", "mlp")
NEIGHBOURS: Final = (0, 1, 2)


def measure(
    workload: str, peers: Iterable[str], *, threads: int, rounds: int, burst: float
) -> dict[str, Any]:
    """Step times with each number of neighbours, and their ratios to the quiet ones of a round."""
    names = ["handgrad", *(name for name in peers if name == "torch")]
    times: dict[str, dict[int, list[float]]] = {
        name: {count: [] for count in NEIGHBOURS} for name in names
    }
    with ExitStack() as stack:
        arguments = {"workload": workload, "sizes": {}}
        running = [
            stack.enter_context(Contender(name, "benchmarks.steps", arguments, threads=threads))
            for name in names
        ]
        spinning = [stack.enter_context(_neighbour(threads)) for _ in range(max(NEIGHBOURS))]
        steps = {contender.name: contender.steps_for(burst) for contender in running}
        for turn in range(rounds):
            for count in NEIGHBOURS:
                for process in spinning[:count]:
                    process.send_signal(signal.SIGCONT)
                first = turn % len(running)
                for contender in running[first:] + running[:first]:
                    seconds = contender.seconds(steps[contender.name])
                    times[contender.name][count].append(seconds)
                for process in spinning[:count]:
                    process.send_signal(signal.SIGSTOP)
    return {
        "threads": threads,
        "rounds": rounds,
        "contenders": {
            name: {str(count): asdict(Spread.of(found[count])) for count in NEIGHBOURS}
            for name, found in times.items()
        },
        "slowdown": {
            name: {str(count): asdict(_slowdown(found[count], found[0])) for count in NEIGHBOURS}
            for name, found in times.items()
        },
    }


def _slowdown(times: list[float], quiet: list[float]) -> Spread:
    return Spread.of(slow / fast for slow, fast in zip(times, quiet, strict=True))


@contextmanager
def _neighbour(threads: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that spins when it is continued, and is stopped until then."""
    command = [sys.executable, "-m", "benchmarks.neighbour", str(threads)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    pin(int(sys.argv[1]))
    print("spinning", flush=True)
    while True:
        pass


if __name__ == "__main__":
    main()
