"""Running a program again: on other values, in another arithmetic, with some nodes replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from handgrad.program.nodes import Node, mapped

#: Computes a node from arguments that hold values in the place of nodes.
Domain = Callable[[Node, tuple[Any, ...], dict[str, Any]], Any]


def numbers(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The domain of numbers: the very function that ran."""
    assert node.function is not None
    return node.function(*args, **kwargs)


def rerun(
    nodes: Iterable[Node], values: Mapping[Node, Any], domain: Domain = numbers
) -> dict[Node, Any]:
    """The values of nodes, in order, that change where some have the given values.

    A node none of whose operands changed keeps the value of the run, and is not in the result.
    """
    found: dict[Node, Any] = dict(values)

    def value(each: Any) -> Any:
        return found.get(each, each.value) if isinstance(each, Node) else each

    for node in nodes:
        if node in found or node.function is None:
            continue
        if any(each in found for each in node.operands):
            args, kwargs = mapped(value, node.args), mapped(value, dict(node.kwargs))
            found[node] = domain(node, args, kwargs)
    return found
