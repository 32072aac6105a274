"""A layer that is more than one op: every op that it calls, and every value between them.

The parts of a layer are numbered in the order in which they run: part 3.2 is the second of node 3.
The symbols of an op have the number of its part, as W_3.2; what a part takes has the symbol of the
part that gave it.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby
from typing import Any, Final

import numpy as np

from handgrad.derivation.documents.labels import label
from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.equations import Derivation, Equation, Meaning, derive
from handgrad.derivation.equations.exact import ARRANGING, CONSTANT
from handgrad.derivation.equations.glossary import Glossary, subscript
from handgrad.derivation.equations.scope import Scope
from handgrad.derivation.equations.subject import Subject
from handgrad.derivation.equations.tracing import Runs
from handgrad.derivation.equations.words import first_sentence
from handgrad.derivation.equations.writer import Writer
from handgrad.derivation.formulas.formula import (
    Formula,
    Fraction,
    Row,
    Script,
    Text,
    gradient_of,
    row,
)
from handgrad.derivation.models.graph import (
    in_order,
    inner_inputs,
    layer_paths,
    owners,
    resolve_elements,
)
from handgrad.derivation.models.names import activation_names, is_first_state, numbered_names
from handgrad.derivation.models.recording import Recording
from handgrad.derivation.models.rounds import Numbers, repeated_rounds
from handgrad.derivation.models.steps import (
    Other,
    Part,
    meanings_of,
    rewritten,
    without_identity,
)
from handgrad.derivation.models.symbols import (
    copy_symbol,
    numbered,
    parameter_symbol,
    plain_parameter,
    plain_symbol,
    renamed,
    value_symbol,
)
from handgrad.layers import Embedding, Layer, OpLayer
from handgrad.layers.base import walk
from handgrad.ops import samples
from handgrad.program import Frame, Node, Program, ProgramError, leaves, reachable, values_of
from handgrad.program.functions import is_array

#: The largest difference between the gradients of an op's equations and those of the layer.
_SAME: Final = 1e-4
#: Names that say only at which end of a layer a value stands.
_ENDS: Final = frozenset({"x", "y", "dx", "dy"})


@dataclass(frozen=True)
class Composed:
    """A layer's parts in both passes, the symbols of its parameters, and its gradients.

    `given` are other arrays that it has, such as statistics, with their symbols.
    """

    forward: tuple[Part, ...]
    backward: tuple[Part, ...]
    others: tuple[Other, ...]
    parameters: Mapping[str, Formula]
    given: tuple[tuple[Formula, Any], ...]
    dx: Any
    gradients: Mapping[str, Any]


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

    part: Part
    outputs: tuple[Formula, ...]
    gradients: Mapping[str, Formula]


def input_symbols(layer: Layer, inputs: tuple[Any, ...], value: int) -> tuple[Formula, ...]:
    """h_value; of several inputs each by its name, with that number.

    The parts of a state are counted from 1: state1 and state2.
    """
    if sum(map(is_array, in_order(inputs))) == 1:
        return (value_symbol(value),)
    found: list[Formula] = []
    for name, each in zip(inspect.signature(layer.forward).parameters, inputs, strict=False):
        for i, array in enumerate(in_order(each), start=1):
            if is_array(array):
                own = f"{name}{i}" if isinstance(each, tuple) else name
                found.append(numbered(plain_symbol(own, np.ndim(array)), value))
    return tuple(found)


class Composer:
    """Writes one layer from its recording.

    Unless `exact`, calls of one op on arrays of the same shapes share a derivation: their equations
    are the same, and have the values of the first.
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
    ) -> None:
        self.layer, self.number, self.ends, self.exact = layer, number, ends, exact
        self._derivations: dict[Any, Derivation] = {}
        self.sizes, self.lang = sizes, lang
        self.forward, self.backward = recording.forward, recording.backward
        self.others = recording.others
        runs = self.forward, self.backward, *self.others
        for run in runs:
            resolve_elements(run)
        self.result = self.forward.result[0]
        if not isinstance(self.result, Node):
            raise ProgramError("notes: the layer gives several outputs; allowed: one array")
        self.parameters: dict[str, Formula] = {}
        self.symbols: dict[Node, Formula] = {}
        self.calls: dict[Node, _Call] = {}
        #: Gradients that have an equation, or that an op's equations give.
        self.known: set[Formula] = set()
        #: Other arrays of the layer that ops take.
        self._given_arrays: list[Node] = []
        #: Of values that fork before the layer, the copies that go into it.
        self._copies: dict[Node, Formula] = {}
        self._lines: list[tuple[str, str, tuple[str, int] | None, Equation]] = []
        paths = {id(each): path for path, each in walk(layer)}
        self._frames: dict[Frame, str] = {}
        for run in runs:
            self._frames |= layer_paths(run, paths)
        self._owned = {id(array): name for name, array in layer.parameters.items()}
        self._plain = {
            name: plain_parameter(name.rpartition(".")[2], array.ndim)
            for name, array in layer.parameters.items()
        }
        self._owners = {**owners(self.forward), **owners(self.backward)}
        self._elements: defaultdict[Node, list[Node]] = defaultdict(list)
        for element, call in self._owners.items():
            self._elements[call].append(element)
        self._needed = reachable((self.result, *(run.result for run in runs[1:])))
        nodes = [each for run in runs for each in run.nodes if each in self._needed]
        is_one = isinstance(layer, OpLayer | Embedding) and _is_one_op(nodes)
        self._numbers = Numbers(str(number), only=is_one)
        self._users: dict[Node, list[Node]] = defaultdict(list)
        for each in nodes:
            for operand in each.operands:
                self._users[operand].append(each)
        #: The number of values that are made of each.
        self._forks = Counter(
            operand
            for each in self.forward.nodes
            if each in self._needed and each.op not in CONSTANT
            for operand in each.operands
        )
        #: The arguments of ops.
        self._taken = {
            operand for each in nodes if each.op.endswith(".forward") for operand in each.operands
        }
        self._rounds: dict[Node, tuple[int, int]] = {}
        for run in (self.forward, self.backward):
            self._rounds |= repeated_rounds(
                (each, self._shape(each)) for each in run.nodes if each in self._needed
            )
        words = label(lang, "if"), label(lang, "otherwise")
        programs = Runs(self.forward, self.backward, {}, {}, {})
        self.writer = Writer(Scope(programs, Glossary(), sizes, words), exact=self.symbols)

    def composed(self) -> Composed:
        """Both passes. Raises ProgramError where they cannot be written so."""
        forward = tuple(self._forward())
        backward = tuple(self._backward())
        others = tuple(map(self._other, self.others))
        for name in self.layer.parameters:
            self._parameter(name)
        dx, gradients = values_of(self.backward.result)
        given = tuple((self.symbols[each], each.value) for each in self._given_arrays)
        return Composed(forward, backward, others, self.parameters, given, dx, gradients)

    # Forward

    def _forward(self) -> Iterator[Part]:
        given = [each for each in leaves(dict(self.forward.arguments)) if each.op == "input"]
        self.symbols.update(zip(given, self.ends.inputs, strict=False))
        self._copies.update(zip(given, self.ends.copies, strict=False))
        for node in self.forward.nodes:
            if node not in self._needed or node.op in ("input", "element"):
                continue
            if node.op.endswith(".forward"):
                if self._outputs(node):
                    part = self._call(node)
                    yield from self._written()
                    yield part
            elif node is self.result:
                self._line(node, self.ends.output, node)
            elif self._is_line(node):
                self._line(node, self._symbol(node), node)
        if self.symbols.get(self.result) != self.ends.output:
            self._line(self.result, self.ends.output, self.result)
        yield from self._written()

    def _call(self, node: Node) -> Part:
        """The equations of an op where it is called; its backward is kept until it runs."""
        op, path = node.op.removesuffix(".forward"), self._path(node.frame)
        back = next((each for each in self._calls() if each.args[1] is node), None)
        subject, derivation = self._derived(op, node, back)
        glossary = derivation.glossary
        number = self._next(node)
        names = numbered_names(derivation, subject, number)
        names |= activation_names(subject.options.get("activation"))
        for name, value in node.kwargs.items():
            if isinstance(value, Node):
                names[glossary.symbol(name)] = self._argument(value, glossary.symbol(name))
        starts = tuple(self._starts(node, derivation, names))
        outputs = [_without_step(each, derivation.counter) for each in derivation.arriving]
        elements = self._outputs(node)
        for output, element in zip(outputs, elements, strict=False):
            if element is self.result:
                names[output] = self.ends.output
        symbols = tuple(renamed(each, names) for each in outputs)
        self.symbols.update(zip(elements, symbols, strict=False))
        copies, gradients = dict(names), {}
        for name in derivation.gradients:
            value = node.kwargs.get(name)
            if isinstance(value, Node):
                symbol = glossary.symbol(name)
                copies[symbol] = self._copies.get(value, names[symbol])
                if self._forks[value] > 1:
                    copies[symbol] = copy_symbol(names[symbol], number)
                gradients[name] = gradient_of(copies[symbol])
        settings, functions = meanings_of(derivation, names, subject)
        settings += tuple(self._uniform(node))
        forward = without_identity(rewritten(each, names, copies) for each in derivation.forward)
        behind = tuple(
            rewritten(each, names, copies) for each in self._computed(op, derivation, back)
        )
        title = ("", "") if self._numbers.only else (number, op)
        self.calls[node] = _Call(Part(behind, (), (), *title, path), symbols, gradients)
        return Part((*starts, *forward), settings, functions, *title, path, self._block(node))

    def _starts(
        self, node: Node, derivation: Derivation, names: dict[Formula, Formula]
    ) -> Iterator[Equation]:
        """The states of a loop before its first step; from here on each has the symbol that the
        steps have for it, h_{3.2,0}."""
        for name, value in node.kwargs.items():
            symbol = derivation.glossary.symbol(name)
            if isinstance(value, Node) and is_first_state(symbol, names, derivation.counter):
                assert symbol.sub is not None
                start = subscript(names[symbol.base], symbol.sub)
                shape, given = self.sizes.shape(value.value), names[symbol]
                yield Equation(
                    name, start, given, shape, value.value, None, ((start, value.value),)
                )
                names[symbol] = start

    def _uniform(self, node: Node) -> Iterator[Meaning]:
        """The arguments of an op that the layer has as arrays of one number, such as a rate."""
        layers = [each for _, each in walk(self.layer)]
        constants = {id(getattr(each, name)) for each in layers for name in each.constant_names}
        for name, value in node.kwargs.items():
            if isinstance(value, Node) and id(value.value) in constants:
                first = np.ravel(value.value)[:1]
                if np.all(value.value == first):
                    yield Meaning(self.symbols[value], name, value=float(first[0]))

    def _derived(self, op: str, node: Node, back: Node | None) -> tuple[Subject, Derivation]:
        """The derivation of an op on the arguments of a call, whose gradients are those that the
        call gave."""
        module = import_module(f"handgrad.ops.{op}")
        arguments = {name: values_of(value) for name, value in node.kwargs.items()}
        arrays = {name: value for name, value in arguments.items() if is_array(value)}
        options = {name: value for name, value in arguments.items() if name not in arrays}
        dy = _zeros(node.value[0]) if back is None else values_of(back.args[0])
        names = samples.gradient_names(op)
        forward, backward = inspect.unwrap(module.forward), inspect.unwrap(module.backward)
        subject = Subject(op, forward, backward, arrays, options, dy, names)
        key = repr((op, _shapes(arrays), _shapes(dy), _settled(options)))
        if not self.exact and key in self._derivations:
            return subject, self._derivations[key]
        derivation = self._derivations[key] = derive(subject, self.lang, dimensions=self.sizes)
        for name, gradient in self._given(back):
            if not _are_close(gradient, derivation.gradients[name]):
                raise ProgramError(f"notes: {op} gives another gradient of {name} in the layer")
        return subject, derivation

    def _given(self, back: Node | None) -> Iterator[tuple[str, Any]]:
        """The gradients that a call gave, as they were then, by the names of the op's inputs."""
        if back is None:
            return
        elements = {each.args[1]: each.value for each in self._outputs(back)}
        names = samples.gradient_names(back.op.removesuffix(".backward"))
        for position, (name, value) in enumerate(zip(names, back.value[0], strict=False)):
            if is_array(value):
                yield name, elements.get(position, value)

    def _computed(self, op: str, derivation: Derivation, back: Node | None) -> list[Equation]:
        """The equations of the gradients that the layer asks for."""
        if back is None:
            return []
        names = samples.gradient_names(op)
        given = {f"d{name}" for name, _ in self._given(back)}
        found = [
            each
            for each in derivation.backward
            if each.name in given or each.name not in {f"d{name}" for name in names}
        ]
        if f"d{names[0]}" in given:
            return found
        wanted = derivation.behind_parameters | given
        return [each for each in found if each.name in wanted]

    # Backward

    def _calls(self) -> Iterator[Node]:
        return (each for each in self.backward.nodes if each.op.endswith(".backward"))

    def _backward(self) -> Iterator[Part]:
        dy = next(leaves(dict(self.backward.arguments)))
        self.symbols[dy] = gradient_of(self.ends.output)
        targets = self._targets()
        self._reach(dy, targets)
        for node in self.backward.nodes:
            if node not in self._needed or node.op == "input":
                continue
            if node.op.endswith(".backward"):
                if self._outputs(node):
                    yield from self._written()
                    self._numbers.enter(self._rounds.get(node))
                    yield replace(self.calls[node.args[1]].part, block=self._block(node))
            elif node in self._owners:
                call = self._owners[node]
                names = samples.gradient_names(call.op.removesuffix(".backward"))
                self.symbols[node] = self.calls[call.args[1]].gradients[names[node.args[1]]]
                self.known.add(self.symbols[node])
                self._reach(node, targets)
            elif node in targets:
                self._line(node, targets[node][0], node)
                self._reach(node, targets)
            elif self._is_line(node):
                self._line(node, self._symbol(node), node)
        yield from self._written()

    def _other(self, run: Program) -> Other:
        """Another form of backward, whose gradients are those of backward."""
        _, gradients = self.backward.result
        self.known = set()
        targets: dict[Node, list[Formula]] = {}
        for name, node in run.result.items():
            if not _are_close(node.value, gradients[name].value):
                raise ProgramError(f"notes: {run.frame.name} gives another gradient of {name}")
            targets.setdefault(node, []).append(gradient_of(self._parameter(name)))
        for node in run.nodes:
            if node.op == "input" or node not in self._needed:
                continue
            if node in targets:
                self._line(node, targets[node][0], node)
                self._reach(node, targets)
            elif self._is_line(node):
                self._line(node, self._symbol(node), node)
        name = run.frame.name.rpartition(".")[2]
        return Other(name, first_sentence(run.frame.function), tuple(self._written()))

    def _targets(self) -> dict[Node, list[Formula]]:
        """The nodes that are gradients of a symbol: those that go into an op's backward, and those
        that the layer gives back."""
        found: dict[Node, list[Formula]] = {}
        pairs: list[tuple[Any, Formula]] = []
        for each in self._calls():
            if each in self._needed and self._outputs(each):
                if each.args[1] not in self.calls:
                    raise ProgramError(f"notes: {each.op} belongs to no forward of the layer")
                pairs += zip(in_order(each.args[0]), self.calls[each.args[1]].outputs, strict=False)
        dx, gradients = self.backward.result
        pairs += [(node, self._parameter(name)) for name, node in gradients.items()]
        pairs += zip(in_order(dx), self.ends.copies, strict=False)
        for node, symbol in pairs:
            if isinstance(node, Node):
                found.setdefault(node, []).append(gradient_of(symbol))
        return found

    def _reach(self, node: Node, targets: Mapping[Node, list[Formula]]) -> None:
        """Say what else a node is that has its symbol."""
        for each in targets.get(node, ()):
            if each != self.symbols[node] and each not in self.known:
                self._line(node, each, node.operands[0] if node.operands else node)

    # Lines

    def _is_line(self, node: Node) -> bool:
        """True for a value with an equation of its own: an op takes it, or it has a name."""
        if not is_array(node.value):
            return False
        if node in self._taken:
            return True
        if node.op in ARRANGING | CONSTANT or self._goes_into_store(node):
            return False
        return len(self._users[node]) > 1 or node.name.isidentifier()

    def _goes_into_store(self, node: Node) -> bool:
        """True for an array of which some elements are set before anything reads it."""
        later = self._users[node]
        return node.op == "store" and len(later) == 1 and later[0].op == "store"

    def _line(self, node: Node, symbol: Formula, at: Node) -> None:
        """symbol = what the node is made of, or the symbol that it has already."""
        for each in inner_inputs(node, self.symbols):
            self._argument(each, None)
        self._numbers.enter(self._rounds.get(at))
        known = self.symbols.get(node)
        right = self.writer.definition(node) if known is None else known
        shape = self.sizes.shape(node.value)
        found = Equation(node.name, symbol, right, shape, node.value, None, ((symbol, node.value),))
        self.symbols.setdefault(node, symbol)
        self.known.add(symbol)
        self._lines.append((self._numbers.current, self._path(at.frame), self._block(at), found))

    def _written(self) -> Iterator[Part]:
        """The lines so far, those of one layer and round together."""
        for (path, block), group in groupby(self._lines, key=lambda each: each[1:3]):
            lines = list(group)
            functions = tuple(
                Meaning(symbol, name, words=words)
                for name, (symbol, words) in self.writer.scope.helpers.items()
                if words
            )
            equations = tuple(equation for *_, equation in lines)
            yield Part(equations, (), functions, lines[0][0], "", path, block)
        self._lines.clear()

    # Symbols

    def _next(self, node: Node) -> str:
        """The number of a new part or value."""
        self._numbers.enter(self._rounds.get(node))
        return self._numbers.next()

    def _block(self, node: Node) -> tuple[str, int] | None:
        """The loop of alike rounds that a node is in, and the round."""
        return self._numbers.block(self._rounds.get(node))

    def _shape(self, node: Node) -> tuple[str, str]:
        """What a node does and where, alike in alike rounds."""
        return node.op, re.sub(r"\d+", "0", self._path(node.frame))

    def _symbol(self, node: Node) -> Formula:
        """The symbol of a value, with its number: by its name, if it has one."""
        number = self._next(node)
        plain = "y" if node.number < self.backward.nodes[0].number else "g"
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
                        is_one = list(self._plain.values()).count(known) == 1
                        number = str(self.number) if is_one else self._numbers.current
                        self.parameters[name] = numbered(known, number)
                self.symbols[value] = self._parameter(name)
            elif own is not None:
                self.symbols[value] = numbered(own, self._numbers.current)
                self._given_arrays.append(value)
        return self.symbols.get(value, self.writer.write(value))

    def _parameter(self, name: str) -> Formula:
        if name not in self.parameters:
            axes = np.ndim(self.layer.parameters[name])
            self.parameters[name] = parameter_symbol(name, axes, self.number)
        return self.parameters[name]

    def _outputs(self, call: Node) -> list[Node]:
        return self._elements[call]

    def _path(self, frame: Frame | None) -> str:
        """The layer that a function belongs to, by its name; "" for the whole layer."""
        while frame is not None:
            if frame in self._frames:
                return self._frames[frame]
            frame = frame.caller
        return ""


