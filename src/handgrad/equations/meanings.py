"""The meanings of the symbols of a forward and a backward, and the contents of the cache."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from handgrad.documents.formulas.formula import Formula, Number
from handgrad.equations.derived import Arrived, Meaning
from handgrad.equations.lines import EquationWriter
from handgrad.equations.shaping import shape, whole_number
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
    if is_array(node.value):
        return Meaning(symbol, name, shape=scope.dimensions.shape(shape(node)))
    definition = _definition(lines, node)
    if definition is not None and definition != symbol:
        return Meaning(symbol, name, definition=definition, value=node.value)
    return Meaning(symbol, name, value=_default(lines, name, node.value))


def _default(lines: EquationWriter, name: str, value: Any) -> Any:
    """The default of an argument in the place of its value."""
    parameter = inspect.signature(lines.names.subject.forward).parameters.get(name)
    if parameter is not None and parameter.default not in (parameter.empty, None):
        return parameter.default
    return value


def _definition(lines: EquationWriter, node: Node) -> Formula | None:
    """The definition of a number: a size by its letters, anything else as it is computed."""
    if node.op == "input":
        return None
    if isinstance(node.value, int):
        return lines.scope.dimensions.size(whole_number(node))
    return Writer(lines.scope).definition(node)


def given(lines: EquationWriter, arrays: Mapping[str, Any]) -> Iterator[tuple[Formula, Any]]:
    """The inputs, every step of a sequence by itself, and how many steps there are."""
    arguments = lines.runs.forward.arguments
    for name, array in arrays.items():
        node = arguments.get(name)
        axis = lines.scope.step_axes.get(node) if isinstance(node, Node) else None
        if isinstance(node, Node) and axis is not None:
            yield from lines.steps(node, array, axis)
        else:
            yield lines.scope.glossary.symbol(name), array
    for steps in lines.scope.loops.values():
        size = lines.scope.dimensions.size(steps.size)
        if not steps.of_backward and not isinstance(size, Number):
            yield size, steps.count


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
    for node in leaves(lines.runs.incoming):
        yield node, node.value


def arrived(lines: EquationWriter) -> Iterator[Arrived]:
    """The inputs and the gradients that come in, each with its node in the example."""
    scope = lines.scope
    found = [(node, name) for name, node in lines.runs.forward.arguments.items()]
    found += [(node, "") for node in leaves(lines.runs.incoming)]
    for node, name in found:
        if not (isinstance(node, Node) and is_array(node.value)):
            continue
        named = scope.symbols.get(node)
        code = named.name if named is not None else name
        axis = scope.step_axes.get(node) if node in scope.symbols and scope.loops else None
        index = None if axis is None else scope.counter(next(iter(scope.loops.values())))
        symbol = scope.glossary.symbol(code, 0 if named is None else named.primes, index)
        whole = [(symbol, node.value)]
        parts = whole if axis is None else lines.steps(node, node.value, axis)
        yield Arrived(node, symbol, code, tuple(parts), code in scope.glossary.gradients)


def kept(lines: EquationWriter) -> Iterator[Meaning]:
    """The contents of the cache, where it says the names of its parts."""
    cache = lines.runs.forward.result[1]
    if isinstance(cache, Mapping):
        parts = {str(name): each for name, each in cache.items()}
    else:
        parts = {name: getattr(cache, name) for name in getattr(cache, "_fields", ())}
    scope = lines.scope
    for name, value in parts.items():
        if isinstance(value, Node) and is_array(value.value):
            writer = Writer(scope)
            bare = writer.bare(value)
            symbol = scope.glossary.symbol(name)
            if bare in scope.symbols or scope.glossary.is_word(name):
                symbol = writer.result(value)
            sizes = scope.dimensions.shape(shape(value))
            yield Meaning(symbol, name, shape=sizes, value=value.value)
        else:
            yield Meaning(scope.glossary.symbol(name), name, value=values_of(value))
