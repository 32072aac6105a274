"""Where everything in the drawing of a model stands: layers in a column, a skip at its right.

Values go down on the left of every column and gradients come up on its right. Where a value forks,
a line leaves to the column of the skip, and the two gradients that come back meet in a ⊕; at the
end of a Residual it is the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handgrad.equations.models.drawing import (
    PLUS_RADIUS,
    Box,
    Dot,
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
    GAP,
    MARGIN,
    OFFSET,
    column_extent,
    lane,
    page_parts,
)
from handgrad.equations.models.flow import Flow, Fork, Node, Parts
from handgrad.equations.models.symbols import inline, value_gradient, value_symbol


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


def pages(
    flow: Flow, texts: Mapping[int, Sequence[Label]], start: Sequence[Label], end: Sequence[Label]
) -> list[Page]:
    """The drawing in as many parts as fit on a page each.

    `texts` are the lines in the box of each node that is no sum, `start` those of the input and
    `end` those of the loss; without a loss the output stands there.
    """
    groups = page_parts(flow.parts)
    found = []
    value = 0
    for i, parts in enumerate(groups):
        extent = column_extent(parts)
        placer = _Placer(flow, texts)
        above = tuple(start) if i == 0 else (value_symbol(value),)
        last = parts[-1]
        value = last.join.number if isinstance(last, Fork) else last.number
        below = tuple(end) if i == len(groups) - 1 else (value_symbol(value),)
        height = placer.page(parts, MARGIN + extent.left, above, below)
        width = extent.left + extent.right + 2 * MARGIN
        found.append(Page(tuple(placer.shapes), width, height, placer.nodes))
    return found


class _Placer:
    """Puts the shapes of one page in their places."""

    def __init__(self, flow: Flow, texts: Mapping[int, Sequence[Label]]) -> None:
        self.flow = flow
        self.texts = texts
        self.needed = flow.needed
        self.shapes: list[Shape] = []
        self.placed: list[Node] = []

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(sorted(self.placed, key=lambda node: node.number))

    def page(
        self, parts: Parts, middle: float, above: tuple[Label, ...], below: tuple[Label, ...]
    ) -> float:
        """A column between what is at its ends: the input, the loss, or a value. Its height."""
        first = parts[0]
        start = first.start if isinstance(first, Fork) else first.inputs[0]
        y = MARGIN + self.end(middle, MARGIN, above)
        end = self.column(parts, middle, End(y, start, y, y))
        self.edge(middle, end, end.y + EDGE)
        return end.y + EDGE + self.end(middle, end.y + EDGE, below) + MARGIN

    def column(self, parts: Parts, middle: float, end: End) -> End:
        for part in parts:
            if isinstance(part, Fork):
                end = self.fork(part, middle, end)
            else:
                end = self.node(part, middle, end)
        return end

    def node(self, node: Node, middle: float, end: End) -> End:
        y = end.y + EDGE
        self.edge(middle, end, y, into=node)
        self.box(middle, y, tuple(self.texts[node.number]))
        self.placed.append(node)
        below = y + BOX_HEIGHT
        return End(below, node.number, below, below)

    def fork(self, fork: Fork, middle: float, end: End) -> End:
        """⊕ of the gradients, the dot where the value forks, both ways, and the sum below them."""
        beside = middle + lane(fork)
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
        inner = End(y, fork.start, y_dot, y_plus + PLUS_RADIUS, named=False)
        skip = End(y, fork.start, y_dot, y_dot, arrow=False, named=False)
        inner = self.column(fork.inner, middle, inner)
        skip = self.column(fork.skip, beside, skip)
        return self.join(fork, middle, beside, inner, skip)

    def join(self, fork: Fork, middle: float, beside: float, inner: End, skip: End) -> End:
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
        self.line("forward", (left, end.forward), (left, forward_to or to), arrow=arrow)
        baseline = end.y + 19
        if end.named:
            self.words("forward", left, baseline, value_symbol(end.value))
            shapes = (self.flow.shape(end.value),) if end.value else self.flow.input_shapes
            written = ["×".join(map(str, each)) or "1" for each in shapes]
            self.words("forward", left, baseline + 15, ", ".join(written))
        if end.value not in self.needed:
            return
        self.line("backward", (right, to), (right, end.backward), arrow=end.arrow)
        forks = len(self.flow.uses(end.value)) > 1
        if end.named or (forks and into is not None):
            through = into.number if into is not None and forks else None
            gradient = inline(value_gradient(end.value, through))
            self.words("backward", right, baseline, gradient)

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
