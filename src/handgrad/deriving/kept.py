"""What a forward keeps for its backward: all that is read first, or the least that gives it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from handgrad.program.node import DTYPES, FIXED, Node, Program

#: A side of a node in the network: its number, and whether it is what comes out.
Side: TypeAlias = tuple[int, bool]

#: Found again from what they show.
_VIEWS: Final = ("transpose", "reshape", "broadcast_to")
_SOURCE: Final[Side] = (-1, False)
_SINK: Final[Side] = (-1, True)


def frontier(forward: Program, gradients: Sequence[Node]) -> list[Node]:
    """Nodes of the forward that the backward reads first."""
    own = {*map(id, forward.body), *map(id, forward.inputs)}
    kept: list[Node] = []
    seen: set[int] = set()
    stack = list(reversed(gradients))
    while stack:
        n = stack.pop()
        if id(n) in seen or n.op in FIXED:
            continue
        seen.add(id(n))
        is_own = id(n) in own or (n.op == "part" and id(n.args[0]) in own)
        if not is_own or n.op in _VIEWS or _is_plain(n):
            stack += reversed(n.args)
        elif n.args or n.op == "input":
            kept.append(n)
    return kept


def least(forward: Program, gradients: Sequence[Node], lengths: Mapping[str, int]) -> list[Node]:
    """The fewest bytes from which the backward finds again what it reads of the forward.

    They are a minimal cut of the forward, at the lengths of the example. Of several it is the one
    with most of inputs and results, which are there anyhow, then that after which least is left to
    compute.
    Source: Ford, Fulkerson, Maximal flow through a network (1956).
    """
    read = frontier(forward, gradients)
    above = Program([], read).body
    given = {*map(id, forward.inputs), *map(id, forward.outputs)}
    network = _CutNetwork()
    for n in above:
        room = len(above) * _bytes(n, lengths) - (id(n) in given)
        network.join((id(n), False), (id(n), True), room)
        for a in n.args:
            network.join((id(a), True), (id(n), False), math.inf)
        if n.op == "input":
            network.join(_SOURCE, (id(n), False), math.inf)
    for n in read:
        network.join((id(n), True), _SINK, math.inf)
    network.fill()
    after = network.leading_to_sink()
    return [n for n in above if (id(n), True) in after and (id(n), False) not in after]


def _bytes(node: Node, lengths: Mapping[str, int]) -> float:
    """The memory of a node; without end where it is none of its own, or several."""
    if node.op in _VIEWS or isinstance(node.value, tuple):
        return math.inf
    count = math.prod(size.number(lengths) for size in node.shape)
    return count * np.dtype(DTYPES[node.kind]).itemsize


class _CutNetwork:
    """Edges with what still fits through them."""

    def __init__(self) -> None:
        self.room: dict[Side, dict[Side, float]] = {_SOURCE: {}, _SINK: {}}

    def join(self, a: Side, b: Side, room: float) -> None:
        self.room.setdefault(a, {})[b] = room
        self.room.setdefault(b, {}).setdefault(a, 0)

    def fill(self) -> None:
        """Sends as much as can be from the source to the sink, along shortest ways."""
        while way := self._way():
            much = min(self.room[a][b] for a, b in way)
            for a, b in way:
                self.room[a][b] -= much
                self.room[b][a] += much

    def _way(self) -> list[tuple[Side, Side]]:
        before: dict[Side, Side] = {_SOURCE: _SOURCE}
        waiting = deque([_SOURCE])
        while waiting and _SINK not in before:
            a = waiting.popleft()
            for b, room in self.room[a].items():
                if room > 0 and b not in before:
                    before[b] = a
                    waiting.append(b)
        way, b = [], _SINK
        while b in before and b != _SOURCE:
            way.append((before[b], b))
            b = before[b]
        return way

    def leading_to_sink(self) -> set[Side]:
        """The sides from which more would fit through to the sink."""
        found, waiting = {_SINK}, [_SINK]
        while waiting:
            b = waiting.pop()
            for a in self.room[b]:
                if a not in found and self.room[a][b] > 0:
                    found.add(a)
                    waiting.append(a)
        return found


def _is_plain(node: Node) -> bool:
    """Return whether a node is a number made of sizes and settings alone."""
    if node.shape or node.op in ("loop", "part"):
        return False
    return node.op in ("const", "size") or (bool(node.args) and all(map(_is_plain, node.args)))
