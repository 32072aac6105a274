"""Marks: which axes of a value have an index where it is written, and which.

An axis gets one where a sum runs over it, or where an equation is written for one step or element.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from handgrad.derivation.formulas.formula import Formula, Sign, Symbol, separated
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer

#: An index for each of the last axes of a value; None for an axis without one.
Marks = tuple[Formula | None, ...]

_INDEX_LETTERS: Final = "ijklrqp"


def carried(writer: Writer, node: Node, marks: Marks) -> Marks:
    """The marks of the axes that this value has itself, and not by being broadcast."""
    if not any(marks):
        return ()
    shape = writer.shape(node)
    own = marks[len(marks) - len(shape) :] if len(shape) < len(marks) else marks
    return tuple(
        None if size == 1 else mark
        for size, mark in zip(shape[len(shape) - len(own) :], own, strict=True)
    )


def marked(marks: Marks) -> Formula | None:
    """The index that the marks are together: `d`, or `n, :, h` with gaps between."""
    given = [i for i, mark in enumerate(marks) if mark is not None]
    if not given:
        return None
    between = marks[given[0] : given[-1] + 1]
    return separated(tuple(Sign(":") if mark is None else mark for mark in between))


def through(writer: Writer, node: Node, inner: Node, marks: Marks) -> Marks:
    """The marks of `inner`, of which `node` is another shape."""
    if not any(marks):
        return ()
    outside, inside = writer.shape(node), writer.shape(inner)
    if outside == inside:
        return marks
    every: Marks = (*(None for _ in range(len(outside) - len(marks))), *marks)
    if [size for size in outside if size != 1] == [size for size in inside if size != 1]:
        left = [mark for size, mark in zip(outside, every, strict=True) if size != 1]
        return tuple(None if size == 1 else left.pop(0) for size in inside)
    joined = len(inside) - len(outside) + 1
    if joined > 1 and every[0] is not None and math.prod(inside[:joined]) == outside[0]:
        # The rows of several axes, counted as one.
        return (every[0], *(None for _ in range(joined - 1)), *every[1:])
    same = _same_last(outside, inside)
    by_size = {
        size: mark
        for size, mark in zip(outside, every, strict=True)
        if mark is not None and outside.count(size) == 1
    }
    before = inside[: len(inside) - same]
    return (
        *(by_size.get(size) if inside.count(size) == 1 else None for size in before),
        *(every[len(every) - same :]),
    )


def _same_last(outside: tuple[int, ...], inside: tuple[int, ...]) -> int:
    """How many of the last axes a reshape leaves as they are."""
    count = 0
    for one, other in zip(reversed(outside), reversed(inside), strict=False):
        if one != other:
            break
        count += 1
    return count


def letter(writer: Writer, size: int, taken: list[str]) -> Formula:
    """A letter for an index: d for D, unless something else is called d."""
    letters = writer.frame.glossary.letters | set(taken)
    dimension = writer.frame.dimensions.letter(size)
    wanted = [dimension[0].lower()] if dimension else []
    found = next(each for each in [*wanted, *_INDEX_LETTERS, "a"] if each not in letters)
    taken.append(found)
    return Symbol(found)


def of_rows(marks: Marks, right: int) -> Marks:
    """The marks of a product's left factor, where the right one has so many axes."""
    if not marks:
        return ()
    return (*marks, None) if right == 1 else (*marks[:-1], None)


def of_columns(marks: Marks, left: int, right: int) -> Marks:
    """The marks of a product's right factor, where the factors have so many axes."""
    if not marks or right == 1:
        return ()
    return (*marks[: -1 if left == 1 else -2], None, marks[-1])
