"""A pair of functions run on its example, line by line."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from handgrad.derivation.equations.dimensions import (
    Dimensions,
    output_letters,
    renamed_inputs,
    setting_letters,
)
from handgrad.derivation.equations.expression import Writer, is_array
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.glossary import Glossary
from handgrad.derivation.equations.naming import gradient_inputs
from handgrad.errors import ArgumentError
from handgrad.trees import Function, Trace, nodes, read, trace
from handgrad.trees.nodes import Node

Functions = tuple[Function, Function]


@dataclass(frozen=True)
class Subject:
    """What notes are written of: a pair of functions and inputs to run them on.

    `cotangent` is the gradient that comes in; None where the output is the loss itself, whose
    gradient is 1 and not written.
    """

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    arrays: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    cotangent: Any = None
    gradients: tuple[str, ...] | None = None

    def fresh_options(self) -> dict[str, Any]:
        """The settings, with every generator in them as it was."""
        return copy.deepcopy(dict(self.options))


@dataclass(frozen=True)
class Line:
    """One assignment that was executed: where names have the values `names`, it set `values`."""

    target: Node
    node: Node
    names: dict[str, Any]
    values: dict[str, Any]
    again: bool
    #: The innermost loop that it stands in.
    loop: nodes.For | None


@dataclass(frozen=True)
class Execution:
    """One run of a function: its lines, and where all of them are done."""

    lines: tuple[Line, ...]
    trace: Trace
    names: dict[str, Any]


Executions = tuple[Execution, Execution]


def path(subject: Subject) -> list[Node]:
    """What was computed on the way through both functions: alike for inputs with like equations."""
    functions = read(subject.forward), read(subject.backward)
    found = []
    for execution in execute(functions, subject):
        for line in execution.lines:
            if all(map(is_numeric, line.values.values())):
                writer = Writer(Frame(line.names, Glossary(), Dimensions()))
                found.append(writer.settled(line.node))
        found.append(execution.trace.returned.value)
    return found


def needed_names(run: Execution) -> set[str]:
    """Every name that what is returned depends on."""
    frame = Frame({}, Glossary(), Dimensions())
    found = nodes.names(Writer(frame.at(run.names)).settled(run.trace.returned.value))
    lines = [
        (set(line.values), nodes.names(Writer(frame.at(line.names)).settled(line.node)))
        for line in run.lines
    ]
    before = -1
    while len(found) > before:
        before = len(found)
        for targets, used in lines:
            if not found.isdisjoint(targets):
                found |= used
    return found


def execute(functions: Functions, subject: Subject) -> Executions:
    """Forward and backward on the inputs of the example.

    Raises ArgumentError where one of them fails, or is not in the op contract.
    """
    forward, backward = functions
    if len(backward.parameters) != 2:
        raise ArgumentError(
            f"notes: {backward.name} takes {len(backward.parameters)} arguments; allowed: two, the "
            "gradient that comes in and the cache"
        )
    there = _tried(forward, (), {**subject.arrays, **subject.fresh_options()})
    y, cache = _outputs(forward, there.trace.result)
    dy = np.ones_like(y) if subject.cotangent is None else subject.cotangent
    return there, _tried(backward, (dy, cache), {})


def output(subject: Subject) -> Any:
    """What forward returns beside its cache. Raises ArgumentError as `execute` does."""
    forward = read(subject.forward)
    result = _tried(forward, (), {**subject.arrays, **subject.fresh_options()}).trace.result
    return _outputs(forward, result)[0]


def _outputs(forward: Function, result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple) and len(result) == 2:
        return result
    found = f"{len(result)} things" if isinstance(result, tuple) else f"a {type(result).__name__}"
    raise ArgumentError(
        f"notes: {forward.name} returns {found}; allowed: two things, y and a cache"
    )


def _tried(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Execution:
    try:
        return _executed(function, args, kwargs)
    except Exception as error:
        raise ArgumentError(
            f"notes: {function.name} fails on these inputs: {type(error).__name__}: {error}"
        ) from None


def _executed(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Execution:
    bound = function.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    done = trace(function, *args, **kwargs)
    names = {**done.environment, **bound.arguments}
    lines: list[Line] = []
    seen: set[int] = set()
    loops = dict(_loops(function.body, None))
    for step in done.steps:
        if isinstance(step.statement, nodes.Store):
            continue
        again = id(step.statement) in seen
        seen.add(id(step.statement))
        for target, node in _single(step.statement):
            values = {name: step.values[name] for name in _names(target)}
            loop = loops.get(id(step.statement))
            there = {**names, **step.variables}
            lines.append(Line(target, node, there, values, again, loop))
        names.update(step.values)
    return Execution(tuple(lines), done, names)


def _loops(
    body: tuple[Node, ...], loop: nodes.For | None
) -> Iterator[tuple[int, nodes.For | None]]:
    """Every assignment, by its identity, with the innermost loop around it."""
    for statement in body:
        match statement:
            case nodes.For():
                yield from _loops(statement.body, statement)
            case nodes.Branch(_, yes, no):
                yield from _loops((*yes, *no), loop)
            case nodes.Assign():
                yield id(statement), loop


def _single(statement: nodes.Assign) -> Iterator[tuple[Node, Node]]:
    """The assignment, or its parts where a tuple is assigned to a tuple."""
    match statement:
        case nodes.Assign(nodes.Sequence(_, targets), nodes.Sequence(_, values), _) if len(
            targets
        ) == len(values) and not any(
            isinstance(each, nodes.Starred) for each in (*targets, *values)
        ):
            yield from zip(targets, values, strict=True)
        case _:
            yield statement.target, statement.value


def _names(target: Node) -> list[str]:
    return [part.id for part in nodes.walk(target) if isinstance(part, nodes.Name)]


def labelled(
    functions: Functions, subject: Subject, run: Executions
) -> tuple[Executions, Dimensions]:
    """A run in which sizes have letters; the run itself, with numbers, where there is none."""
    arrays = {name: np.asarray(value) for name, value in subject.arrays.items()}
    output = functions[1].parameters[0].shape
    for inputs, letters in renamed_inputs(functions[0].parameters, arrays, output):
        try:
            forward = _executed(functions[0], (), {**inputs, **subject.fresh_options()})
            y, cache = forward.trace.result
            dy = _random_like(y)
            backward = _executed(functions[1], (dy, cache), {})
        except Exception:  # sizes that do not fit raise whatever they raise
            continue
        found = _along(run[0], forward), _along(run[1], backward)
        if found[0] is None or found[1] is None:
            continue
        if is_array(y):
            letters = output_letters(output, tuple(y.shape), letters)
        letters = setting_letters(subject.options, letters)
        return (found[0], found[1]), Dimensions(letters)
    return run, Dimensions()


def _along(run: Execution, other: Execution) -> Execution | None:
    """The other run with a line for every line of the run; None where it took another path.

    Loops may have more rounds: of a line that runs again, its first time is taken.
    """
    if [each.node for each in run.lines if not each.again] != [
        each.node for each in other.lines if not each.again
    ]:
        return None
    first: dict[tuple[int, int], Line] = {}
    for line in other.lines:
        first.setdefault(_identity(line), line)
    return replace(other, lines=tuple(first[_identity(line)] for line in run.lines))


def _identity(line: Line) -> tuple[int, int]:
    return id(line.target), id(line.node)


def _random_like(y: Any) -> Any:
    if isinstance(y, tuple | list):
        return tuple(map(_random_like, y))
    return np.asarray(np.random.default_rng(1).uniform(0.5, 1.5, np.shape(y)))


def is_numeric(value: Any) -> bool:
    """An array, or a list or tuple of them."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_numeric, value))
    return is_array(value)


def gradients_of(subject: Subject) -> tuple[str, ...]:
    """The inputs that backward returns gradients of, as the names of what it returns say."""
    functions = read(subject.forward), read(subject.backward)
    _, backward = execute(functions, subject)
    return gradient_inputs(functions, backward.trace, subject.gradients)
