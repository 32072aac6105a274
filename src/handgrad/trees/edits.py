"""Every single wrong step that a tree allows: the right backward with one thing changed.

The same list serves twice. The benchmark plants each edit and asks the checker to find it; the
checker compares a wrong gradient with what each edit of the right backward would have given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from handgrad.program.edits import is_floats, other_axes
from handgrad.trees import nodes
from handgrad.trees.evaluate import Environment, Trace, evaluate
from handgrad.trees.nodes import Constant, Factor, Keyword, Name, Node, Term
from handgrad.trees.reader import Function
from handgrad.trees.text import SHAPING, called, text

#: Every kind of edit, and what it does to the part it names.
KINDS: Final = {
    "term missing": "a summand is left out",
    "wrong sign": "a summand or the whole has the wrong sign",
    "factor missing": "an array that should be multiplied in is not",
    "scale missing": "a number that should be multiplied in is not",
    "scale inverted": "multiplied where it should be divided, or the other way round",
    "operands swapped": "the operands of a matrix product or a quotient are exchanged",
    "transpose missing": "a matrix is not transposed",
    "transposed": "a matrix is transposed that should not be",
    "sum for mean": "a sum where a mean belongs",
    "mean for sum": "a mean where a sum belongs",
    "wrong axis": "another axis",
    "not reduced": "a sum or mean is left out",
    "mask forgotten": "a condition is left out",
    "wrong branch": "the two branches of a condition are exchanged",
    "function missing": "a function is not applied",
    "activation derivative forgotten": "the gradient is not multiplied by f′",
    "stale variable": "another variable of the same shape is used",
    "gradients swapped": "two gradients come back in each other's place",
}
_DERIVATIVES: Final = frozenset({"activation_gradient"})


class Variant(NamedTuple):
    kind: str
    part: str
    node: Node


@dataclass(frozen=True)
class Edit:
    """A changed function: the kind of change, the part it concerns, and the line of the source."""

    kind: str
    part: str
    line: int
    function: Function


def edits(function: Function, run: Trace) -> list[Edit]:
    """Every edit of a statement that `run`, a trace of the function, executed."""
    found: list[Edit] = []
    for statement, known in executed(run):
        for kind, part, node in Editor(run, known).variants(statement.value):
            changed = replace(statement, value=node)
            found.append(edited(function, kind, part, statement, changed))
    editor = Editor(run, run.names)
    for kind, part, node in (*editor.variants(run.returned.value), *_swapped(run)):
        returned = replace(run.returned, value=node)
        found.append(edited(function, kind, part, run.returned, returned))
    return found


def executed(run: Trace) -> Iterator[tuple[Any, frozenset[str]]]:
    """Every statement that was executed, once, with the names that were set before it."""
    known, seen = run.arguments, set()
    for step in run.steps:
        if step.statement not in seen:
            yield step.statement, known
        seen.add(step.statement)
        known |= set(step.values)


def edited(function: Function, kind: str, part: str, old: Any, new: Node) -> Edit:
    body = tuple(_replaced(statement, old, new) for statement in function.body)
    return Edit(kind, part, old.line, replace(function, body=body))


def _replaced(statement: Node, old: Node, new: Node) -> Node:
    if statement == old:
        return new
    if isinstance(statement, nodes.Branch | nodes.For):
        return nodes.rebuilt(statement, lambda part: _replaced(part, old, new))
    return statement


def _swapped(run: Trace) -> Iterator[Variant]:
    """Two gradients of one shape, each returned in the other's place."""
    match run.returned.value:
        case nodes.Sequence(form, items):
            shapes = [getattr(value, "shape", None) for value in run.result]
            for i in range(len(items)):
                for j in range(i + 1, len(items)):
                    if shapes[i] is not None and shapes[i] == shapes[j]:
                        order = list(items)
                        order[i], order[j] = order[j], order[i]
                        part = f"{text(items[i])} and {text(items[j])}"
                        yield Variant("gradients swapped", part, nodes.Sequence(form, tuple(order)))


