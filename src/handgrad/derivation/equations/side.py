"""The equations of a forward or a backward, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.derivation.equations.derived import Equation
from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.execution import Execution, Line, is_numeric
from handgrad.derivation.equations.expression import Frame, Writer, is_array, matched
from handgrad.derivation.equations.functions import ends
from handgrad.derivation.equations.glossary import Glossary
from handgrad.derivation.equations.parts import UNARY, Part, power
from handgrad.derivation.formulas.formula import Fenced, Formula, Number, Sign, row, separated
from handgrad.derivation.formulas.numbers import matrix
from handgrad.trees import Function, nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called


class Side:
    """The equations of one of the two functions."""

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
        #: The index of every element of a list, by its name.
        self.elements: dict[str, list[Formula]] = {}
        #: What stands in a tuple that a loop will add to, and the right side of every name.
        self.started: dict[str, list[Formula]] = {}
        self.rights: dict[str, Formula] = {}
        self.cache = function.parameters[1].name if before is not None else ""
        self.before = before
        self.looped = {name for line in run.lines if line.loop is not None for name in line.values}
        #: The variables of loops, whose values the loops say.
        self.counters = {
            name for line in run.lines if line.loop for name in nodes.names(line.loop.target)
        }
        if before is not None:
            self.frame.ones = frozenset(
                {function.parameters[0].name} if frame.glossary.loss else frozenset()
            )
            kept = set(before.frame.primes) & self._unpacked()
            self.frame.primes.update({name: before.frame.primes[name] for name in kept})
            self.frame.primes.update(self._primes_of_gradients(before))
            self.frame.renamed.update(self._other_names(before))

    def _primes_of_gradients(self, before: Side) -> dict[str, int]:
        """The gradient of a name that forward set anew is that of its last value, unless it is an
        input: then it is that of the first."""
        inputs = {each.name for each in before.function.parameters}
        return {
            name: before.frame.primes[of]
            for name, of in self.frame.glossary.gradients.items()
            if of in before.frame.primes and of not in inputs
        }

    def _other_names(self, before: Side) -> dict[str, str]:
        """What forward calls the values in the cache whose own name is another value's there."""
        found = {}
        for name, node in from_cache(self, before).items():
            node = before.frame.aliases.get(node.id, node) if isinstance(node, nodes.Name) else node
            if isinstance(node, nodes.Name) and node.id != name and name in before.written:
                found[name] = node.id
        return found

    # Equations

    def equations(self) -> list[Equation]:
        found: list[Equation] = []
        needed = self._needed()
        for position, line in enumerate(self.run.lines):
            if needed.isdisjoint(line.values):
                continue
            self._gather(self.labelled.lines[position])
            equation = self._equation(position)
            if equation is not None:
                found.append(equation)
            elif found and list(line.values) == [found[-1].name]:
                found[-1] = self._reshaped(found[-1], position)
        return found

    def _needed(self) -> set[str]:
        """Every name that what is returned depends on."""
        frame = Frame({}, Glossary(), Dimensions())
        found = nodes.names(Writer(frame.at(self.run.names)).settled(self.run.trace.returned.value))
        lines = [
            (set(line.values), nodes.names(Writer(frame.at(line.names)).settled(line.node)))
            for line in self.run.lines
        ]
        before = -1
        while len(found) > before:
            before = len(found)
            for targets, used in lines:
                if not found.isdisjoint(targets):
                    found |= used
        return found

    def outputs(self, names: Sequence[tuple[str, Node]]) -> list[Equation]:
        """What forward returns, where it is not a name that has an equation."""
        lines = zip(names, _leaves(self.run.trace.result[0], len(names)), strict=True)
        return [
            self._returned(name, self.frame.glossary.symbol(name), node, value)
            for (name, node), value in lines
            if node != nodes.Name(name) or name not in self.written
        ]

    def returned(self, inputs: Sequence[str]) -> list[Equation]:
        """The gradients, where one is not a name that has its equation."""
        node = self.run.trace.returned.value
        items = node.items if isinstance(node, nodes.Sequence) else (node,)
        result = self.run.trace.result
        values = result if isinstance(node, nodes.Sequence) else (result,)
        found = []
        for name, item, value in zip(inputs, items, values, strict=False):
            if not is_array(value):
                continue
            gradient = self.frame.glossary.gradient(name)
            writer = self.writer(self.labelled.names)
            bare = writer.bare(item)
            known = isinstance(bare, nodes.Name) and bare.id in self.written
            if not known or writer.write(bare) != gradient:
                found.append(self._returned(f"d{name}", gradient, item, value))
        return found

    def _returned(self, name: str, left: Formula, node: Node, value: Any) -> Equation:
        writer = self.writer(self.labelled.names)
        shape = writer.value(node)
        shape = np.asarray(shape) if isinstance(shape, int | float) else shape
        return Equation(
            name,
            left,
            writer.result(node),
            self._shape(shape),
            value,
            self._figures(node, self.run.names),
            ((left, value),),
            self._computed(writer, name, node),
            node,
            self.run.names,
        )

    def _equation(self, position: int) -> Equation | None:
        line, labels = self.run.lines[position], self.labelled.lines[position]
        if self._is_unpacking(line.node) or self.is_incoming(line):
            return None
        if not all(map(is_numeric, line.values.values())):
            self._keep_scalar(labels)
            return None
        writer = self.writer(labels.names)
        tree = self._with_inlined(line.node)
        node = writer.bare(tree)
        if not isinstance(line.target, nodes.Name):
            return self._several(writer, line, labels, node)
        name = line.target.id
        if not is_array(line.values[name]) and not isinstance(node, nodes.Loop):
            return None  # arrays put together, as for a cache
        if self._only_renames(writer, name, node, line):
            return None
        if self._goes_into_next(position, name):
            self.inlined[name] = tree
            return None
        element = self._element(writer, name, node)
        left, right = element if element else (None, writer.result(node))
        indices = self._indices(line, node)
        figures = self._figures(node, line.names)
        computed = self._computed(writer, name, node)
        if self._is_set_anew(position, name):
            self.frame.primes[name] = self.frame.primes.get(name, 0) + 1
        self.inlined.pop(name, None)
        self.written.add(name)
        left = left or self.writer(labels.names).name(name).formula
        value, lettered = line.values[name], labels.values[name]
        several = value if isinstance(value, list | tuple) else [value]
        self.elements[name] = indices
        self.rights[name] = right
        symbols = [self._symbol(name, index) for index in indices] or [left]
        parts = tuple(zip(symbols, several, strict=True))
        shape = self._shape(lettered)
        return Equation(
            name,
            left,
            right,
            shape,
            value,
            figures,
            parts,
            computed,
            tree,
            line.names,
            line.again,
            self._loop(labels),
            self._is_updated(line, name),
        )

    def _reshaped(self, equation: Equation, position: int) -> Equation:
        """The equation with the shape that the next line gives its value."""
        line, labels = self.run.lines[position], self.labelled.lines[position]
        (value,), (label,) = line.values.values(), labels.values.values()
        if not is_array(value):
            return equation
        return replace(equation, shape=self._shape(label), value=value)

    def _several(self, writer: Writer, line: Line, labels: Line, node: Node) -> Equation | None:
        """(a, b) = f(x)"""
        if all(value is line.names.get(name) for name, value in line.values.items()):
            return None  # put together before, as what one part of backward leaves for another
        names = [part.id for part in nodes.walk(line.target) if isinstance(part, nodes.Name)]
        self.written.update(names)
        values = self.writer(line.names).value(node)
        left = separated(
            tuple(Sign("·") if name == "_" else writer.name(name).formula for name in names)
        )
        return Equation(
            next(name for name in names if name != "_"),
            left,
            writer.write(node),
            separated(tuple(self._shape(labels.values[name]) for name in names)),
            [
                value if name == "_" else line.values[name]
                for name, value in zip(names, values, strict=True)
            ],
            None,
            tree=node,
            names=line.names,
            again=line.again,
            loop=self._loop(labels),
        )

    def writer(self, names: dict[str, Any]) -> Writer:
        """A writer where names have these values."""
        return Writer(self.frame.at(names))

    def _shape(self, value: Any) -> Formula:
        first = value[0] if isinstance(value, list | tuple) else value
        return self.frame.dimensions.shape(first)

    # What is no equation

    def _is_unpacking(self, node: Node) -> bool:
        match node:
            case nodes.Name(name):
                return bool(self.cache) and name == self.cache
            case nodes.Attribute(value, _) | nodes.Index(value, _):
                return self._is_unpacking(value)
        return False

    def is_incoming(self, line: Line) -> bool:
        """Whether a tuple of gradients that comes in is taken apart."""
        incoming = nodes.Name(self.function.parameters[0].name)
        return (
            bool(self.cache) and line.node == incoming and isinstance(line.target, nodes.Sequence)
        )

    def _unpacked(self) -> set[str]:
        return {
            name for line in self.run.lines if self._is_unpacking(line.node) for name in line.values
        }

    def _keep_scalar(self, line: Line) -> None:
        match line.target:
            case nodes.Name(name) if isinstance(line.values[name], int | float):
                node = self.writer(line.names).bare(line.node)
                if isinstance(node, nodes.Name) and node.id != name:
                    self.frame.aliases[name] = node
                else:
                    self.scalars[name] = node, line.names

    def _only_renames(self, writer: Writer, name: str, node: Node, line: Line) -> bool:
        """Whether the value is another shape of a name, zeros, or the arrays of a loop stacked."""
        if name in self.frame.glossary.results or name in self.looped:
            return node == nodes.Name(name)
        match node:
            case nodes.Name(other):
                if other != name:
                    self.frame.aliases[name] = node
                return True
            case nodes.Call(function, _, _) if called(function) in ("zeros_like", "zeros"):
                self.frame.aliases[name] = nodes.Constant(0)
                return True
            case nodes.Call(function, (nodes.Name(family), *_), keywords) if (
                called(function) == "stack" and family in self.frame.families
            ):
                axis = next((writer.value(each.value) for each in keywords), 0)
                self.frame.families[family] = self.frame.families[family][0], axis
                self.frame.aliases[name] = nodes.Name(family)
                return True
        return False

    def _element(self, writer: Writer, name: str, node: Node) -> tuple[Formula, Formula] | None:
        """Both sides for one element of a list that a loop makes."""
        match node:
            case nodes.Loop("list", element, clauses):
                inside = writer.within(clauses)
                if inside.index is None:
                    return None
                self.frame.families[name] = inside.index, None
                self.frame.used.setdefault(name)
                left = self.frame.glossary.symbol(
                    name, self.frame.primes.get(name, 0), inside.index
                )
                return left, inside.result(element)
        return None

    def _symbol(self, name: str, index: Formula | None = None) -> Formula:
        return self.frame.symbol(name, index)

    def _computed(self, writer: Writer, name: str, node: Node) -> Any:
        tree = writer.settled(node)
        primes = sorted((each, self.frame.primes.get(each, 0)) for each in nodes.names(tree))
        return name, tree, tuple(primes)

    def _indices(self, line: Line, node: Node) -> list[Formula]:
        """The index of every element of a list that a loop makes."""
        match node:
            case nodes.Loop("list", _, (nodes.Clause(_, nodes.Name(over), ()),)) if (
                over in self.elements
            ):
                return self.elements[over]
            case nodes.Loop("list", _, (nodes.Clause(target, iterable, ()),)):
                found = []
                for position, item in enumerate(self.writer(line.names).value(iterable) or ()):
                    numbers = list(_whole(target, item)) or [position]
                    found.append(separated(tuple(Number(str(each)) for each in numbers)))
                return found
        return []

    # Loops that gather what they compute

    def _gather(self, line: Line) -> None:
        """Keep how a tuple is written that a loop adds to in every round."""
        match line.target, line.node:
            case nodes.Name(name), nodes.Sequence(_, items) if not line.again:
                own = nodes.Starred(nodes.Name(name))
                writer = self.writer(line.names)
                if line.loop is None:
                    self.started[name] = [self._start(writer, item) for item in items]
                elif items[0] == own or items[-1] == own:
                    self._gather_round(writer, line.loop, name, items, own)

    def _gather_round(
        self, writer: Writer, loop: nodes.For, name: str, items: tuple[Node, ...], own: Node
    ) -> None:
        """(h₀, h⁽⁰⁾, ⋯, h⁽ᵀ⁻¹⁾) where a loop over t adds h; the first added comes last where the
        loop adds in front."""
        limits = ends(writer, loop.iterable)
        (*_, added) = [item for item in items if item != own]
        if limits is None:
            return
        symbol = Part(writer.write(added), UNARY)
        rounds = [power(symbol, Fenced(limit)).formula for limit in limits]
        parts = [*self.started.get(name, []), rounds[0], Sign("⋯"), rounds[1]]
        if items[-1] == own:
            parts = [rounds[1], Sign("⋯"), rounds[0], *self.started.get(name, [])]
        self.frame.gathered[name] = Fenced(separated(tuple(parts)))

    def _start(self, writer: Writer, item: Node) -> Formula:
        """What stands in the tuple before the loop: a name by what it is now, for the loop will
        change it."""
        match item:
            case nodes.Name(name) if name in self.rights:
                return self.rights[name]
        return writer.write(item)

    # Names that are set more than once

    def _with_inlined(self, node: Node) -> Node:
        match node:
            case nodes.Name(name) if name in self.inlined:
                return self.inlined[name]
        return nodes.rebuilt(node, self._with_inlined)

    def _goes_into_next(self, position: int, name: str) -> bool:
        """Whether this value is used once, and that to set the same name anew."""
        line = self.run.lines[position]
        if name in self.looped:
            return False
        made_of = nodes.names(line.node) - {name}
        for later in self.run.lines[position + 1 :]:
            uses = _count(later.node, name)
            if later.target == nodes.Name(name):
                bare = self.writer(later.names).bare(later.node)
                if bare == nodes.Name(name):
                    continue
                return uses == 1 and later.node != line.node
            if uses or made_of & set(later.values):
                return False
        return False

    def _is_set_anew(self, position: int, name: str) -> bool:
        if name in self.inlined or name in self.looped:
            return False
        arguments = {each.name for each in self.function.parameters}
        return name in self.written or name in arguments

    # Loops

    def _loop(self, line: Line) -> Formula | None:
        """t = 0, 1, …, T − 1, or t ∈ what it runs over."""
        if line.loop is None:
            return None
        writer = self.writer(line.names)
        (names, over) = nodes.names(line.loop.target), line.loop.iterable
        target = separated(tuple(writer.frame.glossary.symbol(name) for name in sorted(names)))
        found = ends(writer, over)
        if found is None:
            return row(target, Sign("∈"), writer.write(over))
        return row(target, Sign("="), separated((found[0], Sign("⋯"), found[1])))

    def _is_updated(self, line: Line, name: str) -> bool:
        """Whether a loop sets a name anew that had a value before."""
        before = line.names.get(name)
        first = next(each for each in self.run.lines if name in each.values)
        arguments = {each.name for each in self.function.parameters}
        return (
            line.loop is not None
            and (name in arguments or first.loop is not line.loop or _count(line.node, name) > 0)
            and before is not None
        )

    # Numbers

    def _figures(self, node: Node, names: dict[str, Any]) -> Formula | None:
        """The right side with matrices for names, where it is short and more than one of them."""
        writer = Writer(replace(self.frame.at(names), dimensions=Dimensions()), figures=matrix)
        arrays = [part for part in nodes.walk(node) if is_array(writer.value(part))]
        if not _is_plain(writer, node) or not any(
            isinstance(part, nodes.MatMul | nodes.Sum | nodes.Product) for part in nodes.walk(node)
        ):
            return None
        leaves = [writer.value(part) for part in arrays if isinstance(part, nodes.Name)]
        if len(leaves) > 3 or any(leaf.ndim > 2 or leaf.size > 24 for leaf in leaves):
            return None
        return writer.write(node)


