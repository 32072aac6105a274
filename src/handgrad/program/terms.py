"""The additive terms of a gradient: dx = (a − b) c is a c and −b c, each with its own value.

A node that is linear in a sum is the sum of what it is for each summand alone. So a term is the
program with that sum replaced by one of its summands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.program.edits import is_floats
from handgrad.program.nodes import Node, Program
from handgrad.program.running import Change, rerun, values_of
from handgrad.program.words import SHAPING, words

#: Operations that are linear in their first operand.
_LINEAR: Final = SHAPING | {
    *("sum", "mean", "matrix_transpose", "permute_dims", "getitem", "swapaxes", "moveaxis"),
    *("repeat", "tile", "flip", "roll", "cumulative_sum", "real"),
}


class Term(NamedTuple):
    """One summand of a node, by what distinguishes it from the others: −mean(dx̂)."""

    label: str
    changes: Mapping[Node, Change]

    def value(
        self, program: Program, node: Node, run: Mapping[Node, Any] = MappingProxyType({})
    ) -> Any:
        """The term of `node` in an earlier run of the program, with its sign."""
        found = rerun(program.nodes, changes=self.changes, run=run)
        return values_of(node, {**run, **found})


def additive_terms(node: Node, *, depth: int = 1) -> list[Term]:
    """The terms of a node, brackets multiplied out.

    Names are replaced by what was assigned to them `depth` times over: 1 opens the node's own line,
    more also the lines it is made from.
    """
    return list(_terms(node, depth, opened=False))


def _terms(node: Any, depth: int, *, opened: bool = True) -> Iterator[Term]:
    if isinstance(node, Node) and node.name and opened:
        depth -= 1
    if not isinstance(node, Node) or depth <= 0 or not is_floats(node.value) or not node.args:
        yield Term(words(node), {})
        return
    args = node.args
    if node.op in ("add", "subtract"):
        for number, operand in enumerate(args):
            negated = number == 1 and node.op == "subtract"
            for label, changes in _terms(operand, depth):
                said = _negated(label) if negated else label
                yield Term(said, {**changes, node: _only(node, operand, negated=negated)})
    elif node.op == "negative":
        for label, changes in _terms(args[0], depth):
            yield Term(_negated(label), changes)
    elif node.op == "multiply" or node.op == "matmul":
        yield from _of_factors(node, args[:2], depth)
    elif node.op == "divide" or node.op in _LINEAR:
        yield from _of_factors(node, args[:1], depth)
    else:
        yield Term(words(node), {})


def _of_factors(node: Node, factors: tuple[Any, ...], depth: int) -> Iterator[Term]:
    """The terms of each factor, multiplied out."""
    several = [list(_terms(factor, depth)) for factor in factors]
    if all(len(each) == 1 for each in several):
        yield Term(words(node), {})
        return
    for chosen in product(*several):
        said = [one.label for one, among in zip(chosen, several, strict=True) if len(among) > 1]
        changes = {at: change for one in chosen for at, change in one.changes.items()}
        yield Term(" ".join(said), changes)


def _only(node: Node, operand: Any, *, negated: bool) -> Change:
    """One summand in the place of the sum, broadcast to its shape, in which it may be reshaped."""

    def summand(own: Any, of: Any) -> Any:
        value = np.broadcast_to(of(operand), np.shape(node.value))
        return -value if negated else value

    return summand


def _negated(label: str) -> str:
    return label.removeprefix("−") if label.startswith("−") else "−" + label
