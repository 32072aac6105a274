"""The places of everything in the drawing of a model: parts in a column, side ways beside it.

Values go down on the left of every column and gradients come up on its right. A value that is only
added again goes straight on, and a line leaves to the column of what is done with it; the two
gradients that come back meet in a ⊕. At the sum it is the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handgrad.equations.models.drawing import (
    PLUS_RADIUS,
    Box,
    Dot,
    FrameBox,
    Kind,
    Label,
    Plus,
    Polyline,
    Shape,
    Words,
)
from handgrad.equations.models.extents import (
    BOX_HEIGHT,
    BOX_WIDTH,
    EDGE,
    END_HEIGHT,
    END_WIDTH,
    FORK,
    FRAME,
    GAP,
    HEAD,
    MARGIN,
    OFFSET,
    column_extent,
    lane,
    page_parts,
    ways,
)
from handgrad.equations.models.flow import Fork, Group, Node, Parts
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


@dataclass(frozen=True)
class Page:
    """A part of the drawing that fits on a page of paper, with the nodes it shows."""

    shapes: tuple[Shape, ...]
    width: float
    height: float
    nodes: tuple[Node, ...]


def pages(plan: DataFlow, start: Sequence[Label], end: Sequence[Label]) -> list[Page]:
    """The drawing in as many parts as fit on a page each.

    `start` are the lines of the input and `end` those of the loss; without a loss the output
    stands there.
    """
    groups = page_parts(plan.parts)
    found = []
    value = 0
    for i, parts in enumerate(groups):
        extent = column_extent(parts, plan)
        placer = _Placer(plan)
        above = tuple(start) if i == 0 else (plan.values[value].symbol,)
        value = number_of(parts[-1])
        below = tuple(end) if i == len(groups) - 1 else (plan.values[value].symbol,)
        height = placer.page(parts, MARGIN + extent.left, above, below)
        width = extent.left + extent.right + 2 * MARGIN
        found.append(Page(tuple(placer.shapes), width, height, placer.nodes))
    return found


class _Placer:
    """Puts the shapes of one page in their places."""

    def __init__(self, plan: DataFlow) -> None:
        self.plan = plan
        self.needed = {value for value, each in plan.values.items() if each.gradient is not None}
        self.shapes: list[Shape] = []
        self.placed: list[Node] = []

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(sorted(self.placed, key=lambda node: node.number))

    def page(
        self, parts: Parts, middle: float, above: tuple[Label, ...], below: tuple[Label, ...]
    ) -> float:
        """A column between what is at its ends: the input, the loss, or a value. Its height."""
        start = _taken_by(parts[0])
        y = MARGIN + self.end(middle, MARGIN, above)
        end = self.column(parts, middle, End(y, start, y, y))
        self.edge(middle, end, end.y + EDGE)
        return end.y + EDGE + self.end(middle, end.y + EDGE, below) + MARGIN

    def column(self, parts: Parts, middle: float, end: End) -> End:
        for part in parts:
            if isinstance(part, Fork):
                end = self.fork(part, middle, end)
            elif isinstance(part, Group):
                end = self.group(part, middle, end)
            else:
                end = self.node(part, middle, end)
        return end

    def node(self, node: Node, middle: float, end: End) -> End:
        y = end.y + EDGE
        self.edge(middle, end, y, into=node)
        self.box(middle, y, self.plan.texts[node.number])
        self.placed.append(node)
        below = y + BOX_HEIGHT
        return End(below, node.number, below, below)

    def fork(self, fork: Fork, middle: float, end: End) -> End:
        """⊕ of the gradients, the dot where the value forks, both ways, and the sum below them."""
        beside = middle + lane(fork, self.plan)
        y_plus = end.y + EDGE
        y_dot = y_plus + FORK
        left, right = middle - OFFSET, middle + OFFSET
        grows = fork.start in self.needed
        self.edge(middle, end, y_plus - PLUS_RADIUS, forward_to=y_dot, arrow=False)
        self.shapes.append(Dot("forward", left, y_dot))
        if grows:
            self.shapes.append(Plus("backward", right, y_plus))
            self.line(
                "backward",
                (beside + OFFSET, y_dot),
                (beside + OFFSET, y_plus),
                (right + PLUS_RADIUS, y_plus),
            )
        over = (right,) if grows else ()
        self.line("forward", (left, y_dot), (beside - OFFSET, y_dot), arrow=False, over=over)
        y = y_dot + 2
        main, side = ways(fork)
        straight = End(y, fork.start, y_dot, y_plus + PLUS_RADIUS, named=False)
        turned = End(y, fork.start, y_dot, y_dot, arrow=False, named=False)
        straight = self.column(main, middle, straight)
        turned = self.column(side, beside, turned)
        return self.join(fork, middle, beside, straight, turned)

    def group(self, group: Group, middle: float, end: End) -> End:
        """A frame around the parts of a block; lines go through its edges."""
        top = end.y + EDGE
        self.edge(middle, end, top)
        inner = self.column(group.parts, middle, End(top + HEAD, group.start, top, top))
        bottom = inner.y + EDGE
        self.edge(middle, inner, bottom)
        extent = column_extent(group.parts, self.plan)
        left, right = middle - extent.left - FRAME / 2, middle + extent.right + FRAME / 2
        times = f"× {group.times}" if group.times > 1 else ""
        frame = FrameBox(left, top, right - left, bottom - top, group.title, times)
        self.shapes.append(frame)
        return End(bottom, group.number, bottom, bottom)

    def join(self, fork: Fork, middle: float, beside: float, inner: End, skip: End) -> End:
        """The sum of what comes along the column and beside it, and where its gradient forks."""
        left, right = middle - OFFSET, middle + OFFSET
        y_plus = max(inner.y, skip.y) + EDGE + GAP
        y_dot = y_plus + FORK
        self.edge(middle, inner, y_dot, forward_to=y_plus - PLUS_RADIUS)
        self.edge(beside, skip, y_dot, forward_to=y_plus, arrow=False)
        self.shapes.append(Plus("forward", left, y_plus))
        over = (right,) if inner.value in self.needed else ()
        self.line("forward", (beside - OFFSET, y_plus), (left + PLUS_RADIUS, y_plus), over=over)
        back = [value in self.needed for value in (inner.value, skip.value)]
        if back[1]:
            self.line("backward", (right, y_dot), (beside + OFFSET, y_dot), arrow=False)
        if all(back):
            self.shapes.append(Dot("backward", right, y_dot))
        self.placed.append(fork.join)
        return End(y_dot + 2, fork.join.number, y_plus + PLUS_RADIUS, y_dot, arrow=False)

    # Single shapes

    def edge(
        self,
        middle: float,
        end: End,
        to: float,
        *,
        into: Node | None = None,
        forward_to: float | None = None,
        arrow: bool = True,
    ) -> None:
        """Both lines between the end of a column and what comes below it, with what they carry."""
        left, right = middle - OFFSET, middle + OFFSET
        value = self.plan.values[end.value]
        self.line("forward", (left, end.forward), (left, forward_to or to), arrow=arrow)
        baseline = end.y + 19
        if end.named:
            self.words("forward", left, baseline, value.symbol)
            self.words("forward", left, baseline + 15, value.shape)
        gradient = value.gradient
        if gradient is None:
            return
        self.line("backward", (right, to), (right, end.backward), arrow=end.arrow)
        copy = None if into is None else value.copies.get(into.number)
        if end.named or copy is not None:
            self.words("backward", right, baseline, copy or gradient)

    def words(self, kind: Kind, x: float, y: float, label: Label) -> None:
        gap = -6.0 if kind == "forward" else 6.0
        self.shapes.append(Words(kind, x + gap, y, "end" if gap < 0 else "start", label))

    def line(
        self,
        kind: Kind,
        *corners: tuple[float, float],
        arrow: bool = True,
        over: tuple[float, ...] = (),
    ) -> None:
        self.shapes.append(Polyline(kind, corners, arrow, over))

    def box(self, middle: float, y: float, lines: tuple[Label, ...]) -> None:
        self.shapes.append(Box(middle - BOX_WIDTH / 2, y, BOX_WIDTH, BOX_HEIGHT, lines))

    def end(self, middle: float, y: float, lines: tuple[Label, ...]) -> float:
        """The loss, or in one line the input, the output or a value. Its height."""
        if len(lines) > 1:
            self.box(middle, y, lines)
            return BOX_HEIGHT
        box = Box(middle - END_WIDTH / 2, y, END_WIDTH, END_HEIGHT, lines, soft=True)
        self.shapes.append(box)
        return END_HEIGHT


def number_of(part: Node | Fork | Group) -> int:
    """The value that a part gives."""
    return part.join.number if isinstance(part, Fork) else part.number


def _taken_by(part: Node | Fork | Group) -> int:
    """The value that a part takes."""
    match part:
        case Fork(start):
            return start
        case Group():
            return part.taken
    return part.inputs[0]
