"""What forward puts into the cache, by the names that backward gives it."""

from __future__ import annotations

from collections.abc import Mapping

from handgrad.derivation.equations.execution import Execution
from handgrad.trees import nodes
from handgrad.trees.nodes import Node


def from_cache(backward: Execution, cache: str, forward: Execution) -> dict[str, Node]:
    """The expressions of forward, by the names of backward; `cache` is the cache's own name."""
    fields = _fields(forward)
    found: dict[str, Node] = {}
    for line in backward.lines:
        match line.target, line.node:
            case nodes.Sequence(_, targets), nodes.Name(name) if name == cache:
                pairs = zip(targets, fields.values(), strict=False)
                found |= {one.id: node for one, node in pairs if isinstance(one, nodes.Name)}
            case nodes.Name(name), nodes.Attribute(nodes.Name(owner), field) if (
                owner == cache and field in fields
            ):
                found[name] = fields[field]
    return found


def _fields(forward: Execution) -> Mapping[str, Node]:
    """The expressions that make the cache, by field, or by place in a plain tuple."""
    returned = forward.trace.returned.value
    made = returned.items[1] if isinstance(returned, nodes.Sequence) else returned
    if isinstance(made, nodes.Name):
        made = forward.trace.definition(made.id) or made
    if isinstance(made, nodes.Sequence):
        return {str(place): item for place, item in enumerate(made.items)}
    cache = forward.trace.result[1]
    if not isinstance(made, nodes.Call) or not hasattr(cache, "_fields"):
        return {}
    positional = dict(zip(cache._fields, made.arguments, strict=False))
    return positional | {each.name: each.value for each in made.keywords}
