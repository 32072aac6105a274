"""A run of a backward, line by line: what every variable is made from, and its lines alone."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final, NamedTuple

from handgrad import trees
from handgrad.checking.straight import is_floats
from handgrad.trees import Function, Parameter, Trace, TreeError, nodes
from handgrad.trees.nodes import Assign, Name, Node


class Variable(NamedTuple):
    """What one executed line sets: its number and the name. What stands behind `return` itself has
    the number after the last line and its position as name."""

    number: int
    name: str


class Lines:
    """One run of `backward(dy, cache)`.

    `variables` are the arrays of floats made from dy, and all that is returned, in order;
    `returned` is what stands at each position of the result, None where that is no array.
    Raises TreeError for a backward with a loop, and what backward itself raises.
    """

    def __init__(self, backward: Function, dy: Any, cache: Any) -> None:
        if any(isinstance(each, nodes.For) for part in backward.body for each in nodes.walk(part)):
            raise TreeError(f"{backward.name} has a loop")
        self.backward = backward
        run = trees.trace(backward, dy, cache)
        first, *others = (each.name for each in backward.parameters)
        self._parameters = {name: run.environment[name] for name in (first, *others)}
        self._cache = frozenset(others)
        self.steps = [part for step in run.steps for part in _split(step)]
        if any(first in step.values or self._cache & set(step.values) for step in self.steps):
            raise TreeError(f"{backward.name} assigns to its own arguments")
        self._return = run.returned
        whole = isinstance(run.returned.value, nodes.Sequence)
        self._items: tuple[Node, ...] = trees.gradient_expressions(run)
        self._results: tuple[Any, ...] = tuple(run.result) if whole else (run.result,)
        self._definitions: list[dict[str, Variable]] = [{}]
        for i, step in enumerate(self.steps):
            now = {name: Variable(i, name) for name in step.values}
            self._definitions.append({**self._definitions[-1], **now})
        self.returned = self._returned()
        self.variables = self._variables(first)

    def _returned(self) -> list[Variable | None]:
        found: list[Variable | None] = []
        for i, (item, result) in enumerate(zip(self._items, self._results, strict=True)):
            last = self._definitions[-1]
            direct = last.get(item.id) if isinstance(item, Name) else None
            if not is_floats(result):
                found.append(None)
            elif direct is not None and direct not in found:
                found.append(direct)
            else:
                found.append(Variable(len(self.steps), str(i)))
        return found

    def _variables(self, dy: str) -> list[Variable]:
        moved: set[Variable] = set()
        for i, step in enumerate(self.steps):
            variables = [Variable(i, name) for name in step.values]
            reads = nodes.names(step.statement.value)
            if dy in reads or any(each in moved for each in self._read(i).values()):
                moved |= set(variables)
        moved |= {each for each in self.returned if each is not None}
        return sorted(each for each in moved if is_floats(self.value(each)))

    # What a variable is

    def value(self, variable: Variable) -> Any:
        if variable.number == len(self.steps):
            return self._results[int(variable.name)]
        return self.steps[variable.number].values[variable.name]

    def line(self, variable: Variable) -> int:
        if variable.number == len(self.steps):
            return self._return.line
        return self.steps[variable.number].statement.line

    def is_last(self, variable: Variable) -> bool:
        return self._definitions[-1].get(variable.name) == variable

    def is_renaming(self, variable: Variable) -> bool:
        """Whether its line gives another variable a new name and does no more."""
        at_end = variable.number == len(self.steps)
        return not at_end and isinstance(self.steps[variable.number].statement.value, Name)

    def unpacked(self) -> dict[str, Any]:
        """The names that stand for something out of the cache."""
        kept = [step for step in self.steps if self._is_unpacking(step.statement.value)]
        return {name: value for step in kept for name, value in step.values.items()}

    # What it is made from

    def sources(self, variable: Variable, pinned: Container[Variable]) -> set[Variable]:
        """The variables of `pinned` that this one is made from, without another one between."""
        return {each for each in self._slice(variable, pinned)[1] if each in pinned}

    def users(self, variable: Variable, pinned: Container[Variable]) -> list[Variable]:
        """The later variables that are made from this one, without another pinned one between."""
        later = [each for each in self.variables if each.number > variable.number]
        return [each for each in later if variable in self.sources(each, pinned)]

    def reached(self, variable: Variable) -> list[int]:
        """The positions of the results that are made from this one."""
        return [
            i
            for i, each in enumerate(self.returned)
            if each is not None and (each == variable or variable in self.sources(each, {variable}))
        ]

    def alone(
        self, variable: Variable, pinned: Container[Variable], runs: Sequence[Lines]
    ) -> tuple[Function | None, tuple[Trace, ...]]:
        """The lines that make the variable, as a function of all else that is known there.

        And its traces, with the values of each run. None where the lines cannot be taken apart.
        """
        inner, boundary = self._slice(variable, pinned)
        own = {name for i in inner for name in self.steps[i].values}
        known = {
            name: each
            for name, each in self._definitions[min(variable.number, len(self.steps))].items()
            if name not in own
        }
        for each in boundary:
            if each.name in own and any(
                i < each.number and each.name in self.steps[i].values for i in inner
            ):
                return None, ()
            known[each.name] = each
        parameters = [name for name in self._parameters if name not in own]
        names = (*parameters, *sorted(known))
        given = nodes.Sequence("tuple", tuple(map(Name, names)))
        at_end = variable.number == len(self.steps)
        node = self._items[int(variable.name)] if at_end else Name(variable.name)
        body = (
            Assign(given, Name(_GIVEN), 0),
            *(self.steps[i].statement for i in sorted(inner)),
            nodes.Return(node, self.line(variable)),
        )
        name = self.backward.name
        outer = self.backward.names
        function = Function(name, (_PARAMETER,), body, "", given_form, outer)
        try:
            return function, tuple(
                trees.trace(
                    function,
                    (
                        *(run._parameters[name] for name in parameters),
                        *(run.value(known[name]) for name in sorted(known)),
                    ),
                )
                for run in runs
            )
        except Exception:  # lines that do not run without the others
            return None, ()

    def _slice(
        self, variable: Variable, pinned: Container[Variable]
    ) -> tuple[set[int], set[Variable]]:
        """The numbers of the lines that make a variable, and the variables where they begin."""
        inner: set[int] = set()
        boundary: set[Variable] = set()
        waiting: list[int | str] = [variable.number]
        while waiting:
            i = int(waiting.pop())
            if i in inner:
                continue
            if i < len(self.steps):
                inner.add(i)
            for each in self._read(i, variable).values():
                unpacking = self._is_unpacking(self.steps[each.number].statement.value)
                if each in pinned or unpacking:
                    boundary.add(each)
                else:
                    waiting.append(each.number)
        return inner, boundary

    def _read(self, i: int, variable: Variable | None = None) -> dict[str, Variable]:
        """The variables that line i reads, by name; of `return` the part that makes `variable`."""
        if i < len(self.steps):
            node = self.steps[i].statement.value
        else:
            node = self._items[int(variable.name)] if variable else self._return.value
        defined = self._definitions[i]
        return {name: defined[name] for name in nodes.names(node) if name in defined}

    def _is_unpacking(self, value: Node) -> bool:
        arrays = (nodes.Name, nodes.Index, nodes.Constant, nodes.Attribute, nodes.Sequence)
        parts = list(nodes.walk(value))
        own = nodes.names(value)
        return bool(own) and own <= self._cache and all(isinstance(each, arrays) for each in parts)


def given_form(known_values: Any) -> Any:
    """The form of `Lines.alone`; its body is in the tree."""
    return known_values


_GIVEN: Final = "known_values"
_PARAMETER: Final = Parameter(_GIVEN, "", False, False)


def _split(step: trees.Step) -> list[trees.Step]:
    """`a, b = f, g` as two lines, where that is the same."""
    match step.statement:
        case Assign(nodes.Sequence(_, targets), nodes.Sequence(_, items), line) if (
            len(targets) == len(items)
            and all(isinstance(each, Name) for each in targets)
            and not any(isinstance(each, nodes.Starred) for each in items)
            and nodes.names(step.statement.value).isdisjoint(step.values)
        ):
            return [
                trees.Step(Assign(target, item, line), {target.id: step.values[target.id]})
                for target, item in zip(targets, items, strict=True)
                if isinstance(target, Name)
            ]
    return [step]
