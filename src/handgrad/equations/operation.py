"""The notes of a forward and a backward, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from handgrad.documents.document import (
    Block,
    Content,
    Details,
    Document,
    Equation,
    Heading,
    List,
    Mono,
    Paragraph,
    Span,
    Table,
    spans,
)
from handgrad.documents.formulas.formula import (
    Formula,
    Sign,
    Symbol,
    equals,
    parts_in,
    row,
    separated,
)
from handgrad.documents.formulas.numbers import number
from handgrad.documents.labels import label
from handgrad.equations import docstrings, verdicts
from handgrad.equations.alive.story import story
from handgrad.equations.equations import Meaning, PairDerivation, derive
from handgrad.equations.glossary import is_parameter
from handgrad.equations.guards import usual
from handgrad.equations.measured import Measure
from handgrad.equations.parts import constant
from handgrad.equations.picture import ArrayBlock, picture
from handgrad.equations.sources import sources
from handgrad.equations.topics import Topic
from handgrad.equations.translations import translated
from handgrad.equations.written import Board, assigned, updated_line
from handgrad.program.functions import is_array


def document(
    topic: Topic,
    *,
    numbers: bool = False,
    lang: str = "en",
    eta: float = 0.1,
    measure: Measure | None = None,
    alive: bool = False,
) -> Document:
    """What it is, its symbols, both passes, the cache, the edges, and how well it is checked.

    With `numbers` every equation goes on with the values of the example, and the parameters are
    updated with the learning rate `eta`. With `alive` the document has the story of the example's
    run. Raises ArgumentError where a pass fails on the inputs.
    """
    notes = _Notes(topic, numbers, lang, eta)
    blocks = tuple(notes.blocks(measure))
    if not alive:
        return Document(topic.title, lang, blocks)
    passes = notes.forward, notes.backward
    return Document(topic.title, lang, blocks, story(*passes, notes.board.anchor))


class _Notes:
    """The blocks of one document; equations are numbered through."""

    def __init__(self, topic: Topic, numbers: bool, lang: str, eta: float) -> None:
        self.topic = topic
        self.numbers = numbers
        self.lang = lang
        self.eta = eta
        self.derivation = derive(topic.subject, lang)
        self.glossary = self.derivation.glossary
        forward, backward = self.derivation.forward, self.derivation.backward
        (self.forward, self.backward), self.guarded = usual(forward, backward)
        #: The symbols with their meanings; with numbers a setting has the value of the example.
        options = topic.subject.options if numbers else {}
        self.symbols = tuple(
            replace(each, value=options.get(each.name, each.value))
            for each in self.derivation.symbols
        )
        arrived = (*self.derivation.given, *self.derivation.incoming)
        #: The settings and functions that were explained.
        self.told: set[Formula] = set()
        results = {f"d{name}" for name in self.derivation.gradients}
        results |= self.glossary.results & {*self.glossary.gradients}
        self.board = Board(numbers, self.say, (symbol for symbol, _ in arrived), results=results)

    def say(self, key: str) -> str:
        return label(self.lang, key)

    def blocks(self, measure: Measure | None) -> Iterator[Block]:
        measured = [] if measure is None else measure(self.topic.measured)
        gradient = self.glossary.gradient
        yield from verdicts.alert(measured, gradient, self.lang)
        first, *others = self._introduction()
        yield from first
        yield from self._picture()
        if self.numbers:
            yield from self._given()
        yield Heading(self.say("forward"), anchor="forward")
        yield from chain(*others)
        yield from self._operands()
        yield from self._explained(self.board.lines(self.forward))
        yield from self._guards()
        yield Heading(self.say("backward"), anchor="backward")
        yield from self._incoming()
        yield from self._explained(self.board.lines(self.backward))
        yield from self._cache()
        if self.numbers:
            yield from self._updates()
        yield from self._variants()
        yield from self._conventions()
        yield from verdicts.table(measured, gradient, self.lang, tuple(self._elsewhere()))
        yield from self._symbols()
        yield from sources(self.topic.doc.source, self.lang)

    def _introduction(self) -> Iterator[list[Block]]:
        """The first sentence, and the others."""
        words = docstrings.paragraphs(self.topic.introduction)
        summary = self.topic.doc.summary
        words[1:1] = [summary] if summary and summary not in words else []
        yield [Paragraph(docstrings.prose(each)) for each in words[:1]]
        yield [Paragraph(docstrings.prose(each)) for each in words[1:]]
        if self.lang != "en" and not self.topic.translated:
            yield [Paragraph(self.say("from_code"))]

    def _picture(self) -> Iterator[Block]:
        """The operands and the results as blocks."""
        derivation, results = self.derivation, self.glossary.results - {*self.glossary.gradients}
        found = {name: each for each in derivation.symbols for name in each.name.split(", ")}
        arrays = {name: each for name, each in found.items() if each.shape is not None}
        inputs = [name for name in self.topic.subject.arrays if name in arrays]
        outputs = [name for name in arrays if name in results and name not in inputs]
        last = self.forward[-1]
        if not outputs:
            arrays[last.name] = Meaning(last.left, last.name, last.shape)
            outputs = [last.name]
        drawn = picture(
            self.topic.title,
            [self._block(arrays[name], name) for name in inputs],
            [self._block(arrays[name], name) for name in dict.fromkeys(outputs)],
            self.lang,
        )
        if drawn is not None:
            yield drawn

    def _block(self, meaning: Meaning, name: str) -> ArrayBlock:
        gradients = self.derivation.gradients
        has_gradient = gradients.get(name) is not None or name not in self.topic.subject.arrays
        return ArrayBlock(meaning.symbol, meaning.shape or row(), has_gradient)

    def _operands(self) -> Iterator[Block]:
        """The arrays that are given, with their shapes."""
        found = {name: each for each in self.derivation.symbols for name in each.name.split(", ")}
        spans_: list[Span] = []
        for name in self.topic.subject.arrays:
            each = found.get(name)
            if each is not None and each.shape is not None:
                spans_ += [
                    ", " if spans_ else f"{self.say('given')} ",
                    each.symbol,
                    " ",
                    each.shape,
                ]
        if spans_:
            yield Paragraph((*spans_, "."))
        if self.derivation.counter is not None:
            before, after = self.say("steps").split("{}")
            yield Paragraph((before, self.derivation.counter, after))

    def _explained(self, lines: Iterable[Block]) -> Iterator[Block]:
        """Each line, and after it the settings and functions that it is the first to have."""
        for line in lines:
            yield line
            if not isinstance(line, Equation):
                continue
            written = set(parts_in(line.formula))
            new = [
                each
                for each in self.symbols
                if each.shape is None and each.symbol in written and each.symbol not in self.told
            ]
            self.told.update(each.symbol for each in new)
            spans_: list[Span] = []
            for each in new:
                meaning = self._meaning(each)
                between = ": " if each.words else " "
                spans_ += ["; " if spans_ else f"{self.say('where')} ", each.symbol, between]
                spans_ += spans(meaning)
            if spans_:
                yield Paragraph((*spans_, "" if str(spans_[-1]).endswith(".") else "."))

    def _guards(self) -> Iterator[Block]:
        """The forward where the usual case would divide by zero or meet infinity."""
        if not self.guarded:
            return
        before, after = self.say("guarded").split("{}")
        lefts = separated(tuple(each.left for each in self.guarded))
        lines = [Equation(row(each.left, Sign("="), each.right)) for each in self.guarded]
        said = Paragraph((before, lefts, after))
        yield Details(self.say("guards"), (said, *lines))

    # Symbols

    def _symbols(self) -> Iterator[Block]:
        yield Heading(self.say("symbols"), anchor="symbols")
        header = (self.say("symbol"), self.say("in_code"), self.say("shape_or_meaning"))
        rows = [(each.symbol, Mono(each.name), self._meaning(each)) for each in self.symbols]
        yield Table(header, tuple(rows))
        if self.topic.doc.shapes:
            shapes = docstrings.prose(self.topic.doc.shapes)
            yield Paragraph((f"{self.say('shapes')}: ", *spans(shapes)))
        yield Paragraph(self.say("elementwise"))

    def _meaning(self, meaning: Meaning) -> Content:
        """A shape, a definition, a value or words, whichever there is."""
        if meaning.shape is not None:
            return meaning.shape
        if meaning.definition is not None:
            return row(Sign("="), meaning.definition)
        if meaning.words:
            return docstrings.prose(translated(meaning.words, self.lang))
        return _value(meaning.value)

    # Numbers

    def _given(self) -> Iterator[Block]:
        yield Heading(self.say("board"), anchor="given")
        symbol = self.glossary.symbol
        for formula, value in self.derivation.given:
            yield Equation(assigned(formula, value))
        for name, value in self.topic.subject.options.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield Equation(equals(symbol(name), number(value)))

    def _incoming(self) -> Iterator[Block]:
        if self.topic.subject.cotangent is None:
            yield Paragraph(self.say("last_node"))
            return
        arriving = self.derivation.incoming
        if self.numbers:
            yield Paragraph(self.say("incoming"))
            for symbol, value in arriving:
                yield Equation(assigned(symbol, value))
        elif self.derivation.counter is not None:
            symbols = separated(self.derivation.arriving)
            yield Paragraph((f"{self.say('arriving')} ", symbols, "."))

    def _updates(self) -> Iterator[Block]:
        arrays = self.topic.subject.arrays
        found = {
            name: gradient
            for name, gradient in self.derivation.gradients.items()
            if name in arrays and gradient is not None and is_parameter(name, np.ndim(arrays[name]))
        }
        if not found:
            return
        yield Heading(self.say("update"), anchor="update")
        rate = Symbol("eta")
        yield Paragraph((f"{self.say('learning_rate')} ", equals(rate, number(self.eta)), "."))
        for name, gradient in found.items():
            yield self._update(name, arrays[name], gradient)

    def _update(self, name: str, value: Any, gradient: Any) -> Equation:
        symbol, slope = (of(name) for of in (self.glossary.symbol, self.glossary.gradient))
        rule = row(Sign("←"), symbol, Sign("−"), Symbol("eta"), slope)
        new = value - self.eta * gradient
        return Equation(updated_line(symbol, rule, value, (self.eta, gradient), new))

    # What is kept, edges, other settings, the check

    def _cache(self) -> Iterator[Block]:
        words = docstrings.paragraphs(self.topic.cache)
        kept = self.derivation.kept
        if not words and not kept:
            return
        yield Heading(self.say("cached"), anchor="cache")
        for paragraph in words:
            yield Paragraph(docstrings.prose(paragraph))
        arrays = [each for each in kept if each.shape is not None]
        if arrays:
            header = (self.say("symbol"), self.say("in_code"), self.say("shape_or_meaning"))
            rows = [(each.symbol, Mono(each.name), self._meaning(each)) for each in arrays]
            yield Table(header, tuple(rows))
        settings: list[Span] = []
        for each in kept:
            if each.shape is None:
                settings += [
                    ", " if settings else f"{self.say('settings')}: ",
                    Mono(each.name),
                    " ",
                ]
                settings += spans(self._meaning(each))
        if settings:
            yield Paragraph((*settings, "."))

    def _conventions(self) -> Iterator[Block]:
        words = [Paragraph(docstrings.prose(each)) for each in self.topic.doc.conventions]
        if words:
            yield Details(self.say("kinks"), tuple(words), level=1, anchor="edges")

    def _variants(self) -> list[Block]:
        """Only what is not computed so above."""
        found: list[Block] = []
        above = (*self.derivation.forward, *self.derivation.backward)
        known = [(each.left, each.computed) for each in above]
        self.board.numbers = False
        taken = frozenset(each.symbol for each in self.derivation.symbols if each.shape)
        for words, subject in self.topic.variants:
            derivation = derive(subject, self.lang, letters=self.glossary.letters, taken=taken)
            new = []
            for each in (*derivation.forward, *derivation.backward):
                key = each.left, each.computed
                if key not in known and not each.says_nothing and not self.board.states(each):
                    known.append(key)
                    new.append(each)
            if new and not any(isinstance(block, Heading) for block in found):
                found.append(Heading(self.say("variants"), anchor="variants"))
            if new:
                lines = *self.board.lines(new), *self._new_symbols(derivation, subject.options)
                found.append(Details(Mono(words), lines, level=2))
        return found

    def _new_symbols(
        self, derivation: PairDerivation, options: Mapping[str, Any]
    ) -> Iterator[Block]:
        known = {each.symbol for each in self.derivation.symbols}
        new = (
            replace(each, value=options.get(each.name, each.value))
            for each in derivation.symbols
            if each.symbol not in known
        )
        items: list[Content] = [
            (each.symbol, " ", Mono(each.name), " ", *spans(self._meaning(each))) for each in new
        ]
        if items:
            yield List(tuple(items))

    def _elsewhere(self) -> Iterator[Block]:
        """The command that measures the settings which the table leaves out."""
        if self.topic.variants:
            command = Mono(f"handgrad check {self.topic.subject.name}")
            yield Paragraph((f"{self.say('measured_elsewhere')} ", command, "."))


def _value(value: Any) -> Content:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return Mono(repr(value))
    if isinstance(value, int | float):
        return row(Sign("="), constant(value).formula)
    if is_array(value):
        return Mono(str(tuple(value.shape)))
    return Mono(repr(value))
