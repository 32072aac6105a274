"""A derivation as a page: the forward, each adjoint by the chain rule, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handgrad.deriving.arrays import Array, Graph, owner
from handgrad.deriving.terms import (
    Factor,
    Index,
    Power,
    Sum,
    Term,
    common_factors,
    magnitude,
    without,
)
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
from handgrad.documents.formulas.formula import (
    Big,
    Fenced,
    Formula,
    Fraction,
    Number,
    Root,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
)
from handgrad.documents.formulas.formula import FormulaRow as Row
from handgrad.equations.glossary import Glossary, subscript

if TYPE_CHECKING:
    from handgrad.deriving.derivation import Derivation


def document(derivation: Derivation) -> Document:
    """The page of a derivation."""
    return Document(
        f"{derivation.name}: the backward derived from the forward",
        blocks=tuple(_Story(derivation).blocks()),
    )


@dataclass
class _Story:
    derivation: Derivation

    @property
    def graph(self) -> Graph:
        return self.derivation.graph

    def blocks(self) -> Iterator[Block]:
        yield Paragraph(
            "Every line below follows from the forward alone, by the chain rule and by algebra. "
            "Both sides of every step were evaluated at two sets of sizes; the largest difference, "
            "relative to the size of what is added, stands beside it. The result agrees with "
            "central differences of the forward. It is the smallest that was found; that there is "
            "no smaller one is not claimed."
        )
        if self.derivation.fixed:
            sizes = ", ".join(f"{x} = {n}" for x, n in self.derivation.fixed.items())
            yield Paragraph(f"The steps of the forward depend on sizes: it is for {sizes} alone.")
        if self.derivation.parts:
            yield Paragraph(
                "The forward has a loop. What stands before it, one step, and what stands behind "
                "it are derived by themselves; in the backward the steps run in reverse, and the "
                "adjoint of what a step hands on comes from the one after it."
            )
            for part in self.derivation.parts:
                yield Heading(part.name.capitalize())
                yield from _Story(part).derived(2)
        else:
            yield from self.derived(1)
        yield Heading("As Python")
        yield Code(f"{self.derivation.forward_source}\n\n{self.derivation.backward_source}")

    def derived(self, level: int) -> Iterator[Block]:
        """The derivation itself, under headings of a level."""
        yield Heading("Forward", level)
        yield from self._forward()
        yield Heading("The chain rule, line by line", level)
        yield from self._adjoints()
        yield Heading("Result", level)
        yield from self._result()
        yield Heading("What is kept", level)
        yield from self._kept()

    def _forward(self) -> Iterator[Block]:
        for array in self.graph.arrays.values():
            if array.is_backward or (array.node is not None and array.node.op == "input"):
                continue
            left = self._symbol(array, array.indices)
            if array.definition is not None:
                yield Equation(row(left, Sign("="), self._sum(array.definition)))
            else:
                reads = [
                    self._symbol(self.graph[name], self.graph[name].indices)
                    for name in array.reads
                    if name in self.graph.arrays
                ]
                word = array.node.op.replace("_", " ") if array.node is not None else array.name
                inner = _separated(reads)
                yield Equation(row(left, Sign("="), Text(word), Fenced(inner)))

    def _adjoints(self) -> Iterator[Block]:
        """Each adjoint as the sweep finds it, and then every step that changes it."""
        steps: dict[str, list[tuple[Sum, Sum, Content]]] = {}
        for step in self.derivation.steps:
            said: Content = (_REASONS[step.rule], Mono(step.why), f" ({step.difference:.0e})")
            steps.setdefault(step.array, []).append((step.before, step.after, said))
        for name, sum_ in self.derivation.chain:
            array = self.graph[name]
            left = _adjoint(self._symbol(array, array.indices))
            yield Equation(row(left, Sign("="), self._sum(sum_)))
            for _, after, said in steps.pop(f"d{name}", []):
                yield Paragraph(said)
                yield Equation(row(left, Sign("="), self._sum(after)))

    def _result(self) -> Iterator[Block]:
        for array in self.derivation.named:
            assert array.definition is not None
            left = self._symbol(array, array.indices)
            yield Equation(row(left, Sign("="), self._sum(array.definition)))
        for name, sum_ in self.derivation.gradients.items():
            array = self.graph[name]
            left = _adjoint(self._symbol(array, array.indices))
            yield Equation(row(left, Sign("="), self._sum(sum_)))

    def _kept(self) -> Iterator[Block]:
        rows: list[tuple[Content, ...]] = []
        for name in self.derivation.cache:
            array = self.graph.arrays.get(name)
            shape = "a number" if array is None else _shape(array)
            used = [
                each
                for each in self.derivation.backward_source.splitlines()[2:]
                if name in each.replace("(", " ").replace(")", " ").replace(",", " ").split()
            ]
            lines = [each.strip().partition(" = ")[0] for each in used]
            rows.append((Mono(name), shape, ", ".join(lines) or "sizes"))
        if not rows:
            yield Paragraph("Nothing: the cotangent is enough.")
            return
        yield Table(("array", "shape", "for"), tuple(rows))

    # Formulas

    def _symbol(
        self, array: Array, indices: Sequence[Index], names: _Names | None = None
    ) -> Formula:
        names = names or _Names()
        name = array.name
        is_adjoint = array.is_backward and name[:1] == "d" and name[1:] in self.graph.arrays
        base = self._letter(name[1:] if is_adjoint else name)
        if indices:
            base = subscript(base, row(*(names.formula(index) for index in indices)))
        return _adjoint(base) if is_adjoint else base

    def _letter(self, name: str) -> Formula:
        known = frozenset(self.graph.arrays)
        found = Glossary(known=known, inputs=known).symbol(name)
        return Text(name.replace("_", " ")) if isinstance(found, Fraction | Row) else found

    def _sum(self, sum_: Sum) -> Formula:
        if not sum_:
            return Number("0")
        terms = sorted(sum_, key=lambda each: (sum_[each] < 0, len(each.bound), len(each.factors)))
        common = common_factors(terms) if len(terms) > 1 else {}
        parts: list[Formula] = []
        for at, each in enumerate(terms):
            coefficient = sum_[each]
            inner = self._term(without(each, common), abs(coefficient))
            if coefficient < 0:
                parts.append(Sign("−"))
            elif at:
                parts.append(Sign("+"))
            parts.append(inner)
        body = row(*parts)
        if not common:
            return body
        outside = Term(tuple(Factor(*key, power) for key, power in common.items()))
        return row(self._term(outside, 1), Fenced(body))

    def _term(self, one: Term, coefficient: Power) -> Formula:
        names = _Names()
        bound = set(one.bound)
        for factor in one.factors:
            for index in factor.indices:
                if index not in bound:
                    names.formula(index)
        outer = [f for f in one.factors if not bound & set(f.indices)]
        inner = [f for f in one.factors if bound & set(f.indices)]
        found = self._product(outer, coefficient, names, alone=not inner)
        if not inner:
            return found
        below = row(*(names.formula(index) for index in one.bound))
        sum_ = Big("sum", self._product(inner, 1, names, alone=True), below)
        return sum_ if not outer and coefficient == 1 else row(found, sum_)

    def _product(
        self, factors: Sequence[Factor], coefficient: Power, names: _Names, *, alone: bool
    ) -> Formula:
        above: list[Formula] = []
        below: list[Formula] = []
        if coefficient.numerator != 1:
            above.append(_number(coefficient.numerator))
        if coefficient.denominator != 1:
            long = coefficient.denominator > 1000
            if long:
                above[:] = [Number(f"{float(coefficient):.6g}")]
            else:
                below.append(_number(coefficient.denominator))
        for factor in sorted(factors, key=lambda f: (not f.is_size, not f.name.startswith("d"))):
            (above if factor.power > 0 else below).append(self._factor(factor, names))
        if not above and (alone or below):
            above.append(Number("1"))
        if not above:
            return row()
        return Fraction(_apart(above), _apart(below)) if below else _apart(above)

    def _factor(self, factor: Factor, names: _Names) -> Formula:
        power = magnitude(factor.power)
        base: Formula
        if factor.is_size:
            base = _dimension(factor.name[1:])
        elif factor.is_mask:
            array = self.graph[owner(factor.name)]
            condition = self._symbol(array, factor.indices, names)
            inverse = factor.name.startswith("[~")
            base = Fenced(row(Sign("¬"), condition) if inverse else condition, "[")
        elif factor.name in self.graph.arrays:
            base = self._symbol(self.graph[factor.name], factor.indices, names)
        else:
            base = self._letter(factor.name)
        if power == 1:
            return base
        if power.denominator == 2 and power.numerator == 1:
            return Root(base)
        raised = Number(str(power.numerator))
        exponent: Formula = raised
        if power.denominator != 1:
            exponent = row(raised, Sign("/"), Number(str(power.denominator)))
        return Script(Fenced(base) if isinstance(base, Script | Row) else base, sup=exponent)


_REASONS: Final[Mapping[str, str]] = {
    "fold": "In this name, which the forward has: ",
    "fact": "Because ",
    "definition": "With the definition of ",
}


class _Names:
    """A letter for every index of a term: that of its dimension, with primes where it is taken."""

    def __init__(self) -> None:
        self._found: dict[Index, Formula] = {}

    def formula(self, index: Index) -> Formula:
        if index not in self._found:
            letter = next((c for c in index.dimension.lower() if c.isalpha()), "i")
            primes = sum(1 for each in self._found if _same(each, index))
            base: Formula = Symbol(letter)
            self._found[index] = Script(base, sup=row(*([Sign("′")] * primes))) if primes else base
        return self._found[index]


def _adjoint(base: Formula) -> Formula:
    """dx for x; a word stands apart from its d."""
    is_word = isinstance(base, Text) or (isinstance(base, Script) and isinstance(base.base, Text))
    return row(Symbol("d"), Space(), base) if is_word else row(Symbol("d"), base)


def _apart(parts: Sequence[Formula]) -> Formula:
    """Factors with a little room between them."""
    found: list[Formula] = []
    for each in parts:
        found += [Space(), each] if found else [each]
    return row(*found)


def _same(one: Index, other: Index) -> bool:
    first, second = (
        next((c for c in each.dimension.lower() if c.isalpha()), "i") for each in (one, other)
    )
    return first == second


def _dimension(text: str) -> Formula:
    if len(text) == 1 and text.isalpha():
        return Symbol(text)
    if text.isdecimal():
        return Number(text)
    return Fenced(Text(text.replace("*", "·")))


def _number(value: int) -> Formula:
    return Number(str(value))


def _shape(array: Array) -> str:
    axes = ["1" if each is None else each for each in array.axes]
    return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"


def _separated(parts: Sequence[Formula]) -> Formula:
    found: list[Formula] = []
    for each in parts:
        found += [Sign(","), each] if found else [each]
    return row(*found) if found else Text("")
