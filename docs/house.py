"""Draw docs/images/house.svg, the rooms of the package and which of them imports which.

    python -m docs.house

A room is a folder of src/handgrad, or targets.py. A line leads from a room down to one that it
imports; where it imports that also through another room, the line is left out.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from handgrad.documents import svg

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "handgrad"
PICTURE: Final = ROOT / "docs" / "images" / "house.svg"

#: Kernels read the settings, and dispatch calls kernels: the only line that would lead up.
UPWARD: Final = {("kernels", "dispatch")}

_BOX: Final = (96, 26)
_STEP: Final = (112, 58)
_MARGIN: Final = (84, 12)

Graph = Mapping[str, set[str]]
Point = tuple[int, int]


def modules() -> dict[str, Path]:
    """Every module of the package by its full name."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@functools.cache
def tree_of(file: Path) -> ast.Module:
    """The parsed source of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


@functools.cache
def file_imports() -> Mapping[str, set[str]]:
    """The modules of the package that each one imports: anywhere, for type checkers too."""
    files = modules()
    return {name: set(_imported(file, files)) - {name} for name, file in files.items()}


def _imported(file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in files else node.module for name in inner]
        else:
            continue
        yield from (name for name in names if name in files)


def room_of(module: str) -> str:
    """The folder or file of src/handgrad that a module is in."""
    return module.split(".")[1] if "." in module else "__init__"


def room_imports() -> dict[str, set[str]]:
    """The rooms that each room imports, files of the top among them."""
    found: dict[str, set[str]] = {}
    for name, imported in file_imports().items():
        found.setdefault(room_of(name), set()).update(map(room_of, imported))
    return {room: others - {room} for room, others in found.items()}


def drawn_rooms() -> dict[str, set[str]]:
    """The rooms of the picture with those that they import, upward lines left out."""
    rooms = {file.name for file in PACKAGE.iterdir() if (file / "__init__.py").is_file()}
    rooms |= {"targets"}
    every = room_imports()
    return {
        room: {other for other in every[room] & rooms if (room, other) not in UPWARD}
        for room in sorted(rooms)
    }


def closure(graph: Graph, room: str) -> set[str]:
    """All that a room imports, itself or through others."""
    found: set[str] = set()
    waiting = [*graph[room]]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += graph[each]
    return found


def levels(graph: Graph) -> list[list[str]]:
    """The rooms from the ground up, each above all that it imports."""
    height: dict[str, int] = {}
    while len(height) < len(graph):
        ready = [room for room in graph if room not in height and graph[room] <= height.keys()]
        if not ready:
            circle = ", ".join(room for room in graph if room not in height)
            raise ValueError(f"the rooms {circle} import each other; allowed: one way")
        for room in ready:
            height[room] = 1 + max((height[each] for each in graph[room]), default=-1)
    for room in graph:
        users = [height[each] for each in graph if room in graph[each]]
        if not graph[room] and min(users) > 1:
            height[room] = min(users) - 1
    return [
        [room for room in graph if height[room] == floor]
        for floor in range(len({*height.values()}))
    ]


def picture() -> str:
    """The rooms as SVG."""
    graph = drawn_rooms()
    floors = levels(graph)
    wide = max(map(len, floors))
    width = wide * _STEP[0] + 2 * _MARGIN[0]
    height = len(floors) * _STEP[1] + 2 * _MARGIN[1]
    middle: dict[str, tuple[int, int]] = {}
    for floor, rooms in enumerate(floors):
        left = _MARGIN[0] + (wide - len(rooms) + 1) * _STEP[0] // 2
        # From left to right as what they import, so that few lines cross.
        mean = {
            room: sum(middle[each][0] for each in graph[room]) / (len(graph[room]) or 1)
            for room in rooms
        }
        for i, room in enumerate(sorted(rooms, key=lambda each: (mean[each], each))):
            middle[room] = left + i * _STEP[0], height - _MARGIN[1] - floor * _STEP[1] - _BOX[1]
    lines, boxes = [], []
    for room, (x, y) in middle.items():
        through = set[str]().union(*(closure(graph, each) for each in graph[room]))
        for other in sorted(graph[room] - through):
            others = [at for each, at in middle.items() if each not in (room, other)]
            curve = _curve(middle[room], middle[other], others)
            lines.append(svg.element("path", d=curve, stroke="#7a8a9a", fill="none"))
        corner = x - _BOX[0] // 2, y - _BOX[1] // 2
        boxes.append(svg.rect(*corner, *_BOX, rx=5, fill="#f4f7fa", stroke="#22303f"))
        boxes.append(svg.text(x, y + 4, room, "middle"))
    parts = [svg.rect(0, 0, width, height, fill="white"), *lines, *boxes]
    label = "The rooms of the package, each above those that it imports"
    font: dict[str, svg.Attribute] = {"font_family": "sans-serif", "font_size": 13}
    return svg.drawing(width, height, label, parts, **font).replace("><", ">\n<") + "\n"


def _curve(room: Point, other: Point, boxes: Sequence[Point]) -> str:
    """A line from below one room to above another, bent aside as far as it would cross a third."""
    (x0, y0), (x3, y3) = (room[0], room[1] + _BOX[1] // 2), (other[0], other[1] - _BOX[1] // 2)
    y1, y2 = (2 * y0 + y3) // 3, (y0 + 2 * y3) // 3
    bends = sorted(range(-240, 241, 20), key=lambda bend: (abs(bend), -bend))

    def crossed(bend: int) -> int:
        x1, x2 = x0 + (x3 - x0) // 3 + bend, x3 - (x3 - x0) // 3 + bend
        points = []
        for t in (i / 40 for i in range(41)):
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
        return sum(
            abs(x - box[0]) <= _BOX[0] // 2 + 3 and abs(y - box[1]) <= _BOX[1] // 2 + 3
            for x, y in points
            for box in boxes
        )

    bend = min(bends, key=crossed)
    x1, x2 = x0 + (x3 - x0) // 3 + bend, x3 - (x3 - x0) // 3 + bend
    return f"M{x0} {y0}C{x1} {y1} {x2} {y2} {x3} {y3}"


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
