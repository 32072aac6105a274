"""A derivation as a page: the forward, the chain rule line by line, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from handgrad.deriving.algebra import Simplification
from handgrad.deriving.derived import Derived
from handgrad.deriving.filled import changed
from handgrad.deriving.formulas import Formulas
from handgrad.deriving.substitution import widened
from handgrad.deriving.symbols import NodeSymbols, is_left
from handgrad.deriving.times import CarriedValue
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
from handgrad.program.node import Loop, Node, Program, within

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
        with within(pair.traced.world):
            # Its loops are those of the forward, which keep what it reads.
            self.chain = Program(own, widened(derivation.chain.gradients, pair.traced.world))
        nodes = [*everything([*own, *self.chain.body])]
        result = [*everything([*pair.backward.inputs, *pair.backward.body])]
        made = {
            id(node): arriving.name[1:]
            for node, arriving in zip(pair.forward.outputs, pair.cotangents, strict=False)
            if not node.name and node.args and node.op != "part"
        }
        found = NodeSymbols(nodes, result, pair.cotangents, made)
        self.formulas = Formulas(found, (*nodes, *result))
        symbols = self.formulas.symbols
        #: The results with their symbols: those of their own names, or of their gradients'.
        self.outputs = [
            (self._symbol_of(node) or symbols.named(arriving.name[1:]), node)
            for node, arriving in zip(pair.forward.outputs, pair.cotangents, strict=False)
        ]
        self.count = 0
        #: All that equations have in them.
        self.told: set[Formula] = set()

    def _symbol_of(self, node: Node) -> Formula | None:
        """The symbol of a result; None for a stack of all rounds, which is told by those of one."""
        is_stack = is_left(node) and node.attrs["index"] >= node.args[0].attrs["loop"].carried
        is_known = node in self.formulas.symbols and not is_stack
        return self.formulas.symbols.of(node) if is_known else None

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
            if self._symbol_of(node) is None:
                formula = row(symbol, Sign("="), self.formulas.inside(node).formula)
                yield self._numbered(formula, self._shape(node))
        yield Heading("The chain rule, line by line")
        given = tuple(map(self.formulas.symbols.of, pair.cotangents))
        if given != (row(Symbol("d"), Symbol("y")),):
            yield Paragraph(("Given ", separated(given), ":"))
        yield from self._gradients()
        yield Heading("What is kept")
        yield from self._kept()
        yield from self._order()
        yield Heading("Proof")
        yield Details(_PROVED, tuple(self._proof()))
        sources = f"{derivation.forward_source}\n\n{derivation.backward_source}"
        yield Details("As Python", (Code(sources),), level=1)
        yield from self._symbols()

    def _gradients(self) -> Iterator[Block]:
        """The chain rule, its simplifications, and the result where it is another."""
        backward, first = self.derivation.pair.backward, self.count
        chain = list(self._program(self.chain, self.chain.inputs))
        after = self.count
        result = list(self._program(backward, backward.inputs))
        if [*map(_leaves, chain)] == [*map(_leaves, result)]:
            self.count = first
            yield from self._anew(result)
            return
        self.count = after
        for block in chain:  # the result has the boxes
            yield replace(block, boxed=False) if isinstance(block, Equation) else block
        if self.derivation.steps:
            yield Heading("Steps")
            yield from self._steps()
        yield Heading("Result")
        yield from self._anew(result)

    def _anew(self, blocks: Sequence[Block]) -> Iterator[Block]:
        """Blocks whose equations have the numbers that come next."""
        for block in blocks:
            if isinstance(block, Equation):
                self.count += 1
                block = replace(block, number=str(self.count))
            yield block

    def _program(self, program: Program, known: Sequence[Node]) -> Iterator[Block]:
        """All lines of a backward, those of the gradients boxed."""
        yield from self._lines(program, known, program.outputs)
        for path, node in zip(self.derivation.pair.wanted, program.outputs, strict=True):
            name = f"d{'_'.join(map(str, path))}"
            symbol = self.formulas.symbols.named(name)
            formula = self.formulas.of(node)
            if formula != symbol:
                yield replace(self._numbered(row(symbol, Sign("="), formula)), boxed=True)

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
        seen = {id(n) for n in known} | self.formulas.symbols.same.keys() | _starts(program)
        for node in program.body:
            if id(node) in seen or node.op in ("input", "part"):
                continue
            if node.op == "loop":
                yield from self._rounds(node, results)
            elif node in self.formulas.symbols:
                line = self._numbered(self.formulas.equation(node), self._shape(node))
                yield replace(line, boxed=any(node is each for each in results))

    def _rounds(self, node: Node, results: Sequence[Node]) -> Iterator[Block]:
        loop: Loop = node.attrs["loop"]
        found = self.formulas.symbols.carried[id(node)]
        ends = {p.attrs["index"] for p in results if p.op == "part" and p.args[0] is node}
        # The result of a value that is carried through time is the last, after the rounds.
        through_time = {i for i, c in enumerate(found) if c is not None and c.made.time is not None}
        wanted = [loop.body.outputs[i] for i in ends - through_time]
        yield from self._before(node, [change for change in found if change is not None])
        last = self.formulas.size(loop.count - 1).formula
        first: Formula = Number("0")
        if loop.reverse:
            first, last = last, first
        counted = separated((first, Sign("⋯"), last))
        counter = self.formulas.symbols.letter(loop.counter)
        yield Paragraph(("For ", equals(counter, counted), ":"))
        yield from self._lines(loop.body, loop.body.inputs, wanted)
        carries = loop.body.inputs[loop.constants :]
        for change, carry, result in zip(found, carries, loop.body.outputs, strict=False):
            if change is None:
                left, sign = self.formulas.symbols.of(carry), "←"
                if result.op in ("store", "add_at") and result.args[0] is carry:
                    yield self._numbered(changed(self.formulas, result, left))
                    continue
            else:
                left, sign = self.formulas.symbols.at(change.made), "="
            right = self.formulas.of(result)
            if (change is not None or carry.name) and right != left:
                yield self._numbered(row(left, Sign(sign), right))

    def _before(self, node: Node, found: Sequence[CarriedValue]) -> Iterator[Block]:
        """The values that a loop starts from, those that are zero in one line."""
        loop: Loop = node.attrs["loop"]
        zeros: list[Formula] = []
        carries = loop.body.inputs[loop.constants :]
        for carry, start in zip(carries, node.args[loop.constants :], strict=True):
            for change in found:
                if change.carry is not carry:
                    continue
                left = self.formulas.symbols.at(change.before)
                if start.op == "zeros":
                    zeros += [left, Sign("=")]
                elif (right := self.formulas.of(start)) != left:
                    yield self._numbered(row(left, Sign("="), right), self._shape(start))
        if zeros:
            yield self._numbered(row(*zeros, Number("0")))

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


def _leaves(block: Block) -> tuple[str, ...]:
    """The letters, numbers and signs of a line: two sums may have their terms in another order."""
    written = block.formula if isinstance(block, Equation) else ()
    leaves = (each for each in parts_in(written) if isinstance(each, Symbol | Number | Sign))
    return tuple(sorted(map(repr, leaves)))


def _starts(program: Program) -> set[int]:
    """Zeros that loops start from and nothing else reads: the loop tells them."""
    others = {id(node) for node in program.outputs}
    carried: set[int] = set()
    for node in program.body:
        constants = node.attrs["loop"].constants if node.op == "loop" else len(node.args)
        others |= set(map(id, node.args[:constants]))
        carried |= {id(arg) for arg in node.args[constants:] if arg.op == "zeros"}
    return carried - others


def everything(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes with those in the rounds of loops."""
    for node in nodes:
        yield node
        if node.op == "loop":
            yield from everything(node.attrs["loop"].body.body)
