"""How much room the parts of a drawing take, in pixels, and which of them stand on one page."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from handgrad.equations.models.drawing import text_width
from handgrad.equations.models.flow import Fork, Group, Parts, nodes_of
from handgrad.equations.models.plan import DataFlow

#: The box of a layer, and that of the input or the output.
BOX_WIDTH: Final = 168.0
BOX_HEIGHT: Final = 40.0
END_WIDTH: Final = 96.0
END_HEIGHT: Final = 26.0
#: How far the lines of a column are from its middle, and how long they are between two boxes.
OFFSET: Final = 11.0
EDGE: Final = 44.0
#: How far from the middle a label begins, and from its end what stands next.
LABEL: Final = OFFSET + 6.0 + 3.0
#: How far apart gradients meet and the value forks.
FORK: Final = 18.0
#: Between a label and the ⊕ below it.
GAP: Final = 6.0
MARGIN: Final = 6.0

#: Around what stands in a frame, and for its title.
FRAME: Final = 10.0
HEAD: Final = 24.0

#: Between two columns, for the lines of each value that goes from one into the other.
CABLE: Final = 26.0

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


def column_extent(parts: Parts, plan: DataFlow) -> Extent:
    left, right = _HALF, _HALF
    for part in parts:
        if isinstance(part, Fork):
            main, side = ways(part)
            left = max(left, _way_extent(main, plan).left)
            right = max(right, lane(part, plan) + _way_extent(side, plan).right)
            left, right = _around(plan, part.join.number, None, left, right)
        elif isinstance(part, Group):
            inside = column_extent(part.parts, plan)
            left, right = max(left, inside.left + FRAME), max(right, inside.right + FRAME)
            left, right = _around(plan, part.number, None, left, right)
        else:
            left, right = _around(plan, part.inputs[0], part.number, left, right)
            left, right = _around(plan, part.number, None, left, right)
    return Extent(left, right)


def _around(
    plan: DataFlow, value: int, into: int | None, left: float, right: float
) -> tuple[float, float]:
    """Room for what stands beside the lines of a value, or of its copy that goes into a box."""
    drawn = plan.values[value]
    gradient = drawn.gradient if into is None else drawn.copies.get(into)
    if into is None:
        left = max(left, *(LABEL + text_width(each) for each in (drawn.symbol, drawn.shape)))
    return left, right if gradient is None else max(right, LABEL + text_width(gradient))


def ways(fork: Fork) -> tuple[Parts, Parts]:
    """The column of a fork, and the parts beside it: a value that is only added again
    goes straight on, past what is done with it."""
    return (fork.inner, fork.skip) if fork.skip else (fork.skip, fork.inner)


def lane(fork: Fork, plan: DataFlow) -> float:
    """The distance to the middle of the column beside, to the right."""
    main, side = (_way_extent(each, plan) for each in ways(fork))
    return main.right + _APART + side.left


def _way_extent(parts: Parts, plan: DataFlow) -> Extent:
    return column_extent(parts, plan) if parts else Extent(_LANE, _LANE)


def column_height(parts: Parts) -> float:
    """From the end of what is above to the end of the last part."""
    total = 0.0
    for part in parts:
        if isinstance(part, Fork):
            longer = max(column_height(part.inner), column_height(part.skip))
            total += 2 * EDGE + GAP + 2 * FORK + longer
        elif isinstance(part, Group):
            is_named = part.start != part.taken
            total += HEAD + column_height(part.parts) + (2 * EDGE if is_named else GAP + EDGE / 2)
        else:
            total += EDGE + BOX_HEIGHT
    return total


def page_parts(plan: DataFlow) -> list[Parts]:
    """The parts in groups of about one height, each on one page if every part fits on one.

    What takes a value from another column stands with that column on the first.
    """
    joined = [i for i, part in enumerate(plan.parts) if any(n.aside for n in nodes_of((part,)))]
    first = joined[-1] + 1 if joined else 1
    runs = [plan.parts[:first], *((part,) for part in plan.parts[first:])]
    heights = [column_height(run) for run in runs]
    ends = 2 * MARGIN + END_HEIGHT + EDGE + BOX_HEIGHT
    pages = math.ceil(sum(heights) / (_PAGE - ends))
    share = sum(heights) / pages
    groups: list[Parts] = [()]
    filled = 0.0
    for run, height in zip(runs, heights, strict=True):
        if groups[-1] and filled + height / 2 > share * len(groups):
            groups.append(())
        groups[-1] += run
        filled += height
    return groups
