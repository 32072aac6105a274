"""The equations of a side, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from handgrad.derivation.equations import comprehensions, inlining, marks
from handgrad.derivation.equations.carriers import OPAQUE, carriers, numbered_axes
from handgrad.derivation.equations.derived import Equation
from handgrad.derivation.equations.execution import Line, is_numeric, needed_names
from handgrad.derivation.equations.expression import Writer, is_array
from handgrad.derivation.equations.figures import figures
from handgrad.derivation.equations.marks import Marks
from handgrad.derivation.equations.renaming import only_renames
from handgrad.derivation.equations.side import Side
from handgrad.derivation.formulas.formula import (
    Fenced,
    Formula,
    Sign,
    equals,
    occurs,
    separated,
)
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

_NONE: Final[Marks] = ()


class Lines:
    """Writes the equations of one of the two functions."""

    def __init__(self, side: Side) -> None:
        self.side = side
        #: The index of every element of a list, by its name.
        self.elements: dict[str, list[Formula]] = {}

    # Equations

    def equations(self) -> list[Equation]:
        found: list[Equation] = []
        needed = needed_names(self.side.run)
        for position, line in enumerate(self.side.run.lines):
            if needed.isdisjoint(line.values):
                continue
            equation = self._equation(position)
            if equation is not None:
                found.append(equation)
            elif found and list(line.values) == [found[-1].name]:
                found[-1] = self._reshaped(found[-1], position)
        return found

    def outputs(self, names: Sequence[tuple[str, Node]]) -> list[Equation]:
        """What forward returns, where it is not a name that has an equation."""
        lines = zip(names, _leaves(self.side.run.trace.result[0], len(names)), strict=True)
        return [
            self._returned(name, self.side.frame.glossary.symbol(name), node, value)
            for (name, node), value in lines
            if node != nodes.Name(name) or name not in self.side.written
        ]

    def returned(self, inputs: Sequence[str]) -> list[Equation]:
        """The gradients, where one is not a name that has its equation."""
        node = self.side.run.trace.returned.value
        items = node.items if isinstance(node, nodes.Sequence) else (node,)
        result = self.side.run.trace.result
        values = result if isinstance(node, nodes.Sequence) else (result,)
        found = []
        for name, item, value in zip(inputs, items, values, strict=False):
            if not is_array(value):
                continue
            gradient = self.side.frame.glossary.gradient(name)
            writer = self.side.writer_at(len(self.side.run.lines))
            bare = writer.bare(item)
            known = isinstance(bare, nodes.Name) and bare.id in self.side.written
            if not known or writer.write(bare) != gradient:
                found.append(self._returned(f"d{name}", gradient, item, value))
        return found

    def _returned(self, name: str, left: Formula, node: Node, value: Any) -> Equation:
        writer = self.side.writer_at(len(self.side.run.lines))
        shape = writer.value(node)
        shape = np.asarray(shape) if isinstance(shape, int | float) else shape
        return Equation(
            name,
            left,
            writer.result(node),
            self._shape(shape),
            value,
            figures(self.side.frame, node, self.side.run.names),
            ((left, value),),
            self._computed(writer, name, node),
            node,
            self.side.run.names,
        )

    def _equation(self, position: int) -> Equation | None:
        side = self.side
        line = side.run.lines[position]
        if side.is_unpacking(line.node) or side.is_incoming(line):
            return None
        if not all(map(is_numeric, line.values.values())):
            self._keep_scalar(side.labelled.lines[position])
            return None
        writer = side.writer_at(position)
        tree = self._with_inlined(line.node)
        node = writer.bare(tree)
        if not isinstance(line.target, nodes.Name):
            return self._several(position, node)
        name = line.target.id
        if not is_array(line.values[name]) and not isinstance(node, nodes.Loop):
            return None  # arrays put together, as for a cache
        if only_renames(side, position, name, node):
            side.written.update({name} & side.looped)
            return None
        if inlining.is_inlined(side, position, name):
            side.inlined[name] = tree
            return None
        return self._single(position, name, tree)

    def _single(self, position: int, name: str, tree: Node) -> Equation:
        """name = tree"""
        side = self.side
        line, frame = side.run.lines[position], side.frame
        writer = side.writer_at(position)
        node = writer.bare(tree)
        own = self._marks(position, name, node)
        element = comprehensions.element(writer, name, node)
        rights = self._rights(position, name, node, own)
        right = element[1] if element else rights[0]
        indices = comprehensions.numbers(side.writer(line.names), node, self.elements)
        numbers = figures(frame, node, line.names)
        computed = self._computed(writer, name, node)
        if self._is_set_anew(name):
            frame.primes[name] = frame.primes.get(name, 0) + 1
        side.inlined.pop(name, None)
        frame.aliases.pop(name, None)
        side.written.add(name)
        self.elements[name] = indices
        lefts = [each.name(name, own).formula for each in self._writers(position, after=True)]
        left = element[0] if element else lefts[0]
        value = line.values[name]
        axis = side.steps_axis(name) if own else None
        symbols = [frame.symbol(name, index) for index in indices] or [left]
        several = value if isinstance(value, list | tuple) else [value]
        parts = tuple(zip(symbols, several, strict=True))
        found = Equation(
            name,
            left,
            right,
            self._shape(side.labelled.lines[position].values[name], axis),
            value,
            numbers,
            parts if axis is None else tuple(side.steps(name, value)),
            computed,
            tree,
            line.names,
            line.again,
            side.loop_at(position),
            updates=self._is_updated(position, name, left, right),
        )
        return self._in_step(found, position, lefts, rights, ((lefts[-1], value),))

    def _writers(self, position: int, *, after: bool = False) -> list[Writer]:
        """A writer for step t and, in a loop over steps, one for the step in which a line ran."""
        number = self.side.number_at(position)
        steps = [None] if number is None else [None, number]
        return [self.side.writer_at(position, step, after=after) for step in steps]

    def _rights(self, position: int, name: str, node: Node, own: Marks) -> list[Formula]:
        if name in self.side.added and own:
            added, place = self.side.added[name]
            return [self.side.writer_at(place).result(added)]
        return [each.result(node, own) for each in self._writers(position)]

    def _in_step(
        self,
        equation: Equation,
        position: int,
        lefts: list[Formula],
        rights: list[Formula],
        parts: tuple[tuple[Formula, Any], ...],
    ) -> Equation:
        """The equation with what it says in the step in which its line ran."""
        steps, number = self.side.moments.steps_at(position), self.side.number_at(position)
        if steps is None or number is None:
            return equation
        return replace(
            equation,
            step=equals(self.side.frame.glossary.symbol(steps.counter), number),
            here=replace(equation, left=lefts[-1], right=rights[-1], parts=parts),
        )

    def _reshaped(self, equation: Equation, position: int) -> Equation:
        """The equation with the shape that the next line gives its value."""
        line, labels = self.side.run.lines[position], self.side.labelled.lines[position]
        (value,), (label,) = line.values.values(), labels.values.values()
        if not is_array(value) or line.loop is not None or equation.loop is not None:
            return equation
        return replace(equation, shape=self._shape(label), value=value)

    def _several(self, position: int, node: Node) -> Equation | None:
        """(a, b) = f(x); blocks that stand beside each other are written so."""
        side = self.side
        line, labels = side.run.lines[position], side.labelled.lines[position]
        if all(value is line.names.get(name) for name, value in line.values.items()):
            return None  # put together before, as what one part of backward leaves for another
        every = [part.id for part in nodes.walk(line.target) if isinstance(part, nodes.Name)]
        names = [name for name in every if name != "_"]
        whole, own = node, _NONE
        match node:
            case nodes.Call(function, (first, _), ()) if called(function) == "blocks":
                whole, own = first, self._marks(position, names[0], first)
        side.written.update(names)
        lefts, parts = [], []
        for writer in self._writers(position, after=True):
            symbols = {name: writer.name(name, own).formula for name in names}
            parts = [(symbols[name], line.values[name]) for name in names]
            written = tuple(symbols.get(name, Sign("·")) for name in every)
            is_blocks = whole is not node
            left = Fenced(separated(written, "∣"), "[") if is_blocks else separated(written)
            lefts.append(left)
        rights = [each.write(whole, marks=own) for each in self._writers(position)]
        axis = side.steps_axis(names[0]) if own else None
        values = side.writer(line.names).value(node)
        found = Equation(
            names[0],
            lefts[0],
            rights[0],
            separated(tuple(self._shape(labels.values[name], axis) for name in every)),
            [
                value if name == "_" else line.values[name]
                for name, value in zip(every, values, strict=True)
            ],
            None,
            tree=node,
            names=line.names,
            again=line.again,
            loop=side.loop_at(position),
        )
        return self._in_step(found, position, lefts, rights, tuple(parts))

    def _marks(self, position: int, name: str, node: Node) -> Marks:
        """The indices that both sides have: of the step, and of places that are compared."""
        if self.side.moments.steps_at(position) is not None or isinstance(node, nodes.Loop):
            return ()
        writer = self.side.writer_at(position)
        axis = self.side.steps_axis(name)
        found: dict[int, Formula] = {}
        if axis is not None and (self._is_by_step(writer, node, axis) or name in self.side.added):
            found[axis] = next(iter(writer.frame.counters.values()))
        taken: list[str] = []
        compared = numbered_axes(writer, node) - set(found)
        if compared and not found:
            compared |= {-2}  # a row and a column
        for each in sorted(compared):
            if self._is_by_step(writer, node, each):
                found[each] = marks.letter(writer, writer.shape(node)[each], taken)
        axes = range(-len(writer.shape(node)), 0)
        return tuple(found.get(each) for each in axes) if found else ()

    def _is_by_step(self, writer: Writer, node: Node, axis: int) -> bool:
        return all(name != OPAQUE for name, _ in carriers(writer, node, axis))

    def _shape(self, value: Any, axis: int | None = None) -> Formula:
        """The shape, without the axis of the steps where it is that of one."""
        first = value[0] if isinstance(value, list | tuple) else value
        sizes = list(first.shape)
        if axis is not None:
            del sizes[axis]
        return self.side.frame.dimensions.sizes(sizes)

    def _keep_scalar(self, line: Line) -> None:
        match line.target:
            case nodes.Name(name) if isinstance(line.values[name], int | float):
                node = self.side.writer(line.names).bare(line.node)
                if isinstance(node, nodes.Name) and node.id != name:
                    self.side.frame.aliases[name] = node
                else:
                    self.side.scalars[name] = node, line.names

    # Names that are set more than once

    def _computed(self, writer: Writer, name: str, node: Node) -> Any:
        tree = writer.settled(node)
        symbols = sorted(
            (each, self.side.frame.primes.get(each, 0), self.side.frame.renamed.get(each, each))
            for each in {name, *nodes.names(tree)}
        )
        return name, tree, tuple(symbols)

    def _with_inlined(self, node: Node) -> Node:
        match node:
            case nodes.Name(name) if name in self.side.inlined:
                return self.side.inlined[name]
        return nodes.rebuilt(node, self._with_inlined)

    def _is_set_anew(self, name: str) -> bool:
        if name in self.side.inlined or name in self.side.looped:
            return False
        arguments = {each.name for each in self.side.function.parameters}
        return name in self.side.written or name in arguments

    def _is_updated(self, position: int, name: str, left: Formula, right: Formula) -> bool:
        """Whether a line sets what has a value before: in a loop, or where an index says all."""
        side = self.side
        if side.moments.steps_at(position) is not None or side.steps_axis(name) is not None:
            return left != right and occurs(left, right)
        line = side.run.lines[position]
        if line.loop is None or line.names.get(name) is None:
            return False
        first = next(each for each in side.run.lines if name in each.values)
        arguments = {each.name for each in side.function.parameters}
        is_older = name in arguments or first.loop is not line.loop
        return is_older or inlining.count(line.node, name) > 0


def _leaves(value: Any, count: int) -> list[Any]:
    """The parts of nested tuples, where there are several."""
    if count == 1 or not isinstance(value, tuple | list):
        return [value]
    return [leaf for part in value for leaf in _leaves(part, count)]
