"""A program that mpirun may have started: how many ranks there are, and how they end together.

Without mpirun nothing here imports mpi4py.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from handgrad import dispatch
from handgrad.errors import ArgumentError, HandgradError, Interrupted
from handgrad.training.replicas import ALONE, Replicas

#: Where launchers say the number of ranks and the rank: MPICH, Intel MPI and Slurm's PMI-2; Open
#: MPI; MVAPICH2; Slurm's PMIx.
_SAID: Final = (
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "PMIX_RANK"),
)
#: Variables that decide the number of threads; see `dispatch.cores`.
_THREADS: Final = ("HANDGRAD_THREADS", "OMP_NUM_THREADS")
#: Seconds that a rank waits with its error for rank 0, which may have the same one to say.
_PATIENCE: Final = 1.0
#: Seconds in which mpirun passes on what a rank has said: when all are ended it may drop it.
_PASSED_ON: Final = 0.3


def said(environment: Mapping[str, str]) -> tuple[int, int]:
    """The number of ranks that a launcher started, and this one; 1 and 0 without a launcher.

    HANDGRAD_MPI=0 stands for none: for a program on ranks each of which starts a training.
    """
    if environment.get("HANDGRAD_MPI") == "0":
        return 1, 0
    for size, rank in _SAID:
        found = environment.get(size, ""), environment.get(rank, "")
        if all(each.isdecimal() for each in found):
            return int(found[0]), int(found[1])
    return 1, 0


@contextmanager
def launched(*, shard: bool = False) -> Iterator[Replicas]:
    """The ranks that mpirun started, in a block that they leave together; or this process alone.

    Each gets its share of the cores, unless the environment says otherwise. An error of one of them
    is printed, once, and ends all. shard: see `Ranks`.
    """
    size, rank = said(os.environ)
    if size == 1:
        yield ALONE
        return
    from handgrad.mpi.communicator import Ranks

    try:
        ranks = Ranks(shard=shard)
        if ranks.size != size:
            raise ArgumentError(
                f"mpi: {size} ranks were started, and mpi4py finds {ranks.size}; allowed: the "
                "mpirun of the MPI that mpi4py uses"
            )
    except HandgradError:
        if rank > 0:  # rank 0 says it
            raise SystemExit(2) from None
        raise
    if not any(name in os.environ for name in _THREADS):
        dispatch.set_threads(ranks.fair_threads())
    try:
        yield ranks
    except Interrupted as stopped:
        if ranks.rank > 0:
            raise SystemExit(stopped.exit_code) from None
        raise
    except BaseException as error:
        _end_all(ranks, error)


def _end_all(ranks: Replicas, error: BaseException) -> None:
    """Print the error and end every rank; where all of them have one, rank 0 is the first."""
    from handgrad.streams import sentence_of
    from handgrad.unforeseen import FAULT, report

    if ranks.rank > 0:
        time.sleep(_PATIENCE * (1 + ranks.rank / ranks.size))
    match error:
        case HandgradError():
            code, text = 2, f"handgrad: {error}"
        case MemoryError() | OSError():
            code, text = 2, f"handgrad: {sentence_of(error)}"
        case KeyboardInterrupt():
            code, text = 130, "handgrad: interrupted"
        case SystemExit():
            code, text = error.code if isinstance(error.code, int) else 1, ""
        case _:
            code, text = FAULT, f"handgrad: {report(error)}"
    if text:
        print(text, file=sys.stderr, flush=True)
        time.sleep(_PASSED_ON)
    ranks.abort(code)
