"""A communicator whose sums take as long as on a network: α + β n, one after another."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Call:
    """One bucket: when it left, its bytes, and when it was waited for."""

    left: float
    size: int
    done: float = 0.0


class Delayed:
    """Another communicator, whose Iallreduce is done α + β n after the one before it is.

    `calls` are the times at which buckets left, their bytes, and when they were waited for.
    """

    def __init__(self, communicator: Any, alpha: float, beta: float) -> None:
        self._communicator = communicator
        self.alpha, self.beta = alpha, beta
        self.calls: list[Call] = []
        self._free = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._communicator, name)

    def Iallreduce(self, in_place: Any, bucket: Any) -> _Request:  # noqa: N802
        now = time.perf_counter()
        call = Call(now, bucket.nbytes)
        self.calls.append(call)
        self._free = max(now, self._free) + self.alpha + self.beta * bucket.nbytes
        return _Request(self._communicator.Iallreduce(in_place, bucket), self._free, call)


class _Request:
    """A request that is not done before a time."""

    def __init__(self, request: Any, due: float, call: Call) -> None:
        self._request = request
        self._due = due
        self._call = call

    def Test(self) -> bool:  # noqa: N802
        return bool(self._request.Test()) and time.perf_counter() >= self._due

    def Wait(self) -> None:  # noqa: N802
        self._request.Wait()
        left = self._due - time.perf_counter()
        if left > 0:
            time.sleep(left)
        self._call.done = time.perf_counter()
