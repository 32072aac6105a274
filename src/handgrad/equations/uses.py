"""The uses of values that have names: how often, and by which statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from handgrad.equations.pairing import Statement
from handgrad.equations.scope import Scope
from handgrad.equations.shaping import OF_SHAPES, bare
from handgrad.program import Node, leaves, reachable


def needed(results: Any) -> set[Node]:
    """Every node whose values results depend on, and these."""
    return reachable(results, _read)


class Uses:
    """The uses of named values in the statements of both functions, and in what they return."""

    def __init__(self, scope: Scope, statements: Iterable[Statement], results: Any) -> None:
        self.scope = scope
        #: The statements that name each node.
        self.bound: defaultdict[Node, list[Statement]] = defaultdict(list)
        every = list(statements)
        for each in every:
            for value in each.values:
                if isinstance(value, Node):
                    self.bound[value].append(each)
        self._uses: defaultdict[Node, list[tuple[Statement | None, int]]] = defaultdict(list)
        done: set[Node] = set()
        for each in every:
            for value in each.values:
                # Several names are for parts of one value.
                whole = (
                    value.args[0] if isinstance(value, Node) and value.op == "element" else value
                )
                if isinstance(whole, Node) and whole not in done:
                    done.add(whole)
                    self._add(each, _read(whole))
        self._add(None, leaves(results))

    def _add(self, statement: Statement | None, nodes: Iterable[Node]) -> None:
        counts: defaultdict[Node, int] = defaultdict(int)
        for each in nodes:
            self._count(each, counts)
        for node, number in counts.items():
            self._uses[node].append((statement, number))

    def _count(self, node: Node, counts: defaultdict[Node, int]) -> None:
        if node in self.bound or not node.operands:
            counts[node] += 1
        else:
            for each in _read(node):
                self._count(each, counts)

    def only(self, node: Node) -> Statement | None:
        """The one statement that a value stands in, once: of those in a loop, in its own round."""
        keys: set[Any] = set()
        found: Statement | None = None
        for statement, number in self._uses.get(node, ()):
            if statement is None or number > 1:
                return None
            if statement.key in keys and self.scope.round_of(node) is not None:
                return None
            keys.add(statement.key)
            found = statement
        if found is None or len(keys) > 1:
            return None
        value = found.values[0]
        if len(found.values) == 1 and value is not node and bare(value) is node:
            return self.only(value)
        return found


def _read(node: Node) -> tuple[Node, ...]:
    """The operands whose values an operation reads, and not their shapes alone."""
    if node.op in OF_SHAPES:
        return ()
    return node.operands[:1] if node.op == "sum_to" else node.operands
