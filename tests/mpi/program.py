"""The small problem of the training's tests, on the ranks that mpirun started.

mpirun -n 2 python -m tests.mpi.program FOLDER [--resume] [--shard] [--die RANK STEP]
"""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from pathlib import Path

from handgrad.mpi.launch import launched
from handgrad.training import Callback, Trainer, train
from tests.training import problem


class Dies(Callback):
    """Kills one rank behind one step."""

    def __init__(self, rank: int, step: int) -> None:
        self._where = (rank, step)

    def on_step(self, trainer: Trainer) -> None:
        if (trainer.replicas.rank, trainer.step) == self._where:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--resume", action="store_true")
    arguments.add_argument("--shard", action="store_true")
    arguments.add_argument("--die", type=int, nargs=2, default=(0, -1))
    given = arguments.parse_args()
    with launched(shard=given.shard) as replicas:
        pieces = problem.parts(
            parts=4, exact=True, checkpoint_steps=3, callbacks=[Dies(*given.die)]
        )
        pieces["config"] = replace(pieces["config"], replicas=replicas)
        train(**pieces, out=given.folder, resume=given.resume)


if __name__ == "__main__":
    main()
