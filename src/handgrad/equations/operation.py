"""The notes of a forward and a backward, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from handgrad.documents.document import (
    Block,
    Content,
    Document,
    Equation,
    Heading,
    List,
    Mono,
    Paragraph,
    Table,
    spans,
)
from handgrad.documents.formulas.formula import (
    Sign,
    Symbol,
    Text,
    equals,
    row,
    separated,
)
from handgrad.documents.formulas.numbers import number
from handgrad.documents.labels import label
from handgrad.equations import docstrings, verdicts
from handgrad.equations.alive.story import story
from handgrad.equations.equations import Meaning, PairDerivation, derive
from handgrad.equations.glossary import is_parameter
from handgrad.equations.measured import Measure
from handgrad.equations.parts import constant
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
    passes = notes.derivation.forward, notes.derivation.backward
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
        arrived = (*self.derivation.given, *self.derivation.incoming)
        self.board = Board(numbers, self.say, (symbol for symbol, _ in arrived))

    def say(self, key: str) -> str:
        return label(self.lang, key)

    def blocks(self, measure: Measure | None) -> Iterator[Block]:
        measured = [] if measure is None else measure(self.topic.measured)
        gradient = self.glossary.gradient
        yield from verdicts.alert(measured, gradient, self.lang)
        yield from self._introduction()
        yield from self._symbols()
        if self.numbers:
            yield from self._given()
        yield Heading(self.say("forward"), anchor="forward")
        yield from self.board.lines(self.derivation.forward)
        yield from self._cache()
        yield Heading(self.say("backward"), anchor="backward")
        yield from self._incoming()
        yield from self.board.lines(self.derivation.backward)
        if self.numbers:
            yield from self._updates()
        yield from self._variants()
        yield from self._conventions()
        if measured:
            yield from verdicts.table(measured, gradient, self.lang)
            yield from self._elsewhere()

    def _introduction(self) -> Iterator[Block]:
        doc = self.topic.doc
        if self.lang != "en" and not self.topic.translated:
            yield Paragraph(self.say("from_code"))
        for paragraph in docstrings.paragraphs(self.topic.introduction):
            yield Paragraph(docstrings.prose(paragraph))
        if doc.summary and doc.summary != self.topic.introduction:
            yield Paragraph(docstrings.prose(doc.summary))
        if doc.source:
            yield Paragraph((f"{self.say('source')}: ", *spans(docstrings.prose(doc.source))))

    # Symbols

    def _symbols(self) -> Iterator[Block]:
        yield Heading(self.say("symbols"), anchor="symbols")
        header = (self.say("symbol"), self.say("in_code"), self.say("shape_or_meaning"))
        rows = [
            (each.symbol, Mono(each.name), self._meaning(each)) for each in self.derivation.symbols
        ]
        yield Table(header, tuple(rows))
        if self.topic.doc.shapes:
            shapes = docstrings.prose(self.topic.doc.shapes)
            yield Paragraph((f"{self.say('shapes')}: ", *spans(shapes)))
        yield Paragraph(self.say("elementwise"))
        if self.derivation.counter is not None:
            before, after = self.say("steps").split("{}")
            yield Paragraph((before, self.derivation.counter, after))

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
        if kept:
            header = (self.say("symbol"), self.say("in_code"), self.say("shape_or_meaning"))
            rows = [
                (
                    "" if each.shape is None and isinstance(each.symbol, Text) else each.symbol,
                    Mono(each.name),
                    self._meaning(each),
                )
                for each in kept
            ]
            yield Table(header, tuple(rows))

    def _conventions(self) -> Iterator[Block]:
        if self.topic.doc.conventions:
            yield Heading(self.say("kinks"), anchor="edges")
        for paragraph in self.topic.doc.conventions:
            yield Paragraph(docstrings.prose(paragraph))

    def _variants(self) -> list[Block]:
        """Only what is not computed so above."""
        found: list[Block] = []
        above = (*self.derivation.forward, *self.derivation.backward)
        known = [(each.left, each.computed) for each in above]
        self.board.numbers = False
        for words, subject in self.topic.variants:
            derivation = derive(subject, self.lang, letters=self.glossary.letters)
            new = []
            for each in (*derivation.forward, *derivation.backward):
                key = each.left, each.computed
                if key not in known and not each.says_nothing and not self.board.states(each):
                    known.append(key)
                    new.append(each)
            if new and not any(isinstance(block, Heading) for block in found):
                found.append(Heading(self.say("variants"), anchor="variants"))
            if new:
                found.append(Heading(Mono(words), level=2))
                found += self.board.lines(new)
                found += self._new_symbols(derivation, subject.options)
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
