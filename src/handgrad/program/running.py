"""Running a program again: on other values, in another arithmetic, with some nodes replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from handgrad.program.nodes import Node, Program, mapped

#: A node's value otherwise: from its own, and a function that gives the values of other nodes.
Change = Callable[[Any, Callable[[Any], Any]], Any]
#: Computes a node from arguments that hold values in the place of nodes.
Domain = Callable[[Node, tuple[Any, ...], dict[str, Any]], Any]


def numbers(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The domain of numbers: the very function that ran."""
    assert node.function is not None
    return node.function(*args, **kwargs)


def rerun(
    nodes: Iterable[Node],
    values: Mapping[Node, Any] = MappingProxyType({}),
    changes: Mapping[Node, Change] = MappingProxyType({}),
    domain: Domain = numbers,
    run: Mapping[Node, Any] = MappingProxyType({}),
) -> dict[Node, Any]:
    """The values of nodes, in order, that change where some have the given values or changes.

    A node none of whose operands changed keeps the value that it has in `run`, an earlier result,
    or else in the program, and is not in the result.
    """
    found: dict[Node, Any] = dict(values)

    def value(node: Node) -> Any:
        if node in found:
            return found[node]
        return run.get(node, node.value)

    def of(nested: Any) -> Any:
        if isinstance(nested, Node):
            return value(nested)
        return mapped(lambda each: value(each) if isinstance(each, Node) else each, nested)

    for node in nodes:
        if node in values:
            continue
        if node.function is not None and not found.keys().isdisjoint(node.operands):
            found[node] = domain(node, *node.called_with(value))
        if node in changes:
            found[node] = changes[node](value(node), of)
    return found


@dataclass(frozen=True, eq=False)
class Execution:
    """A run of a program: the one that it was made of, or another one of the same operations.

    `values` holds those of its nodes' values that are not the program's own.
    """

    program: Program
    values: Mapping[Node, Any] = field(default_factory=dict)

    def value(self, nested: Any) -> Any:
        return values_of(nested, self.values)

    def changed(self, changes: Mapping[Node, Change], nested: Any) -> Any:
        """The structure with the nodes' values where some nodes are changed."""
        nodes = {*changes, *self.program.moved_by(changes)}
        order = sorted(nodes, key=lambda node: node.number)
        found = rerun(order, changes=changes, run=self.values)
        return values_of(nested, {**self.values, **found})


def as_execution(program: Program, other: Program) -> Execution | None:
    """The run that another program of the same function is; None where it took another way."""
    if len(program.nodes) != len(other.nodes):
        return None
    pairs = list(zip(program.nodes, other.nodes, strict=True))
    if any((one.op, one.site, one.rounds) != (two.op, two.site, two.rounds) for one, two in pairs):
        return None
    return Execution(program, {one: two.value for one, two in pairs})


def values_of(nested: Any, found: Mapping[Node, Any] = MappingProxyType({})) -> Any:
    """The structure with the nodes' values: those that were found, or else those of the run."""
    return mapped(
        lambda each: found.get(each, each.value) if isinstance(each, Node) else each, nested
    )
