"""Events of a trace as nested trips, and what is read outside the loop that made it."""

from __future__ import annotations

from collections.abc import Sequence

from handgrad.program.likeness import Item, Trip
from handgrad.program.node import Node
from handgrad.program.rounds import Mark
from handgrad.program.sizes import Size


def tree(events: Sequence[Node | Mark]) -> list[Item]:
    """Events as nested trips."""
    root: list[Item] = []
    trips: list[Trip] = []
    for e in events:
        here = trips[-1].rounds[-1] if trips and trips[-1].rounds else root
        if isinstance(e, Node):
            here.append(e)
        elif e.what == "enter":
            assert e.count is not None
            trips.append(Trip(e.letter, e.count, len(trips)))
        elif e.what == "round":
            trips[-1].rounds.append([])
        else:
            done = trips.pop()
            if not e.whole:
                done.count = Size.of(len(done.rounds))
            (trips[-1].rounds[-1] if trips else root).append(done)
    return root


def escaping(items: list[Item], outputs: list[Node]) -> dict[int, set[int]]:
    """Of each node in a loop: the depths of the loops that it is read outside of."""
    home: dict[int, tuple[tuple[int, int], ...]] = {}
    found: dict[int, set[int]] = {}

    def place(items: list[Item], path: tuple[tuple[int, int], ...]) -> None:
        for item in items:
            if isinstance(item, Trip):
                for k, r in enumerate(item.rounds):
                    place(r, (*path, (id(item), k)))
            else:
                home[id(item)] = path

    def read(node: Node, path: tuple[tuple[int, int], ...]) -> None:
        where = home.get(id(node), ())
        shared = min(len(where), len(path))
        depth = next((d for d in range(shared) if where[d] != path[d]), shared)
        if depth < shared and where[depth][0] == path[depth][0]:
            depth += 1  # a later round of the same loop
        if depth < len(where):
            found.setdefault(id(node), set()).update(range(depth, len(where)))

    def look(items: list[Item], path: tuple[tuple[int, int], ...]) -> None:
        for item in items:
            if isinstance(item, Trip):
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
