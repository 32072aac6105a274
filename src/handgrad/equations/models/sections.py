"""The parts of a model's notes in which its equations stand: forward, backward, update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handgrad.documents.document import (
    Block,
    Content,
    Heading,
    List,
    Mono,
    Paragraph,
    Span,
    spans,
)
from handgrad.documents.document import Equation as Line
from handgrad.documents.formulas.formula import Formula, Number, Script, Symbol, equals, row
from handgrad.documents.labels import label
from handgrad.equations import docstrings
from handgrad.equations.equations import DerivedEquation
from handgrad.equations.models import overview
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.composition import input_symbols
from handgrad.equations.models.flow import Flow
from handgrad.equations.models.names import FUSED, activations_of, full_name
from handgrad.equations.models.rounds import Repeated, folded
from handgrad.equations.models.steps import OpCall, WrittenNode, activation_step
from handgrad.equations.models.symbols import renamed, value_gradient, value_symbol
from handgrad.equations.models.update import PARAMETER, settings_of, update_rule, updated
from handgrad.equations.shaping import shape as shape_of
from handgrad.equations.tracing import in_order
from handgrad.equations.written import Board, assigned, settings, updated_line
from handgrad.layers.base import walk
from handgrad.optimizers import Optimizer

#: The parameters of every node, by its number.
Parameters = Mapping[int, Mapping[str, Any]]
Rule = Sequence[tuple[Formula, Formula]]


class Sections:
    """Writes blocks; equations are numbered through all of them."""

    def __init__(self, flow: Flow, chain: Chain, loss: str, numbers: bool) -> None:
        self.flow = flow
        self.chain = chain
        self.loss = loss
        self.board = Board(numbers, self.say, self._inputs(), rounds=False)
        #: All equations of both passes, also those of rounds that are not written again.
        self.computed: dict[str, list[DerivedEquation]] = {"forward": [], "backward": []}

    def say(self, key: str) -> str:
        return label(self.chain.lang, key)

    def filled(self, key: str, *contents: Content) -> tuple[Span, ...]:
        """A sentence with formulas in its gaps."""
        first, *rest = self.say(key).split("{}")
        found: list[Span] = [first]
        for content, words in zip(contents, rest, strict=True):
            found += [*spans(content), words]
        return tuple(found)

    def given(self, x: Any, parameters: Parameters) -> Iterator[Block]:
        yield Heading(self.say("board"), anchor="given")
        arrays = [each for each in in_order(x) if each is not None]
        for symbol, array in zip(self._inputs(), arrays, strict=True):
            yield self.board.line(assigned(symbol, array))
        for node in self.flow.nodes:
            for name, symbol in self.chain.symbols_of(node).items():
                yield self.board.line(assigned(symbol, parameters[node.number][name]))
        for symbol, array in self.chain.given:
            yield self.board.line(assigned(symbol, array))
        if self.chain.target is not None:
            yield self.board.line(assigned(*self.chain.target))

    def _inputs(self) -> tuple[Formula, ...]:
        x = self.chain.run.values[0]
        inputs = x if isinstance(x, tuple) else (x,)
        return input_symbols(self.flow.nodes[0].layer, inputs, 0)

    # Forward

    def forward(self, steps: Sequence[WrittenNode], last: WrittenNode | None) -> Iterator[Block]:
        yield Heading(self.say("forward"), anchor="forward")
        index = Symbol("i")
        inputs = self._inputs()
        key = "model_symbols" if len(inputs) == 1 else "model_inputs"
        symbols = self.filled(key, _listed(inputs), Script(Symbol("h"), index), index)
        batch = "" if self.board.numbers else f" {self.say('model_batch')}"
        yield Paragraph((*symbols, f"{batch} {self.say('elementwise')}"))
        every = list(steps) if last is None else [*steps, last]
        yield from self._functions(every)
        for step in every:
            yield self._heading(step, "forward")
            if step.is_opaque:
                yield Paragraph(self.say("model_opaque"))
            yield from self._parts(step, step.forward, "forward")

    def _functions(self, steps: Sequence[WrittenNode]) -> Iterator[Block]:
        """What the equations call, in words; and the activations of fused layers."""
        parts = [part for step in steps for part in (*step.forward, *step.backward)]
        functions = {each.symbol: each for part in parts for each in part.functions}
        words = tuple(
            (each.symbol, ": ", *spans(docstrings.prose(each.words)))
            for each in functions.values()
            if each.name not in FUSED
        )
        if words:
            yield List(words)
        for name, options in activations_of(self.flow).items():
            step = activation_step(name, options, self.chain.lang)
            yield Heading(name, 2, f"function-{name}")
            for part in (*step.forward, *step.backward):
                yield from self._settings(part)
                for each in part.equations:
                    yield self.board.line(equals(each.left, each.right))

    def _parts(self, step: WrittenNode, parts: Sequence[OpCall], which: str) -> Iterator[Block]:
        """The parts of a node, each with a heading where it has a number."""
        if which in self.computed:
            self.computed[which] += (each for part in parts for each in part.equations)
        for i, part in enumerate(folded(parts)):
            if isinstance(part, Repeated):
                yield self._repeated(part)
                continue
            if part.number:
                yield Heading(self._title(step, part), 3, f"{which}-{part.number}-{i}")
            yield from self._settings(part)
            yield from self.board.lines(part.equations)

    def _repeated(self, rounds: Repeated) -> Paragraph:
        """Rounds 2 to 6 repeat round 1, with what changes from each to the next."""
        changes: list[Span] = []
        for before, after in rounds.changes:
            both = (Mono(each) if isinstance(each, str) else each for each in (before, after))
            one, other = both
            changes += [*([", "] if changes else []), one, " → ", other]
        is_one = rounds.first == rounds.last
        key = "model_round" if is_one else "model_rounds"
        said = (rounds.first, *(() if is_one else (rounds.last,)), rounds.first - 1)
        numbers = (Number(str(each)) for each in said)
        return Paragraph(self.filled(key, *numbers, tuple(changes)))

    def _title(self, step: WrittenNode, part: OpCall) -> Content:
        """3.2 attention, and the layer that it is in; of values between ops that layer alone."""
        assert step.node is not None
        words = f"{part.number} {part.name}"
        if not part.name:
            layer = dict(walk(step.node.layer))[part.path]
            words = type(layer).__name__
        return (f"{words} ", Mono(part.path)) if part.path else words

    def _settings(self, part: OpCall) -> Iterator[Block]:
        found = settings(part.settings, self.chain.sizes)
        if found:
            yield Paragraph(_listed(found))

    # Backward

    def backward(
        self, steps: Sequence[tuple[DerivedEquation | None, WrittenNode]], last: WrittenNode | None
    ) -> Iterator[Block]:
        """From the loss to the data; before a node, the sum that gives its gradient, if any."""
        yield Heading(self.say("backward"), anchor="backward")
        yield from self._start(last)
        for gathered, step in steps:
            if gathered is not None:
                yield from self._gathered(gathered, step)
            if step.backward:
                yield self._heading(step, "backward")
                yield from self._parts(step, step.backward, "backward")
            for other in step.others:
                yield Heading(Mono(other.name), 2, f"{other.name}-{len(step.others)}")
                yield Paragraph(docstrings.prose(other.words))
                yield from self._parts(step, other.parts, other.name)
        needed = self.flow.needed
        taken = {
            value for node in self.flow.nodes if node.number in needed for value in node.inputs
        }
        if taken - needed:
            stops = [value_symbol(value) for value in sorted(taken - needed)]
            yield Paragraph(self.filled("model_stops", _listed(stops)))

    def _start(self, last: WrittenNode | None) -> Iterator[Block]:
        if last is not None:
            yield self._heading(last, "backward")
            yield Paragraph(self.say("last_node"))
            yield from self._parts(last, last.backward, "backward")
            return
        output = self.flow.output
        value = self.chain.found.values[output]
        gradient = value_gradient(output)
        yield Paragraph(self.say("incoming"))
        formula = assigned(gradient, value) if self.board.numbers else gradient
        yield self.board.line(formula, self.chain.sizes.shape(shape_of(value)))

    def _gathered(self, gathered: DerivedEquation, step: WrittenNode) -> Iterator[Block]:
        assert step.node is not None
        value = step.node.number
        key = "model_fork" if len(self.flow.uses(value)) > 1 else "model_passed"
        yield Heading(self.filled(key, value_symbol(value)), 2, f"gradient-{value}")
        self.computed["backward"].append(gathered)
        yield from self.board.lines((gathered,))

    def _heading(self, step: WrittenNode, part: str) -> Heading:
        node = step.node
        if node is None:
            return Heading(self.loss, 2, f"{part}-loss")
        words = f"{node.number}. {overview.kind(node)}"
        content: Content = (f"{words} ", Mono(node.name)) if node.name else words
        return Heading(content, 2, f"{part}-{node.number}")

    # The update

    def updates(self, optimizer: Optimizer, parameters: Parameters) -> Iterator[Block]:
        """The optimizer's rule, with numbers its first step."""
        symbols = {node.number: self.chain.symbols_of(node) for node in self.flow.nodes}
        every = [each for of_node in symbols.values() for each in of_node.values()]
        if not every:
            return
        yield Heading(f"{self.say('update')}: {type(optimizer).__name__}", anchor="update")
        values = [equals(*pair) for pair in settings_of(optimizer)]
        yield Paragraph(self.filled("model_update", PARAMETER, _listed(every), _listed(values)))
        rule = update_rule(optimizer)
        for left, right in rule:
            yield self.board.line(row(left, right))
        if not self.board.numbers:
            return
        for node in self.flow.nodes:
            for name, symbol in symbols[node.number].items():
                old = parameters[node.number][name]
                gradient = self.chain.found.parameters[full_name(node, name)]
                yield self._update(optimizer, rule, symbol, old, gradient)

    def _update(
        self, optimizer: Optimizer, rule: Rule, symbol: Formula, old: Any, gradient: Any
    ) -> Line:
        """W ← W − η ∂L/∂W with its numbers, where that is the whole rule; what W becomes."""
        right = None if len(rule) > 1 else renamed(rule[0][1], {PARAMETER: symbol})
        new = updated(optimizer, old, gradient)
        return self.board.line(updated_line(symbol, right, old, (optimizer.lr, gradient), new))


def _listed(formulas: Sequence[Formula]) -> tuple[Span, ...]:
    """With commas between them, after which a line may break."""
    found: list[Span] = []
    for formula in formulas:
        found += [", ", formula] if found else [formula]
    return tuple(found)
