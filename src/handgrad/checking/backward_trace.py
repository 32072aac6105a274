"""A backward as its program: every gradient it makes, and the operations that make it alone."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from handgrad.program import Execution, Node, Program, ProgramError, Site
from handgrad.program import leaves as nodes_in
from handgrad.program.edits import is_floats


class Assigned(NamedTuple):
    """A name that the backward sets, or a position of its result, and the node that it stands for.

    `order` counts the names as they are set; those of the result come last, with the position for a
    name. `made` is the number of nodes that there were by then.
    """

    order: int
    name: str
    node: Node
    made: int
    line: int


class BackwardTrace:
    """Runs of one `backward(dy, cache)`.

    `variables` are the arrays of floats made from dy, and all that is returned, in order;
    `returned` is the one at each position of the result, None where that is no array. Raises
    ProgramError for a backward with a loop.
    """

    def __init__(self, program: Program, runs: Sequence[Execution]) -> None:
        self.program = program
        self.runs = runs
        own = [each for each in program.assignments if each.frame is program.frame]
        if any(each.rounds for each in own):
            raise ProgramError(f"{program.frame.name} has a loop")
        self._assigned = [
            Assigned(i, each.name, each.value, each.made, each.site.line if each.site else 0)
            for i, each in enumerate(own)
            if isinstance(each.value, Node)
        ]
        self._names: dict[Node, list[Assigned]] = {}
        for variable in self._assigned:
            self._names.setdefault(variable.node, []).append(variable)
        self._last = {variable.name: variable for variable in self._assigned}
        self._made = frozenset(node for node in program.nodes if node.op != "input")
        dy = list(nodes_in(next(iter(program.arguments.values()))))
        self._moved = frozenset((*dy, *program.moved_by(dy)))
        self.returned = self._returned(len(own))
        found = {each for each in self._assigned if each.node in self._moved}
        found |= {each for each in self.returned if each is not None}
        self.variables = sorted(
            (each for each in found if is_floats(each.node.value)), key=lambda each: each.order
        )

    def _returned(self, order: int) -> list[Assigned | None]:
        found: list[Assigned | None] = []
        for i, node in enumerate(self.program.results):
            if not isinstance(node, Node) or not is_floats(node.value):
                found.append(None)
                continue
            named = [each for each in self._names.get(node, ()) if each not in found]
            end = Assigned(order + i, str(i), node, node.number + 1, node.line)
            found.append(named[-1] if named else end)
        return found

    # Variables

    def value(self, variable: Assigned, number: int = 0) -> Any:
        """The variable in one of the runs."""
        return self.runs[number].value(variable.node)

    def is_last(self, variable: Assigned) -> bool:
        return self._last.get(variable.name) == variable

    def is_renaming(self, variable: Assigned) -> bool:
        """True where the line gives another variable a new name and does no more."""
        return self._before(variable) is not None or variable.node not in self._made

    def unpacked(self) -> dict[str, Any]:
        """The names that stand for arrays out of the cache."""
        return {
            each.name: each.node.value
            for each in self._assigned
            if each.node not in self._moved and each.node not in self._made
        }

    # Their making

    def sources(self, variable: Assigned, pinned: Container[Assigned]) -> set[Assigned]:
        """The variables of `pinned` that this one is made from, without another one between."""
        return self._slice(variable, pinned)[1]

    def users(self, variable: Assigned, pinned: Container[Assigned]) -> list[Assigned]:
        """The later variables that are made from this one, without another pinned one between."""
        later = [each for each in self.variables if each.order > variable.order]
        return [each for each in later if variable in self.sources(each, pinned)]

    def reached(self, variable: Assigned) -> list[int]:
        """The positions of the results that are made from this one."""
        return [
            i
            for i, each in enumerate(self.returned)
            if each is not None and (each == variable or variable in self.sources(each, {variable}))
        ]

    def alone(self, variable: Assigned, pinned: Container[Assigned]) -> list[Execution]:
        """The runs of a program of those operations alone that make the variable."""
        inner, _ = self._slice(variable, pinned)
        node = variable.node
        order = sorted(inner, key=lambda each: each.number)
        if node in inner:
            return [Execution(self._of(order, node), run.values) for run in self.runs]
        # A line without an operation gets one, so that it can be changed.
        site = Site(variable.line, 0, variable.line, 0, "")
        same = Node(
            *(variable.made, "same", _same, (node,), {}, node.value, self.program.frame, site),
            name=variable.name,
        )
        program = self._of([same], same)
        return [Execution(program, {same: run.value(node), **run.values}) for run in self.runs]

    def _of(self, nodes: Sequence[Node], result: Node) -> Program:
        return replace(self.program, nodes=tuple(nodes), result=result)

    def _slice(
        self, variable: Assigned, pinned: Container[Assigned]
    ) -> tuple[set[Node], set[Assigned]]:
        """The operations that make a variable, and the variables of `pinned` they begin with."""
        inner: set[Node] = set()
        boundary: set[Assigned] = set()

        waiting = [(variable.node, self._before(variable))]
        while waiting:
            node, named = waiting.pop()
            while named is not None and named not in pinned:
                named = self._before(named)
            if named is not None:
                boundary.add(named)
            elif node in self._made and node not in inner:
                inner.add(node)
                waiting += [(each, self._named(each, node)) for each in node.operands]
        return inner, boundary

    def _before(self, variable: Assigned) -> Assigned | None:
        """The variable that had the same node before."""
        names = self._names.get(variable.node, ())
        return max((each for each in names if each.order < variable.order), default=None)

    def _named(self, node: Node, user: Node) -> Assigned | None:
        """The variable that an operation reads a node by: the last one, or that in its source."""
        known = [each for each in self._names.get(node, ()) if each.made <= user.number]
        if not known or user.site is None:
            return known[-1] if known else None
        written = _names_in(user.site.text)
        if node.name in written and all(each.name not in written for each in known):
            return None
        return next((each for each in reversed(known) if each.name in written), known[-1])


@lru_cache(4096)
def _names_in(text: str) -> frozenset[str]:
    """The names in an expression."""
    try:
        parts = ast.walk(ast.parse(text, mode="eval"))
    except SyntaxError:  # a statement, or a part of one
        return frozenset()
    return frozenset(each.id for each in parts if isinstance(each, ast.Name))


def _same(value: Any) -> Any:
    return value
