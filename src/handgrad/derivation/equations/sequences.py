"""Which arrays of a run are sequences of steps, and which of their axes the steps are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from handgrad.derivation.equations import indexing
from handgrad.derivation.equations.carriers import OPAQUE, carriers, stacked_axis
from handgrad.derivation.equations.execution import Line
from handgrad.derivation.equations.expression import Writer, is_array
from handgrad.derivation.equations.frame import Sequence
from handgrad.derivation.equations.steps import Steps, gathered
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.side import Side


def find(side: Side) -> None:
    """Find every sequence: what loops over steps gather or take steps of, and what is computed of
    these or they are computed of, step by step."""
    for steps in side.moments.loops:
        for name in sorted(steps.carried):
            _gathered(side, steps, name)
    for position, line in enumerate(side.labelled.lines):
        _stacked(side, position, line)
        if side.moments.steps_at(position) is not None:
            for name, axis in _taken_apart(side.writer_at(position), line.node):
                side.frame.sequences.setdefault(name, Sequence(axis))
    if side.frame.sequences:
        before = -1
        while len(side.frame.sequences) > before:
            before = len(side.frame.sequences)
            _spread(side)


def _gathered(side: Side, steps: Steps, name: str) -> None:
    """A tuple that every round adds to: (h₀, h₁, …, h_T) is h, whose first step is 0."""
    found = gathered(steps, name)
    lines = [i for i, each in enumerate(side.run.lines) if each.target == nodes.Name(name)]
    start = [side.labelled.lines[i] for i in lines if side.run.lines[i].loop is None]
    rounds = [i for i in lines if side.run.lines[i].loop is steps.loop]
    if found is None or not start or not rounds:
        return
    added, in_front = found
    begun = start[-1].node.items if isinstance(start[-1].node, nodes.Sequence) else None
    if begun is None or in_front != steps.is_reversed:
        return
    match added:
        case nodes.Name(of) if not begun:
            shift = side.shift_at(rounds[0], of)
            if shift is not None:
                side.frame.sequences[name] = Sequence(-1, 1 + shift, of, side.frame)
        case nodes.Name(of) if len(begun) == 1 and not in_front:
            shift = side.shift_at(rounds[0], of)
            writer = side.writer(start[-1].names)
            if shift == 0 and writer.value(begun[0]) is _before(side, steps, of):
                side.frame.sequences[name] = Sequence(-1, 0, of, side.frame)
        case _ if not begun and nodes.names(added) & steps.names:
            side.frame.sequences[name] = Sequence(-1)
            side.added[name] = added, rounds[0]


def _before(side: Side, steps: Steps, name: str) -> object:
    """The value that a name has when a loop begins."""
    first = next(each for each in side.labelled.lines if each.loop is steps.loop)
    return first.names.get(name)


def _stacked(side: Side, position: int, line: Line) -> None:
    writer = side.writer_at(position)
    match line.target, line.node:
        case nodes.Name(name), nodes.Call(function, (nodes.Name(of), *_), _) if (
            called(function) == "stack"
            and of in side.frame.sequences
            and name not in side.frame.glossary.results
        ):
            axis = stacked_axis(writer, line.node)
            side.frame.sequences[name] = replace(side.frame.sequences[of], axis=axis)
            if of in side.added:
                side.added[name] = side.added[of]


def _taken_apart(writer: Writer, node: Node) -> Iterator[tuple[str, int]]:
    """The arrays of which one step is taken, and the axis of the steps."""
    for part in nodes.walk(node):
        match part:
            case nodes.Index(nodes.Name(name) as value, index) if writer.shape(value):
                positions = index.items if isinstance(index, nodes.Sequence) else (index,)
                for axis, each in enumerate(positions):
                    if indexing.place_of(writer, each) is not None:
                        yield name, axis - len(writer.shape(value))


def _spread(side: Side) -> None:
    """To what a sequence is computed of, and to what is computed of one."""
    known = side.frame.sequences
    for position, line in enumerate(side.labelled.lines):
        if line.loop is not None or not all(map(is_array, line.values.values())):
            continue
        writer = side.writer_at(position)
        match line.target, line.node:
            case nodes.Name(name), node if name in known:
                found = set(carriers(writer, node, known[name].axis))
                if all(of != OPAQUE for of, _ in found):
                    for of, axis in found:
                        known.setdefault(of, Sequence(axis))
            case nodes.Name(name), node:
                axes = range(-len(line.values[name].shape), 0)
                of_steps = [each for each in axes if writer.has_steps(node, each)]
                if of_steps:
                    known[name] = Sequence(of_steps[0])
            case _, nodes.Call(function, (whole, _), ()) if called(function) == "blocks":
                if writer.has_steps(whole, -2):
                    known.update({name: Sequence(-2) for name in line.values if name != "_"})
