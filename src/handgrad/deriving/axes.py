"""The letters of example arrays: axes have one letter where the forward asks for it.

Two lengths of an example may agree by chance. So a letter stands for a smallest set of axes that
the forward takes at another length, found by running it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

Shapes = Mapping[str, tuple[int, ...]]
Axis = tuple[str, int]

#: The forward is run no more often than this; axes that are left have the length of the example.
_MOST_RUNS: Final = 1500


def tied_axes(shapes: Shapes, runs: Callable[[Shapes], bool]) -> tuple[list[dict[Axis, int]], bool]:
    """Groups of axes that have to change together, each axis with its multiple of the group's unit.

    Axes of no group have to keep their lengths. The second result is whether the forward runs at
    all. `runs` returns whether it does with arrays of these shapes.
    """
    if not runs(shapes):
        return [], False
    lengths = {(name, at): n for name, shape in shapes.items() for at, n in enumerate(shape)}
    waiting = sorted((axis for axis, n in lengths.items() if n > 1), key=lambda a: lengths[a])
    # Far from all other lengths, so that no slice of one leaves what fits, or is broadcast.
    prime = _prime_above(max([4, *lengths.values()]))
    found: list[dict[Axis, int]] = []
    left = _MOST_RUNS
    for first in list(waiting):
        if first not in waiting:
            continue
        for group in _groups(first, waiting, lengths):
            if not left:
                break
            left -= 1
            changed = {
                name: tuple(
                    group[name, at] * prime if (name, at) in group else n
                    for at, n in enumerate(shape)
                )
                for name, shape in shapes.items()
            }
            if runs(changed):
                found.append(group)
                waiting = [axis for axis in waiting if axis not in group]
                break
        else:
            waiting.remove(first)
    return found, True


def _groups(
    first: Axis, waiting: Sequence[Axis], lengths: Mapping[Axis, int]
) -> Iterator[dict[Axis, int]]:
    """Sets of axes with the first, small ones in front: of its length, then of its multiples."""
    own = lengths[first]
    alike = [axis for axis in waiting if lengths[axis] == own and axis != first]
    for unit in (own // d for d in range(1, own + 1) if own % d == 0):
        more = [a for a in waiting if lengths[a] % unit == 0 and lengths[a] != own]
        for others in _subsets(more):
            for same in _subsets(alike):
                yield {axis: lengths[axis] // unit for axis in (first, *same, *others)}


def _subsets(items: Sequence[Axis]) -> Iterator[tuple[Axis, ...]]:
    for count in range(len(items) + 1):
        yield from itertools.combinations(items, count)


def _prime_above(number: int) -> int:
    candidates = itertools.count(number + 1)
    return next(n for n in candidates if all(n % d for d in range(2, int(n**0.5) + 1)))