class Editor:
    """The variants of one statement's expression; `known` are the names set before it."""

    def __init__(self, run: Trace, known: frozenset[str]) -> None:
        self.run = run
        self.environment: Environment = run.environment
        self.known = known

    def variants(self, node: Node) -> Iterator[Variant]:
        """Every way to change the node itself or one part below it."""
        yield from self.own(node)
        for i, child in enumerate(nodes.children(node)):
            if isinstance(node, nodes.Call) and child is node.function:
                continue  # not the name of the function
            for kind, part, changed in self.variants(child):
                yield Variant(kind, part, with_child(node, i, changed))

    def words(self, node: Node) -> str:
        return text(node, self.run.definition)

    def value(self, node: Node) -> Any:
        """The node's value at the end of the run; None where it has none outside of its loop."""
        try:
            return evaluate(node, self.environment)
        except Exception:  # a name of a loop, or a size that does not fit any more
            return None

    def own(self, node: Node) -> Iterator[Variant]:
        match node:
            case nodes.Sum(terms) if not _is_size(self.value(node)):
                yield from self.of_sum(terms)
            case nodes.Product(factors) if not _is_size(self.value(node)):
                yield from self.of_product(factors)
            case nodes.Negative(value):
                yield Variant("wrong sign", self.words(node), value)
            case nodes.MatMul(left, right):
                yield Variant("operands swapped", self.words(node), nodes.MatMul(right, left))
                for i, side in enumerate((left, right)):
                    if not isinstance(side, nodes.Transpose):
                        turned = nodes.Transpose(side, "mT")
                        yield Variant("transposed", self.words(side), with_child(node, i, turned))
            case nodes.Transpose(value):
                yield Variant("transpose missing", self.words(node), value)
            case nodes.Reduce():
                yield from self.of_reduction(node)
            case nodes.Where(condition, yes, no, function):
                yield Variant("mask forgotten", self.words(condition), yes)
                swapped = nodes.Where(condition, no, yes, function)
                yield Variant("wrong branch", self.words(condition), swapped)
            case nodes.Logic("&", values):
                for i, value in enumerate(values):
                    (other,) = (each for j, each in enumerate(values) if j != i)
                    yield Variant("mask forgotten", self.words(value), other)
            case nodes.Call():
                yield from self.of_call(node)
            case nodes.Name(name):
                yield from self.of_name(name)

    def of_sum(self, terms: tuple[Term, ...]) -> Iterator[Variant]:
        for i, term in enumerate(terms):
            sign = "−" if term.sign < 0 else ""
            part = sign + self.words(term.value)
            rest = terms[:i] + terms[i + 1 :]
            yield Variant("term missing", part, _sum(rest))
            flipped = (*terms[:i], Term(-term.sign, term.value), *terms[i + 1 :])
            yield Variant("wrong sign", part, _sum(flipped))

    def of_product(self, factors: tuple[Factor, ...]) -> Iterator[Variant]:
        for i, factor in enumerate(factors):
            value = self.value(factor.value)
            part = ("1/" if factor.inverse else "") + self.words(factor.value)
            scalar = getattr(value, "ndim", 0) == 0
            kind = "scale missing" if scalar else "factor missing"
            yield Variant(kind, part, _product(factors[:i] + factors[i + 1 :]))
            if i > 0:
                turned = (*factors[:i], Factor(not factor.inverse, factor.value), *factors[i + 1 :])
                if factor.inverse or scalar:
                    yield Variant("scale inverted", part, nodes.Product(turned))

    def of_reduction(self, node: nodes.Reduce) -> Iterator[Variant]:
        other = {"sum": "mean", "mean": "sum"}.get(node.kind)
        if other is not None:
            function = node.function
            if isinstance(function, nodes.Attribute):
                function = nodes.Attribute(function.value, other)
            yield Variant(
                f"{other} for {node.kind}",
                self.words(node),
                replace(node, kind=other, function=function),
            )
        yield Variant("not reduced", self.words(node), node.value)
        for keywords in self.other_axes(node.keywords, node.value):
            yield Variant("wrong axis", self.words(node), replace(node, keywords=keywords))
        for first in node.arguments[:1]:
            for other in other_axes(self.value(first), getattr(self.value(node.value), "ndim", 0)):
                arguments = (Constant(other), *node.arguments[1:])
                yield Variant("wrong axis", self.words(node), replace(node, arguments=arguments))

    def of_call(self, node: nodes.Call) -> Iterator[Variant]:
        name = called(node.function)
        for first in node.arguments[:1]:
            before, after = self.value(first), self.value(node)
            if name not in SHAPING and is_floats(before) and is_floats(after):
                if before.ndim != after.ndim:
                    continue
                kind = "function missing"
                if name in _DERIVATIVES:
                    kind = "activation derivative forgotten"
                yield Variant(kind, self.words(node), first)
            for keywords in self.other_axes(node.keywords, first):
                yield Variant("wrong axis", self.words(node), replace(node, keywords=keywords))

    def other_axes(self, keywords: tuple[Keyword, ...], of: Node) -> Iterator[tuple[Keyword, ...]]:
        """The keywords with another axis, or with axes moved on by one."""
        dimensions = getattr(self.value(of), "ndim", 0)
        for i, (name, axis) in enumerate((each.name, each.value) for each in keywords):
            if name in ("axis", "dim"):
                for other in other_axes(self.value(axis), dimensions):
                    changed = Keyword(name, Constant(other))
                    yield (*keywords[:i], changed, *keywords[i + 1 :])

    def of_name(self, name: str) -> Iterator[Variant]:
        here: Any = self.environment.get(name)
        if name not in self.known or not is_floats(here):
            return
        for other in sorted(self.known - {name}):
            value: Any = self.environment.get(other)
            if is_floats(value) and value.shape == here.shape and value is not here:
                part = f"{self.words(Name(other))} for {self.words(Name(name))}"
                yield Variant("stale variable", part, Name(other))


def _is_size(value: Any) -> bool:
    return isinstance(value, int | tuple) and not isinstance(value, bool)


def _sum(terms: tuple[Term, ...]) -> Node:
    """A sum whose first term may have turned negative, or that has one term left."""
    first, *rest = terms
    value = first.value if first.sign > 0 else nodes.Negative(first.value)
    return nodes.Sum((Term(1, value), *rest)) if rest else value


def _product(factors: tuple[Factor, ...]) -> Node:
    first, *rest = factors
    if first.inverse:
        return nodes.Product((Factor(False, Constant(1.0)), *factors))
    return nodes.Product(factors) if rest else first.value


def with_child(node: Node, position: int, new: Node) -> Node:
    """The node with its child number `position` replaced."""
    counted = iter(range(len(nodes.children(node))))
    return nodes.rebuilt(node, lambda child: new if next(counted) == position else child)
