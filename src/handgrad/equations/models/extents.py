"""How much room the parts of a drawing take, in pixels, and which of them stand on one page."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from handgrad.equations.models.flow import Fork, Node, Parts

#: The box of a layer, and that of the input or the output.
BOX_WIDTH: Final = 168.0
BOX_HEIGHT: Final = 40.0
END_WIDTH: Final = 96.0
END_HEIGHT: Final = 26.0
#: How far the lines of a column are from its middle, and how long they are between two boxes.
OFFSET: Final = 11.0
EDGE: Final = 44.0
#: How far apart gradients meet and the value forks.
FORK: Final = 18.0
#: Between a label and the ⊕ below it.
GAP: Final = 6.0
MARGIN: Final = 6.0

#: Half the room for a column of layers with their labels, and for one of lines alone.
_HALF: Final = 94.0
_LANE: Final = 20.0
_APART: Final = 8.0
#: The height of a page of A4 below a heading and above a caption.
_PAGE: Final = 840.0


class Extent(NamedTuple):
    """The room that a column takes at both sides of its middle."""

    left: float
    right: float


def column_extent(parts: Parts) -> Extent:
    left, right = _HALF, _HALF
    for part in parts:
        if isinstance(part, Fork):
            left = max(left, column_extent(part.inner).left)
            right = max(right, lane(part) + _lane_extent(part).right)
    return Extent(left, right)


def lane(fork: Fork) -> float:
    """How far to the right the middle of the skip's column is."""
    return column_extent(fork.inner).right + _APART + _lane_extent(fork).left


def _lane_extent(fork: Fork) -> Extent:
    return column_extent(fork.skip) if fork.skip else Extent(_LANE, _LANE)


def column_height(parts: Parts) -> float:
    """From the end of what is above to the end of the last part."""
    total = 0.0
    for part in parts:
        if isinstance(part, Fork):
            longer = max(column_height(part.inner), column_height(part.skip))
            total += 2 * EDGE + GAP + 2 * FORK + longer
        else:
            total += EDGE + BOX_HEIGHT
    return total


def page_parts(parts: Parts) -> list[Parts]:
    """The parts in groups of about one height, each on one page if every part fits on one."""
    heights = [column_height((part,)) for part in parts]
    ends = 2 * MARGIN + END_HEIGHT + EDGE + BOX_HEIGHT
    pages = math.ceil(sum(heights) / (_PAGE - ends))
    share = sum(heights) / pages
    groups: list[list[Node | Fork]] = [[]]
    filled = 0.0
    for part, height in zip(parts, heights, strict=True):
        if groups[-1] and filled + height / 2 > share * len(groups):
            groups.append([])
        groups[-1].append(part)
        filled += height
    return [tuple(group) for group in groups]