def from_cache(backward: Side, forward: Side) -> dict[str, Node]:
    """What forward computed for the cache, by the names that backward gives it."""
    fields = _cache_fields(forward)
    found: dict[str, Node] = {}
    for line in backward.run.lines:
        match line.target, line.node:
            case nodes.Sequence(_, targets), nodes.Name(name) if name == backward.cache:
                pairs = zip(targets, fields.values(), strict=False)
                found |= {one.id: node for one, node in pairs if isinstance(one, nodes.Name)}
            case nodes.Name(name), nodes.Attribute(nodes.Name(owner), field) if (
                owner == backward.cache and field in fields
            ):
                found[name] = fields[field]
    return found


def _cache_fields(forward: Side) -> dict[str, Node]:
    """The expressions that forward puts into its cache, by field."""
    returned = forward.run.trace.returned.value
    made = returned.items[1] if isinstance(returned, nodes.Sequence) else returned
    if isinstance(made, nodes.Name):
        made = forward.run.trace.definition(made.id) or made
    cache = forward.run.trace.result[1]
    if not isinstance(made, nodes.Call) or not hasattr(cache, "_fields"):
        return {}
    positional = dict(zip(cache._fields, made.arguments, strict=False))
    return positional | {each.name: each.value for each in made.keywords}


