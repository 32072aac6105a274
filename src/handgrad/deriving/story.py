"""A derivation as a page: the forward, the chain rule line by line, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from handgrad.deriving.derived import Derived
from handgrad.deriving.formulas import Formulas
from handgrad.documents.document import (
    Block,
    Code,
    Content,
    Document,
    Equation,
    Heading,
    Mono,
    Paragraph,
    Table,
)
from handgrad.documents.formulas.formula import Sign, row
from handgrad.program.node import Loop, Node, Program

_RULES: Final = {
    "fold": "In this name, which the forward has: ",
    "fact": "Because ",
    "definition": "With the definition of ",
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
        names = [n.name for n in (*self.inputs, *everything(pair.forward.body)) if n.name]
        self.formulas = Formulas(names)

    def blocks(self) -> Iterator[Block]:
        derivation, pair = self.derivation, self.derivation.pair
        yield Paragraph(
            "Every line below follows from the forward alone, by the chain rule and by algebra. "
            "Both sides of every step were evaluated; the largest difference, as a share of the "
            "largest value, stands beside it. The result was run beside central differences of "
            "the forward. It is the smallest that was found; that there is no smaller one is not "
            "claimed."
        )
        for letter, length in derivation.fixed.items():
            yield Paragraph(f"It is for {letter} = {length} alone.")
        yield Heading("Forward")
        yield from self._lines(pair.forward, self.inputs)
        yield Heading("The chain rule, line by line")
        own = [*self.inputs, *pair.forward.body, *pair.cotangents]
        yield from self._lines(Program(own, list(derivation.chain.gradients)), own)
        if derivation.steps:
            yield Heading("Steps")
            yield from self._steps()
        yield Heading("Result")
        yield from self._lines(pair.backward, pair.backward.inputs)
        for path, node in zip(pair.wanted, pair.backward.outputs, strict=True):
            name = f"d{'_'.join(map(str, path))}"
            if node.name != name:
                symbol = self.formulas.symbol(name)
                yield Equation(row(symbol, Sign("="), self.formulas.of(node)))
        yield Heading("What is kept")
        yield from self._kept()
        yield from self._order()
        yield Heading("Proof")
        yield from self._proof()
        yield Heading("As Python")
        yield Code(f"{derivation.forward_source}\n\n{derivation.backward_source}")

    def _lines(self, program: Program, known: Sequence[Node]) -> Iterator[Block]:
        """An equation for each named node; the rounds of a loop come where the loop does."""
        seen = {id(n) for n in known}
        for node in program.body:
            if id(node) in seen or node.op in ("input", "part"):
                continue
            if node.op == "loop":
                yield from self._rounds(node)
            elif node.name:
                yield Equation(self.formulas.equation(node))

    def _rounds(self, node: Node) -> Iterator[Block]:
        loop: Loop = node.attrs["loop"]
        way = "down to" if loop.reverse else "up to"
        first, last = (f"{loop.count} − 1", "0") if loop.reverse else ("0", f"{loop.count} − 1")
        yield Paragraph(f"In each round, from {first} {way} {last}:")
        yield from self._lines(loop.body, loop.body.inputs)
        for carry, result in zip(
            loop.body.inputs[loop.constants :], loop.body.outputs, strict=False
        ):
            if carry.name and result is not carry and result.name != carry.name:
                left = self.formulas.symbol(carry.name)
                yield Equation(row(left, Sign("←"), self.formulas.of(result)))

    def _steps(self) -> Iterator[Block]:
        for step in self.derivation.steps:
            said: Content = (
                _RULES.get(step.rule, ""),
                step.why,
                f" ({max(step.differences, default=0.0):.0e})",
            )
            yield Paragraph(said)
            if step.table is not None:
                before = self.formulas.sum_of(step.table, step.before)
                yield Equation(row(before, Sign("="), self.formulas.sum_of(step.table, step.after)))

    def _kept(self) -> Iterator[Block]:
        cache = self.derivation.cache
        if not cache:
            yield Paragraph("Nothing: the cotangent is enough.")
            return
        kept = self.derivation.pair.kept
        rows: list[tuple[Content, ...]] = []
        for k, name in enumerate(cache):
            if k < len(kept):
                sizes = [str(size) for size in kept[k].shape]
                shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
            rows.append((Mono(name), shape if k < len(kept) else "a length"))
        yield Table(("array", "shape"), tuple(rows))

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
