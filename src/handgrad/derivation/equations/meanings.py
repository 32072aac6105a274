"""What the symbols of a forward and a backward stand for, and what lies in the cache between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handgrad.derivation.equations.derived import Meaning
from handgrad.derivation.equations.expression import is_array
from handgrad.derivation.equations.side import Side
from handgrad.derivation.formulas.formula import Formula, Number
from handgrad.trees import nodes
from handgrad.trees.nodes import Node


def symbols(forward: Side, backward: Side) -> Iterator[Meaning]:
    """Every symbol that was written, in order, and every function that needs words."""
    for side in (forward, backward):
        for name in side.frame.used:
            if name in side.frame.aliases or (side is backward and name in forward.frame.used):
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
    names = list(lines[0].values) if lines else [name]
    return list(zip(map(backward.frame.symbol, names), cotangent, strict=False))


def kept(forward: Side) -> Iterator[Meaning]:
    """What the cache holds, where it says the names of its parts."""
    cache, lettered = forward.run.trace.result[1], forward.labelled.trace.result[1]
    if isinstance(cache, Mapping):
        parts = {str(name): (cache[name], lettered[name]) for name in cache}
    else:
        fields = getattr(cache, "_fields", ())
        parts = {name: (getattr(cache, name), getattr(lettered, name)) for name in fields}
    for name, (value, label) in parts.items():
        shape = forward.frame.dimensions.shape(label) if is_array(label) else None
        yield Meaning(forward.frame.symbol(name), name, shape=shape, value=value)


def _meaning(name: str, side: Side, forward: Side) -> Meaning:
    index, _ = side.frame.families.get(name, (None, None))
    symbol = side.frame.glossary.symbol(name, 0, index)
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
    from_cache = {} if side is forward else _from_cache(side, forward)
    if name not in side.scalars and name not in from_cache:
        return None
    value = side.labelled.names[name]
    if isinstance(value, int):
        size = side.frame.dimensions.size(value)
        if not isinstance(size, Number):
            return size
    if name in side.scalars:
        node, names = side.scalars[name]
        return side.writer(names).write(node)
    return forward.writer(forward.labelled.names).write(from_cache[name])


def _from_cache(backward: Side, forward: Side) -> dict[str, Node]:
    """What forward computed for the cache, by the names that backward gives it."""
    fields = _cache_fields(forward)
    found: dict[str, Node] = {}
    for line in backward.run.lines:
        match line.target, line.node:
            case nodes.Sequence(_, targets), nodes.Name(name) if name == backward.cache:
                pairs = zip(targets, fields.values(), strict=False)
                found |= {one.id: node for one, node in pairs if isinstance(one, nodes.Name)}
            case nodes.Name(name), nodes.Attribute(nodes.Name(owner), field) if (
                owner == backward.cache and field in fields
            ):
                found[name] = fields[field]
    plain = nodes.Name | nodes.Constant
    return {name: node for name, node in found.items() if not isinstance(node, plain)}


def _cache_fields(forward: Side) -> dict[str, Node]:
    """The expressions that forward puts into its cache, by field."""
    returned = forward.run.trace.returned.value
    made = returned.items[1] if isinstance(returned, nodes.Sequence) else returned
    cache = forward.run.trace.result[1]
    if not isinstance(made, nodes.Call) or not hasattr(cache, "_fields"):
        return {}
    positional = dict(zip(cache._fields, made.arguments, strict=False))
    return positional | {each.name: each.value for each in made.keywords}
