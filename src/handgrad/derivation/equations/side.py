"""One of the two functions: how its names are written, on each line of its run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.derivation.equations import inlining, sequences
from handgrad.derivation.equations.execution import Execution, Line
from handgrad.derivation.equations.expression import Writer
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.functions import ends
from handgrad.derivation.equations.moments import Moments
from handgrad.derivation.equations.steps import stem, steps_of, turned
from handgrad.derivation.equations.takeover import take_over
from handgrad.derivation.formulas.formula import (
    Formula,
    Number,
    Sign,
    equals,
    row,
    separated,
)
from handgrad.trees import Function, nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called


class Side:
    """A forward, or a backward with the forward `before` it."""

    def __init__(
        self,
        function: Function,
        run: Execution,
        labelled: Execution,
        frame: Frame,
        before: Side | None = None,
    ) -> None:
        self.function = function
        self.run = run
        self.labelled = labelled
        self.frame = frame
        self.inlined: dict[str, Node] = {}
        self.scalars: dict[str, tuple[Node, dict[str, Any]]] = {}
        self.written: set[str] = set()
        #: What a loop adds to a sequence where that has no name, and the line that does.
        self.added: dict[str, tuple[Node, int]] = {}
        self.cache = function.parameters[1].name if before is not None else ""
        self.looped = {name for line in run.lines if line.loop is not None for name in line.values}
        #: The variables of loops, whose values the loops say.
        self.counters = {
            name for line in run.lines if line.loop for name in nodes.names(line.loop.target)
        }
        self.moments = self._moments(before)
        #: Names of a round that are the next state under another name.
        self.same = self.moments.same = dict(self._same())
        if before is not None:
            take_over(self, before)
        sequences.find(self)
        self._rename()

    def _moments(self, before: Side | None) -> Moments:
        loops = []
        sizes = []
        for steps in steps_of(self.function.body):
            line = next((each for each in self.labelled.lines if each.loop is steps.loop), None)
            if line is not None:
                count = self.writer(line.names).value(steps.count)
                loops.append(steps)
                sizes.append(self.frame.dimensions.size(count))
        earlier = before.moments.loops if before is not None else []
        states = {name: each.is_reversed for each in earlier for name in each.carried}
        return Moments(loops, self.run.lines, sizes, states, self.frame.glossary.gradients)

    def _same(self) -> Iterator[tuple[str, str]]:
        """The names of which a round makes the next state by assigning them as they are."""
        for position, line in enumerate(self.run.lines):
            steps = self.moments.steps_at(position)
            if steps is None or line.again or not isinstance(line.target, nodes.Name):
                continue
            bare = self.writer(line.names).bare(line.node)
            if (
                isinstance(bare, nodes.Name)
                and bare.id in steps.names - steps.carried
                and line.target.id in steps.carried
            ):
                yield bare.id, line.target.id

    def _rename(self) -> None:
        """Names without what says that they are of one step, or of all: the index says it."""
        counters = [each.counter for each in self.moments.loops]
        other_way = set[str]()
        for position, line in enumerate(self.labelled.lines):
            found = turned(self.writer_at(position).settled(line.node))
            other_way |= found | set(line.values) if found else set()
        for name in {*self.frame.sequences, *self.looped} - other_way:
            if stem(name, counters) != name:
                self.frame.renamed.setdefault(name, stem(name, counters))
        self.frame.renamed.update(self.same)
        self.shared = set(self._shared())
        self.frame.primes.update(dict.fromkeys(self.shared, 1))

    def _shared(self) -> Iterator[str]:
        """Names whose symbol is another's that has a value of its own at the same time."""
        for position, line in enumerate(self.labelled.lines):
            for name in line.values:
                other = self.frame.renamed.get(name)
                if line.again or other is None or name in self.same:
                    continue
                moments = self.writer_at(position).frame.moments
                if moments.get(name) == moments.get(other) and self._is_read(position, other):
                    yield name

    def _is_read(self, position: int, name: str) -> bool:
        """Whether lines behind this one use a name before they set it anew."""
        for line in self.labelled.lines[position + 1 :]:
            if name in _read(inlining.chosen(self.writer(line.names), line.node)):
                return True
            if name in line.values:
                return False
        return False

    # Places in the run, and in time

    def writer(self, names: dict[str, Any]) -> Writer:
        """A writer where names have these values."""
        return Writer(self.frame.at(names))

    def writer_at(
        self, position: int, step: Formula | None = None, *, after: bool = False
    ) -> Writer:
        """A writer where a line stands, or behind the last; `after` where the line is done.

        `step` is what the counter of a loop around it is written as, its own letter if not given.
        """
        names = self.labelled.names
        counters = {
            each.counter: self.frame.glossary.symbol(each.counter) for each in self.moments.loops
        }
        inside = self.moments.steps_at(position)
        if inside is not None:
            counters = {inside.counter: step or counters[inside.counter]}
        if position < len(self.labelled.lines):
            names = self.labelled.lines[position].names
        place = next(iter(counters.values()), Number("1"))
        moments = self.moments.at(position, place, after=after)
        return Writer(self.frame.at(names, moments, counters))

    def shift_at(self, position: int, name: str) -> int | None:
        return self.moments.shift_at(position, name)

    def number_at(self, position: int) -> Formula | None:
        """Which step it is in which a line ran, counted from 1."""
        steps = self.moments.steps_at(position)
        if steps is None:
            return None
        return Number(str(self.run.lines[position].names[steps.counter] + 1))

    def steps_axis(self, name: str) -> int | None:
        """The axis of the steps where an equation outside of loops is written for one of them."""
        found = self.frame.sequences.get(name)
        return None if found is None or found.owner is not None else found.axis

    def step_of(self, name: str) -> Formula | None:
        """The index of a name that belongs to one step: t, or T where it comes from the last."""
        for steps in self.moments.loops:
            if name in steps.names and self.moments.shift(steps, name) is not None:
                return self.frame.glossary.symbol(steps.counter)
        return self.moments.arriving.get(name)

    def steps(self, name: str, value: Any) -> list[tuple[Formula, Any]]:
        """Every step of a sequence with its symbol; nothing for any other array."""
        axis = self.steps_axis(name)
        if axis is None or np.ndim(value) < -axis:
            return []
        array, first = np.asarray(value), self.frame.sequences[name].first
        return [
            (self.frame.symbol(name, Number(str(step + first))), np.take(array, step, axis))
            for step in range(array.shape[axis])
        ]

    def is_unpacking(self, node: Node) -> bool:
        match node:
            case nodes.Name(name):
                return bool(self.cache) and name == self.cache
            case nodes.Attribute(value, _) | nodes.Index(value, _):
                return self.is_unpacking(value)
        return False

    def is_incoming(self, line: Line) -> bool:
        """Whether a tuple of gradients that comes in is taken apart."""
        incoming = nodes.Name(self.function.parameters[0].name)
        return (
            bool(self.cache) and line.node == incoming and isinstance(line.target, nodes.Sequence)
        )

    def unpacked(self) -> set[str]:
        """The names that are given to what is in the cache."""
        return {
            name for line in self.run.lines if self.is_unpacking(line.node) for name in line.values
        }

    def loop_at(self, position: int) -> Formula | None:
        """t = 1, …, T, or t ∈ what it runs over."""
        line = self.labelled.lines[position]
        if line.loop is None:
            return None
        steps = self.moments.steps_at(position)
        if steps is not None:
            size = self.moments.sizes[self.moments.loops.index(steps)]
            first, last = (size, Number("1")) if steps.is_reversed else (Number("1"), size)
            counter = self.frame.glossary.symbol(steps.counter)
            return equals(counter, separated((first, Sign("⋯"), last)))
        writer = self.writer(line.names)
        (names, over) = nodes.names(line.loop.target), line.loop.iterable
        target = separated(tuple(writer.frame.glossary.symbol(name) for name in sorted(names)))
        found = ends(writer, over)
        if found is None:
            return row(target, Sign("∈"), writer.write(over))
        return row(target, Sign("="), separated((found[0], Sign("⋯"), found[1])))


def _read(node: Node) -> set[str]:
    """The names whose values an expression uses, and not their shapes alone."""
    match node:
        case nodes.Name(name):
            return {name}
        case nodes.Attribute(_, "shape"):
            return set()
        case nodes.Call(function, _, _) if called(function) in ("zero_state", "zeros_like"):
            return set()
    return set[str]().union(*map(_read, nodes.children(node)))
