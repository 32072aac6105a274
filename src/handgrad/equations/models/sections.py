"""The parts of a model's notes in which its equations stand: forward, backward, update."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handgrad.documents.document import (
    Block,
    Content,
    Heading,
    Mono,
    Paragraph,
    Span,
    spans,
)
from handgrad.documents.document import Equation as Line
from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Script,
    Sign,
    Symbol,
    equals,
    gradient_of,
    parts_in,
    row,
    separated,
)
from handgrad.documents.labels import label, part_name
from handgrad.equations import docstrings
from handgrad.equations.equations import DerivedEquation
from handgrad.equations.models import overview
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.composition import named_inputs
from handgrad.equations.models.flow import Flow
from handgrad.equations.models.names import (
    FUSED,
    activation_operator,
    activations_of,
    full_name,
)
from handgrad.equations.models.origins import inner_path
from handgrad.equations.models.rounds import Alike, folded
from handgrad.equations.models.steps import OpCall, WrittenNode, activation_step
from handgrad.equations.models.symbols import (
    DELTA,
    is_arriving,
    renamed,
    uncopied,
    value_gradient,
    value_symbol,
)
from handgrad.equations.models.update import PARAMETER, settings_of, update_rule, updated
from handgrad.equations.shaping import shape as shape_of
from handgrad.equations.sources import sources
from handgrad.equations.tracing import in_order
from handgrad.equations.translations import cited, translated
from handgrad.equations.written import Board, assigned, settings, updated_line
from handgrad.layers import AddNorm, Residual
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
        self._sources: list[str] = []
        self.board = Board(numbers, self.say, self._inputs().values(), rounds=False)
        #: All equations of both passes, also those of rounds that are not written again.
        self.computed: dict[str, list[DerivedEquation]] = {"forward": [], "backward": []}
        #: Settings and functions that are explained.
        self._told: set[Formula] = set()
        self._headings = 0
        self.steps: Sequence[WrittenNode] = ()

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
        for symbol, array in zip(self._inputs().values(), arrays, strict=True):
            yield self.board.line(assigned(symbol, array))
        for node in self.flow.nodes:
            for name, symbol in self.chain.symbols_of(node).items():
                yield self.board.line(assigned(symbol, parameters[node.number][name]))
        for symbol, array in self.chain.given:
            yield self.board.line(assigned(symbol, array))
        if self.chain.target is not None:
            yield self.board.line(assigned(*self.chain.target))

    def _inputs(self) -> dict[str, Formula]:
        x = self.chain.run.values[0]
        inputs = x if isinstance(x, tuple) else (x,)
        return named_inputs(self.flow.nodes[0].layer, inputs, 0)

    def _purposes(self, kind: type, documented: object) -> Iterator[Block]:
        """The reasons for a layer or an optimizer; whatever has the docstring names the source."""
        words = docstrings.purposes(kind)
        for each in words:
            yield Paragraph(docstrings.prose(translated(each, self.chain.lang)))
        source = docstrings.parse(inspect.getdoc(documented) or "").source
        if words and source:
            self._sources.append(cited(source, self.chain.lang).removesuffix("."))

    def sources(self) -> Iterator[Block]:
        """The sources of what was said of purposes."""
        yield from sources("; ".join(dict.fromkeys(self._sources)), self.chain.lang)

    # Forward

    def forward(self, steps: Sequence[WrittenNode], last: WrittenNode | None) -> Iterator[Block]:
        self.steps = steps
        yield Heading(self.say("forward"), anchor="forward")
        yield Paragraph(tuple(self._introduction()))
        kinds = {type(layer) for node in self.flow.nodes for _, layer in walk(node.layer)}
        for kind in (Residual, AddNorm):
            if kind in kinds:
                yield from self._purposes(kind, kind)
        for step in steps:
            yield from self._node(step, step.forward, "forward")
        if last is not None:
            yield from self._node(last, last.forward, "forward")

    def _introduction(self) -> Iterator[Span]:
        """The signs for the input and the values between layers, and how to read the rest."""
        inputs = self._inputs()
        keys = ["one", "inputs_one"] if self.is_alone else ["symbols", "inputs"]
        key = f"model_{keys[len(inputs) > 1]}"
        listed: list[Span] = []
        for name, symbol in inputs.items():
            listed += [", ", symbol] if listed else [symbol]
            listed += [" ", Mono(name)] if name else []
        if self.is_alone:
            yield from self.filled(key, tuple(listed), value_symbol(self.flow.output))
        else:
            index = Symbol("i")
            yield from self.filled(key, tuple(listed), Script(Symbol("h"), index), index)
        if not self.board.numbers:
            yield f" {self.say('model_batch')}"
        yield f" {self.say('elementwise')}"
        yield from self._reading()

    def _reading(self) -> Iterator[Span]:
        """The reading of the indices of names."""
        x, part = Symbol("x"), Symbol("k")
        scripts = [each for each in self.chain.names if isinstance(each, Script)]
        if any(each.sub is not None for each in scripts):
            yield " "
            yield from self.filled("model_part", Script(x, part), part)
        counters = {
            each.block.counter for step in self.steps for each in step.forward if each.block
        }
        for counter, key in ((Symbol("l"), "model_of_block"), (Symbol("t"), "model_of_step")):
            if counter in counters:
                yield " "
                yield from self.filled(key, Script(x, sup=Fenced(counter)), counter)
        if any(uncopied(each) != each for each in scripts if each.sub is not None):
            yield " "
            yield from self.filled("model_copy", Script(x, row(Sign("→"), part)), x, part)
        if any(map(is_arriving, scripts)):
            yield " "
            yield from self.filled("model_arriving", Script(DELTA, x), gradient_of(x))

    @property
    def is_alone(self) -> bool:
        """True for one layer that is written part by part."""
        return len(self.flow.nodes) == 1 and not self.chain.is_plain

    def _node(self, step: WrittenNode, parts: Sequence[OpCall], which: str) -> Iterator[Block]:
        """The parts of a node; those of the only one stand under headings of their own."""
        if step.node is None or not self.is_alone:
            yield self._heading(step, which)
        if step.is_opaque and which == "forward":
            yield Paragraph(self.say("model_opaque"))
        yield from self._parts(parts, which)

    def _parts(self, parts: Sequence[OpCall], which: str) -> Iterator[Block]:
        """The parts of a node under the names of what they belong to, alike blocks once."""
        if which in self.computed:
            self.computed[which] += (each for part in parts for each in part.equations)
        level = 2 if self.is_alone else 3
        stacks = {part.block.stack for part in parts if part.block is not None}
        place: str | None = None
        for told in folded(parts, once=not self.board.numbers):
            if isinstance(told, OpCall):
                title = self._title(told, stacks)
                if title is not None and title != place:
                    place = title
                    yield self._part_heading(title, level, which)
                yield from self._part(told)
            else:
                place = None
                yield from self._block(told, level, which)

    def _block(self, told: Alike, level: int, which: str) -> Iterator[Block]:
        """A block, or several alike ones as one of them."""
        block = told.parts[0].block
        assert block is not None
        kind = "model_step" if block.counter == Symbol("t") else "model_block"
        ends: list[Formula] = [Number(str(each)) for each in told.numbers]
        if len(ends) > 2:
            ends = [ends[0], Sign("⋯"), ends[-1]]
        title: tuple[Span, ...] = (
            f"{self.say(kind)} ",
            equals(block.counter, separated(tuple(ends))),
        )
        if kind == "model_block" and block.stack not in ("", "blocks"):
            title = (f"{part_name(block.stack, self.chain.lang)}, ", *title)
        self._headings += 1
        yield Heading(title, level, f"{which}-block-{self._headings}")
        place = ""
        for part in told.parts:
            name = inner_path(part.path).partition(".")[0]
            if name and name != place:
                place = name
                yield self._part_heading(part_name(name, self.chain.lang), level + 1, which)
            yield from self._part(part)

    def _part(self, part: OpCall) -> Iterator[Block]:
        """Equations, and what settings and functions in them are where they first stand."""
        yield from self._settings(part)
        for each in part.functions:
            if each.name not in FUSED and each.symbol not in self._told:
                self._told.add(each.symbol)
                yield Paragraph(
                    (
                        each.symbol,
                        ": ",
                        *spans(docstrings.prose(translated(each.words, self.chain.lang))),
                    )
                )
        yield from self.board.lines(part.equations)
        inside = {each for equation in part.equations for each in parts_in(equation.right)}
        for name, options in activations_of(self.flow).items():
            function = activation_operator(name)
            slope = Script(function, sup=Sign("′"))
            is_slope = slope in inside
            if function in inside and (slope if is_slope else function) not in self._told:
                self._told.add(slope if is_slope else function)
                step = activation_step(name, options, self.chain.lang)
                for of in step.backward if is_slope else step.forward:
                    yield from self._settings(of)
                    for line in of.equations:
                        if line.right != row(function, Symbol("a")):  # tanh(a) says nothing
                            yield self.board.line(equals(line.left, line.right))

    def _part_heading(self, title: str, level: int, which: str) -> Heading:
        self._headings += 1
        return Heading(title, level, f"{which}-part-{self._headings}")

    def _title(self, part: OpCall, stacks: set[str]) -> str | None:
        """The name of what a part outside of blocks belongs to; None where it has no own name."""
        if not part.number:
            return None
        stack = next((each for each in stacks if part.path.startswith(f"{each}.")), "")
        inside = part.path.removeprefix(f"{stack}.") if stack else part.path
        name = inside.partition(".")[0]
        if name or part.name:
            return part_name(name or part.name, self.chain.lang)
        return None

    def _settings(self, part: OpCall) -> Iterator[Block]:
        found = settings(part.settings, self.chain.sizes)
        new = [each for each in found if each not in self._told]
        self._told.update(new)
        if new:
            yield Paragraph(_listed(new))

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
                yield from self._node(step, step.backward, "backward")
            for other in step.others:
                yield Heading(Mono(other.name), 2, f"{other.name}-{len(step.others)}")
                yield Paragraph(docstrings.prose(translated(other.words, self.chain.lang)))
                yield from self._parts(other.parts, other.name)
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
            yield from self._parts(last.backward, "backward")
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
        words = f"{node.number}. {overview.kind(node, self.chain.lang)}"
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
        yield from self._purposes(type(optimizer), type(optimizer).update)
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
