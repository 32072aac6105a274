"""The additive terms of a gradient: dx = (a − b) c is a c and −b c, each with its own value.

A node that is linear in a sum is the sum of its values for each summand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from handgrad.program.arranging import ORDERS
from handgrad.program.edits import is_floats
from handgrad.program.nodes import Node
from handgrad.program.running import Execution
from handgrad.program.text import SHAPING, text

#: Operations that are linear in their first operand.
_LINEAR: Final = {
    *(*SHAPING, *ORDERS),
    *("sum", "mean", "getitem", "repeat", "tile", "flip", "roll", "cumulative_sum", "real"),
}
Of = Callable[[Any], Any]


class Term(NamedTuple):
    """One summand of a node, by what distinguishes it from the others: −mean(dx̂)."""

    label: str
    #: Its value, with its sign, from a function that gives those of nodes.
    compute: Callable[[Of], Any]
    #: The named nodes in the place of which their own terms stand.
    opened: frozenset[Node] = frozenset()

    def value(self, run: Execution) -> Any:
        return self.compute(run.value)


def additive_terms(node: Node, *, depth: int = 1) -> list[Term]:
    """The terms of a node, brackets multiplied out.

    Names are replaced by what was assigned to them `depth` times over: 1 opens the node's own line,
    more also the lines it is made from.
    """
    return list(_of_node(node, depth))


def _terms(node: Any, depth: int) -> Iterator[Term]:
    """The terms of an operand, whose name counts."""
    if not isinstance(node, Node) or not node.name:
        yield from _of_node(node, depth)
        return
    for term in _of_node(node, depth - 1):
        yield term._replace(opened=term.opened | {node})


def _of_node(node: Any, depth: int) -> Iterator[Term]:
    if not isinstance(node, Node) or depth <= 0 or not is_floats(node.value) or not node.args:
        yield _whole(node)
    elif node.op in ("add", "subtract"):
        for number, operand in enumerate(node.args):
            sign = -1 if number == 1 and node.op == "subtract" else 1
            yield from (_summand(node, sign, term) for term in _terms(operand, depth))
    elif node.op == "negative":
        yield from (_summand(node, -1, term) for term in _terms(node.args[0], depth))
    elif node.op in ("multiply", "matmul"):
        yield from _of_factors(node, 2, depth)
    elif node.op == "divide" or node.op in _LINEAR:
        yield from _of_factors(node, 1, depth)
    else:
        yield _whole(node)


def _whole(node: Any) -> Term:
    return Term(text(node), lambda of: of(node))


def _summand(node: Node, sign: int, term: Term) -> Term:
    """A term of an operand of a sum as one of the sum."""

    def compute(of: Of) -> Any:
        value = term.compute(of) if sign > 0 else -term.compute(of)
        # It may have had its shape from the other summands.
        if np.shape(value) == np.shape(node.value):
            return value
        return array_namespace(node.value).broadcast_to(value, np.shape(of(node)))

    return Term(term.label if sign > 0 else _negated(term.label), compute, term.opened)


def _of_factors(node: Node, count: int, depth: int) -> Iterator[Term]:
    """The terms of the first `count` operands, multiplied out."""
    several = [list(_terms(factor, depth)) for factor in node.args[:count]]
    if all(len(each) == 1 for each in several):
        yield _whole(node)
        return
    for chosen in product(*several):
        labels = [one.label for one, among in zip(chosen, several, strict=True) if len(among) > 1]
        opened = frozenset[Node]().union(*(one.opened for one in chosen))
        yield Term(" ".join(labels), _product(node, chosen), opened)


def _product(node: Node, factors: tuple[Term, ...]) -> Callable[[Of], Any]:
    def compute(of: Of) -> Any:
        assert node.function is not None
        rest = of(node.args[len(factors) :])
        return node.function(
            *(each.compute(of) for each in factors), *rest, **of(dict(node.kwargs))
        )

    return compute


def _negated(label: str) -> str:
    return label.removeprefix("−") if label.startswith("−") else "−" + label
