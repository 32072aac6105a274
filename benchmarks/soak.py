"""Hours of mixed training in one process, under a memory limit and beside busy neighbours.

    python -m benchmarks.soak [--minutes 120] [--neighbours 2] [--limit 1500]

In turn dense networks, a convolutional one, LSTMs, also over batches of new shapes, and a sequence
to sequence model with attention train for a few steps each, then an `hg.Trainer` from start to
end. Of every round the seconds, those of the CPU and the resident memory are read. Exits with 1
where memory grew by more than 2 % from the first quarter of the rounds to the last one, or the
median round by more than 5 % in seconds of the CPU; those of the clock hang on the neighbours.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

import handgrad as hg
from benchmarks import works
from benchmarks.bursts import ROOT
from benchmarks.machine import cores, resident_bytes

MEMORY_GROWTH: Final = 1.02
SLOWDOWN: Final = 1.05
#: Fewer rounds say nothing of a trend.
LEAST_ROUNDS: Final = 8

Step = Callable[[], None]


def _batches_of(name: str) -> Iterator[Step]:
    """Steps of one work, as its benchmark takes them."""
    work = works.load(name)
    inputs, target = work.examples()
    model = work.handgrad(np.random.default_rng(0))
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
        trainer.fit((digits.x_train[:256], digits.y_train[:256]), epochs=1)

    while True:
        number += 1
        yield run


class Round(NamedTuple):
    """What one round took: seconds of the clock and of the CPU, and resident bytes at its end."""

    clock: float
    cpu: float
    memory: int


def soak(minutes: float, folder: Path) -> list[Round]:
    """Rounds of all works for so many minutes."""
    rounds = []
    steps = [(_batches_of(name), count) for name, count in _WORKS]
    steps += [(_new_shapes(), 30), (_trainer(folder), 1)]
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        began, cpu_began = time.monotonic(), time.process_time()
        for work, count in steps:
            for _ in range(count):
                next(work)()
        took = time.monotonic() - began, time.process_time() - cpu_began
        rounds.append(Round(*took, resident_bytes()))
        told = f"{took[0]:.2f} s, {took[1]:.2f} s of the CPU, {rounds[-1].memory / 2**20:.1f} MiB"
        print(f"round {len(rounds)}: {told}", flush=True)
    return rounds


_WORKS: Final = (("mlp_tiny", 500), ("mlp", 30), ("cnn", 8), ("lstm_ragged", 8), ("seq2seq", 6))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--neighbours", type=int, default=2)
    parser.add_argument("--limit", type=int, default=1500, help="MiB that the process may map more")
    options = parser.parse_args()
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
        rounds = soak(options.minutes, Path(folder))
    if len(rounds) < LEAST_ROUNDS:
        print(f"only {len(rounds)} rounds; allowed: {LEAST_ROUNDS} or more, in more minutes")
        return 2
    quarter = len(rounds) // 4
    first, last = rounds[:quarter], rounds[-quarter:]
    growth = max(one.memory for one in last) / max(one.memory for one in first)
    clock, cpu = (
        median(one[i] for one in last) / median(one[i] for one in first) for i in range(2)
    )
    print(f"{len(rounds)} rounds: memory × {growth:.3f}, clock × {clock:.3f}, CPU × {cpu:.3f}")
    return int(growth > MEMORY_GROWTH or cpu > SLOWDOWN)


if __name__ == "__main__":
    sys.exit(main())
