"""The equations of the two functions, line by line."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.derivation.equations import families, indexing
from handgrad.derivation.equations.derived import Equation
from handgrad.derivation.equations.figures import figures
from handgrad.derivation.equations.naming import Names, stem
from handgrad.derivation.equations.pairing import Pair, Statement, is_number, twins
from handgrad.derivation.equations.places import moved
from handgrad.derivation.equations.scope import Named, Place, Scope, Steps
from handgrad.derivation.equations.shaping import Marks, axis_of, positions, shape, shaped
from handgrad.derivation.equations.steps import is_by_step
from handgrad.derivation.equations.writer import Writer
from handgrad.derivation.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Script,
    Sign,
    Text,
    equals,
    occurs,
    row,
    separated,
)
from handgrad.program import Node, leaves
from handgrad.program.functions import is_array

_ZEROS = ("zeros", "zeros_like")
#: Operations that read the shape of an array, and not its values.
_OF_SHAPES = frozenset({"size", "zeros_like", "ones_like", "full_like", "empty_like"})
_SELECTING = frozenset(
    {
        "getitem",
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "flip"),
        *("bitwise_and", "bitwise_or", "logical_and", "logical_or", "bitwise_invert"),
        *("add", "subtract"),
    }
)


class Lines:
    """Writes the equations of forward and then those of backward."""

    def __init__(
        self,
        pair: Pair,
        scope: Scope,
        values: Scope,
        own: Mapping[bool, list[Statement]],
        lettered: Mapping[bool, list[Statement]],
        names: Names,
        lettered_names: Names,
    ) -> None:
        self.pair, self.scope, self.values = pair, scope, values
        self.own, self.lettered, self.names = own, lettered, names
        self.lettered_names = lettered_names
        self.primes: dict[str, int] = {}
        self.owners: dict[Formula, Node] = {}
        #: Numbers that have names.
        self.scalars: dict[str, Node] = {}
        self.written: set[str] = set()
        self._by_key: defaultdict[Any, list[Statement]] = defaultdict(list)
        self._own_by_key: defaultdict[Any, list[Statement]] = defaultdict(list)
        self._bound: dict[Node, list[Statement]] = {}
        self._decided: dict[Any, str] = {}
        for several in lettered.values():
            for each in several:
                self._by_key[each.key].append(each)
                for value in each.values:
                    if isinstance(value, Node):
                        self._bound.setdefault(value, []).append(each)
        for several in own.values():
            for each in several:
                self._own_by_key[each.key].append(each)
        self._needed = _reachable((pair.lettered.forward.result, pair.lettered.backward.result))
        self._forward_nodes = set(pair.lettered.forward.nodes)
        self._uses = self._count_uses()
        self._turned = set(self._find_turned())
        self._name_inputs()

    # Names

    def _name_inputs(self) -> None:
        for scope in (self.scope, self.values):
            for program in scope.programs:
                for node in program.inputs:
                    if node.name and node.frame is program.frame and node.site is None:
                        code = node.name.partition("[")[0].partition(".")[0]
                        if not node.name.strip("_").isupper() or code in program.arguments:
                            scope.symbols.setdefault(node, Named(code, code))
            if scope.glossary.loss:
                scope.ones |= set(leaves(next(iter(scope.runs.backward.arguments.values()))))
        for node, named in list(self.scope.symbols.items()):
            if node in self._forward_nodes:
                self.owners.setdefault(self.scope.symbol(node, None), node)

    def name_incoming(self, outputs: Sequence[tuple[str, Any]]) -> None:
        """The gradients that come in, as those of what forward gave, at the step that it is of."""
        for scope, names in ((self.scope, self.lettered_names), (self.values, self.names)):
            given = list(leaves(next(iter(scope.runs.backward.arguments.values()))))
            found = names.outputs()
            code = next(iter(scope.runs.backward.arguments))
            for node in given:
                name = names.first_name(node) if "[" in node.name else node.name
                of = scope.glossary.gradients.get(name)
                output = next((item for each, item in found if each == of), None)
                index = None
                if isinstance(output, Node) and output in self.scope.symbols:
                    index = self.scope.moment(output, None)
                base = name if "[" not in name else code
                scope.symbols[node] = Named(base, base, self._gradient_primes(base), index)
                if scope is self.scope:
                    self.owners.setdefault(scope.symbol(node, None), node)

    def _gradient_primes(self, name: str) -> int:
        of = self.scope.glossary.gradients.get(name)
        if of is None or of in self.scope.glossary.inputs:
            return 0
        return self.primes.get(of, 0)

    # Equations

    def equations(self, *, backward: bool) -> list[Equation]:
        found: list[Equation] = []
        every = list(twins(self.own[backward], self.lettered[backward]))
        for own, lettered, _ in every:
            self._prepare(own, lettered)
        for _, lettered, again in every:
            if not again:
                self._separate(lettered)
        for own, lettered, again in every:
            equation = self._equation(own, lettered, again)
            if equation is not None:
                found.append(equation)
            elif found and own.names == (found[-1].name,):
                found[-1] = self._reshaped(found[-1], own, lettered)
        return found

    def outputs(self) -> list[Equation]:
        """What forward returns, where it is not a name that has an equation."""
        found = []
        pairs = zip(self.names.outputs(), self.lettered_names.outputs(), strict=True)
        for (name, own), (_, lettered) in pairs:
            bare = Writer(self.scope).bare(lettered)
            named = self.scope.symbols.get(bare)
            is_named = named is not None and name in (named.code, named.name)
            if not is_named or not self.written & {named.code, named.name}:
                left = self.scope.glossary.symbol(name)
                found.append(self._returned(name, left, own, lettered))
        return found

    def returned(self) -> list[Equation]:
        """The gradients, where one is not a name that has its equation."""
        found = []
        inputs = self.names.gradient_inputs()
        own, lettered = self.pair.run.backward.results, self.pair.lettered.backward.results
        for name, value, twin in zip(inputs, own, lettered, strict=False):
            if not isinstance(value, Node) or not is_array(value.value):
                continue
            gradient = self.scope.glossary.gradient(name)
            writer = Writer(self.scope)
            bare = writer.bare(twin)
            is_made = bare in self.scope.symbols and self.scope.round_of(bare) is None
            if not is_made or writer.write(bare) != gradient:
                if gradient not in self._lefts:
                    found.append(self._returned(f"d{name}", gradient, value, twin))
        return found

    _lefts: frozenset[Formula] = frozenset()

    def _returned(self, name: str, left: Formula, own: Any, lettered: Any) -> Equation:
        writer = Writer(self.scope)
        value = own.value if isinstance(own, Node) else own
        return Equation(
            name,
            left,
            writer.result(lettered),
            self._shape(lettered),
            value,
            figures(Writer(self.values), own) if isinstance(own, Node) else None,
            ((left, value),),
            (name, self._signature(lettered)),
        )

    def _prepare(self, own: Statement, lettered: Statement) -> None:
        """Decide what becomes of a statement, and name what it sets."""
        if own.key in self._decided:
            return
        if len(own.names) > 1:
            self._decided[own.key] = self._prepare_several(own, lettered)
            return
        name, value, twin = own.names[0], own.values[0], lettered.values[0]
        if families.is_family(self.scope, twin) and all(is_array(each.value) for each in twin):
            self._decided[own.key] = self._prepare_family(name, value, twin)
        elif not isinstance(twin, Node):
            self._name_several_numbers(name, value, twin)
        elif is_number(twin.value):
            self._name_number(name, value, twin)
        elif is_array(twin.value) and twin.op != "counter":
            decided = self._decided[own.key] = self._decide(name, lettered, twin)
            if decided == "equation" and twin not in self.scope.symbols:
                if not lettered.rounds and self._begins(name, twin) is not None:
                    named = self._initial_name(name, twin)
                    self.scope.symbols[twin] = self.values.symbols[value] = named
                    self.written.add(name)
                else:
                    self._name(lettered, name)

    def _equation(self, own: Statement, lettered: Statement, again: bool) -> Equation | None:
        decided = self._decided.get(own.key)
        match decided:
            case "initial":
                return self._initial(own.names[0], own.values[0], lettered.values[0])
            case "family":
                return self._family(own, lettered, again)
            case "several":
                return self._several(own, lettered, again)
            case "equation":
                return self._single(own, lettered, again)
        return None

    def _decide(self, name: str, statement: Statement, node: Node) -> str:
        """What becomes of a statement: an equation, nothing, or one for where a loop begins."""
        scope = self.scope
        steps = self._steps(statement)
        is_new = node not in scope.symbols
        if node not in self._needed:
            return "nothing"
        if steps is None and self._begins(name, node) is not None:
            if not is_new:
                known = scope.symbols[node]
                return "nothing" if known == self._initial_name(name, node) else "initial"
            return "equation"
        if not is_new:
            return "nothing"
        if node in self._forward_nodes and statement.frame.function is not (
            self.pair.lettered.forward.frame.function
        ):
            if not self._has_no_need_of_a_name(statement, name, node):
                self._name(statement, name)
            return "nothing"
        if name in scope.glossary.results and steps is None:
            bare = Writer(scope).bare(node)
            named = scope.symbols.get(bare)
            if named is not None and named.code == name:
                return "nothing"
            return "nothing" if self._goes_on(statement, name, node) else "equation"
        if self._has_no_need_of_a_name(statement, name, node):
            return "nothing"
        if self._goes_on(statement, name, node):
            return "nothing"
        return "equation"

    def _begins(self, name: str, node: Node) -> Steps | None:
        """The loop that a value begins as what it carries on."""
        for site, carried in self.scope.carried:
            if carried == name:
                steps = self.scope.loops[site]
                first = [
                    each
                    for each in self.scope.users[node]
                    if (found := self.scope.round_of(each)) is not None
                    and found[0] is steps
                    and each.number > node.number
                ]
                if first and self.scope.shift_of_name(steps, name) is not None:
                    return steps
        return None

    def _initial_name(self, name: str, node: Node) -> Named:
        scope = self.scope
        steps = self._begins(name, node)
        assert steps is not None
        counted = steps.count if steps.is_reversed else -1
        index = scope.absolute(steps, counted + (scope.shift_of_name(steps, name) or 0))
        return Named(name, name, self._gradient_primes(name), index)

    def _initial(self, name: str, value: Node, twin: Node) -> Equation:
        """h_0 = what a loop is given to begin with."""
        named = self._initial_name(name, twin)
        left = self.scope.glossary.symbol(name, named.primes, named.index)
        right = Writer(self.scope).write(twin)
        computed = name, "initial", self._signature(twin)
        parts = ((left, value.value),)
        self.written.add(name)
        return Equation(
            name, left, right, self._shape(twin), value.value, None, parts, computed
        )

    def _has_no_need_of_a_name(self, statement: Statement, name: str, node: Node) -> bool:
        """Another shape, zeros, stacked steps, or a part of another array under a word."""
        writer = Writer(self.scope)
        bare = writer.bare(node)
        if not isinstance(bare, Node) or bare in self.scope.symbols:
            return True
        node = bare
        if node.op in _ZEROS:
            return True
        if node.op == "stack":
            items = node.args[0]
            if families.is_family(self.scope, items):
                return True
            found = indexing.generic(writer, items)
            if found is not None and found[0] in self.scope.symbols:
                return True
        is_word = isinstance(self.scope.glossary.symbol(name), Text)
        if node.op == "getitem":
            array, index = node.args
            is_part = all(isinstance(each, slice) or each is ... for each in positions(index))
            is_sequence = array in self.scope.step_axes
            return is_part and isinstance(array, Node) and (is_word or is_sequence)
        if len(node.operands) == 1 and node.op == name and is_word:
            return True
        return _is_counted(writer, node) and self._only_selects(node)

    def _only_selects(self, node: Node) -> bool:
        """Whether a condition, or what it compares, only says where values are taken from."""
        users = [
            each
            for each in self.scope.users[node]
            if each.op not in _OF_SHAPES and is_array(each.value)
        ]
        return bool(users) and all(
            (each.op == "where" and each.args[0] is node)
            or ((each.op in _SELECTING or shaped(each) is node) and self._only_selects(each))
            for each in users
        )

    # Values that are written where they are used

    def _count_uses(self) -> dict[Node, list[tuple[Any, int]]]:
        """Of every node with a name, the statements that it stands in, and how often."""
        uses: dict[Node, list[tuple[Any, int]]] = defaultdict(list)
        roots: list[tuple[Any, Any]] = []
        for several in self.lettered.values():
            for each in several:
                roots += [(each, value) for value in each.values]
        for program in (self.pair.lettered.forward, self.pair.lettered.backward):
            roots.append((None, program.result))
        done: set[Node] = set()
        for statement, value in roots:
            if statement is not None and isinstance(value, Node) and value.op == "element":
                value = value.args[0]  # several names for parts of one value
            if isinstance(value, Node):
                if statement is not None and value in done:
                    continue
                done |= {value} if statement is not None else set()
                if statement is None:
                    operands: Any = (value,)
                else:
                    operands = value.operands[:1] if value.op == "sum_to" else value.operands
            elif isinstance(value, tuple | list) and statement is not None:
                continue
            else:
                operands = tuple(leaves(value))
            counts: dict[Node, int] = defaultdict(int)
            for each in operands:
                self._count(each, counts)
            for node, number in counts.items():
                uses[node].append((statement, number))
        return uses

    def _count(self, node: Node, counts: dict[Node, int]) -> None:
        if node.op in _OF_SHAPES:
            return
        if node.op == "sum_to":
            self._count(node.args[0], counts)
            return
        if node in self._bound or not node.operands:
            counts[node] += 1
            return
        for each in node.operands:
            self._count(each, counts)

    def _goes_on(self, statement: Statement, name: str, node: Node) -> bool:
        """Whether a value is used once, to set the same name anew, or as a step of a loop where a
        word would say nothing."""
        use = self._only_use(node)
        if use is None:
            return False
        steps, there = self._steps(statement), self._steps(use)
        if there is None:
            return steps is None and name in use.names and not statement.rounds
        if name in self.scope.glossary.results or self.scope.is_carried(node):
            return False
        if name in use.names and len(use.names) == 1:
            return True
        if name in self.scope.glossary.gradients.values():
            return False
        if len(use.names) == 1 and (there.site, use.names[0]) in self.scope.carried:
            value = use.values[0]
            return isinstance(value, Node) and value.op == "where"
        return _is_word(self.scope.glossary.symbol(self._base(statement, name, node)))

    def _only_use(self, node: Node) -> Statement | None:
        """The one statement that a value stands in, once: of those in a loop, in its own round."""
        uses = self._uses.get(node, [])
        by_key: dict[Any, int] = {}
        found: Statement | None = None
        for statement, number in uses:
            if statement is None or number > 1:
                return None
            if statement.key in by_key and self.scope.round_of(node) is not None:
                return None
            by_key[statement.key] = number
            found = statement
        if found is None or len(by_key) > 1:
            return None
        value = found.values[0] if len(found.values) == 1 else None
        if isinstance(value, Node) and _bare(value) is node and value is not node:
            return self._only_use(value)
        return found

    # One equation

    def _steps(self, statement: Statement) -> Steps | None:
        for each in statement.rounds:
            if each.loop in self.scope.loops:
                return self.scope.loops[each.loop]
        return None

    def _place(self, statement: Statement, step: Formula | None = None) -> Place | None:
        steps = self._steps(statement)
        if steps is None:
            return None
        (one,) = (each for each in statement.rounds if each.loop == steps.site)
        return Place(steps, steps.step(one), step or self.scope.counter(steps))

    def _step_number(self, statement: Statement) -> Formula | None:
        steps = self._steps(statement)
        if steps is None:
            return None
        (one,) = (each for each in statement.rounds if each.loop == steps.site)
        count = len({each.rounds for each in self._own_by_key[statement.key]})
        counted = count - 1 - one.number if steps.is_reversed else one.number
        return Number(str(counted + 1))

    def _base(self, statement: Statement, name: str, node: Any) -> str:
        """The name without what says that it is of one step, or of all: the index says it."""
        counters = {each.counter for each in self.scope.loops.values()}
        steps = self._steps(statement)
        if steps is not None and isinstance(node, Node):
            for each in self._bound.get(node, []):
                for other in each.names:
                    if (steps.site, other) in self.scope.carried and self.scope.is_carried_line(
                        node, steps
                    ):
                        return other
        if steps is not None or node in self.scope.step_axes:
            short = stem(name, counters)
            glossary = self.scope.glossary
            is_other = short in glossary.inputs
            if steps is None and short not in node.names:
                taken = glossary.inputs | glossary.results
                is_other |= short in taken or glossary.gradients.get(short, "") in taken
            return name if name in self._turned or is_other else short
        return name

    def _find_turned(self) -> Iterator[str]:
        """The names of which an axis is turned round somewhere, other than to compare places."""
        for several in self.lettered.values():
            for each in several:
                for name, value in zip(each.names, each.values, strict=True):
                    for under in self._under_flip(value, False):
                        yield name
                        for statement in self._bound.get(under, ()):
                            yield from statement.names

    def _under_flip(self, value: Any, inside: bool, depth: int = 0) -> Iterator[Node]:
        if not isinstance(value, Node) or value.op in _OF_SHAPES:
            return
        if depth and value in self._bound:
            if inside:
                yield value
            return
        operands = value.operands[1:] if value.op == "where" else value.operands
        for each in operands:
            yield from self._under_flip(each, inside or value.op == "flip", depth + 1)

    def _name(self, statement: Statement, name: str) -> None:
        """Name one value of a statement, and what it set in other rounds."""
        node = statement.values[statement.names.index(name)]
        base = self._base(statement, name, node)
        code = base if base in node.names else name
        primes = self._gradient_primes(base)
        self.scope.symbols[node] = Named(base, code, primes)
        if not statement.rounds:
            formula = self.scope.symbol(node, None)
            while (owner := self.owners.get(formula)) is not None and not _is_same(owner, node):
                primes += 1
                self.scope.symbols[node] = Named(base, code, primes)
                formula = self.scope.symbol(node, None)
            self.owners[formula] = node
        self.primes[base] = primes
        self._rename(statement, name, Named(base, code, primes))
        self.written |= {name, code}

    def _rename(self, statement: Statement, name: str, named: Named) -> None:
        position = statement.names.index(name)
        for scope, by_key in ((self.scope, self._by_key), (self.values, self._own_by_key)):
            for each in by_key[statement.key]:
                value = each.values[position]
                if isinstance(value, Node):
                    scope.symbols[value] = named

    def _separate(self, statement: Statement) -> None:
        """Give what a round sets a prime where another value has its symbol and is read later."""
        place = self._place(statement)
        if place is None:
            return
        for name, node in zip(statement.names, statement.values, strict=True):
            named = self.scope.symbols.get(node) if isinstance(node, Node) else None
            if named is not None and is_array(node.value) and self._is_taken(node, place):
                self._rename(statement, name, named._replace(primes=named.primes + 1))

    def _is_taken(self, node: Node, place: Place) -> bool:
        """Whether another value of a round has the symbol of a node and is read after it is set."""
        formula, base = self.scope.symbol(node, place), self.scope.symbols[node].name
        for other, named in self.scope.symbols.items():
            if named.name != base or other.number >= node.number:
                continue
            found = self.scope.round_of(other)
            if found is not None and found[0] is not place.steps:
                continue
            if self.scope.symbol(other, place) == formula:
                later = (each for each in self.scope.users[other] if each.number > node.number)
                if any(self._is_in_round(each, place) for each in later):
                    return True
        return False

    def _is_in_round(self, node: Node, place: Place) -> bool:
        return self.scope.round_of(node) == (place.steps, place.counted)

    def _name_number(self, name: str, value: Any, node: Node, *, again: bool = False) -> None:
        known = self.scope.symbols.get(node)
        if node.op in ("counter", "input") or (known is not None and not again):
            return
        self.scalars[name] = node
        for scope, each in ((self.scope, node), (self.values, value)):
            if isinstance(each, Node):
                scope.symbols[each] = Named(name, name)

    def _name_several_numbers(self, name: str, values: Any, nodes: Any) -> None:
        """One name for the numbers of a tuple, such as a stride for every axis."""
        if not isinstance(nodes, tuple | list) or not isinstance(values, tuple | list):
            return
        for value, node in zip(values, nodes, strict=False):
            if isinstance(node, Node) and is_number(node.value) and node.op != "size":
                self._name_number(name, value, node)

    def _single(self, own: Statement, lettered: Statement, again: bool) -> Equation:
        """name = what is computed"""
        (name,), (value,), (node,) = own.names, own.values, lettered.values
        scope = self.scope
        marks = self._marks(lettered, node)
        number = self._step_number(own)
        places = [self._place(lettered)]
        if number is not None:
            places.append(self._place(lettered, number))
        source = self._source(node)
        rights = [self._right(Writer(scope, each), node, source, marks) for each in places]
        scope.use(node)
        lefts = [Writer(scope, place).part(node, marks).formula for place in places]
        axis = scope.step_axes.get(node) if any(marks) and self._steps(lettered) is None else None
        left = lefts[0]
        parts: tuple[tuple[Formula, Any], ...] = ((left, value.value),)
        if axis is not None and axis in self._marked_axes(marks):
            parts = tuple(self.steps(node, value.value, axis))
        else:
            axis = None
        computed = name, self._signature(node)
        numbers = figures(Writer(self.values), value) if number is None else None
        found = Equation(
            scope.symbols[node].code,
            left,
            rights[0],
            self._shape(node, axis),
            value.value,
            numbers,
            parts,
            computed,
            again,
            self._loop(lettered),
            updates=self._updates(lettered, node, left, rights[0], axis),
        )
        return self._in_step(found, lettered, number, lefts, rights, ((lefts[-1], value.value),))

    def _source(self, node: Node) -> Node | None:
        """The item of a round where stacked steps have no name of their own."""
        if node.op != "stack" or self.scope.step_axes.get(node) is None:
            return None
        found = indexing.generic(Writer(self.scope), node.args[0])
        return None if found is None or found[0] in self.scope.symbols else found[0]

    def _right(self, writer: Writer, node: Node, source: Node | None, marks: Marks) -> Formula:
        if source is not None:
            found = self.scope.round_of(source)
            assert found is not None
            place = Place(*found, self.scope.counter(found[0]))
            return Writer(self.scope, place).definition(source)
        return writer.definition(node, marks)

    def _marked_axes(self, marks: Marks) -> set[int]:
        return {i - len(marks) for i, mark in enumerate(marks) if mark is not None}

    def steps(self, node: Node, value: Any, axis: int) -> Iterator[tuple[Formula, Any]]:
        """Every step of a sequence with its symbol."""
        array = np.asarray(value)
        first = self._first(node)
        for step in range(array.shape[axis]):
            index = Number(str(step + first))
            yield self._step_symbol(node, index, axis), np.take(array, step, axis)

    def _step_symbol(self, node: Node, index: Formula, axis: int) -> Formula:
        named = self.scope.symbols[node]
        return self.scope.glossary.symbol(named.name, named.primes, index)

    def _first(self, node: Node) -> int:
        return 1

    def _in_step(
        self,
        equation: Equation,
        statement: Statement,
        number: Formula | None,
        lefts: list[Formula],
        rights: list[Formula],
        parts: tuple[tuple[Formula, Any], ...],
    ) -> Equation:
        """The equation with what it says in the step in which its line ran."""
        steps = self._steps(statement)
        if steps is None or number is None:
            return equation
        return replace(
            equation,
            step=equals(self.scope.counter(steps), number),
            here=replace(equation, left=lefts[-1], right=rights[-1], parts=parts),
        )

    def _reshaped(self, equation: Equation, own: Statement, lettered: Statement) -> Equation:
        """The equation with the shape that the next line gives its value."""
        value, twin = own.values[0], lettered.values[0]
        if not isinstance(twin, Node) or not is_array(twin.value) or own.rounds or equation.loop:
            return equation
        bare = Writer(self.scope).bare(twin)
        named = self.scope.symbols.get(bare)
        if named is None or named.code != equation.name or bare is twin:
            return equation
        whole = ((equation.left, value.value),) if len(equation.parts) == 1 else equation.parts
        return replace(equation, shape=self._shape(twin), value=value.value, parts=whole)

    def _prepare_family(self, name: str, values: Any, items: Any) -> str:
        scope = self.scope
        index = families.index_of(scope, items)
        if index is None:
            return "nothing"
        if items[0] not in self._needed:
            return "nothing"
        primes = self._gradient_primes(name)
        for several, other in ((items, scope), (values, self.values)):
            for each in several:
                number = families.number_of(other, each)
                other.symbols[each] = Named(name, name, primes)
                other.elements[each] = index
                other.numbers[each] = index if number is None else number
        self.written.add(name)
        return "family"

    def _family(self, own: Statement, lettered: Statement, again: bool) -> Equation:
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
        return Equation(
            name,
            scope.symbol(items[0], None),
            right,
            self._shape(items[0]),
            [each.value for each in values],
            None,
            parts,
            (name, self._signature(items[0])),
            again,
            self._loop(lettered),
        )

    def _prepare_several(self, own: Statement, lettered: Statement) -> str:
        for name, value, twin in zip(own.names, own.values, lettered.values, strict=True):
            if isinstance(twin, Node) and is_number(twin.value):
                self._name_number(name, value, twin, again=twin.op != "size")
            elif not isinstance(twin, Node):
                self._name_several_numbers(name, value, twin)
        nodes = [each for each in lettered.values if isinstance(each, Node)]
        arrays = [each for each in nodes if is_array(each.value)]
        if not arrays:
            return "nothing"
        is_whole = all(
            each.op == "element" and each.args[0] is arrays[0].args[0] for each in arrays
        )
        function = self.pair.lettered.forward.frame.function
        is_kept = arrays[0] in self._forward_nodes and lettered.frame.function is not function
        if is_whole and not is_kept and self._needed.isdisjoint(arrays):
            return "nothing"
        for name, node in zip(own.names, lettered.values, strict=True):
            is_new = isinstance(node, Node) and is_array(node.value)
            if name != "_" and is_new and node not in self.scope.symbols:
                if not self._has_no_need_of_a_name(lettered, name, node):
                    self._name(lettered, name)
        return "several" if is_whole and not is_kept else "nothing"

    def _several(self, own: Statement, lettered: Statement, again: bool) -> Equation:
        """(a, b) = f(x); blocks that stand beside each other are written so."""
        scope = self.scope
        arrays = [each for each in lettered.values if isinstance(each, Node)]
        whole = arrays[0].args[0]
        shown = [name for name in own.names if name != "_"]
        is_blocks = whole.op == "blocks"
        source = whole.args[0] if is_blocks else whole
        number = self._step_number(own)
        places = [self._place(lettered)]
        if number is not None:
            places.append(self._place(lettered, number))
        marks = self._marks(lettered, arrays[0]) if is_blocks else ()
        lefts, rights, parts = [], [], []
        for place in places:
            writer = Writer(scope, place)
            symbols = {
                name: writer.part(node, marks).formula
                for name, node in zip(own.names, lettered.values, strict=True)
                if name != "_"
            }
            parts = [
                (symbols[name], value.value)
                for name, value in zip(own.names, own.values, strict=True)
                if name != "_"
            ]
            written = tuple(symbols.get(name, Sign("·")) for name in own.names)
            lefts.append(
                Fenced(separated(written, "∣"), "[") if is_blocks else separated(written)
            )
            rights.append(writer.write(source, marks=marks) if is_blocks else writer.definition(source))
        axis = scope.step_axes.get(arrays[0]) if any(marks) else None
        found = Equation(
            shown[0],
            lefts[0],
            rights[0],
            separated(tuple(self._shape(each, axis) for each in lettered.values)),
            [each.value for each in own.values],
            None,
            computed=(shown[0], self._signature(source)),
            again=again,
            loop=self._loop(lettered),
        )
        return self._in_step(found, lettered, number, lefts, rights, tuple(parts))

    def _marks(self, statement: Statement, node: Node) -> Marks:
        """The indices that both sides have: of the step, and of places that are compared."""
        scope = self.scope
        if self._steps(statement) is not None:
            return ()
        axis = scope.step_axes.get(node)
        found: dict[int, Formula] = {}
        if axis is not None and scope.loops:
            if is_by_step(scope, node, axis, defined=True) or self._source(node) is not None:
                found[axis] = scope.counter(next(iter(scope.loops.values())))
        taken: list[str] = []
        writer = Writer(scope, defined=node)
        compared = _numbered_axes(writer, node) - set(found)
        if compared and not found:
            compared |= {-2}  # a row and a column
        for each in sorted(compared):
            if len(shape(node)) >= -each and is_by_step(scope, node, each, defined=True):
                found[each] = writer.letter(shape(node)[each], taken)
        axes = range(-len(shape(node)), 0)
        return tuple(found.get(each) for each in axes) if found else ()

    def _shape(self, node: Any, axis: int | None = None) -> Formula:
        """The shape, without the axis of the steps where it is that of one."""
        sizes = list(np.shape(node.value if isinstance(node, Node) else node))
        if axis is not None:
            del sizes[axis]
        return self.scope.dimensions.sizes(sizes)

    def _loop(self, statement: Statement) -> Formula | None:
        """t = 1, …, T, or t ∈ what it runs over."""
        if not statement.rounds:
            return None
        steps = self._steps(statement)
        if steps is not None:
            size = self.scope.dimensions.size(steps.count)
            first, last = (size, Number("1")) if steps.is_reversed else (Number("1"), size)
            return equals(self.scope.counter(steps), separated((first, Sign("⋯"), last)))
        loop = statement.rounds[-1].loop
        runs = self.scope.runs
        counters = runs.counters.get((statement.frame, statement.rounds), [])
        names = [each.name for each in counters if each.name != "_"]
        target = separated(tuple(self.scope.glossary.symbol(name) for name in names))
        writer = Writer(self.scope)
        if loop in runs.ranges:
            start, stop = runs.ranges[loop]
            ends = _last(writer, start, stop)
            return row(target, Sign("="), separated((ends[0], Sign("⋯"), ends[1])))
        over = runs.iterables.get(loop)
        written = Text(loop.text) if over is None else writer.write(over)
        return row(target, Sign("∈"), written)

    def _updates(
        self, statement: Statement, node: Node, left: Formula, right: Formula, axis: int | None
    ) -> bool:
        """Whether a line sets what has a value before: in a loop, or where an index says all."""
        if statement.rounds or axis is not None:
            return left != right and occurs(left, right)
        return False

    def own_value(self, name: str, node: Node) -> Any:
        """The value that a number has in the example."""
        for program in (self.pair.run.forward, self.pair.run.backward):
            for each in program.assignments:
                if each.name == name and isinstance(each.value, Node):
                    return each.value.value
            found = program.arguments.get(name)
            if isinstance(found, Node):
                return found.value
            if isinstance(found, tuple):
                return tuple(each.value if isinstance(each, Node) else each for each in found)
        return node.value

    def default(self, name: str, value: Any) -> Any:
        """The default of an argument in the place of its value."""
        parameter = inspect.signature(self.names.subject.forward).parameters.get(name)
        if parameter is not None and parameter.default not in (parameter.empty, None):
            return parameter.default
        return value

    def behind_parameters(self) -> frozenset[str]:
        """The names of backward that all gradients but the first, that of x, are made of."""
        backward = self.pair.lettered.backward
        needed = _reachable(backward.results[1:])
        return frozenset(
            name
            for each in self.lettered[True]
            if not needed.isdisjoint(leaves(each.values))
            for name in each.names
        )

    def own_count(self, steps: Steps) -> int:
        """How many steps the example has."""
        rounds = {
            one.number
            for several in self.own.values()
            for each in several
            for one in each.rounds
            if one.loop == steps.site
        }
        return len(rounds)

    def _signature(self, value: Any) -> Any:
        """What is computed, without the sizes of arrays."""
        writer = Writer(self.scope)
        return _signature(writer, value)


def _signature(writer: Writer, value: Any, depth: int = 0) -> Any:
    value = writer.bare(value)
    if isinstance(value, Node):
        if depth and writer.has_symbol(value):
            named = writer.scope.symbols[value]
            return named.name, named.primes
        if value.op in ("size", "count"):
            return value.op
        return value.op, tuple(_signature(writer, each, depth + 1) for each in value.args)
    if isinstance(value, tuple | list):
        return tuple(_signature(writer, each, depth + 1) for each in value)
    if isinstance(value, slice):
        parts = value.start, value.stop, value.step
        return tuple(_signature(writer, each, depth + 1) for each in parts)
    return value if isinstance(value, int | float | str | bool) or value is None else repr(value)


def _is_same(node: Node, other: Node) -> bool:
    """Whether two nodes are the same array computed twice."""
    return node.op == other.op and np.array_equal(node.value, other.value, equal_nan=True)


def _bare(node: Node) -> Any:
    from handgrad.derivation.equations.shaping import shaped

    found: Any = node
    while isinstance(found, Node) and (inner := shaped(found)) is not None:
        found = inner
    return found


def _last(writer: Writer, start: Any, stop: Any) -> tuple[Formula, Formula]:
    """The first and last number that a range runs over, which may be reversed."""
    first, last = (each.value if isinstance(each, Node) else each for each in (start, stop))
    if first > last:
        other = _last(writer, stop, start)
        return other[1], other[0]
    return writer.write(start), moved(writer.write(stop), -1)


def _is_word(symbol: Formula) -> bool:
    base = symbol.base if isinstance(symbol, Script) else symbol
    return isinstance(base, Text)


def _reachable(results: Any) -> set[Node]:
    found: set[Node] = set()
    waiting = list(leaves(results))
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.operands
    return found


# Comparisons of places


def _numbered_axes(writer: Writer, node: Any) -> set[int]:
    """The axes, counted from the last, of which a condition compares the places."""
    node = writer.bare(node)
    if not isinstance(node, Node) or writer.has_symbol(node):
        return set()
    if node.op == "where":
        test, yes, no = node.args
        found = set(_places(writer, test))
        return found | _numbered_axes(writer, yes) | _numbered_axes(writer, no)
    if node.op in ("add", "subtract", "multiply", "divide", "negative"):
        return set[int]().union(*(_numbered_axes(writer, each) for each in node.args))
    return set()


def _is_counted(writer: Writer, node: Node) -> bool:
    """Whether the value is a condition that compares places."""
    return bool(set(_places(writer, node)))


def _places(writer: Writer, node: Any) -> Iterator[int]:
    """The axes of a condition that are numbered in it."""
    from handgrad.derivation.equations.shaping import same_axis

    outside, inner = shape(node), writer.bare(node)
    if not isinstance(inner, Node) or (writer.has_symbol(inner)):
        return
    found: set[int] = set()
    if inner.op in (
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("bitwise_and", "bitwise_or", "logical_and", "logical_or", "bitwise_invert"),
    ):
        found = {axis for part in inner.args for axis in _places(writer, part)}
    elif inner.op == "flip":
        found = set(_places(writer, inner.args[0]))
    elif inner.op == "arange":
        found = {-1}
    for axis in found:
        outer = same_axis(shape(inner), outside, axis)
        if outer is not None and outside[outer] != 1:
            yield outer


__all__ = ["Lines", "axis_of"]
