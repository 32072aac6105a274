"""Which nodes of a trace are read outside of the loops that they were made in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handgrad.program.node import Node


def escaping(items: Sequence[Any], outputs: Sequence[Node]) -> dict[int, set[int]]:
    """Of each node in a loop: the depths of the loops that it is read outside of."""
    home: dict[int, tuple] = {}
    found: dict[int, set[int]] = {}

    def place(items, path):
        for item in items:
            if hasattr(item, "rounds"):
                for k, r in enumerate(item.rounds):
                    place(r, (*path, (id(item), k)))
            else:
                home[id(item)] = path

    def read(node, path):
        where = home.get(id(node), ())
        same = next(
            (d for d, (a, b) in enumerate(zip(where, path)) if a != b), min(len(where), len(path))
        )
        if same < min(len(where), len(path)) and where[same][0] == path[same][0]:
            same += 1  # the next round of the same loop
        if same < len(where):
            found.setdefault(id(node), set()).update(range(same, len(where)))

    def look(items, path):
        for item in items:
            if hasattr(item, "rounds"):
                for k, r in enumerate(item.rounds):
                    look(r, (*path, (id(item), k)))
            else:
                for a in item.args:
                    read(a, path)

    place(items, ())
    look(items, ())
    for o in outputs:
        read(o, ())
    return found
