"""Equations between layers that no recorded line computes: sums of gradients, other shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from handgrad.documents.formulas.formula import Formula
from handgrad.equations.derived import Arrived, DerivedEquation
from handgrad.equations.models.symbols import is_gradient
from handgrad.program import Frame, Node

_NOWHERE: Final = Frame(type(None))


def joined(
    equation: DerivedEquation, function: Callable[..., Any], terms: Sequence[tuple[Formula, Any]]
) -> DerivedEquation:
    """The equation with the node that computes its value from terms with these symbols."""
    leaves = tuple(_node("input", None, (), value) for _, value in terms)
    node = _node("joined", function, leaves, equation.value)
    arrived = tuple(
        Arrived(leaf, symbol, "", ((symbol, leaf.value),), is_gradient(symbol))
        for leaf, (symbol, _) in zip(leaves, terms, strict=True)
    )
    return replace(equation, nodes=(node,), arrived=arrived)


def added(first: Any, *others: Any) -> Any:
    return sum(others, start=first)


def _node(op: str, function: Callable[..., Any] | None, args: tuple[Any, ...], value: Any) -> Node:
    return Node(-1, op, function, args, {}, value, _NOWHERE, None)
