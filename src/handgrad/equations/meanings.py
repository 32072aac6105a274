"""The meanings of the symbols of a forward and a backward, and the contents of the cache."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from handgrad.documents.formulas.formula import Formula, Number, Text
from handgrad.equations.derived import Arrived, Meaning
from handgrad.equations.lines import EquationWriter
from handgrad.equations.writer import Writer
from handgrad.program import Node, leaves, values_of
from handgrad.program.functions import is_array


def symbols(lines: EquationWriter) -> list[Meaning]:
    """Every symbol that was written, in order, and every function that needs words.

    A symbol that several names of the code have stands there once, with all of them.
    """
    found: list[Meaning] = []
    for each in _symbols(lines):
        same = [
            i
            for i, other in enumerate(found)
            if (other.symbol, other.shape) == (each.symbol, each.shape) and each.shape is not None
        ]
        if same:
            names = f"{found[same[0]].name}, {each.name}"
            found[same[0]] = replace(found[same[0]], name=names)
        else:
            found.append(each)
    return found


def _symbols(lines: EquationWriter) -> Iterator[Meaning]:
    scope = lines.scope
    for name, node in list(scope.used.items()):
        yield _meaning(lines, name, node)
    for name, (symbol, words) in scope.helpers.items():
        if words:
            yield Meaning(symbol, name, words=words)


def _meaning(lines: EquationWriter, name: str, node: Node) -> Meaning:
    scope = lines.scope
    named = scope.symbols[node]
    index = scope.elements.get(node, named.index)
    found = scope.round_of(node)
    if found is not None and scope.moment(node, None) is not None:
        index = scope.counter(found[0])
    base = named.name if named.code == name else name  # a number may have two names, one later
    symbol = scope.glossary.symbol(base, named.primes, index)
    value = _own_value(lines, name, node)
    if is_array(node.value):
        own = None if value is node.value else value
        return Meaning(symbol, name, shape=scope.dimensions.shape(node.value, own))
    definition = _definition(lines, node, value)
    if definition is not None and definition != symbol:
        return Meaning(symbol, name, definition=definition, value=value)
    return Meaning(symbol, name, value=_default(lines, name, value))


def _own_value(lines: EquationWriter, name: str, node: Node) -> Any:
    """The value that a number has in the example."""
    for program in (lines.pair.run.forward, lines.pair.run.backward):
        for each in program.assignments:
            if each.name == name and isinstance(each.value, Node):
                return each.value.value
        if name in program.arguments:
            return values_of(program.arguments[name])
    return node.value


def _default(lines: EquationWriter, name: str, value: Any) -> Any:
    """The default of an argument in the place of its value."""
    parameter = inspect.signature(lines.names.subject.forward).parameters.get(name)
    if parameter is not None and parameter.default not in (parameter.empty, None):
        return parameter.default
    return value


def _definition(lines: EquationWriter, node: Node, value: Any) -> Formula | None:
    """The definition of a number: a size by its letters, anything else as it is computed.

    What has the same `value` in an example of other sizes is no size.
    """
    if node.op == "input":
        return None
    if isinstance(node.value, int):
        size = lines.scope.dimensions.size(node.value, value)
        if node.value == value or not isinstance(size, Number):
            return size
    return Writer(lines.scope).definition(node)


def given(lines: EquationWriter, arrays: Mapping[str, Any]) -> Iterator[tuple[Formula, Any]]:
    """The inputs, every step of a sequence by itself, and how many steps there are."""
    arguments = lines.pair.lettered.forward.arguments
    for name, array in arrays.items():
        node = arguments.get(name)
        axis = lines.scope.step_axes.get(node) if isinstance(node, Node) else None
        if isinstance(node, Node) and axis is not None:
            yield from lines.steps(node, array, axis)
        else:
            yield lines.scope.glossary.symbol(name), array
    for steps in lines.scope.loops.values():
        size = lines.scope.dimensions.size(steps.count)
        if not steps.of_backward and not isinstance(size, Number):
            yield size, lines.own_count(steps)


def incoming(lines: EquationWriter) -> Iterator[tuple[Formula, Any]]:
    """The gradients that come in, by the names that they are taken apart into."""
    for node, value in _incoming(lines):
        axis = lines.scope.step_axes.get(node)
        if axis is not None:
            yield from lines.steps(node, value, axis)
        else:
            yield lines.scope.symbol(node, None), value


def arriving(lines: EquationWriter) -> Iterator[Formula]:
    """The symbols of these gradients, of a sequence that of step t."""
    scope = lines.scope
    for node, _ in _incoming(lines):
        named = scope.symbols[node]
        index = named.index
        if node in scope.step_axes and scope.loops:
            index = scope.counter(next(iter(scope.loops.values())))
        yield scope.glossary.symbol(named.name, named.primes, index)


def _incoming(lines: EquationWriter) -> Iterator[tuple[Node, Any]]:
    for value, node in zip(*_arriving(lines), strict=True):
        yield node, value.value


def arrived(lines: EquationWriter) -> Iterator[Arrived]:
    """The inputs and the gradients that come in, each with its node in the example."""
    scope = lines.scope
    own, lettered = (runs.forward.arguments for runs in (lines.pair.run, lines.pair.lettered))
    found = [(node, lettered.get(name), name) for name, node in own.items()]
    found += [(node, twin, "") for node, twin in zip(*_arriving(lines), strict=True)]
    for node, twin, name in found:
        if not (isinstance(node, Node) and isinstance(twin, Node) and is_array(node.value)):
            continue
        named = scope.symbols.get(twin)
        code = named.name if named is not None else name
        axis = scope.step_axes.get(twin) if twin in scope.symbols and scope.loops else None
        index = None if axis is None else scope.counter(next(iter(scope.loops.values())))
        symbol = scope.glossary.symbol(code, 0 if named is None else named.primes, index)
        whole = [(symbol, node.value)]
        parts = whole if axis is None else lines.steps(twin, node.value, axis)
        yield Arrived(node, symbol, code, tuple(parts), code in scope.glossary.gradients)


def _arriving(lines: EquationWriter) -> tuple[list[Node], list[Node]]:
    own, lettered = (leaves(each.runs.incoming) for each in (lines.values, lines.scope))
    return list(own), list(lettered)


def kept(lines: EquationWriter) -> Iterator[Meaning]:
    """The contents of the cache, where it says the names of its parts."""
    cache, lettered = (runs.forward.result[1] for runs in (lines.pair.run, lines.pair.lettered))
    if isinstance(cache, Mapping):
        parts = {str(name): (cache[name], lettered[name]) for name in cache}
    else:
        fields = getattr(cache, "_fields", ())
        parts = {name: (getattr(cache, name), getattr(lettered, name)) for name in fields}
    scope = lines.scope
    for name, (value, twin) in parts.items():
        if isinstance(twin, Node) and is_array(twin.value):
            writer = Writer(scope)
            bare = writer.bare(twin)
            symbol = scope.glossary.symbol(name)
            if bare in scope.symbols or isinstance(symbol, Text):
                symbol = writer.result(twin)
            shape = scope.dimensions.shape(twin.value, value.value)
            yield Meaning(symbol, name, shape=shape, value=value.value)
        else:
            yield Meaning(scope.glossary.symbol(name), name, value=values_of(value))
