"""The sum of the gradients over all ranks, begun while the backward pass still runs.

The flat buffer of the gradients is cut into buckets. A backward pass fills it from the end to the
front, because layers stand in it in the order of forward; so once a container asks for the array of
one layer, all behind that layer is final as a rule, and the buckets there can leave. That rule is
not taken on trust: in the first steps every such claim is compared with the gradients at the end of
the pass, and those that a model breaks, as one that adds to a table it shares, are left out. All
ranks reduce all buckets in the same order, whenever each of them comes to it.

Source: Li et al., PyTorch distributed: experiences on accelerating data parallel training (2020),
section 3.2, for buckets in the reverse order of the layers; Thakur, Rabenseifner, Gropp,
Optimization of collective communication operations in MPICH (2005), section 4.5, for what the sum
of a bucket costs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from handgrad.layers.flat import FlatArrays
from handgrad.training.replicas import Reduction

#: Large enough for the network's full rate, small enough that the last one is soon done.
BUCKET_BYTES: Final = 4 << 20
#: Steps in which claims are compared before the first bucket leaves early.
_COMPARED_STEPS: Final = 3
#: The bits of a NaN that stands where nothing was written yet, by the size of a value.
_UNWRITTEN: Final = {4: 0x7FC0_DEAD, 8: 0x7FF8_0000_DEAD_DEAD}

#: First and last index of the child that is asked for.
_Claim = tuple[int, int]


class Buckets(Reduction):
    """The sum over the ranks of `communicator`, bucket by bucket from the end to the front.

    communicator: has Iallreduce, whose requests have Test and Wait, as mpi4py's have.
    """

    def __init__(
        self, communicator: Any, flat: FlatArrays, in_place: Any, size: int = BUCKET_BYTES
    ) -> None:
        super().__init__(flat)
        self._communicator = communicator
        self._in_place = in_place
        count = max(1, round(flat.buffer.nbytes / size))
        cuts = [flat.buffer.size * i // count for i in range(count + 1)]
        self._buckets = [flat.buffer[a:b] for a, b in pairwise(cuts)][::-1]
        self._starts = cuts[:-1][::-1]
        self._left = 0  # the buckets that have left
        self._requests: list[Any] = []
        self._begun = False
        self._claims = _Claims(flat.buffer)
        flat.watch(self._on_child)

    def prepare(self) -> None:
        self._claims.prepare()

    def begin(self) -> None:
        self._begun = True

    def finish(self) -> None:
        self._begun = False
        self._claims.judge()
        self._leave(0)
        for request in self._requests:
            request.Wait()
        self._left = 0
        self._requests.clear()

    def _on_child(self, first: int, last: int) -> None:
        """A layer is about to write from first to before last: what lies behind it may be final."""
        if self._begun and self._claims.hold((first, last)):
            self._leave(last)

    def _leave(self, start: int) -> None:
        """Reduce the buckets that begin at `start` or behind it, and let others get on."""
        while self._left < len(self._buckets) and self._starts[self._left] >= start:
            bucket = self._buckets[self._left]
            self._requests.append(self._communicator.Iallreduce(self._in_place, bucket))
            self._left += 1
        for request in self._requests:
            request.Test()


class _Claims:
    """Which children, once they are asked for, say that all gradients behind them are final."""

    def __init__(self, gradients: NDArray[Any]) -> None:
        self._bits = gradients.view(f"i{gradients.itemsize}")
        self._unwritten = _UNWRITTEN[gradients.itemsize]
        self._steps = 0
        self._known: dict[_Claim, bool] = {}
        self._made: list[_Claim] = []
        self._copy: NDArray[Any] | None = None
        self._front = self._bits.size

    def prepare(self) -> None:
        """Mark every value as unwritten, in a step whose claims are compared."""
        if self._steps < _COMPARED_STEPS:
            self._bits[:] = self._unwritten
            self._copy = np.empty_like(self._bits)
            self._made.clear()
            self._front = self._bits.size

    def hold(self, claim: _Claim) -> bool:
        """Return whether it is known to hold; while claims are compared, take note of it."""
        if self._copy is None:
            return self._known.get(claim, False)
        new = slice(claim[1], max(claim[1], self._front))
        if (self._bits[new] == self._unwritten).any():
            self._known[claim] = False
        else:
            self._copy[new] = self._bits[new]
            self._front = min(claim[1], self._front)
            self._made.append(claim)
        return False

    def judge(self) -> None:
        """Compare what was claimed in this step with what stands there at the end."""
        if self._copy is None:
            return
        changed = np.flatnonzero(self._copy[self._front :] != self._bits[self._front :])
        last = self._front + int(changed[-1]) if changed.size else -1
        for claim in self._made:
            self._known[claim] = self._known.get(claim, True) and claim[1] > last
        self._bits[self._bits == self._unwritten] = 0
        self._steps += 1
        self._copy = None
