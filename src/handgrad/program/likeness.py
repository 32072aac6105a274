"""Rounds of a loop compared: where an operand comes from, if all rounds are alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from handgrad.program.node import FIXED, Node
from handgrad.program.sizes import Size


@dataclass
class Trip:
    """A loop as it was traced: a list of items for each round; an item is a node or a trip."""

    letter: str
    count: Size
    depth: int
    rounds: list[list[Item]] = field(default_factory=list)


Item: TypeAlias = Node | Trip
#: Of a node of a finished loop: the stack that it is an element of, its round, and their number.
Place: TypeAlias = tuple[Node, int, int]


def flat(items: list[Item]) -> Iterator[Node]:
    """The nodes of a round, those of loops inside it included."""
    for item in items:
        if isinstance(item, Trip):
            for r in item.rounds:
                yield from flat(r)
        else:
            yield item


@dataclass
class RoundDifferences:
    """All that tells rounds that are alike apart."""

    #: The first of carried values: by a node's place in its round, and how many rounds it is old.
    starts: dict[tuple[int, int], Node] = field(default_factory=dict)
    #: Attributes of a node of the last round that grow with the counter.
    attrs: dict[int, dict[str, Any]] = field(default_factory=dict)
    #: Operands that grow with the counter: of a node of the last round, by position.
    sizes: dict[tuple[int, int], Size] = field(default_factory=dict)
    #: Operands that are elements of a finished loop's stack: the stack and the index.
    elements: dict[tuple[int, int], tuple[Node, Size]] = field(default_factory=dict)


def alike(
    rounds: list[list[Item]],
    letter: str,
    first: int,
    places: dict[int, Place],
    around: RoundDifferences,
) -> RoundDifferences | None:
    """How rounds that are alike follow from each other; None where they differ.

    `first` is the number of the first of them; `places` those of nodes of finished loops; `around`
    tells the rounds of the loop around apart, of whose last one these are.
    """
    nodes = [list(flat(r)) for r in rounds]
    if len({len(r) for r in nodes}) > 1 or len({_skeleton(r) for r in rounds}) > 1:
        return None
    position = {id(node): (i, j) for i, r in enumerate(nodes) for j, node in enumerate(r)}
    counter = Size.of(letter) - first
    found = RoundDifferences()
    for j in range(len(nodes[0])):
        column = [r[j] for r in nodes]
        if not _same_application(column, counter, letter, found, around):
            return None
        for k in range(len(column[0].args)):
            known = _growing_around(column, k, counter, found, around)
            if known is None:
                known = _operand(column, k, position, counter, places, found)
            if not known:
                return None
    return found


def _same_application(
    column: list[Node],
    counter: Size,
    letter: str,
    found: RoundDifferences,
    around: RoundDifferences,
) -> bool:
    head = column[0]
    if any(c.op != head.op or c.shape != head.shape for c in column):
        return False
    every = [around.attrs.get(id(c), c.attrs) for c in column]
    if id(column[-1]) in around.attrs or any(each != every[0] for each in every):
        attrs = _grown(every, counter)
        if attrs is None:
            return False
        found.attrs[id(column[-1])] = attrs
    if head.op == "guard" and isinstance(head.attrs["left"], Size):
        # Checked for all rounds at both ends, which holds of straight lines.
        return (head.attrs["left"] - head.attrs["right"]).slope(letter) is not None
    return True


def _growing_around(
    column: list[Node], k: int, counter: Size, found: RoundDifferences, around: RoundDifferences
) -> bool | None:
    """Notes an operand that grows in the loop around; None where it does not.

    It may grow in this loop too: `number` counts both in `for number, (i, j) in enumerate(pairs)`.
    """
    keys, last = [(id(c), k) for c in column], (id(column[-1]), k)
    if last in around.sizes:
        size = _grown([_size_of(c.args[k], around.sizes.get((id(c), k))) for c in column], counter)
        if size is not None:
            found.sizes[last] = size
        return size is not None
    if last not in around.elements:
        return None
    stack, _ = around.elements[last]
    elements = [around.elements.get(key, (None, None)) for key in keys]
    index = _grown([index for _, index in elements], counter)
    if index is None or any(each is not stack for each, _ in elements):
        return False
    found.elements[last] = stack, index
    return True


def _size_of(operand: Node, known: Size | None) -> Size:
    """An operand that is a whole number, in letters; where `known`, that."""
    return Size.of(operand.attrs.get("size", operand.value)) if known is None else known


def _operand(
    column: list[Node],
    k: int,
    position: dict[int, tuple[int, int]],
    counter: Size,
    places: dict[int, Place],
    found: RoundDifferences,
) -> bool:
    """Notes where an operand comes from; False where that differs between rounds."""
    operands = [c.args[k] for c in column]
    refs = [position.get(id(o)) for o in operands]
    here = {r[1] if r is not None and r[0] == i else None for i, r in enumerate(refs)}
    if None not in here and len(here) == 1:
        return True
    if all(same(o, operands[0]) for o in operands):
        return True
    back = {(i - r[0], r[1]) for i, r in enumerate(refs) if r is not None}
    if len(back) == 1:
        ((d, j),) = back
        if d <= 0 or any((r is None) != (i < d) for i, r in enumerate(refs)):
            return False
        # In the first rounds, the value of m rounds before.
        return all(
            same(found.starts.setdefault((j, m), operands[d - m]), operands[d - m])
            for m in range(1, d + 1)
        )
    if back:
        return False
    key = (id(column[-1]), k)
    if all(o.op in ("const", "size") and o.kind == "i" for o in operands):
        size = _grown([_size_of(o, None) for o in operands], counter)
        if size is not None:
            found.sizes[key] = size
        return size is not None
    return _element(operands, key, counter, places, found)


def _element(
    operands: list[Node],
    key: tuple[int, int],
    counter: Size,
    places: dict[int, Place],
    found: RoundDifferences,
) -> bool:
    """One round reads what one round of an earlier loop made, in its order or in reverse."""
    known = [places.get(id(o)) for o in operands]
    sure = [p for p in known if p is not None]
    if len(sure) < len(known) or len({id(stack) for stack, _, _ in sure}) > 1:
        return False
    stack, start, total = sure[0]
    step = sure[1][1] - start
    if abs(step) != 1 or [i for _, i, _ in sure] != [start + step * r for r in range(len(sure))]:
        return False
    if step == 1:
        index = counter + start
    else:
        index = stack.shape[0] - (total - start) - counter
    found.elements[key] = stack, index
    return True


def _grown(values: list[Any], counter: Size) -> Any:
    """What all the values are at a counter, None where they don't grow by equal steps."""
    head = values[0]
    if all(v == head and type(v) is type(head) for v in values):
        return head
    if isinstance(head, Size):
        steps = {(b - a).constant for a, b in pairwise(values)}
        (step, *others) = steps
        return None if others or step is None else head + counter * step
    if isinstance(head, dict):
        parts = {k: _grown([v[k] for v in values], counter) for k in head}
        return None if any(parts[k] is None and head[k] is not None for k in head) else parts
    if isinstance(head, tuple) and len({len(v) for v in values}) == 1:
        places = [_grown(list(column), counter) for column in zip(*values, strict=True)]
        failed = any(p is None and h is not None for p, h in zip(places, head, strict=True))
        return None if failed else tuple(places)
    if isinstance(head, slice):
        ends = _grown([(v.start, v.stop, v.step) for v in values], counter)
        return None if ends is None else slice(*ends)
    return None


def same(a: Node, b: Node) -> bool:
    """True for one node, and for two constants of one value."""
    if a is b or a.op != b.op or a.op not in FIXED:
        return a is b
    if a.op == "table":
        return np.array_equal(a.value, b.value)
    return repr(a.attrs) == repr(b.attrs)


def _skeleton(items: list[Item]) -> Any:
    return tuple(
        (i.letter, str(i.count), tuple(map(_skeleton, i.rounds))) if isinstance(i, Trip) else "·"
        for i in items
    )
