"""Whole numbers that rounds step: `i += 1` in a loop is, after it, its start plus the rounds.

Within the loop such a number is what it is in the round, as any number of Python's. After the loop
it is read from the steps of all rounds: equal ones are multiplied, others hold the count.
"""

from __future__ import annotations

from itertools import pairwise

from handgrad.program.node import world
from handgrad.program.rounds import fixed, settled
from handgrad.program.sizes import Size


class CountedRun:
    """The steps of one number in the rounds of one loop that the trace is in."""

    def __init__(self, depth: int, start: Size) -> None:
        w = world()
        self.depth, self.start = depth, start
        self.number = w.open[depth][0]
        self._born = tuple(w.open[:depth])
        self._last: dict[int, tuple[Size, tuple[CountedRun, ...], int]] = {}

    def note(self, value: int, size: Size, runs: tuple[CountedRun, ...]) -> None:
        """Notes the number as it is in this round so far."""
        inner = tuple(run for run in runs if run.depth > self.depth)
        self._last[world().open[self.depth][1]] = size, inner, value

    def is_over(self) -> bool:
        return all(self.number != number for number, _ in world().open)

    def total(self, value: int) -> Size:
        """The number after the loop, which has this value on the example."""
        w = world()
        count, rounds = w.counts[self.number]
        sizes = [self.start]
        for i in range(rounds):
            sizes.append(self._after(i) if i in self._last else sizes[-1])
        step, *others = {b - a for a, b in pairwise(sizes)}
        if others or not step.letters.isdisjoint(w.counters):
            fixed(count)
            return Size.of(value)
        return settled(self.start + step * count, self._born)

    def _after(self, i: int) -> Size:
        """The number after a round."""
        size, inner, value = self._last[i]
        return inner[0].total(value) if inner else size


def after_loops(value: int, runs: tuple[CountedRun, ...]) -> Size | None:
    """What a stepped number is once loops that stepped it are over, None within all of them."""
    over = next((run for run in runs if run.is_over()), None)
    return None if over is None else over.total(value)
