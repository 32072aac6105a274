"""An op as a picture: its operands as blocks with their sizes, the op, and what comes out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from handgrad.documents.document import Figure
from handgrad.documents.formulas.formula import Fenced, Formula
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.labels import label
from handgrad.equations.models.drawing import Box, Polyline, Shape, Words, drawn, text_width
from handgrad.equations.models.symbols import indices_of
from handgrad.equations.models.tikz import tikz

#: The picture is no wider than a phone, less its margins.
_WIDTH: Final = 336.0
_GAP: Final = 18.0
#: Lengths of axes in pixels by the order in which their letters come; a number is short.
_LENGTHS: Final = (42.0, 56.0, 34.0, 66.0, 28.0, 50.0, 38.0, 60.0)
_SHORT: Final = 22.0
#: A line bends so much lower than the one inside of it.
_STEP: Final = 14.0
_PORT: Final = 26.0
_TEXT: Final = 18.0
#: Half a line's width stands over the edge of a block.
_MARGIN: Final = 2.0
#: Between the lines of a value and of its gradient.
_APART: Final = 7.0


class ArrayBlock(NamedTuple):
    """An array: its symbol, its shape, and whether a gradient comes back to it."""

    symbol: Formula
    shape: Formula
    has_gradient: bool


def picture(
    name: str, operands: Sequence[ArrayBlock], results: Sequence[ArrayBlock], lang: str
) -> Figure | None:
    """The picture; None where there is nothing to show."""
    if not operands or not results:
        return None
    drawing = _Drawing()
    shapes = list(drawing.draw(name, operands, results))
    described = f"{', '.join(map(_said, operands))} → {name} → {', '.join(map(_said, results))}"
    title = label(lang, "picture").format(name)
    figure = drawn(shapes, _WIDTH, drawing.height, title=title, description=described)
    return Figure(figure, tikz(shapes), label(lang, "picture_lines"), described)


class _End(NamedTuple):
    """The point at which a block meets its line."""

    x: float
    y: float
    has_gradient: bool


class _Drawing:
    """Operands in rows above the op, results in rows below it."""

    def __init__(self) -> None:
        self.height = _MARGIN
        self.lengths: dict[Formula, float] = {}

    def draw(
        self, name: str, operands: Sequence[ArrayBlock], results: Sequence[ArrayBlock]
    ) -> Iterator[Shape]:
        ends: list[_End] = []
        for row in self._rows(operands):
            passed = yield from self._past(ends, row)
            ends = passed + (yield from self._row(row, above=False))
        ends.sort()
        room = self._room_of_lines(ends)
        width = max(text_width(name) + 40, _PORT * max(len(ends), len(results)), 120.0)
        left, top = (_WIDTH - width) / 2, max(end.y for end in ends) + room
        yield from _lines(ends, left, width, top, down=True)
        yield Box(left, top, width, 36.0, (name,))
        below = self._rows(results)
        self.height = top + 36.0 + self._room_of_lines(below[0])
        yield from _lines(
            (yield from self._row(below[0], above=True)), left, width, top + 36, down=False
        )
        for row in below[1:]:
            yield from self._row(row, above=True)
        self.height += 4

    def _room_of_lines(self, ends: Sequence[object]) -> float:
        return 22.0 + _STEP * ((len(ends) - 1) // 2 + 1)

    def _past(
        self, ends: Sequence[_End], row: Sequence[ArrayBlock]
    ) -> Generator[Shape, None, list[_End]]:
        """The lines of earlier rows, led between the blocks of the next one or around them."""
        if not ends:
            return []
        x = (_WIDTH - self._width(row)) / 2
        gaps = [x - _GAP * 0.6]
        for each in row:
            x += self._room(each) + _GAP
            gaps.append(x - _GAP / 2)
        while len(gaps) < len(ends):
            gaps = [gaps[0] - _STEP, *gaps, gaps[-1] + _STEP]
        free = gaps[(len(gaps) - len(ends)) // 2 :]
        bottom = self.height + 10 + max(self._size(each)[1] for each in row) + _TEXT
        found = []
        for i, end in enumerate(sorted(ends)):
            to = free[i]
            yield from _wires(end, to, end.y + 6, end.y + 2, bottom, down=True, arrow=False)
            found.append(_End(to, bottom - 2, end.has_gradient))
        self.height += 10
        return found

    def _rows(self, blocks: Sequence[ArrayBlock]) -> list[Sequence[ArrayBlock]]:
        """As few rows as have room for all, and about as many blocks in each."""
        for count in range(1, len(blocks) + 1):
            size = -(-len(blocks) // count)
            rows = [blocks[i : i + size] for i in range(0, len(blocks), size)]
            if all(self._width(row) <= _WIDTH for row in rows):
                break
        return rows

    def _width(self, row: Sequence[ArrayBlock]) -> float:
        return sum(map(self._room, row)) + _GAP * (len(row) - 1)

    def _room(self, block: ArrayBlock) -> float:
        return max(self._size(block)[0], text_width(block.shape), text_width(block.symbol) + 10)

    def _size(self, block: ArrayBlock) -> tuple[float, float]:
        """Columns across and rows down; a leading axis is left to the shape below."""
        shape = block.shape.body if isinstance(block.shape, Fenced) else None
        axes = [self._length(each) for each in indices_of(shape)]
        across = axes[-1] if axes else _SHORT
        down = axes[-2] if len(axes) > 1 else _SHORT
        return max(across, text_width(block.symbol) + 10), down

    def _length(self, axis: Formula) -> float:
        if len(to_latex(axis)) == 1 and to_latex(axis).isdigit():
            return _SHORT
        return self.lengths.setdefault(axis, _LENGTHS[len(self.lengths) % len(_LENGTHS)])

    def _row(self, row: Sequence[ArrayBlock], *, above: bool) -> Generator[Shape, None, list[_End]]:
        """Blocks that stand on one line, with their shapes below it; lines meet them `above`."""
        tallest = max(self._size(each)[1] for each in row)
        x = (_WIDTH - self._width(row)) / 2
        ends = []
        for each in row:
            room, (width, height) = self._room(each), self._size(each)
            middle = x + room / 2
            top = self.height + (0 if above else tallest - height)
            bottom = top + height
            yield Box(middle - width / 2, top, width, height, (each.symbol,))
            wide = text_width(each.shape)
            yield Words("forward", middle - wide / 2, bottom + _TEXT - 4, "start", each.shape)
            ends.append(_End(middle, top if above else bottom + _TEXT, each.has_gradient))
            x += room + _GAP
        self.height += tallest + _TEXT + 4
        return ends


def _lines(
    ends: Sequence[_End], left: float, width: float, edge: float, *, down: bool
) -> Iterator[Shape]:
    """From each block to the op, or from the op to each; those outside bend nearest to it."""
    middle = (len(ends) - 1) / 2
    for i, end in enumerate(ends):
        port = left + width * (i + 0.5) / len(ends)
        away = _STEP * int(abs(i - middle))
        if down:
            level = max(each.y for each in ends) + 8 + away
            yield from _wires(end, port, level, end.y + 2, edge - 1, down=True)
        else:
            level = end.y - 14 - away
            yield from _wires(end, port, level, edge + 1, end.y - 1, down=False)


def _wires(
    end: _End,
    port: float,
    level: float,
    first: float,
    last: float,
    *,
    down: bool,
    arrow: bool = True,
) -> Iterator[Shape]:
    """A value's line from `first` down to `last`, bent at `level`, and its gradient's beside it."""
    above, below = (end.x, port) if down else (port, end.x)
    shift = _APART / 2 if end.has_gradient else 0.0
    turn = shift * ((below < above) - (below > above))
    corners = [
        (above - shift, first),
        (above - shift, level - turn),
        (below - shift, level - turn),
        (below - shift, last),
    ]
    yield Polyline("forward", _straight(corners), arrow)
    if end.has_gradient:
        back = [(x + 2 * shift, y) for x, y in corners]
        back[1], back[2] = ((x, level + turn) for x, _ in back[1:3])
        yield Polyline("backward", _straight(back[::-1]), arrow or first < level)


def _straight(corners: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The corners that are some."""
    is_straight = abs(corners[0][0] - corners[-1][0]) < 1
    return (corners[0], corners[-1]) if is_straight else tuple(corners)


def _said(block: ArrayBlock) -> str:
    return f"{to_latex(block.symbol)} {to_latex(block.shape)}"
