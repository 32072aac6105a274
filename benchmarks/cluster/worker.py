"""What is measured on the ranks, or in one process: started by `python -m benchmarks.cluster`.

Rank 0 prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks import workloads
from benchmarks.cluster.cost import exposed
from benchmarks.cluster.delayed import Delayed
from handgrad.mpi.launch import launched
from handgrad.training import Callback, Replicas, Trainer

#: Steps before the first that counts: captures, workspaces and the comparison of claims.
_FIRST_STEPS: Final = 6
_SIZES: Final = (8, 1 << 10, 1 << 16, 1 << 20, 4 << 20, 16 << 20)


class Repeated:
    """A source of one batch, again and again."""

    def __init__(self, workload: workloads.Workload, steps: int) -> None:
        self.inputs, self.targets = workload.examples()
        self.batch = len(self.targets)
        self._steps = steps

    def __len__(self) -> int:
        return self._steps * self.batch

    def order(self, batch_size: int, rng: np.random.Generator) -> np.ndarray:
        return np.tile(np.arange(self.batch), self._steps)

    def every(self) -> np.ndarray:
        return np.arange(self.batch)

    def gather(self, index: np.ndarray) -> Any:
        inputs = tuple(each if each is None else each[index] for each in self.inputs)
        return inputs, self.targets[index]


class Clock(Callback):
    """The seconds of every step, until enough have passed; then it stops the training."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step(self, trainer: Trainer) -> None:
        self.times.append(time.perf_counter())

    @property
    def steps(self) -> list[float]:
        return np.diff(self.times[_FIRST_STEPS:]).tolist()


def train(name: str, steps: int, replicas: Replicas, parts: int) -> Clock:
    """The steps of one workload, the batch shared by the ranks."""
    import handgrad as hg

    described = workloads.load(name)
    source = Repeated(described, steps + _FIRST_STEPS + 1)
    clock = Clock()
    trainer = Trainer(
        described.handgrad(np.random.default_rng(0)),
        hg.losses.CrossEntropy(class_axis=1 if source.targets.ndim == 1 else -1),
        "adam",
        lr=1e-4,
        batch_size=source.batch,
        parts=parts,
        replicas=replicas,
        callbacks=[clock],
        progress="off",
    )
    trainer.fit(source, epochs=1)
    return clock


def speed(name: str, steps: int, replicas: Replicas) -> dict[str, Any]:
    """The median step of a workload on these ranks, and the shortest."""
    steps_taken = train(name, steps, replicas, replicas.size).steps
    return {"seconds": median(steps_taken), "least": min(steps_taken), "flops": _flops(name)}


def _flops(name: str) -> int:
    described = workloads.load(name)
    return described.flops(described.handgrad(np.random.default_rng(0)))


def network(replicas: Any) -> dict[str, Any]:
    """The seconds of a sum by its bytes: the least of many, which nothing else has delayed."""
    from mpi4py import MPI

    found = {}
    for size in _SIZES:
        values = np.zeros(max(1, size // 4), np.float32)
        times = []
        for _ in range(max(5, min(200, (64 << 20) // size))):
            replicas.communicator.Barrier()
            began = time.perf_counter()
            replicas.communicator.Allreduce(MPI.IN_PLACE, values)
            times.append(time.perf_counter() - began)
        found[str(size)] = min(times)
    return found


def overlap(name: str, steps: int, alpha: float, beta: float, bucket: int) -> dict[str, Any]:
    """A step in one process on a network that is slow on purpose, and what it waits for the sum.

    The model is given the times at which the buckets of each step left.
    """
    from mpi4py import MPI

    from handgrad.mpi import Ranks

    communicator = Delayed(MPI.COMM_SELF, alpha, beta)
    clock = train(name, steps, Ranks(communicator, bucket_bytes=bucket), 2)
    count = len(communicator.calls) // len(clock.times)
    waited, model, sums = [], [], [0.0]
    for first in range(_FIRST_STEPS * count, len(communicator.calls), count):
        calls = communicator.calls[first : first + count]
        ready = [call.left - calls[0].left for call in calls]
        sums = [alpha + beta * call.size for call in calls]
        waited.append(calls[-1].done - calls[-1].left)
        model.append(exposed(ready, sums, ready[-1]))
    return {
        "step": median(clock.steps),
        "waited": median(waited),
        "model": median(model),
        "apart": sum(sums),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("speed", "network", "overlap"))
    parser.add_argument("--workload", default="lstm")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--alpha", type=float, default=0.0)
    parser.add_argument("--beta", type=float, default=0.0)
    parser.add_argument("--bucket", type=int, default=4 << 20)
    given = parser.parse_args()
    if given.what == "overlap":
        found = overlap(given.workload, given.steps, given.alpha, given.beta, given.bucket)
        print(json.dumps(found))
        return
    with launched() as replicas:
        if given.what == "speed":
            found = speed(given.workload, given.steps, replicas)
        else:
            found = network(replicas)
        if replicas.rank == 0:
            print(json.dumps(found))


if __name__ == "__main__":
    main()
