"""A derivation as a page: the forward, the chain rule line by line, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from handgrad.deriving.algebra import Simplification
from handgrad.deriving.derived import Derived
from handgrad.deriving.formulas import Formulas
from handgrad.deriving.symbols import NodeSymbols
from handgrad.documents.document import (
    Block,
    Code,
    Content,
    Details,
    Document,
    Equation,
    Heading,
    Mono,
    Paragraph,
    Span,
    Table,
)
from handgrad.documents.formulas.formula import (
    Fenced,
    Formula,
    Number,
    Sign,
    Symbol,
    equals,
    parts_in,
    row,
    separated,
)
from handgrad.equations.parts import constant
from handgrad.equations.picture import ArrayBlock, picture
from handgrad.program.node import Loop, Node, Program

_PROVED: Final = "Right: the gradients agree with central differences of the forward."
_RULES: Final = {
    "fold": "In this name, which the forward has: ",
    "vanishes": "This vanishes: ",
}


def document(derivation: Derived) -> Document:
    """The page of a derivation."""
    return Document(
        f"{derivation.name}: the backward derived from the forward",
        blocks=tuple(_Story(derivation).blocks()),
    )


class _Story:
    def __init__(self, derivation: Derived) -> None:
        self.derivation = derivation
        pair = derivation.pair
        self.inputs = pair.traced.program.inputs
        own = [*self.inputs, *pair.forward.body, *pair.cotangents]
        self.chain = Program(own, list(derivation.chain.gradients))
        nodes = [*everything([*own, *self.chain.body])]
        result = [*everything([*pair.backward.inputs, *pair.backward.body])]
        self.formulas = Formulas(NodeSymbols(nodes, result), (*nodes, *result))
        symbols = self.formulas.symbols
        #: The results with their symbols: those of their own names, or of their gradients'.
        self.outputs = [
            (symbols.of(node) if node.name else symbols.named(arriving.name[1:]), node)
            for node, arriving in zip(pair.traced.program.outputs, pair.cotangents, strict=False)
        ]
        self.count = 0
        #: All that equations have in them.
        self.told: set[Formula] = set()

    def blocks(self) -> Iterator[Block]:
        derivation, pair = self.derivation, self.derivation.pair
        yield Paragraph(
            "Every line follows from the forward alone, by the chain rule and by algebra."
        )
        yield from self._picture()
        for letter, length in derivation.fixed.items():
            yield Paragraph((f"It is for {letter} = ", constant(length).formula, " alone."))
        yield Heading("Forward")
        yield from self._lines(pair.forward, self.inputs)
        for symbol, node in self.outputs:
            if not node.name:
                formula = row(symbol, Sign("="), self.formulas.of(node))
                yield self._numbered(formula, self._shape(node))
        yield Heading("The chain rule, line by line")
        yield from self._lines(self.chain, self.chain.inputs)
        if derivation.steps:
            yield Heading("Steps")
            yield from self._steps()
        yield Heading("Result")
        yield from self._lines(pair.backward, pair.backward.inputs, pair.backward.outputs)
        for path, node in zip(pair.wanted, pair.backward.outputs, strict=True):
            name = f"d{'_'.join(map(str, path))}"
            if node.name != name:
                symbol = self.formulas.symbols.named(name)
                formula = row(symbol, Sign("="), self.formulas.of(node))
                yield replace(self._numbered(formula), boxed=True)
        yield Heading("What is kept")
        yield from self._kept()
        yield from self._order()
        yield Heading("Proof")
        yield Details(_PROVED, tuple(self._proof()))
        sources = f"{derivation.forward_source}\n\n{derivation.backward_source}"
        yield Details("As Python", (Code(sources),), level=1)
        yield from self._symbols()

    def _picture(self) -> Iterator[Block]:
        """The operands and the results as blocks."""
        pair = self.derivation.pair
        wanted = {".".join(map(str, path)) for path in pair.wanted}
        operands = [
            ArrayBlock(self.formulas.symbols.of(node), self._shape(node), node.name in wanted)
            for node in self.inputs
            if node.kind in "fcbi" and node.shape
        ]
        results = [
            ArrayBlock(symbol, self._shape(node), True)
            for symbol, node in self.outputs
            if node.kind in "fc"
        ]
        drawn = picture(self.derivation.name, operands, results, "en")
        if drawn is not None:
            yield drawn

    def _shape(self, node: Node) -> Formula:
        sizes = tuple(self.formulas.size(size).formula for size in node.shape)
        return Fenced(separated(sizes) if sizes else row())

    def _symbols(self) -> Iterator[Block]:
        """The symbols that are not written as the code has them."""
        codes = self.formulas.symbols.codes
        rows = tuple(
            (symbol, Mono(name))
            for symbol, name in codes.items()
            if symbol in self.told and (len(name) > 1 or symbol != Symbol(name))
        )
        if rows:
            yield Heading("Symbols")
            yield Table(("symbol", "in the code"), rows)

    def _numbered(self, formula: Formula, shape: Formula | None = None) -> Equation:
        """An equation with its number, whose symbols the table at the end explains."""
        self.count += 1
        self.told |= set(parts_in(formula))
        return Equation(formula, str(self.count), shape)

    def _lines(
        self, program: Program, known: Sequence[Node], results: Sequence[Node] = ()
    ) -> Iterator[Block]:
        """An equation for each node with a symbol, that of a result boxed; a loop's rounds come
        where the loop does."""
        seen = {id(n) for n in known}
        for node in program.body:
            if id(node) in seen or node.op in ("input", "part"):
                continue
            if node.op == "loop":
                yield from self._rounds(node)
            elif node in self.formulas.symbols:
                line = self._numbered(self.formulas.equation(node), self._shape(node))
                yield replace(line, boxed=any(node is each for each in results))

    def _rounds(self, node: Node) -> Iterator[Block]:
        loop: Loop = node.attrs["loop"]
        last = self.formulas.size(loop.count - 1).formula
        ends = (last, Number("0")) if loop.reverse else (Number("0"), last)
        counted = separated((ends[0], Sign("⋯"), ends[1]))
        counter = self.formulas.symbols.letter(loop.counter)
        yield Paragraph(("For ", equals(counter, counted), ":"))
        yield from self._lines(loop.body, loop.body.inputs)
        for carry, result in zip(
            loop.body.inputs[loop.constants :], loop.body.outputs, strict=False
        ):
            if carry.name and result is not carry and result.name != carry.name:
                left = self.formulas.symbols.of(carry)
                yield self._numbered(row(left, Sign("←"), self.formulas.of(result)))

    def _steps(self) -> Iterator[Block]:
        for step in self.derivation.steps:
            yield Paragraph((*self._reason(step), f" ({max(step.differences, default=0.0):.0e})"))
            if step.table is not None:
                before = self.formulas.sum_of(step.table, step.before)
                after = self.formulas.sum_of(step.table, step.after)
                yield self._numbered(row(before, Sign("="), after))

    def _reason(self, step: Simplification) -> Iterator[Span]:
        """The reason of a step as a sentence begins, its arrays in symbols."""
        first, *rest = step.reason
        words = _RULES.get(step.rule, "")
        if isinstance(first, str):
            words += first
        else:
            rest = [first, *rest]
        if words:
            yield words[:1].upper() + words[1:]
        for part in rest:
            yield part if isinstance(part, str) else self.formulas.of(part)

    def _kept(self) -> Iterator[Block]:
        cache = self.derivation.cache
        if not cache:
            yield Paragraph("Nothing: the cotangent is enough.")
            return
        kept = self.derivation.pair.kept
        rows: list[tuple[Content, ...]] = []
        for k, name in enumerate(cache):
            if k < len(kept):
                symbol: Content = self.formulas.part(kept[k]).formula if kept[k].name else ""
                rows.append((symbol, Mono(name), self._shape(kept[k])))
            else:
                rows.append(("", Mono(name), "a length"))
        yield Table(("symbol", "in the code", "shape"), tuple(rows))

    def _order(self) -> Iterator[Block]:
        """The orders of operations and of memory, counted in the letters of the sizes."""
        orders = self.derivation.orders()
        yield Paragraph(
            f"Operations, in order: {self.derivation.order}. The backward holds "
            f"{orders['backward'].held} elements at once; the forward makes "
            f"{orders['forward'].made} in all."
        )

    def _proof(self) -> Iterator[Block]:
        """What was run, and that it was right."""
        yield Paragraph(
            "Both sides of every step were evaluated; the largest difference, as a share of the "
            "largest value, stands beside it. The result was run beside central differences of "
            "the forward. It is the smallest that was found; that there is no smaller one is not "
            "claimed."
        )
        places = [trial.said for trial in self.derivation.proof.trials()]
        yield Paragraph(
            f"Both functions were run where {'; where '.join(places)}; at points where pieces of "
            "the forward meet; and in float32, where all gradients stay float32."
        )


def everything(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes with those in the rounds of loops."""
    for node in nodes:
        yield node
        if node.op == "loop":
            yield from everything(node.attrs["loop"].body.body)
