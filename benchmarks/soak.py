"""Hours of mixed training in one process, under a memory limit and beside busy neighbours.

    python -m benchmarks.soak [--minutes 120] [--neighbours 2] [--limit 1500]

In turn dense networks, a convolutional one, LSTMs, also over batches of new shapes, and a sequence
to sequence model with attention train for a few steps each, then an `hg.Trainer` from start to
end. Resident memory is read after every round, once the arrays kept for later ones are given back:
how many are kept depends on the seconds that a round takes. Every fifth round is timed against the
same one of a process just started, since neighbours and clock rates change. Exits with 1 where
memory grew by more than 2 % from the first quarter of the rounds to the last one, or the median of
those ratios by more than 5 %.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

import handgrad as hg
from benchmarks import workloads
from benchmarks.bursts import ROOT
from benchmarks.machine import cores, resident_bytes

MEMORY_GROWTH: Final = 1.02
SLOWDOWN: Final = 1.05
#: One round in so many is timed beside a fresh process.
TWIN_EVERY: Final = 5
#: Fewer ratios say nothing of a trend.
LEAST_RATIOS: Final = 8

Step = Callable[[], None]


def _batches_of(name: str) -> Iterator[Step]:
    """Steps of one workload, as its benchmark takes them."""
    workload = workloads.load(name)
    inputs, target = workload.examples()
    model = workload.handgrad(np.random.default_rng(0))
    parameters = model.bind()
    gradients = parameters.zeros_like()
    loss = hg.losses.CrossEntropy(class_axis=1 if target.ndim == 1 else -1)
    optimizer = hg.optimizers.Adam(lr=1e-3)
    step = hg.training.TrainingStep(model, loss, gradients)

    def run() -> None:
        step(inputs, target)
        optimizer.step(parameters, gradients)

    while True:
        yield run


def _new_shapes() -> Iterator[Step]:
    """An LSTM whose batches have another number of sequences and steps each time."""
    rng = np.random.default_rng(1)
    model = hg.Sequential(hg.LSTM(32, 64, rng=rng), hg.Dense(64, 10, rng=rng))
    parameters = model.bind()
    gradients = parameters.zeros_like()
    loss, optimizer = hg.losses.CrossEntropy(class_axis=-1), hg.optimizers.AdamW(lr=1e-3)
    step = hg.training.TrainingStep(model, loss, gradients)

    def run() -> None:
        shape = tuple(int(n) for n in rng.integers(1, 60, 2))
        x = rng.standard_normal((*shape, 32), dtype=np.float32)
        step((x,), rng.integers(0, 10, shape))
        optimizer.step(parameters, gradients)

    while True:
        yield run


def _trainer(folder: Path) -> Iterator[Step]:
    """A whole small training with checkpoints and a report."""
    digits = hg.data.load("digits")
    number = 0

    def run() -> None:
        rng = np.random.default_rng(number)
        model = hg.Sequential(hg.Flatten(), hg.Dense(64, 32, rng=rng), hg.Dense(32, 10, rng=rng))
        trainer = hg.Trainer(
            model,
            hg.losses.CrossEntropy(),
            hg.optimizers.Adam(),
            progress="off",
            out=folder / str(number),
        )
        trainer.fit(digits.x_train[:256], digits.y_train[:256], epochs=1)

    while True:
        number += 1
        yield run


_WORKS: Final = (("mlp_tiny", 500), ("mlp", 30), ("cnn", 8), ("lstm_ragged", 8), ("seq2seq", 6))


def _rounds(folder: Path) -> Iterator[float]:
    """The seconds of one round of all workloads after the other."""
    steps = [(_batches_of(name), count) for name, count in _WORKS]
    steps += [(_new_shapes(), 30), (_trainer(folder), 1)]
    while True:
        began = time.monotonic()
        for workload, count in steps:
            for _ in range(count):
                next(workload)()
        yield time.monotonic() - began


def _fresh(folder: Path) -> float:
    """The seconds of a round, its second, in a process just started."""
    command = [sys.executable, "-m", "benchmarks.soak", "--twin", str(folder)]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


class Findings(NamedTuple):
    """Resident bytes after each round, and how much longer some took than in a fresh process."""

    memory: list[int]
    slowness: list[float]


def soak(minutes: float, folder: Path) -> Findings:
    """Rounds of all workloads for so many minutes."""
    found = Findings([], [])
    rounds = _rounds(folder)
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        took = next(rounds)
        hg.release_memory()
        found.memory.append(resident_bytes())
        line = f"{took:.2f} s, {found.memory[-1] / 2**20:.1f} MiB"
        if len(found.memory) % TWIN_EVERY == 0:
            with tempfile.TemporaryDirectory() as other:
                fresh = _fresh(Path(other))
            found.slowness.append((took + next(rounds)) / 2 / fresh)
            line += f", × {found.slowness[-1]:.2f} of a fresh process"
        print(f"round {len(found.memory)}: {line}", flush=True)
    return found


def _growth(series: Sequence[float], of: Callable[[Sequence[float]], float]) -> float:
    """The last quarter of the series as a multiple of its first one."""
    quarter = len(series) // 4
    return of(series[-quarter:]) / of(series[:quarter])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--limit", type=int, default=1500, help="MiB that the process may map more")
    parser.add_argument("--twin", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.twin:
        print(list(islice(_rounds(options.twin), 2))[-1])
        return 0
    with ExitStack() as stack:
        for _ in range(options.neighbours):
            command = [sys.executable, "-m", "benchmarks.neighbour", str(cores())]
            process = stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
            )
            stack.callback(process.kill)
        limit = options.limit << 20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        found = soak(options.minutes, Path(folder))
    if len(found.slowness) < LEAST_RATIOS:
        least = LEAST_RATIOS * TWIN_EVERY
        print(f"only {len(found.memory)} rounds; allowed: {least} or more, in more minutes")
        return 2
    memory, slowness = _growth(found.memory, max), _growth(found.slowness, median)
    print(f"{len(found.memory)} rounds: memory × {memory:.3f}, time × {slowness:.3f}")
    return int(memory > MEMORY_GROWTH or slowness > SLOWDOWN)


if __name__ == "__main__":
    sys.exit(main())