def _is_one_op(nodes: list[Node]) -> bool:
    """True for one call of an op, forward and backward, with nothing before or after it."""
    ops = [each.op for each in nodes if each.op not in ("input", "element")]
    forwards = [op for op in ops if op.endswith(".forward")]
    return len(forwards) == 1 and all(op.endswith((".forward", ".backward")) for op in ops)


def _without_step(gradient: Formula, counter: Formula | None) -> Formula:
    """y for ∂L/∂y, and for ∂L/∂y_t."""
    assert isinstance(gradient, Fraction)
    assert isinstance(gradient.denominator, Row)
    symbol = row(*gradient.denominator.parts[1:])
    if isinstance(symbol, Script) and counter is not None and symbol.sub == counter:
        return symbol.base if symbol.sup is None else Script(symbol.base, sup=symbol.sup)
    return symbol


def _zeros(y: Any) -> Any:
    return tuple(map(_zeros, y)) if isinstance(y, tuple) else np.zeros_like(y)


def _shapes(value: Any) -> Any:
    """The shapes and types of arrays; a generator is like any other."""
    if isinstance(value, dict):
        return {name: _shapes(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_shapes, value))
    return (np.shape(value), value.dtype) if is_array(value) else type(value)


def _settled(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The settings, without the state of generators."""
    return [
        (name, None if isinstance(value, np.random.Generator) else value)
        for name, value in options.items()
    ]


def _are_close(one: Any, other: Any) -> bool:
    return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=_SAME, atol=_SAME)
