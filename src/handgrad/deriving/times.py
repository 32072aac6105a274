"""The values of a loop's rounds by their time: h_t is what round t makes of h_{t−1}.

Of an adjoint, dh_t is what later rounds hand back, and dh_{t−1} is handed on. Arrays that rounds
fill or add to are the same array throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from handgrad.program.node import FIXED, Loop, Node
from handgrad.program.sizes import Size


@dataclass(frozen=True)
class Moment:
    """A value of a name at a time; at no time where all rounds share it."""

    name: str
    time: Size | None
    #: The place among values of this name that a loop carries on, and their number.
    which: int = 0
    several: int = 1
    #: The counters of the loops around the one whose times these are, the outermost first.
    around: tuple[str, ...] = ()


@dataclass(frozen=True)
class CarriedValue:
    """A carried value of a loop: at the times before its first round, in them, and after all."""

    carry: Node
    result: Node
    before: Moment
    inside: Moment
    made: Moment
    after: Moment
    #: The nodes of a round that are the array itself, changed.
    line: tuple[Node, ...] = ()


def changes(
    loop: Loop, is_adjoint: Mapping[int, bool], around: tuple[str, ...]
) -> Iterator[CarriedValue | None]:
    """The names of each carried value; None where neither times nor one name would be true.

    around: the counters of the loops that this one is in a round of.
    """
    counter = Size.of(loop.counter)
    first, last = Size.of(0), loop.count - 1
    if loop.reverse:
        first, last = last, first
    onward = Size.of(-1 if loop.reverse else 1)
    carries = loop.body.inputs[loop.constants :]
    names = [carry.name for carry in carries]
    for k, (carry, result) in enumerate(zip(carries, loop.body.outputs, strict=False)):
        which = names[:k].count(carry.name), names.count(carry.name)
        if not carry.name:
            yield None
        elif (line := _line(loop, carry, result)) is not None:
            always = Moment(carry.name, None, *which)
            yield CarriedValue(carry, result, always, always, always, always, line)
        elif _is_indexed(loop, carry, (*around, loop.counter)):
            yield None
        else:
            now, then = counter - onward, counter
            ends = first - onward, last
            if is_adjoint.get(id(carry)):
                now, then = counter, counter + onward
                ends = first, last + onward
            before, inside, made, after = (
                Moment(carry.name, time, *which, around) for time in (ends[0], now, then, ends[1])
            )
            yield CarriedValue(carry, result, before, inside, made, after)


def _is_indexed(loop: Loop, carry: Node, counters: Sequence[str]) -> bool:
    """True for an array of which a round, or one of a loop inside, takes the part of its number."""
    return any(
        (node.op == "loop" and _is_indexed(node.attrs["loop"], carry, counters))
        or (node.op == "getitem" and node.args[0].name == carry.name and _counts(node, counters))
        for node in loop.body.body
    )


def _counts(node: Node, counters: Sequence[str]) -> bool:
    sizes = (each for each in node.attrs["index"] if isinstance(each, Size))
    return any(not size.letters.isdisjoint(counters) for size in sizes)


def _line(loop: Loop, carry: Node, result: Node) -> tuple[Node, ...] | None:
    """The changes that lead from a carried array to its result, where nothing else reads it whole.

    A place that is read may be none that is changed, for a value is written where it is used.
    """
    line: list[Node] = []
    own = {id(carry)}
    node = result
    while node is not carry:
        before = _before(node, carry)
        if before is None or before.shape != node.shape:
            return None
        line.append(node)
        own.add(id(node))
        node = before
    if sum(id(out) in own for out in loop.body.outputs) != 1:
        return None
    if not line:
        return ()  # no round changes it
    for reader in loop.body.body:
        for arg in reader.args if id(reader) not in own else _others(reader):
            if id(arg) in own and not (reader.op == "getitem" and _is_apart(reader, line)):
                hands_on = any(part.op == "part" and part.args[0] is reader for part in line)
                if not hands_on or sum(each is arg for each in reader.args) > 1:
                    return None
    return tuple(line)


def _before(node: Node, carry: Node) -> Node | None:
    """The array before a change, by itself or by the rounds of a loop inside."""
    if node.op in ("store", "add_at"):
        return node.args[0]
    if node.op == "add":
        found = [arg for arg in node.args if _leads(arg, carry)]
        return found[0] if len(found) == 1 else None
    if node.op == "part" and node.args[0].op == "loop":
        whole, index = node.args[0], node.attrs["index"]
        inner: Loop = whole.attrs["loop"]
        if index < inner.carried:
            own = inner.body.inputs[inner.constants + index], inner.body.outputs[index]
            if own[0].name == carry.name and _line(inner, *own) is not None:
                return whole.args[inner.constants + index]
    return None


def _others(change: Node) -> tuple[Node, ...]:
    """The operands of a change beside the array."""
    return change.args[1:] if change.op in ("store", "add_at") else ()


def _leads(node: Node, carry: Node) -> bool:
    while node is not carry:
        before = _before(node, carry)
        if before is None:
            return False
        node = before
    return True


def _is_apart(read: Node, line: Sequence[Node]) -> bool:
    """True for a place that no change touches: its number differs from theirs by a constant."""
    for change in line:
        if change.op not in ("store", "add_at"):
            return False
        pairs = zip(read.attrs["index"], change.attrs["index"], strict=False)
        if not any(
            isinstance(one, Size) and isinstance(other, Size) and (one - other).constant
            for one, other in pairs
        ):
            return False
    return True


def stacked(nodes: Sequence[Node]) -> dict[int, Node]:
    """For each value of a stack by a round's number the value of that round."""
    found: dict[int, Node] = {}
    for node in nodes:
        if node.op != "loop":
            continue
        loop: Loop = node.attrs["loop"]
        outside = dict(zip(map(id, loop.body.inputs), node.args, strict=False))
        for each in loop.body.body:
            if each.op != "getitem" or each.attrs["index"] != (Size.of(loop.counter),):
                continue
            whole = outside.get(id(each.args[0]), each.args[0])
            whole = found.get(id(whole), whole)  # in the rounds of a loop around, a stack itself
            if whole.op != "part" or whole.args[0].op != "loop":
                continue
            source: Loop = whole.args[0].attrs["loop"]
            index = whole.attrs["index"]
            if index >= source.carried and source.counter == loop.counter:
                found[id(each)] = source.body.outputs[index]
    return found


def adjoints(nodes: Sequence[Node], given: Sequence[Node]) -> dict[int, bool]:
    """True for each node that a cotangent flows into; in a loop it may into all that is carried."""
    found = {id(node): True for node in given}
    for node in nodes:
        if node.op in FIXED:
            continue
        if any(found.get(id(arg)) for arg in node.args):
            found[id(node)] = True
        if node.op == "loop" and found.get(id(node)):
            loop: Loop = node.attrs["loop"]
            for inside, outside in zip(loop.body.inputs, node.args, strict=False):
                found[id(inside)] = bool(found.get(id(outside)))
            for inside in loop.body.inputs[loop.constants :]:
                found[id(inside)] = True
            for each in loop.body.body:
                if any(found.get(id(arg)) for arg in each.args):
                    found[id(each)] = True
    return found
