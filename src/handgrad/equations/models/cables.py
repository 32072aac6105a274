"""Lines from one column of a drawing into the boxes of another, with their gradients beside them.

A value and its gradient go side by side through the room between the columns, and hop over every
line that they cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from handgrad.equations.models.drawing import Box, Kind, Polyline, Shape, Words
from handgrad.equations.models.extents import CABLE, EDGE, GAP, OFFSET
from handgrad.equations.models.flow import Node
from handgrad.equations.models.plan import DataFlow


@dataclass(frozen=True)
class End:
    """The lower end of a column: where its next lines begin, and what they carry.

    Forward goes on from `forward`; backward arrives at `backward`, with an arrowhead or not. The
    value is written beside them, unless it is already beside the lines above.
    """

    y: float
    value: int
    forward: float
    backward: float
    arrow: bool = True
    named: bool = True


class _Start(NamedTuple):
    """The place where a value leaves: of its line and of its gradient's, and at which heights they
    turn, that nearer to the other column above."""

    forward: tuple[float, float]
    backward: tuple[float, float]
    above: float
    below: float


class Cables:
    """Draws these lines once all columns have their places."""

    def __init__(self, plan: DataFlow, shapes: list[Shape], boxes: dict[int, Box]) -> None:
        self.plan, self.shapes, self.boxes = plan, shapes, boxes
        self._columns: list[tuple[float, float]] = []
        self._ends: dict[int, tuple[float, End]] = {}
        self._lines: list[Polyline] = []

    def branch(self, box: Box, middle: float, value: int) -> End:
        """The upper end of a column that begins with the second value of a box on its left."""
        centre, side = box.y + box.height / 2, box.x + box.width
        into, back = centre + GAP, centre - GAP
        self._line("forward", (side, into), (middle - OFFSET, into), arrow=False)
        if self._is_trained(value):
            self._line("backward", (middle + OFFSET, back), (side, back))
        return End(into, value, into, back, arrow=False)

    def column(self, left: float, right: float) -> None:
        """Keep the sides of a column."""
        self._columns.append((left, right))

    def end(self, middle: float, end: End) -> None:
        """Keep the end of a column, from which its value goes aside."""
        self._ends[end.value] = middle, end
        value, baseline = self.plan.values[end.value], end.y + 19
        x = middle - OFFSET - GAP
        self.shapes.append(Words("forward", x, baseline, "end", value.symbol))
        self.shapes.append(Words("forward", x, baseline + 15, "end", value.shape))
        if value.gradient is not None:
            x = middle + OFFSET + GAP
            self.shapes.append(Words("backward", x, baseline, "start", value.gradient))

    def draw(self, nodes: Sequence[Node]) -> None:
        """Draw the lines from aside into the boxes of these nodes, and the branches."""
        values = list(dict.fromkeys(value for node in nodes for value in node.aside))
        for node in nodes:
            box = self.boxes[node.number]
            for to_right in (True, False):
                arriving = [each for each in node.aside if self._is_left(each, box) == to_right]
                for i, value in enumerate(arriving):
                    share = box.height / len(arriving)
                    self._cable(value, values.index(value), box, box.y + share * (i + 0.5), share)
        verticals = list(self._verticals())
        for line in self._lines:
            over = (
                at
                for (x, y), (to, end) in pairwise(line.corners)
                if y == end
                for at, top, bottom in verticals
                if min(x, to) < at < max(x, to) and top < y < bottom
            )
            self.shapes.append(replace(line, over=tuple(sorted(set(over)))))

    def _cable(self, value: int, lane: int, box: Box, at: float, share: float) -> None:
        """A value into the side of a box at a height, and its gradient back."""
        to_right = self._is_left(value, box)
        start = self._start(value, to_right)
        left, right = self._column_of(start.forward[0])
        side, first = (box.x, right) if to_right else (box.x + box.width, left)
        sign = 1 if to_right else -1
        near, far = (first + sign * CABLE * (lane + part) for part in (0.75, 0.25))
        if at < start.above:  # it goes up
            near, far = far, near
        apart = min(GAP, share / 4)
        inner = (start.above, near, at - apart)
        outer = (start.below, far, at + apart)
        forward, backward = (outer, inner) if to_right else (inner, outer)
        turn, x, y = forward
        self._line(
            "forward", start.forward, (start.forward[0], turn), (x, turn), (x, y), arrow=False
        )
        self._line("forward", (x, y), (side, y))
        if self._is_trained(value):
            turn, x, y = backward
            self._line("backward", (side, y), (x, y), arrow=False)
            self._line("backward", (x, y), (x, turn), (start.backward[0], turn), start.backward)

    def _start(self, value: int, to_right: bool) -> _Start:
        """Below the end of a column, or at the side of the box that gives the value."""
        if value in self._ends:
            middle, end = self._ends[value]
            forward, backward = (middle - OFFSET, end.forward), (middle + OFFSET, end.backward)
            return _Start(forward, backward, end.y + EDGE, end.y + EDGE + 2 * GAP)
        box = self.boxes[self.plan.givers.get(value, value)]
        x, y = box.x + box.width * to_right, box.y + box.height / 2
        above, below = y - GAP, y + GAP
        return _Start(
            (x, below if to_right else above), (x, above if to_right else below), above, below
        )

    def _is_left(self, value: int, box: Box) -> bool:
        """True where the value comes from the left of a box."""
        if value in self._ends:
            return self._ends[value][0] < box.x
        return self.boxes[self.plan.givers.get(value, value)].x < box.x

    def _column_of(self, x: float) -> tuple[float, float]:
        return next(each for each in self._columns if each[0] <= x <= each[1])

    def _is_trained(self, value: int) -> bool:
        return self.plan.values[value].is_trained

    def _verticals(self) -> Iterator[tuple[float, float, float]]:
        """The place of every vertical line, and its upper and lower end."""
        drawn = (each for each in self.shapes if isinstance(each, Polyline))
        for line in (*drawn, *self._lines):
            for (x, y), (to, end) in pairwise(line.corners):
                if x == to:
                    yield x, min(y, end), max(y, end)

    def _line(self, kind: Kind, *corners: tuple[float, float], arrow: bool = True) -> None:
        self._lines.append(Polyline(kind, corners, arrow))