def _whole(target: Node, item: Any) -> Iterator[int]:
    """The whole numbers that a loop's variables have for one item."""
    for name, value in matched(target, item):
        parts = value if isinstance(value, tuple) else (value,)
        if name != "_" and all(isinstance(part, int) for part in parts):
            yield from parts


def _leaves(value: Any, count: int) -> list[Any]:
    """The parts of nested tuples, where there are several."""
    if count == 1 or not isinstance(value, tuple | list):
        return [value]
    return [leaf for part in value for leaf in _leaves(part, count)]


def _count(node: Node, name: str) -> int:
    return sum(part == nodes.Name(name) for part in nodes.walk(node))


def _is_plain(writer: Writer, node: Node) -> bool:
    """Sums, products and transposes of names and numbers, nothing else."""
    node = writer.bare(node)
    match node:
        case nodes.Name() | nodes.Constant() | nodes.Attribute():
            return True
        case nodes.Product() if not _reads_as_product(writer, node):
            return False
        case nodes.Sum() | nodes.Product() | nodes.Negative() | nodes.MatMul():
            return all(_is_plain(writer, each) for each in nodes.children(node))
        case nodes.Term(_, value) | nodes.Factor(_, value) | nodes.Transpose(value):
            return _is_plain(writer, value)
    return False


def _reads_as_product(writer: Writer, node: nodes.Product) -> bool:
    """Whether matrices put for names show what is done; a column beside a matrix would not."""
    shapes = [shape for each in node.factors if (shape := writer.shape(each.value))]
    return len(shapes) < 2 or all(shape[-1] != 1 for shape in shapes)
