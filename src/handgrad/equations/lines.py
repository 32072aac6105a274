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
from handgrad.equations.pairing import PairedRuns, Statement, twins
from handgrad.equations.places import moved
from handgrad.equations.scope import LoopPosition, Scope, StepLoop
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
        pair: PairedRuns,
        scope: Scope,
        values: Scope,
        own: Mapping[bool, list[Statement]],
        lettered: Mapping[bool, list[Statement]],
        names: StatementNames,
        lettered_names: StatementNames,
    ) -> None:
        self.pair, self.scope, self.values = pair, scope, values
        self.own, self.lettered = own, lettered
        self.names, self.lettered_names = names, lettered_names
        self.symbols = NodeNamer(pair, scope, values, own, lettered)

    def forward(self) -> list[DerivedEquation]:
        return [*self._equations(backward=False), *self._outputs()]

    def backward(self) -> list[DerivedEquation]:
        self.symbols.name_incoming(self.names, self.lettered_names)
        found = self._equations(backward=True)
        return [*found, *self._returned({each.left for each in found})]

    def _equations(self, *, backward: bool) -> list[DerivedEquation]:
        found: list[DerivedEquation] = []
        pairs = list(twins(self.own[backward], self.lettered[backward]))
        self.symbols.prepare(pairs)
        for own, lettered, again in pairs:
            equation = self._equation(own, lettered, again)
            if equation is not None:
                found.append(replace(equation, nodes=tuple(leaves(own.values))))
            elif found and own.names == (found[-1].name,):
                found[-1] = self._reshaped(found[-1], own, lettered)
        return found

    def _equation(self, own: Statement, lettered: Statement, again: bool) -> DerivedEquation | None:
        decided = self.symbols.decided[own.key]
        if decided == INITIAL:
            return self._initial(own, lettered)
        write = {SINGLE: self._single, SEVERAL: self._several, FAMILY: self._family}.get(decided)
        return None if write is None else write(own, lettered, again)

    # Results

    def _outputs(self) -> Iterator[DerivedEquation]:
        """The outputs of forward, where they are not names that have equations."""
        pairs = zip(self.names.outputs(), self.lettered_names.outputs(), strict=True)
        for (name, own), (_, lettered) in pairs:
            named = self.scope.symbols.get(Writer(self.scope).bare(lettered))
            known = set() if named is None else {named.code, named.name}
            if name not in known or known.isdisjoint(self.symbols.written):
                yield self._result(name, self.scope.glossary.symbol(name), own, lettered)

    def _returned(self, lefts: set[Formula]) -> Iterator[DerivedEquation]:
        """The gradients, where one is not a name that has its equation."""
        writer = Writer(self.scope)
        names = self.names.gradient_inputs()
        own, lettered = self.pair.run.backward.results, self.pair.lettered.backward.results
        for name, value, twin in zip(names, own, lettered, strict=False):
            if not isinstance(value, Node) or not is_array(value.value):
                continue
            gradient = self.scope.glossary.gradient(name)
            inner = writer.bare(twin)
            is_named = inner in self.scope.symbols and self.scope.round_of(inner) is None
            if gradient not in lefts and not (is_named and writer.write(inner) == gradient):
                yield self._result(f"d{name}", gradient, value, twin)

    def _result(self, name: str, left: Formula, own: Any, lettered: Any) -> DerivedEquation:
        if self.symbols.name_result(name, own, lettered):
            site = lettered.site or Site(0, 0, 0, 0, name)
            single = Statement(lettered.frame, site, (), (name,), (own,), 0)
            written = self._single(single, single._replace(values=(lettered,)), again=False)
            return replace(written, nodes=(own,))
        value = own.value if isinstance(own, Node) else own
        return DerivedEquation(
            name,
            left,
            Writer(self.scope).result(lettered),
            self._shape(lettered, own),
            value,
            figures(Writer(self.values), own) if isinstance(own, Node) else None,
            ((left, value),),
            (name, self._signature(lettered)),
            nodes=tuple(leaves(own)),
        )

    # One equation

    def _initial(self, own: Statement, lettered: Statement) -> DerivedEquation:
        """h_0 = what a loop is given to begin with."""
        (name,), (value,), (node,) = own.names, own.values, lettered.values
        named = self.symbols.initial(name, node)
        assert named is not None
        left = self.scope.glossary.symbol(name, named.primes, named.index)
        self.symbols.written.add(name)
        return DerivedEquation(
            name,
            left,
            Writer(self.scope).write(node),
            self._shape(node, value),
            value.value,
            None,
            ((left, value.value),),
            (name, INITIAL, self._signature(node)),
        )

    def _places(self, own: Statement, lettered: Statement) -> list[LoopPosition | None]:
        """The places of an equation: step t and, in a loop over steps, that in which it ran."""
        place = self.scope.place_of(lettered)
        if place is None:
            return [None]
        (one,) = (each for each in own.rounds if each.loop == place.steps.site)
        steps = replace(place.steps, count=self.own_count(place.steps))
        return [place, replace(place, step=Number(str(steps.step(one) + 1)))]

    def _single(self, own: Statement, lettered: Statement, again: bool) -> DerivedEquation:
        """name = what is computed"""
        (name,), (value,), (node,) = own.names, own.values, lettered.values
        scope = self.scope
        subscripts = self._subscripts(lettered, node)
        places = self._places(own, lettered)
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
        changes = bool(lettered.rounds) or axis is not None
        found = DerivedEquation(
            scope.symbols[node].code,
            lefts[0],
            rights[0],
            self._shape(node, value, axis),
            value.value,
            figures(Writer(self.values), value) if len(places) == 1 else None,
            parts,
            (name, self._signature(node)),
            again,
            self._loop(lettered),
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
        self, equation: DerivedEquation, own: Statement, lettered: Statement
    ) -> DerivedEquation:
        """The equation with the shape that the next line gives its value."""
        value, twin = own.values[0], lettered.values[0]
        if not isinstance(twin, Node) or not is_array(twin.value) or own.rounds or equation.loop:
            return equation
        bare = Writer(self.scope).bare(twin)
        named = self.scope.symbols.get(bare)
        if named is None or named.code != equation.name or bare is twin:
            return equation
        whole = ((equation.left, value.value),) if len(equation.parts) == 1 else equation.parts
        return replace(equation, shape=self._shape(twin, value), value=value.value, parts=whole)

    def _family(self, own: Statement, lettered: Statement, again: bool) -> DerivedEquation:
        """name_index = one element of a list that a loop made"""
        (name,), (values,), (items,) = own.names, own.values, lettered.values
        scope = self.scope
        right = Writer(scope).definition(items[0])
        scope.use(items[0])
        primes = scope.symbols[items[0]].primes
        parts = tuple(
            (scope.glossary.symbol(name, primes, self.values.numbers[each]), each.value)
            for each in values
        )
        return DerivedEquation(
            name,
            scope.symbol(items[0], None),
            right,
            self._shape(items[0], values[0]),
            [each.value for each in values],
            None,
            parts,
            (name, self._signature(items[0])),
            again,
            self._loop(lettered),
        )

    def _several(self, own: Statement, lettered: Statement, again: bool) -> DerivedEquation:
        """(a, b) = f(x); blocks that stand beside each other are written so."""
        scope = self.scope
        found = list(zip(own.names, own.values, lettered.values, strict=True))
        shown = [each for each in found if each[0] != "_"]
        first = next(node for _, _, node in found if isinstance(node, Node))
        whole = first.args[0]
        is_blocks = whole.op == "blocks"
        places = self._places(own, lettered)
        subscripts = self._subscripts(lettered, first) if is_blocks else ()
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
            separated(tuple(self._shape(node, value, axis) for _, value, node in found)),
            [value.value for _, value, _ in found],
            None,
            computed=(shown[0][0], self._signature(whole)),
            again=again,
            loop=self._loop(lettered),
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

    def _shape(self, node: Any, value: Any, axis: int | None = None) -> Formula:
        """The shape, without the axis of the steps where it is that of one.

        `value` is that of the example.
        """
        shapes = [_shape_without(each, axis) for each in (node, value)]
        return self.scope.dimensions.sizes(*shapes)

    def _loop(self, statement: Statement) -> Formula | None:
        """t = 1, …, T, or t ∈ what it runs over."""
        if not statement.rounds:
            return None
        steps = self.scope.steps_of(statement)
        if steps is not None:
            size = self.scope.dimensions.size(steps.count)
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
        behind = needed(self.pair.lettered.backward.results[1:])
        return frozenset(
            name
            for each in self.lettered[True]
            if not behind.isdisjoint(leaves(each.values))
            for name in each.names
        )

    def own_count(self, steps: StepLoop) -> int:
        """The number of steps of the example."""
        statements = self.own[steps.of_backward]
        rounds = (one for each in statements for one in each.rounds if one.loop == steps.site)
        return len({one.number for one in rounds})

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
            return value.op, self._signature(value.args, depth + 1)
        if isinstance(value, tuple | list):
            return tuple(self._signature(each, depth + 1) for each in value)
        if isinstance(value, slice):
            return self._signature((value.start, value.stop, value.step), depth)
        return value if isinstance(value, int | float | str) or value is None else repr(value)


def _shape_without(value: Any, axis: int | None) -> list[int]:
    sizes = list(np.shape(value.value if isinstance(value, Node) else value))
    if axis is not None and sizes:
        del sizes[axis]
    return sizes


def _ends(writer: Writer, start: Any, stop: Any) -> tuple[Formula, Formula]:
    """The first and last number that a range runs over, which may be reversed."""
    first, last = (each.value if isinstance(each, Node) else each for each in (start, stop))
    if first > last:
        return moved(writer.write(start), -1), writer.write(stop)
    return writer.write(start), moved(writer.write(stop), -1)
