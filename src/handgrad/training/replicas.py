"""The processes that train one model together; here the one process that trains alone.

Every process, a rank, has the whole model and computes the gradients of its own examples; their sum
moves all models alike. `handgrad.mpi` has the ranks of a cluster, behind the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np

from handgrad.arrays import Array
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Optimizer

T = TypeVar("T")


class Reduction:
    """The sum of a flat buffer over all ranks.

    In a step: `prepare()` before anything is written, `begin()` once what is written is what counts
    in the sum, and `finish()`, after which the buffer is the sum.
    """

    def __init__(self, flat: FlatArrays) -> None:
        self.flat = flat

    def prepare(self) -> None:
        """The buffer is about to be written."""

    def begin(self) -> None:
        """Whatever is final in the buffer may be summed."""

    def finish(self) -> None:
        """Wait for the sum."""


class Replicas:
    """One process alone: rank 0 of 1, to whom nobody has anything to say."""

    rank = 0
    size = 1

    def announce(self, way: str) -> None:
        """The command that continues the run, should a rank be lost from here on; "" for none."""

    def abort(self, code: int) -> None:
        """End every rank with this exit code."""
        raise SystemExit(code)

    def share(self, value: T) -> T:
        """The value that rank 0 has."""
        return value

    def agree(self, *numbers: int) -> tuple[int, ...]:
        """The largest that any rank has, of each."""
        return numbers

    def add(self, array: Array) -> None:
        """Sum over all ranks, in place; the order is the same wherever the result is."""

    def send(self, array: Array, rank: int) -> None:
        """Give an array to a rank that receives it."""
        raise NotImplementedError("one process alone has nobody to send to")

    def receive(self, like: Array, rank: int) -> Array:
        """An array like this one, from a rank that sends it."""
        raise NotImplementedError("one process alone has nobody to receive from")

    def broadcast(self, array: Array) -> None:
        """Overwrite the array with that of rank 0."""

    def reduction(self, flat: FlatArrays) -> Reduction:
        """The sums of this buffer."""
        return Reduction(flat)

    def updater(self, optimizer: Optimizer, parameters: FlatArrays) -> Optimizer:
        """The optimizer that moves the parameters of all ranks alike."""
        return optimizer

    def owners(self, parts: int) -> list[int]:
        """The rank that computes each of so many parts of a batch: neighbouring ones, as many."""
        return [
            rank
            for rank in range(self.size)
            for _ in range(rank * parts // self.size, (rank + 1) * parts // self.size)
        ]

    def own(self, parts: int) -> range:
        """The parts of this rank."""
        owners = self.owners(parts)
        first = owners.index(self.rank)
        return range(first, first + owners.count(self.rank))


ALONE: Final = Replicas()


def tree_sum(
    replicas: Replicas, owners: Sequence[int], compute: Callable[[int], Array], total: Array
) -> None:
    """Write compute(0) + compute(1) + … into `total`, on every rank.

    owners: the rank that computes each piece. They are added in halves of halves, whoever computes
    them, so that the bits of the sum do not depend on the number of ranks. `compute` is called for
    this rank's own pieces and gives arrays like `total` that may be written to.
    """

    def sum_of(first: int, last: int) -> Array | None:
        """The sum of the pieces from first to before last, where the first one's owner is here."""
        here = owners[first] == replicas.rank
        if last - first == 1:
            return compute(first) if here else None
        middle = (first + last) // 2
        left, right = sum_of(first, middle), sum_of(middle, last)
        if owners[first] != owners[middle]:
            if right is not None:
                replicas.send(right, owners[first])
            elif here:
                right = replicas.receive(total, owners[middle])
        if left is not None:
            left += right
        return left

    found = sum_of(0, len(owners))
    if found is not None:
        np.copyto(total, found)
    replicas.broadcast(total)
