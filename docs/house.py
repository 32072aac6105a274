"""Draw docs/images/house.svg, the rooms of the package and which of them imports which.

    python -m docs.house

A room is a folder of src/handgrad, or targets.py. A line leads from a room down to one that it
imports; where it imports that also through another room, the line is left out.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "src" / "handgrad"
PICTURE: Final = ROOT / "docs" / "images" / "house.svg"

#: Kernels share code with the ops that they are fused from: the only lines that would lead up.
UPWARD: Final = {("kernels", "ops"), ("kernels", "dispatch")}

_BOX: Final = (96, 26)
_STEP: Final = (112, 58)
_MARGIN: Final = 12

Graph = Mapping[str, set[str]]


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
    """The rooms from the ground up, each above all that it imports and close below its users."""
    height: dict[str, int] = {}
    while len(height) < len(graph):
        for room in graph:
            if room not in height and graph[room] <= height.keys():
                height[room] = 1 + max((height[each] for each in graph[room]), default=-1)
    for room in sorted(graph, key=lambda each: -height[each]):
        users = [height[each] for each in graph if room in graph[each]]
        height[room] = min(users, default=height[room] + 1) - 1
    ground = min(height.values())
    floors: list[list[str]] = [[] for _ in range(max(height.values()) - ground + 1)]
    for room in graph:
        floors[height[room] - ground].append(room)
    return floors


def picture() -> str:
    """The rooms as SVG."""
    graph = drawn_rooms()
    floors = levels(graph)
    wide = max(map(len, floors))
    width = wide * _STEP[0] + 2 * _MARGIN
    height = len(floors) * _STEP[1] + 2 * _MARGIN
    middle: dict[str, tuple[int, int]] = {}
    for floor, rooms in enumerate(reversed(floors)):
        # Every second floor is shifted, so that long lines pass between the rooms.
        left = (wide - len(rooms)) * _STEP[0] // 2 + (floor % 2) * _STEP[0] // 4
        for i, room in enumerate(rooms):
            x = _MARGIN + left + i * _STEP[0] + _STEP[0] // 2
            middle[room] = x, _MARGIN + floor * _STEP[1] + _BOX[1]
    lines, boxes = [], []
    for room, (x, y) in middle.items():
        through = set[str]().union(*(closure(graph, each) for each in graph[room]))
        for other in sorted(graph[room] - through):
            to_x, to_y = middle[other]
            lines.append(
                f'<path d="M{x} {y + _BOX[1] // 2}L{to_x} {to_y - _BOX[1] // 2}" '
                'stroke="#7a8a9a" fill="none"/>'
            )
        boxes.append(
            f'<rect x="{x - _BOX[0] // 2}" y="{y - _BOX[1] // 2}" width="{_BOX[0]}" '
            f'height="{_BOX[1]}" rx="5" fill="#f4f7fa" stroke="#22303f"/>'
            f'<text x="{x}" y="{y + 4}" text-anchor="middle">{room}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" role="img">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
