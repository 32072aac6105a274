"""The places of everything in the drawing of a model: parts in a column, side ways beside it.

Values go down on the left of every column and gradients come up on its right. A value that is only
added again goes straight on, and a line leaves to the column of what is done with it; the two
gradients that come back meet in a ⊕. At the sum it is the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handgrad.equations.models.cables import Cables, End
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
    CABLE,
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
from handgrad.equations.models.flow import Fork, Group, Node, Parts, nodes_of
from handgrad.equations.models.plan import DataFlow, SideColumn


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
    groups = page_parts(plan)
    found = []
    value = plan.start
    for i, parts in enumerate(groups):
        placer = _Placer(plan)
        above = tuple(start) if i == 0 else (plan.values[value].symbol,)
        main = SideColumn(value, parts)
        value = number_of(parts[-1])
        below = tuple(end) if i == len(groups) - 1 else (plan.values[value].symbol,)
        sides = (plan.before, plan.behind) if i == 0 else ((), ())
        width, height = placer.page(main, *sides, above, below)
        found.append(Page(tuple(placer.shapes), width, height, placer.nodes))
    return found


class _Placer:
    """Puts the shapes of one page in their places."""

    def __init__(self, plan: DataFlow) -> None:
        self.plan = plan
        self.needed = {value for value, each in plan.values.items() if each.is_trained}
        self.shapes: list[Shape] = []
        self.placed: list[Node] = []
        self.boxes: dict[int, Box] = {}

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(sorted(self.placed, key=lambda node: node.number))

    def page(
        self,
        main: SideColumn,
        before: tuple[SideColumn, ...],
        behind: tuple[SideColumn, ...],
        above: tuple[Label, ...],
        below: tuple[Label, ...],
    ) -> tuple[float, float]:
        """Columns side by side, of which one goes on to the loss, the output or a value at its
        end. The width and the height."""
        columns = (*before, main, *behind)
        asides = {value for node in nodes_of(main.parts) for value in node.aside}
        cables = Cables(self.plan, self.shapes, self.boxes)
        middles, x = [], MARGIN
        for column in columns:
            extent = column_extent(column.parts, self.plan)
            middles.append(x + extent.left)
            cables.column(x, x + extent.left + extent.right)
            x += extent.left + extent.right + CABLE * len(asides)
        width = x - CABLE * len(asides) + MARGIN
        bottom = 0.0
        for column, middle in zip(columns, middles, strict=True):
            giver = self.plan.givers.get(column.start)
            if giver is None:
                y = MARGIN + self.end(middle, MARGIN, above)
                end = End(y, column.start, y, y)
            else:
                end = cables.branch(self.boxes[giver], middle, column.start)
            end = self.column(column.parts, middle, end)
            if column is main:
                self.edge(middle, end, end.y + EDGE)
                bottom = max(bottom, end.y + EDGE + self.end(middle, end.y + EDGE, below))
            else:
                cables.end(middle, end)
                bottom = max(bottom, end.y + EDGE + CABLE)
        cables.draw([node for node in self.placed if node.aside])
        return width, bottom + MARGIN

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
        return self.put(node, middle, y)

    def put(self, node: Node, middle: float, y: float) -> End:
        """The box of a node."""
        self.boxes[node.number] = self.box(middle, y, self.plan.texts[node.number])
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
        is_named = group.start != group.taken  # else it has its name above the frame
        y = top + HEAD - (0 if is_named else EDGE - GAP)
        inner = self.column(group.parts, middle, End(y, group.start, top, top, named=is_named))
        bottom = inner.y + EDGE
        self.edge(middle, inner, bottom)
        extent = column_extent(group.parts, self.plan)
        left, right = middle - extent.left - FRAME / 2, middle + extent.right + FRAME / 2
        times = f"× {group.times}" if group.times > 1 else ""
        frame = FrameBox(left, top, right - left, bottom - top, group.title, times)
        self.shapes.append(frame)
        self.boxes[group.number] = Box(left, top, right - left, bottom - top, ())
        is_named = group.end != group.number  # else it has its name within the frame
        y = bottom if is_named else bottom - EDGE / 2
        return End(y, group.number, bottom, bottom, named=is_named)

    def join(self, fork: Fork, middle: float, beside: float, inner: End, skip: End) -> End:
        """The sum of what comes along the column and beside it, and where its gradient forks."""
        if fork.join.number in self.plan.texts:
            return self.meet(fork.join, middle, beside, inner, skip)
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

    def meet(self, node: Node, middle: float, beside: float, straight: End, turned: End) -> End:
        """A box that takes what comes along the column, and from its side what comes beside it."""
        y = max(straight.y, turned.y) + EDGE
        self.edge(middle, straight, y)
        value = self.plan.values[turned.value]
        x, centre = middle + BOX_WIDTH / 2, y + BOX_HEIGHT / 2
        into, back = centre - GAP, centre + GAP
        left, right = beside - OFFSET, beside + OFFSET
        self.line("forward", (left, turned.forward), (left, into), (x, into))
        self.words("forward", left, turned.y + 19, value.symbol)
        self.words("forward", left, turned.y + 34, value.shape)
        if value.is_trained:
            self.line("backward", (x, back), (right, back), (right, turned.backward))
            self.words("backward", right, turned.y + 19, value.gradient)
        return self.put(node, middle, y)

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
        if not value.is_trained:
            return
        self.line("backward", (right, to), (right, end.backward), arrow=end.arrow)
        copy = None if into is None else value.copies.get(into.number)
        if end.named or copy is not None:
            self.words("backward", right, baseline, copy or value.gradient)

    def words(self, kind: Kind, x: float, y: float, label: Label | None) -> None:
        if label is None:
            return
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

    def box(self, middle: float, y: float, lines: tuple[Label, ...]) -> Box:
        box = Box(middle - BOX_WIDTH / 2, y, BOX_WIDTH, BOX_HEIGHT, lines)
        self.shapes.append(box)
        return box

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
