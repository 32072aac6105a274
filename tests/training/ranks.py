"""Ranks as threads of this process: what MPI does, without starting anything."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from handgrad.arrays import Array
from handgrad.training import Replicas
from tests.tolerances import HANGS


class _Common:
    """What the ranks of one call share."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.places: list[Any] = [None] * size
        self.queues: dict[tuple[int, int], SimpleQueue[Array]] = {
            (one, other): SimpleQueue() for one in range(size) for other in range(size)
        }


class ThreadRank(Replicas):
    """One of the ranks that `together` runs."""

    def __init__(self, rank: int, size: int, common: _Common) -> None:
        self.rank, self.size = rank, size
        self._common = common

    def __deepcopy__(self, memo: dict[int, Any]) -> ThreadRank:
        return self

    def _all(self, value: Any) -> list[Any]:
        self._common.barrier.wait(timeout=HANGS)
        self._common.places[self.rank] = value
        self._common.barrier.wait(timeout=HANGS)
        found = copy.deepcopy(self._common.places)
        self._common.barrier.wait(timeout=HANGS)
        return found

    def share(self, value: Any) -> Any:
        return self._all(value)[0]

    def agree(self, *numbers: int) -> tuple[int, ...]:
        return tuple(max(each) for each in zip(*self._all(numbers), strict=True))

    def add(self, array: Array) -> None:
        array[...] = np.sum(self._all(array.copy()), axis=0)

    def send(self, array: Array, rank: int) -> None:
        self._common.queues[self.rank, rank].put(array.copy())

    def receive(self, like: Array, rank: int) -> Array:
        return self._common.queues[rank, self.rank].get(timeout=HANGS)

    def broadcast(self, array: Array) -> None:
        array[...] = self._all(array.copy())[0]

    def reduction(self, flat: Any) -> Any:
        rank = self

        class Sum:
            def prepare(self) -> None:
                pass

            def begin(self) -> None:
                pass

            def finish(self) -> None:
                rank.add(flat.buffer)

        return Sum()


def together(size: int, work: Callable[[ThreadRank], Any]) -> list[Any]:
    """What each of so many ranks returns; the first error of one of them is raised."""
    common = _Common(size)
    found: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            found[rank] = work(ThreadRank(rank, size, common))
        except BaseException as error:
            errors.append(error)
            common.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    own = [error for error in errors if not isinstance(error, threading.BrokenBarrierError)]
    for error in own or errors:
        raise error
    return found
