"""Arrays that a backward keeps of its forward: a cheap one is found again instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from handgrad.deriving.algebra.simplifier import Simplifier
from handgrad.program.node import Node

#: Backwards of more arrays keep what they read; of those that keep many, so many are looked at.
_MOST_ARRAYS: Final = 80
_MOST_KEPT: Final = 16
#: Arrays that are written for all that is tried: a large backward has fewer trials.
_MOST_WRITTEN: Final = 480
#: Arrays that are spared one after another before that has to cost less.
_DEPTH: Final = 3
_NEVER: Final = frozenset(("loop", "part", "contract"))


def keep_less(algebra: Simplifier, body: Sequence[Node], roots: Sequence[Node]) -> None:
    """Finds arrays of the forward again where that costs less than to keep them."""
    needed = algebra.needed(roots)
    if not 0 < len(needed) <= _MOST_ARRAYS:
        return
    algebra.note_meetings([node for node in body if id(node) in needed])
    made = algebra.rewritten(roots)
    price = algebra.cost(made)
    tried: set[int] = set()
    while len(tried) < min(_MOST_KEPT, _MOST_WRITTEN // len(needed)):
        kept = _kept(algebra, made)
        left = [n for n in kept if id(n) not in tried and _can_spare(n)]
        if not left:
            return
        node = max(left, key=algebra.costs.elements)
        tried.add(id(node))
        before = {id(n) for n in kept}
        spared, more = list[Node](), [node]
        # Another array may be read in its place, which is spared as well.
        while more and len(spared) < _DEPTH:
            algebra.spare(more, yes=True)
            spared += more
            trial = algebra.rewritten(roots)
            if (cost := algebra.cost(trial)) < price - 1e-6:
                made, price = trial, cost
                break
            more = [n for n in _kept(algebra, trial) if id(n) not in before and _can_spare(n)]
        else:
            algebra.spare(spared, yes=False)
            algebra.rewritten(roots)


def _can_spare(node: Node) -> bool:
    return bool(node.args) and node.op not in _NEVER


def _kept(algebra: Simplifier, nodes: Iterable[Node]) -> list[Node]:
    """The nodes of the forward that nodes read first."""
    found, seen = [], set[int]()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            if id(node) in algebra.own:
                found.append(node)
            else:
                waiting += node.args
    return found
