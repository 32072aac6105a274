"""The additive terms of a gradient: dx = (a − b) c is a c and −b c, each with its own value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from handgrad.trees import nodes
from handgrad.trees.evaluate import Trace, evaluate
from handgrad.trees.nodes import Factor, Node
from handgrad.trees.text import SHAPING, called, text


@dataclass(frozen=True)
class AdditiveTerm:
    """One summand of a gradient. `label` is what distinguishes it: −mean(dx̂), without what all
    terms are multiplied by; `expression` is the whole of it, without the sign."""

    sign: int
    label: str
    expression: Node

    def value(self, environment: Any) -> Any:
        """The term with its sign, where these names are known."""
        value = evaluate(self.expression, environment)
        return value if self.sign > 0 else -value


def gradient_expressions(run: Trace) -> tuple[Node, ...]:
    """What stands behind `return`, one expression per gradient."""
    returned = run.returned.value
    if isinstance(returned, nodes.Sequence):
        return returned.items
    return (returned,)


def additive_terms(run: Trace, gradient: Node, *, depth: int = 1) -> list[AdditiveTerm]:
    """The terms of a returned gradient, brackets multiplied out.

    Names are replaced by what was assigned to them `depth` times over: 1 opens the gradient's own
    line, more also the lines it is made from.
    """
    found = []
    for sign, label, expression in _expanded(gradient, run, depth):
        words = text(label, run.definition)
        found.append(AdditiveTerm(sign, ("−" if sign < 0 else "") + words, expression))
    return found


Expansion = Iterator[tuple[int, Node, Node]]  # sign, what names the term, the whole term


def _expanded(node: Node, run: Trace, depth: int) -> Expansion:
    match node:
        case nodes.Name(name):
            definition = run.definition(name) if depth > 0 else None
            if definition is None:
                yield 1, node, node
            elif len(terms := list(_expanded(definition, run, depth - 1))) > 1 or depth > 1:
                yield from terms
            else:
                yield terms[0][0], terms[0][1], node if terms[0][0] > 0 else terms[0][2]
        case nodes.Sum(terms):
            for term in terms:
                for sign, label, whole in _expanded(term.value, run, depth):
                    yield sign * term.sign, label, whole
        case nodes.Negative(value):
            for sign, label, whole in _expanded(value, run, depth):
                yield -sign, label, whole
        case nodes.Product(factors):
            yield from _expanded_product(factors, run, depth)
        case nodes.MatMul(left):
            yield from _expanded_part(node, "left", left, run, depth)
        case nodes.Transpose(value) | nodes.Reduce("sum" | "mean", value):
            yield from _expanded_part(node, "value", value, run, depth)
        case nodes.Call(function, (first, *rest)) if called(function) in SHAPING:
            several = list(_expanded(first, run, depth))
            if not _are_like(first, several, run):
                several = [(1, first, first)]
            for sign, label, whole in several:
                yield sign, label, replace(node, arguments=(whole, *rest))
        case nodes.Method(value, name) if name in SHAPING:
            for sign, label, whole in _expanded(value, run, depth):
                yield sign, label, replace(node, value=whole)
        case _:
            yield 1, node, node


def _are_like(node: Node, several: list[tuple[int, Node, Node]], run: Trace) -> bool:
    """Whether each term has the shape of all; one that is broadcast cannot be reshaped alone."""
    shape = np.shape(evaluate(node, run.environment))
    return all(np.shape(evaluate(whole, run.environment)) == shape for _, _, whole in several)


def _expanded_part(node: Any, field: str, part: Node, run: Trace, depth: int) -> Expansion:
    """A node that is linear in one part of it."""
    several = list(_expanded(part, run, depth))
    if len(several) == 1:
        yield 1, node, node
        return
    for sign, label, whole in several:
        yield sign, label, replace(node, **{field: whole})


def _expanded_product(factors: tuple[Factor, ...], run: Trace, depth: int) -> Expansion:
    """Multiply out every factor that has several terms."""
    for i, factor in enumerate(factors):
        several = [] if factor.inverse else list(_expanded(factor.value, run, depth))
        if len(several) < 2:
            continue
        for sign, label, whole in several:
            changed = (*factors[:i], Factor(False, whole), *factors[i + 1 :])
            for inner_sign, inner_label, inner in _expanded_product(changed, run, 0):
                same = inner == nodes.Product(changed)
                yield sign * inner_sign, label if same else inner_label, inner
        return
    yield 1, nodes.Product(factors), nodes.Product(factors)
