"""The ranks of an MPI communicator, behind the methods of `training.replicas.Replicas`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.dispatch import get_threads
from handgrad.errors import ArgumentError
from handgrad.layers.flat import FlatArrays
from handgrad.mpi.buckets import BUCKET_BYTES, Buckets
from handgrad.mpi.lost import LastWords
from handgrad.mpi.sharding import ShardedOptimizer
from handgrad.optimizers import Optimizer
from handgrad.training.replicas import Reduction, Replicas


class Ranks(Replicas):
    """The ranks of `communicator`, by default all that mpirun started.

    shard: each rank keeps the optimizer's state of its share of the parameters alone; bucket_bytes:
    of the gradients that are reduced at once.
    Raises ArgumentError where mpi4py is not installed, or a bucket has no bytes.
    """

    def __init__(
        self,
        communicator: Any = None,
        *,
        shard: bool = False,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        if bucket_bytes < 1:
            raise ArgumentError(f"mpi: bucket_bytes is {bucket_bytes}; allowed: 1 or more")
        try:
            from mpi4py import MPI
        except ImportError:
            raise ArgumentError(
                "mpi: mpi4py is not installed; allowed: after pip install 'handgrad[mpi]'"
            ) from None
        self._mpi = MPI
        self.communicator = MPI.COMM_WORLD if communicator is None else communicator
        self.rank = self.communicator.Get_rank()
        self.size = self.communicator.Get_size()
        self._shard = shard
        self._bucket_bytes = bucket_bytes

        self._last_words = LastWords()

    def fair_threads(self) -> int:
        """This rank's share of the cores that it may use, those of its machine that others use."""
        cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        neighbours = self.communicator.Split_type(self._mpi.COMM_TYPE_SHARED)
        found = neighbours.allgather(cores)
        neighbours.Free()
        sharing = sum(other is None or cores is None or bool(other & cores) for other in found)
        return max(1, get_threads() // sharing)

    def announce(self, way: str) -> None:
        if self.rank > 0:
            return
        if way:
            self._last_words.set(
                f"handgrad: a rank was lost; the last checkpoint is whole, continue with: {way}"
            )
        else:
            self._last_words.close()

    def abort(self, code: int) -> None:
        self.communicator.Abort(code)

    def share(self, value: Any) -> Any:
        return self.communicator.bcast(value)

    def agree(self, *numbers: int) -> tuple[int, ...]:
        found = np.array(numbers, np.int64)
        self.communicator.Allreduce(self._mpi.IN_PLACE, found, self._mpi.MAX)
        return tuple(found.tolist())

    def add(self, array: Array) -> None:
        self.communicator.Allreduce(self._mpi.IN_PLACE, array)

    def send(self, array: Array, rank: int) -> None:
        self.communicator.Send(array, rank)

    def receive(self, like: Array, rank: int) -> Array:
        found = np.empty_like(like)
        self.communicator.Recv(found, rank)
        return found

    def broadcast(self, array: Array) -> None:
        self.communicator.Bcast(array)

    def reduction(self, flat: FlatArrays) -> Reduction:
        return Buckets(self.communicator, flat, self._mpi.IN_PLACE, self._bucket_bytes)

    def updater(self, optimizer: Optimizer, parameters: FlatArrays) -> Any:
        if not self._shard or self.size == 1:
            return optimizer
        return ShardedOptimizer(optimizer, parameters, self.communicator, self._mpi.IN_PLACE)
