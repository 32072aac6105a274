"""A layer by its ops: every one that it calls, and every value between them.

The parts of a layer are numbered in the order in which they run: part 3.2 is the second of node 3.
The symbols of an op have the number of its part, as W_3.2; what a part takes has the symbol of the
part that gave it. At the end every numbered symbol gets a name by its role.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import Formula, Text, gradient_of
from handgrad.documents.labels import label
from handgrad.equations.derived import Arrived
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.equations import DerivedEquation, Meaning, PairDerivation
from handgrad.equations.glossary import Glossary, is_word, subscript
from handgrad.equations.models.calls import Calls, are_close, op_of, outputs_of
from handgrad.equations.models.graph import PassGraph, inner_inputs
from handgrad.equations.models.joined import added, joined
from handgrad.equations.models.names import activation_names, is_first_state, numbered_names
from handgrad.equations.models.origins import block_of
from handgrad.equations.models.recording import Recording
from handgrad.equations.models.roles import Roles
from handgrad.equations.models.rounds import Numbers
from handgrad.equations.models.steps import (
    OpCall,
    Other,
    meanings_of,
    rewritten,
    without_identity,
)
from handgrad.equations.models.symbols import (
    arriving,
    copy_symbol,
    is_gradient,
    numbered,
    parameter_symbol,
    plain_parameter,
    plain_symbol,
    renamed,
    value_symbol,
)
from handgrad.equations.scope import Scope
from handgrad.equations.shaping import shape as shape_of
from handgrad.equations.tracing import Runs, in_order
from handgrad.equations.words import first_sentence
from handgrad.equations.writer import Writer
from handgrad.layers import Embedding, Layer, OpLayer
from handgrad.layers.base import walk
from handgrad.ops import samples
from handgrad.program import Node, Program, ProgramError, leaves, values_of
from handgrad.program.functions import is_array

#: Names that say only at which end of a layer a value stands.
_ENDS: Final = frozenset({"x", "y", "dx", "dy"})


@dataclass(frozen=True)
class Composed:
    """A layer's parts in both passes, the symbols of its parameters, and its gradients.

    `given` are other arrays that it has, such as statistics, with their symbols.
    """

    forward: tuple[OpCall, ...]
    backward: tuple[OpCall, ...]
    others: tuple[Other, ...]
    parameters: Mapping[str, Formula]
    given: tuple[tuple[Formula, Any], ...]
    dx: Any
    gradients: Mapping[str, Any]
    #: The names of its symbols where it is written part by part.
    names: Collection[Formula] = ()


@dataclass(frozen=True)
class Ends:
    """The symbols of what goes into a layer and of what comes out.

    `copies` are what the gradients that the layer gives are gradients of: its inputs, or what of
    them goes into it where they fork. There are none where the layer gives none.
    """

    inputs: tuple[Formula, ...]
    output: Formula
    copies: tuple[Formula, ...]


@dataclass(frozen=True)
class _Call:
    """A call of an op: its part of backward, and the symbols of its outputs and gradients."""

    part: OpCall
    outputs: tuple[Formula, ...]
    gradients: Mapping[str, Formula]


def input_symbols(layer: Layer, inputs: tuple[Any, ...], value: int) -> tuple[Formula, ...]:
    """h_value; of several inputs each by its name, with that number."""
    return tuple(named_inputs(layer, inputs, value).values())


def named_inputs(layer: Layer, inputs: tuple[Any, ...], value: int) -> dict[str, Formula]:
    """The symbols of inputs by their names, of which the only one has none.

    The parts of a state are counted from 1: state1 and state2.
    """
    if sum(map(is_array, in_order(inputs))) == 1:
        return {"": value_symbol(value)}
    found: dict[str, Formula] = {}
    for name, each in zip(inspect.signature(layer.forward).parameters, inputs, strict=False):
        for i, array in enumerate(in_order(each), start=1):
            if is_array(array):
                own = f"{name}{i}" if isinstance(each, tuple) else name
                found[own] = numbered(plain_symbol(own, np.ndim(array)), value)
    return found


class Composer:
    """Writes one layer from its recording.

    Unless `exact`, calls of one op on arrays of the same shapes share a derivation: their equations
    are the same, and have the values of the first. `taken` are symbols of what stands beside the
    layer on the page, such as its loss; where it is not `is_alone`, its symbols have its number.
    Raises ProgramError for a layer of several outputs.
    """

    def __init__(
        self,
        layer: Layer,
        number: int,
        recording: Recording,
        ends: Ends,
        sizes: Dimensions,
        lang: str,
        *,
        exact: bool = True,
        is_alone: bool = True,
        taken: Collection[Formula] = (),
    ) -> None:
        self.is_alone, self.taken = is_alone, taken
        self.layer, self.number, self.ends, self.sizes = layer, number, ends, sizes
        self.graph = PassGraph(layer, recording)
        self.derivations = Calls(self.graph, sizes, lang, exact=exact)
        self.parameters: dict[str, Formula] = {}
        self.symbols: dict[Node, Formula] = {}
        self.calls: dict[Node, _Call] = {}
        #: Gradients that have an equation, or that an op's equations give.
        self.known: set[Formula] = set()
        #: Other arrays of the layer that ops take.
        self._given: list[Node] = []
        #: The gradients of the copies that ops take of a value that forks.
        self._shares: defaultdict[Node, list[Formula]] = defaultdict(list)
        #: Of values that fork before the layer, the copies that go into it.
        self._copies: dict[Node, Formula] = {}
        is_one = isinstance(layer, OpLayer | Embedding) and self.graph.is_one_op
        self._numbers = Numbers(str(number), only=is_one)
        #: The gradients of values that fork, by what they are the sums of.
        self._wholes: Mapping[frozenset[Formula | None], Formula] = {}
        #: The values that backward makes of the gradient that comes in.
        self._arriving: set[Node] = set()
        self._lines: list[tuple[str, str, tuple[str, int] | None, DerivedEquation]] = []
        self._owned = {id(array): name for name, array in layer.parameters.items()}
        self._plain = {
            name: plain_parameter(name.rpartition(".")[2], array.ndim)
            for name, array in layer.parameters.items()
        }
        self._constants = {
            id(getattr(each, name)) for _, each in walk(layer) for name in each.constant_names
        }
        words = label(lang, "if"), label(lang, "otherwise")
        programs = Runs(recording.forward, recording.backward, {}, {}, {})
        self.writer = Writer(Scope(programs, Glossary(), sizes, words), exact=self.symbols)

    def composed(self) -> Composed:
        """Both passes. Raises ProgramError where they cannot be written so."""
        forward = tuple(self._forward())
        dy = next(leaves(dict(self.graph.backward.arguments)))
        self._arriving = self.graph.made_of(dy)
        self.symbols[dy] = gradient_of(self.ends.output)
        self._wholes = self._shared()
        targets = self._targets()
        self._reach(dy, targets)
        backward = tuple(self._backward(self.graph.backward, targets))
        others = tuple(map(self._other, self.graph.others))
        for name in self.layer.parameters:
            self._parameter(name)
        dx, gradients = values_of(self.graph.backward.result)
        given = tuple((self.symbols[each], each.value) for each in self._given)
        found = Composed(forward, backward, others, self.parameters, given, dx, gradients)
        return found if self._numbers.only else self._by_roles(found)

    def _by_roles(self, found: Composed) -> Composed:
        """The same with names in the place of numbers."""
        behind = [*found.backward, *(part for other in found.others for part in other.parts)]
        mark = "" if self.is_alone else str(self.number)
        inputs = () if self.ends.copies else self.ends.inputs
        roles = Roles(
            found.forward, behind, found.parameters, mark=mark, taken=self.taken, inputs=inputs
        )
        others = (replace(each, parts=roles.told(each.parts)) for each in found.others)
        return replace(
            found,
            forward=(*self._entered(roles), *roles.told(found.forward)),
            backward=roles.told(found.backward),
            others=tuple(others),
            parameters={
                name: renamed(symbol, roles.names) for name, symbol in found.parameters.items()
            },
            given=tuple((renamed(symbol, roles.names), value) for symbol, value in found.given),
            names=tuple(roles.names.values()),
        )

    def _entered(self, roles: Roles) -> Iterator[OpCall]:
        """The inputs, by the names that they have in the blocks."""
        values = {symbol: node.value for node, symbol in self.symbols.items()}
        for symbol, name in roles.entered.items():
            whole = self._equation("", name, symbol, values[symbol])
            yield OpCall((joined(whole, added, ((symbol, values[symbol]),)),))

    # Forward

    def _forward(self) -> Iterator[OpCall]:
        result, output = self.graph.result, self.ends.output
        given = [each for each in leaves(dict(self.graph.forward.arguments)) if each.op == "input"]
        self.symbols.update(zip(given, self.ends.inputs, strict=False))
        self._copies.update(zip(given, self.ends.copies, strict=False))
        for node in self.graph.needed(self.graph.forward):
            if node.op.endswith(".forward"):
                if self.graph.outputs[node]:
                    part = self._call(node)
                    yield from self._written()
                    yield part
            elif node.op in ("input", "element"):
                continue
            elif node is result:
                self._line(node, output, node)
            elif self.graph.is_line(node):
                self._line(node, self._symbol(node), node)
        if self.symbols.get(result) != output:
            self._line(result, output, result)
            number, *_, last = self._lines.pop()
            self._lines.append((number, "", None, last))
        yield from self._written()

    def _call(self, node: Node) -> OpCall:
        """The equations of an op where it is called; its backward is kept until it runs."""
        subject, derivation = self.derivations.derived(node)
        number = self._next(node)
        names = numbered_names(derivation, subject, number)
        names |= activation_names(subject.options.get("activation"))
        symbol = derivation.glossary.symbol
        for name, value in node.kwargs.items():
            if isinstance(value, Node):
                names[symbol(name)] = self._argument(value, symbol(name))
        starts = tuple(self._starts(node, derivation, names))
        outputs, elements = outputs_of(derivation), self.graph.outputs[node]
        for output, element in zip(outputs, elements, strict=False):
            if element is self.graph.result and block_of(self.graph.path(node), None) is None:
                names[output] = self.ends.output  # a block gives what all others do
        symbols = tuple(renamed(each, names) for each in outputs)
        self.symbols.update(zip(elements, symbols, strict=False))
        copies, gradients = dict(names), {}
        for name in derivation.gradients:
            value = node.kwargs.get(name)
            if isinstance(value, Node):
                copy = self._copies.get(value, names[symbol(name)])
                if self.graph.forks[value] > 1:
                    copy = copy_symbol(names[symbol(name)], number)
                    self._shares[value].append(gradient_of(copy))
                copies[symbol(name)], gradients[name] = copy, gradient_of(copy)
        settings, functions = meanings_of(derivation, names, subject)
        settings += tuple(self._uniform(node))
        forward = without_identity(rewritten(each, names, copies) for each in derivation.forward)
        backward = self.derivations.backward(node, derivation)
        behind = tuple(rewritten(each, names, copies) for each in backward)
        title = ("", "") if self._numbers.only else (number, op_of(node))
        path, loop = self.graph.path(node), self._loop(node)
        self.calls[node] = _Call(OpCall(behind, (), (), *title, path), symbols, gradients)
        return OpCall((*starts, *forward), settings, functions, *title, path, loop)

    def _starts(
        self, node: Node, derivation: PairDerivation, names: dict[Formula, Formula]
    ) -> Iterator[DerivedEquation]:
        """The states of a loop before its first step; from here on each has the symbol that the
        steps have for it, h_{3.2,0}."""
        for name, value in node.kwargs.items():
            symbol = derivation.glossary.symbol(name)
            if isinstance(value, Node) and is_first_state(symbol, names, derivation.counter):
                assert symbol.sub is not None
                start = subscript(names[symbol.base], symbol.sub)
                before = self._equation(name, start, names[symbol], value.value)
                yield replace(before, nodes=(value,), arrived=tuple(self._arrived(value)))
                names[symbol] = start

    def _uniform(self, node: Node) -> Iterator[Meaning]:
        """The constants of a layer that are arrays of one number, such as a rate."""
        for name, value in node.kwargs.items():
            if isinstance(value, Node) and id(value.value) in self._constants:
                first = np.ravel(value.value)[:1]
                if np.all(value.value == first):
                    yield Meaning(self.symbols[value], name, value=float(first[0]))

    # Backward

    def _backward(self, run: Program, targets: Mapping[Node, list[Formula]]) -> Iterator[OpCall]:
        for node in self.graph.needed(run):
            if node.op.endswith(".backward"):
                if self.graph.outputs[node]:
                    yield from self._written()
                    self._numbers.enter(self.graph.rounds.get(node))
                    yield replace(self.calls[node.args[1]].part, loop=self._loop(node))
            elif node in self.graph.owners:
                call = self.graph.owners[node]
                name = samples.gradient_names(op_of(call))[node.args[1]]
                self.symbols[node] = self.calls[call.args[1]].gradients[name]
                self.known.add(self.symbols[node])
                self._reach(node, targets)
            elif node.op == "input":
                continue
            elif node in targets:
                self._line(node, targets[node][0], node)
                self._reach(node, targets)
            elif self.graph.is_line(node):
                self._line(node, self._symbol(node), node)
        yield from self._written()

    def _other(self, run: Program) -> Other:
        """Another form of backward, whose gradients are those of backward."""
        _, gradients = self.graph.backward.result
        self.known = set()
        targets: dict[Node, list[Formula]] = {}
        for name, node in run.result.items():
            if not are_close(node.value, gradients[name].value):
                raise ProgramError(f"notes: {run.frame.name} gives another gradient of {name}")
            targets.setdefault(node, []).append(gradient_of(self._parameter(name)))
        name = run.frame.name.rpartition(".")[2]
        parts = tuple(self._backward(run, targets))
        return Other(name, first_sentence(run.frame.function), parts)

    def _targets(self) -> dict[Node, list[Formula]]:
        """The nodes that are gradients of a symbol: those that go into an op's backward, and those
        that the layer gives back."""
        found: dict[Node, list[Formula]] = {}
        pairs: list[tuple[Any, Formula]] = []
        for each in self.graph.needed(self.graph.backward):
            if each.op.endswith(".backward") and self.graph.outputs[each]:
                if each.args[1] not in self.calls:
                    raise ProgramError(f"notes: {each.op} belongs to no forward of the layer")
                pairs += zip(in_order(each.args[0]), self.calls[each.args[1]].outputs, strict=False)
        dx, gradients = self.graph.backward.result
        pairs += [(node, self._parameter(name)) for name, node in gradients.items()]
        pairs += zip(in_order(dx), self.ends.copies, strict=False)
        sums = dict(self._sums())
        for node, symbol in pairs:
            if isinstance(node, Node):
                several = found.setdefault(node, [])
                if symbol in sums:
                    several.insert(0, gradient_of(sums[symbol]))
                several.append(gradient_of(symbol))
        return found

    def _sums(self) -> Iterator[tuple[Formula, Formula]]:
        """Values that go into a sum alone, and that sum, which passes its gradient on as it is."""
        for each in self.graph.needed(self.graph.forward):
            if each.op != "add" or each not in self.symbols:
                continue
            for operand in each.operands:
                alone = self.graph.forks[operand] == 1 and operand in self.symbols
                if alone and np.shape(operand.value) == np.shape(each.value):
                    yield self.symbols[operand], self.symbols[each]

    def _reach(self, node: Node, targets: Mapping[Node, list[Formula]]) -> None:
        """Say what else a node is that has its symbol."""
        for each in targets.get(node, ()):
            if each != self.symbols[node] and each not in self.known:
                self._line(node, each, node)

    # Lines

    def _line(self, node: Node, symbol: Formula, at: Node) -> None:
        """symbol = what the node is made of, or the symbol that it has already."""
        for each in inner_inputs(node, self.symbols):
            self._argument(each, None)
        self._numbers.enter(self.graph.rounds.get(at))
        known = self.symbols.get(node)
        right = self.writer.definition(node) if known is None else known
        found = self._equation(node.name, symbol, right, node.value)
        arrived, is_decided = tuple(self._arrived(node)), self.graph.forward.is_decided
        found = replace(found, nodes=(node,), arrived=arrived, is_decided=is_decided)
        self.symbols.setdefault(node, symbol)
        self.known.add(symbol)
        self._lines.append((self._numbers.current, self.graph.path(at), self._loop(at), found))

    def _arrived(self, node: Node) -> Iterator[Arrived]:
        """The values with symbols that a value is made of, or the value itself if it has one."""
        symbol = self.symbols.get(node)
        if symbol is None:
            for each in node.operands:
                yield from self._arrived(each)
        else:
            yield Arrived(node, symbol, node.name, ((symbol, node.value),), is_gradient(symbol))

    def _equation(self, name: str, left: Formula, right: Formula, value: Any) -> DerivedEquation:
        return DerivedEquation(
            name, left, right, self.sizes.shape(shape_of(value)), value, None, ((left, value),)
        )

    def _written(self) -> Iterator[OpCall]:
        """The lines so far, those of one layer and round together."""
        functions = tuple(
            Meaning(symbol, name, words=words)
            for name, (symbol, words) in self.writer.scope.helpers.items()
            if words
        )
        for (path, loop), group in groupby(self._lines, key=lambda each: each[1:3]):
            lines = list(group)
            equations = tuple(equation for *_, equation in lines)
            yield OpCall(equations, (), functions, lines[0][0], "", path, loop)
        self._lines.clear()

    # Symbols

    def _next(self, node: Node) -> str:
        """The number of a new part or value."""
        self._numbers.enter(self.graph.rounds.get(node))
        return self._numbers.next()

    def _loop(self, node: Node) -> tuple[str, int] | None:
        """The loop of alike rounds that a node is in, and the round."""
        return self._numbers.loop(self.graph.rounds.get(node))

    def _shared(self) -> Mapping[frozenset[Formula | None], Formula]:
        """The gradients whose sum is that of a value: those of all its copies, and of sums that
        it goes into."""
        found: dict[frozenset[Formula | None], Formula] = {}
        for each in self.graph.needed(self.graph.forward):
            if each.op == "add" and each in self.symbols:
                for operand in each.operands:
                    if np.shape(operand.value) == np.shape(each.value):
                        self._shares[operand].append(gradient_of(self.symbols[each]))
        for value, shares in self._shares.items():
            if len(shares) == self.graph.forks[value] > 1 and value in self.symbols:
                found[frozenset(shares)] = gradient_of(self.symbols[value])
        return found

    def _terms(self, node: Node) -> Iterator[Formula | None]:
        """The symbols of what is added up; None for a term that has none."""
        if node.op != "add" or node in self.symbols:
            yield self.symbols.get(node)
            return
        for each in node.operands:
            yield from self._terms(each)

    def _symbol(self, node: Node) -> Formula:
        """The symbol of a value, with its number: by its name, if it has one."""
        whole = self._wholes.get(frozenset(self._terms(node)))
        if whole is not None:
            return whole
        number = self._next(node)
        is_gradient = node in self._arriving and node.name[:1] == "d" and node.name.isidentifier()
        if is_gradient and node.name not in {*_ENDS, "d"} and not is_word(node.name):
            return numbered(arriving(node.name, np.ndim(node.value)), number)
        plain = "y" if node.number < self.graph.backward.nodes[0].number else "g"
        name = node.name if node.name.isidentifier() and node.name not in _ENDS else plain
        return numbered(plain_symbol(name, np.ndim(node.value)), number)

    def _argument(self, value: Node, own: Formula | None) -> Formula:
        """The symbol of what an op takes; a parameter has the op's, with the number of its part."""
        if value not in self.symbols:
            name = self._owned.get(id(value.value))
            if name is not None:
                if name not in self.parameters:
                    known = self._plain[name]
                    if isinstance(known, Text) and own is not None:
                        self.parameters[name] = numbered(own, self._numbers.current)
                    else:
                        self._parameter(name)
                self.symbols[value] = self._parameter(name)
            elif own is not None:
                self.symbols[value] = numbered(own, self._numbers.current)
                self._given.append(value)
        return self.symbols.get(value, self.writer.write(value))

    def _parameter(self, name: str) -> Formula:
        if name not in self.parameters:
            if self._numbers.only:
                axes = np.ndim(self.layer.parameters[name])
                self.parameters[name] = parameter_symbol(name, axes, self.number)
            else:
                number = f"{self.number}.0.{len(self.parameters)}"
                self.parameters[name] = numbered(self._plain[name], number)
        return self.parameters[name]
