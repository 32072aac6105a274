"""The equations of the two functions, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Sign,
    Text,
    equals,
    occurs,
    row,
    separated,
)
from handgrad.equations import indexing
from handgrad.equations.comparisons import numbered_axes
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.figures import figures
from handgrad.equations.naming import StatementNames
from handgrad.equations.pairing import Statement, with_generic
from handgrad.equations.places import moved
from handgrad.equations.scope import LoopPosition, Scope
from handgrad.equations.shaping import Subscripts, shape, stacked
from handgrad.equations.steps import is_by_step
from handgrad.equations.symbols import FAMILY, INITIAL, SEVERAL, SINGLE, NodeNamer
from handgrad.equations.uses import needed
from handgrad.equations.writer import Writer
from handgrad.program import Node, Round, Site, leaves
from handgrad.program.functions import is_array

Values = tuple[tuple[Formula, Any], ...]


class EquationWriter:
    """Writes the equations of forward and then those of backward."""

    def __init__(
        self,
        scope: Scope,
        values: Scope,
        statements: Mapping[bool, list[Statement]],
        names: StatementNames,
    ) -> None:
        self.runs, self.scope, self.values = scope.runs, scope, values
        self.statements, self.names = statements, names
        self.symbols = NodeNamer(scope, statements)

    def forward(self) -> list[DerivedEquation]:
        return [*self._equations(backward=False), *self._outputs()]

    def backward(self) -> list[DerivedEquation]:
        self.symbols.name_incoming(self.names)
        found = self._equations(backward=True)
        return [*found, *self._returned({each.left for each in found})]

    def _equations(self, *, backward: bool) -> list[DerivedEquation]:
        found: list[DerivedEquation] = []
        pairs = list(with_generic(self.statements[backward]))
        self.symbols.prepare(pairs)
        for own, generic, again in pairs:
            equation = self._equation(own, generic, again)
            if equation is not None:
                found.append(replace(equation, nodes=tuple(leaves(own.values))))
            elif found and own.names == (found[-1].name,):
                found[-1] = self._reshaped(found[-1], own, generic)
        return found

    def _equation(self, own: Statement, generic: Statement, again: bool) -> DerivedEquation | None:
        decided = self.symbols.decided[own.key]
        if decided == INITIAL:
            return self._initial(own, generic)
        write = {SINGLE: self._single, SEVERAL: self._several, FAMILY: self._family}.get(decided)
        return None if write is None else write(own, generic, again)

    # Results

    def _outputs(self) -> Iterator[DerivedEquation]:
        """The outputs of forward, where they are not names that have equations."""
        for name, value in self.names.outputs():
            named = self.scope.symbols.get(Writer(self.scope).bare(value))
            known = set() if named is None else {named.code, named.name}
            if name not in known or known.isdisjoint(self.symbols.written):
                yield self._result(name, self.scope.glossary.symbol(name), value)

    def _returned(self, lefts: set[Formula]) -> Iterator[DerivedEquation]:
        """The gradients, where one is not a name that has its equation."""
        writer = Writer(self.scope)
        names = self.names.gradient_inputs()
        for name, value in zip(names, self.runs.backward.results, strict=False):
            if not isinstance(value, Node) or not is_array(value.value):
                continue
            gradient = self.scope.glossary.gradient(name)
            inner = writer.bare(value)
            is_named = inner in self.scope.symbols and self.scope.round_of(inner) is None
            if gradient not in lefts and not (is_named and writer.write(inner) == gradient):
                yield self._result(f"d{name}", gradient, value)

    def _result(self, name: str, left: Formula, node: Any) -> DerivedEquation:
        if self.symbols.name_result(name, node):
            site = node.site or Site(0, 0, 0, 0, name)
            single = Statement(node.frame, site, (), (name,), (node,), 0)
            return replace(self._single(single, single, again=False), nodes=(node,))
        value = node.value if isinstance(node, Node) else node
        return DerivedEquation(
            name,
            left,
            Writer(self.scope).result(node),
            self._shape(node),
            value,
            figures(Writer(self.values), node) if isinstance(node, Node) else None,
            ((left, value),),
            (name, self._signature(node)),
            nodes=tuple(leaves(node)),
        )

    # One equation

    def _initial(self, own: Statement, generic: Statement) -> DerivedEquation:
        """h_0 = what a loop is given to begin with."""
        (name,), (value,), (node,) = own.names, own.values, generic.values
        named = self.symbols.initial(name, node)
        assert named is not None
        left = self.scope.glossary.symbol(name, named.primes, named.index)
        self.symbols.written.add(name)
        return DerivedEquation(
            name,
            left,
            Writer(self.scope).write(node),
            self._shape(node),
            value.value,
            None,
            ((left, value.value),),
            (name, INITIAL, self._signature(node)),
        )

    def _places(self, own: Statement, generic: Statement) -> list[LoopPosition | None]:
        """The places of an equation: step t and, in a loop over steps, that in which it ran."""
        place = self.scope.place_of(generic)
        if place is None:
            return [None]
        (one,) = (each for each in own.rounds if each.loop == place.steps.site)
        return [place, replace(place, step=Number(str(place.steps.step(one) + 1)))]

    def _single(self, own: Statement, generic: Statement, again: bool) -> DerivedEquation:
        """name = what is computed"""
        (name,), (value,), (node,) = own.names, own.values, generic.values
        scope = self.scope
        subscripts = self._subscripts(generic, node)
        places = self._places(own, generic)
        source = self._source(node)
        rights = [self._right(Writer(scope, each), node, source, subscripts) for each in places]
        scope.use(node)
        lefts = [Writer(scope, each).part(node, subscripts).formula for each in places]
        axis = scope.step_axes.get(node)
        if axis is None or not any(subscripts) or subscripts[axis] is None:
            axis = None
        parts: Values = ((lefts[0], value.value),)
        if axis is not None:
            parts = tuple(self.steps(node, value.value, axis))
        changes = bool(generic.rounds) or axis is not None
        found = DerivedEquation(
            scope.symbols[node].code,
            lefts[0],
            rights[0],
            self._shape(node, axis),
            value.value,
            figures(Writer(self.values), value) if len(places) == 1 else None,
            parts,
            (name, self._signature(node)),
            again,
            self._loop(generic),
            updates=changes and lefts[0] != rights[0] and occurs(lefts[0], rights[0]),
        )
        return self._in_step(found, places, lefts, rights, ((lefts[-1], value.value),))

    def _source(self, node: Node) -> Node | None:
        """The item of a round where stacked steps have no name of their own."""
        arrays = stacked(node)
        if arrays is None or self.scope.step_axes.get(node) is None:
            return None
        found = indexing.generic(Writer(self.scope), arrays[0])
        return None if found is None or found[0] in self.scope.symbols else found[0]

    def _right(
        self, writer: Writer, node: Node, source: Node | None, subscripts: Subscripts
    ) -> Formula:
        if source is not None:
            found = self.scope.round_of(source)
            assert found is not None
            place = LoopPosition(*found, self.scope.counter(found[0]))
            return Writer(self.scope, place).definition(source)
        return writer.definition(node, subscripts)

    def steps(self, node: Node, value: Any, axis: int) -> Iterator[tuple[Formula, Any]]:
        """Every step of a sequence with its symbol."""
        named, array = self.scope.symbols[node], np.asarray(value)
        for step in range(array.shape[axis]):
            index = Number(str(step + 1))
            symbol = self.scope.glossary.symbol(named.name, named.primes, index)
            yield symbol, np.take(array, step, axis)

    def _in_step(
        self,
        equation: DerivedEquation,
        places: list[LoopPosition | None],
        lefts: list[Formula],
        rights: list[Formula],
        parts: Values,
    ) -> DerivedEquation:
        """The equation with what it says in the step in which its line ran."""
        place = places[-1]
        if place is None:
            return equation
        return replace(
            equation,
            step=equals(self.scope.counter(place.steps), place.step),
            here=replace(equation, left=lefts[-1], right=rights[-1], parts=parts),
        )

    def _reshaped(
        self, equation: DerivedEquation, own: Statement, generic: Statement
    ) -> DerivedEquation:
        """The equation with the shape that the next line gives its value."""
        value, twin = own.values[0], generic.values[0]
        if not isinstance(twin, Node) or not is_array(twin.value) or own.rounds or equation.loop:
            return equation
        bare = Writer(self.scope).bare(twin)
        named = self.scope.symbols.get(bare)
        if named is None or named.code != equation.name or bare is twin:
            return equation
        whole = ((equation.left, value.value),) if len(equation.parts) == 1 else equation.parts
        return replace(equation, shape=self._shape(twin), value=value.value, parts=whole)

    def _family(self, own: Statement, generic: Statement, again: bool) -> DerivedEquation:
        """name_index = one element of a list that a loop made"""
        (name,), (values,), (items,) = own.names, own.values, generic.values
        scope = self.scope
        right = Writer(scope).definition(items[0])
        scope.use(items[0])
        primes = scope.symbols[items[0]].primes
        parts = tuple(
            (scope.glossary.symbol(name, primes, self.scope.numbers[each]), each.value)
            for each in values
        )
        return DerivedEquation(
            name,
            scope.symbol(items[0], None),
            right,
            self._shape(items[0]),
            [each.value for each in values],
            None,
            parts,
            (name, self._signature(items[0])),
            again,
            self._loop(generic),
        )

    def _several(self, own: Statement, generic: Statement, again: bool) -> DerivedEquation:
        """(a, b) = f(x); blocks that stand beside each other are written so."""
        scope = self.scope
        found = list(zip(own.names, own.values, generic.values, strict=True))
        shown = [each for each in found if each[0] != "_"]
        first = next(node for _, _, node in found if isinstance(node, Node))
        whole = first.args[0]
        is_blocks = whole.op == "blocks"
        places = self._places(own, generic)
        subscripts = self._subscripts(generic, first) if is_blocks else ()
        lefts: list[Formula] = []
        rights: list[Formula] = []
        parts: Values = ()
        for place in places:
            writer = Writer(scope, place)
            symbols = {name: writer.part(node, subscripts).formula for name, _, node in shown}
            parts = tuple((symbols[name], value.value) for name, value, _ in shown)
            every = tuple(symbols.get(name, Sign("·")) for name in own.names)
            if is_blocks:
                lefts.append(Fenced(separated(every, "∣"), "["))
                rights.append(writer.write(whole.args[0], subscripts=subscripts))
            else:
                lefts.append(separated(every))
                rights.append(writer.definition(whole))
        axis = scope.step_axes.get(first) if any(subscripts) else None
        equation = DerivedEquation(
            shown[0][0],
            lefts[0],
            rights[0],
            separated(tuple(self._shape(node, axis) for _, _, node in found)),
            [value.value for _, value, _ in found],
            None,
            computed=(shown[0][0], self._signature(whole)),
            again=again,
            loop=self._loop(generic),
        )
        return self._in_step(equation, places, lefts, rights, parts)

    def _subscripts(self, statement: Statement, node: Node) -> Subscripts:
        """The indices that both sides have: of the step, and of places that are compared."""
        scope = self.scope
        if scope.steps_of(statement) is not None:
            return ()
        axis = scope.step_axes.get(node)
        found: dict[int, Formula] = {}
        if (
            axis is not None
            and scope.loops
            and (is_by_step(scope, node, axis, defined=True) or self._source(node) is not None)
        ):
            found[axis] = scope.counter(next(iter(scope.loops.values())))
        taken: list[str] = []
        writer = Writer(scope, defined=node)
        if node.op == "einsum":
            return tuple(writer.letter(size, taken) for size in shape(node))
        compared = numbered_axes(writer, node) - set(found)
        if compared and not found:
            compared |= {-2}  # a row and a column
        for each in sorted(compared):
            if len(shape(node)) >= -each and is_by_step(scope, node, each, defined=True):
                found[each] = writer.letter(shape(node)[each], taken)
        axes = range(-len(shape(node)), 0)
        return tuple(found.get(each) for each in axes) if found else ()

    def _shape(self, node: Any, axis: int | None = None) -> Formula:
        """The shape, without the axis of the steps where it is that of one."""
        sizes = list(shape(node))
        if axis is not None and sizes:
            del sizes[axis]
        return self.scope.dimensions.shape(sizes)

    def _loop(self, statement: Statement) -> Formula | None:
        """t = 1, …, T, or t ∈ what it runs over."""
        if not statement.rounds:
            return None
        steps = self.scope.steps_of(statement)
        if steps is not None:
            size = self.scope.dimensions.size(steps.size)
            first, last = (size, Number("1")) if steps.is_reversed else (Number("1"), size)
            return equals(self.scope.counter(steps), separated((first, Sign("⋯"), last)))
        rounds = statement.rounds
        over = tuple(self._over(statement, rounds[: i + 1]) for i in range(len(rounds)))
        return separated(over, ";")

    def _over(self, statement: Statement, rounds: tuple[Round, ...]) -> Formula:
        """i = 0, …, H − 1, or τ ∈ what a loop goes through."""
        loop, runs = rounds[-1].loop, self.scope.runs
        counters = runs.counters.get((statement.frame, rounds), [])
        names = [each.name for each in counters if each.name != "_"]
        target = separated(tuple(self.scope.glossary.symbol(name) for name in names))
        writer = Writer(self.scope)
        if loop in runs.ranges:
            start, stop = runs.ranges[loop]
            first, last = _ends(writer, start, stop)
            return row(target, Sign("="), separated((first, Sign("⋯"), last)))
        over = runs.iterables.get(loop)
        written = Text(loop.text) if over is None else writer.write(over)
        return row(target, Sign("∈"), written)

    def behind_parameters(self) -> frozenset[str]:
        """The names of backward that all gradients but the first, that of x, are made of."""
        behind = needed(self.runs.backward.results[1:])
        return frozenset(
            name
            for each in self.statements[True]
            if not behind.isdisjoint(leaves(each.values))
            for name in each.names
        )

    def _signature(self, value: Any, depth: int = 0) -> Any:
        """The computation, without the sizes of arrays."""
        writer = Writer(self.scope)
        value = writer.bare(value)
        if isinstance(value, Node):
            if depth and writer.has_symbol(value):
                named = self.scope.symbols[value]
                return named.name, named.primes
            if value.op in ("size", "count"):
                return value.op
            return value.op, tuple(self._signature(each, depth + 1) for each in value.args)
        if isinstance(value, tuple | list):  # of which there may be one for each step
            return tuple(dict.fromkeys(self._signature(each, depth) for each in value))
        if isinstance(value, slice):
            return self._signature((value.start, value.stop, value.step), depth)
        return value if isinstance(value, int | float | str) or value is None else repr(value)


def _ends(writer: Writer, start: Any, stop: Any) -> tuple[Formula, Formula]:
    """The first and last number that a range runs over, which may be reversed."""
    first, last = (each.value if isinstance(each, Node) else each for each in (start, stop))
    if first > last:
        return moved(writer.write(start), -1), writer.write(stop)
    return writer.write(start), moved(writer.write(stop), -1)
