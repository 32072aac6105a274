"""Conditions that a program holds to."""

from __future__ import annotations

from handgrad.program.node import Guard, world
from handgrad.program.sizes import Size


def add_guard(guard: Guard) -> None:
    """Notes a condition; the same may come again, but not one after the other."""
    w = world()
    if w.guards[-1:] != [guard]:
        w.guards.append(guard)


def at_both_ends(guard: Guard, letter: str, count: Size) -> list[Guard]:
    """A condition on a counter, which is a straight line, as conditions on its first and last."""
    relation, left, right, outcome = guard
    if not isinstance(left, Size) or letter not in (left - right).letters:
        return [guard]
    w = world()
    ends = [(left - right).at({letter: end}) for end in (Size.of(0), count - 1)]
    if relation in ("__eq__", "__ne__", "=="):
        # It is never zero: its sign is that of both ends.
        relation, outcome = ("__gt__" if w.length(ends[0]) > 0 else "__lt__"), True
    zero = Size.of(0)
    return [(relation, end, zero, outcome) for end in ends if end.constant is None]
