"""What the symbols of a forward and a backward stand for, and what lies in the cache between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handgrad.derivation.equations.derived import Meaning
from handgrad.derivation.equations.expression import is_array
from handgrad.derivation.equations.side import Side, from_cache
from handgrad.derivation.formulas.formula import Formula, Number
from handgrad.trees import nodes


def symbols(forward: Side, backward: Side) -> Iterator[Meaning]:
    """Every symbol that was written, in order, and every function that needs words."""
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


def incoming(backward: Side, cotangent: Any) -> list[tuple[Formula, Any]]:
    """The gradients that come in, by the names that they are taken apart into."""
    name = backward.function.parameters[0].name
    if not isinstance(cotangent, tuple | list):
        return [(backward.frame.symbol(name), cotangent)]
    lines = [line for line in backward.run.lines if backward.is_incoming(line)]
    parts = lines[0].values if lines else {name: cotangent}
    return [(backward.frame.symbol(each), value) for each, value in parts.items()]


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
        yield Meaning(symbol, name, shape=shape, value=value)


def _meaning(name: str, side: Side, forward: Side) -> Meaning:
    index, _ = side.frame.families.get(name, (None, None))
    symbol = side.frame.glossary.symbol(side.frame.renamed.get(name, name), 0, index)
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
    kept = {} if side is forward else from_cache(side, forward)
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
