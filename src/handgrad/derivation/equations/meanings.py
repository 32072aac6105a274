"""What the symbols of a forward and a backward stand for, and what lies in the cache between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from handgrad.derivation.equations.cached import from_cache
from handgrad.derivation.equations.carriers import places
from handgrad.derivation.equations.derived import Meaning
from handgrad.derivation.equations.expression import is_array
from handgrad.derivation.equations.side import Side
from handgrad.derivation.formulas.formula import Formula, Number
from handgrad.trees import nodes


def symbols(forward: Side, backward: Side) -> list[Meaning]:
    """Every symbol that was written, in order, and every function that needs words.

    A symbol that several names of the code have stands there once, with all of them.
    """
    found: list[Meaning] = []
    for each in _symbols(forward, backward):
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


def _symbols(forward: Side, backward: Side) -> Iterator[Meaning]:
    for side in (forward, backward):
        for name in side.frame.used:
            original = side.frame.renamed.get(name, name)
            if (
                name in side.frame.aliases
                or name in side.counters
                or (side is backward and original in forward.frame.used)
            ):
                continue
            yield _meaning(name, side, forward)
        for name, (symbol, words) in side.frame.helpers.items():
            if words and (side is forward or name not in forward.frame.helpers):
                yield Meaning(symbol, name, words=words)


def given(forward: Side, arrays: Mapping[str, Any]) -> Iterator[tuple[Formula, Any]]:
    """The inputs, every step of a sequence by itself, and how many steps there are."""
    for name, array in arrays.items():
        yield from forward.steps(name, array) or [(forward.frame.glossary.symbol(name), array)]
    for steps, size in zip(forward.moments.loops, forward.moments.sizes, strict=True):
        if not isinstance(size, Number):
            line = next(each for each in forward.run.lines if each.loop is steps.loop)
            yield size, forward.writer(line.names).value(steps.count)


def incoming(backward: Side, cotangent: Any) -> Iterator[tuple[Formula, Any]]:
    """The gradients that come in, by the names that they are taken apart into."""
    frame = backward.writer_at(0).frame
    for name, value in _incoming(backward, cotangent).items():
        yield from backward.steps(name, value) or [(frame.symbol(name), value)]


def arriving(backward: Side, cotangent: Any) -> Iterator[Formula]:
    """The symbols of these gradients, of a sequence that of step t."""
    frame = backward.writer_at(0).frame
    counter = next(iter(frame.counters.values()), None)
    for name, value in _incoming(backward, cotangent).items():
        yield frame.symbol(name, counter if backward.steps(name, value) else None)


def _incoming(backward: Side, cotangent: Any) -> Mapping[str, Any]:
    lines = [line for line in backward.run.lines if backward.is_incoming(line)]
    if lines and isinstance(cotangent, tuple | list):
        return lines[0].values
    return {backward.function.parameters[0].name: cotangent}


def kept(forward: Side, backward: Side) -> Iterator[Meaning]:
    """What the cache holds, where it says the names of its parts."""
    cache, lettered = forward.run.trace.result[1], forward.labelled.trace.result[1]
    if isinstance(cache, Mapping):
        parts = {str(name): (cache[name], lettered[name]) for name in cache}
    else:
        fields = getattr(cache, "_fields", ())
        parts = {name: (getattr(cache, name), getattr(lettered, name)) for name in fields}
    for name, (value, label) in parts.items():
        shape = forward.frame.dimensions.shape(label) if is_array(label) else None
        symbol = forward.frame.symbol(backward.frame.renamed.get(name, name))
        if name in backward.frame.aliases and is_array(value):
            symbol = _written_out(backward, name)
        yield Meaning(symbol, name, shape=shape, value=value)


def _written_out(side: Side, name: str) -> Formula:
    """What stands for a name; a comparison of places for step t."""
    writer, node = side.writer_at(0), nodes.Name(name)
    compared = set(places(writer, node))
    counter = next(iter(writer.frame.counters.values()), None)
    axes = range(-len(writer.shape(node)), 0)
    return writer.write(node, marks=tuple(counter if each in compared else None for each in axes))


def _meaning(name: str, side: Side, forward: Side) -> Meaning:
    index, _ = side.frame.families.get(name, (side.step_of(name), None))
    primes = 1 if name in side.shared else 0
    symbol = side.frame.glossary.symbol(side.frame.renamed.get(name, name), primes, index)
    value, label = side.run.names.get(name), side.labelled.names.get(name)
    label = label[0] if isinstance(label, list | tuple) and label else label
    if is_array(label):
        return Meaning(symbol, name, shape=side.frame.dimensions.shape(label))
    definition = _definition(name, side, forward)
    if definition is not None and definition != symbol:
        return Meaning(symbol, name, definition=definition, value=value)
    parameter = side.function.signature.parameters.get(name)
    if parameter is not None and parameter.default not in (parameter.empty, None):
        value = parameter.default
    return Meaning(symbol, name, value=value)


def _definition(name: str, side: Side, forward: Side) -> Formula | None:
    """What a number is made of: a size by its letters, anything else as it is computed."""
    plain = nodes.Name | nodes.Constant
    kept = {} if side is forward else from_cache(side.run, side.cache, forward.run)
    from_forward = {each: node for each, node in kept.items() if not isinstance(node, plain)}
    if name not in side.scalars and name not in from_forward:
        return None
    value = side.labelled.names[name]
    if isinstance(value, int):
        size = side.frame.dimensions.size(value)
        if not isinstance(size, Number):
            return size
    if name in side.scalars:
        node, names = side.scalars[name]
        return side.writer(names).write(node)
    return forward.writer(forward.labelled.names).write(from_forward[name])
