"""Which values are written where they are used, and not in an equation of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handgrad.derivation.equations.execution import Line
from handgrad.derivation.equations.expression import Writer
from handgrad.derivation.formulas.formula import Script, Text
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

if TYPE_CHECKING:
    from handgrad.derivation.equations.side import Side


def is_inlined(side: Side, position: int, name: str) -> bool:
    """Whether the value that a line gives a name goes into the one line that uses it."""
    return _goes_into_next(side, position, name) or _goes_into_step(side, position, name)


def count(node: Node, name: str) -> int:
    return sum(part == nodes.Name(name) for part in nodes.walk(node))


def _goes_into_next(side: Side, position: int, name: str) -> bool:
    """Whether this value is used once, and that to set the same name anew."""
    line = side.run.lines[position]
    if name in side.looped:
        return False
    made_of = nodes.names(line.node) - {name}
    for later in side.run.lines[position + 1 :]:
        uses = count(later.node, name)
        if later.target == nodes.Name(name):
            bare = side.writer(later.names).bare(later.node)
            if bare == nodes.Name(name):
                continue
            return uses == 1 and later.node != line.node
        if uses or made_of & set(later.values):
            return False
    return False


def _goes_into_step(side: Side, position: int, name: str) -> bool:
    """Whether this value is used once, in a loop over steps, and has no need of a symbol.

    Such as one that has only a word, or one that is the new state where a step counts.
    """
    found = _only_use(side, position, name)
    if found is None or name in {*side.frame.glossary.results, *side.counters}:
        return False
    use = side.run.lines[found]
    steps = side.moments.steps_at(found)
    if steps is None:
        return False
    line = side.run.lines[position]
    if line.loop is not steps.loop and nodes.names(line.node) & steps.names:
        return False
    if use.target == nodes.Name(name):
        return True
    if name in side.frame.glossary.gradients.values():
        return False
    if isinstance(use.target, nodes.Name) and use.target.id in steps.carried:
        return isinstance(side.writer(use.names).bare(use.node), nodes.Where)
    return _is_word(side, name)


def _is_word(side: Side, name: str) -> bool:
    symbol = side.frame.symbol(name)
    base = symbol.base if isinstance(symbol, Script) else symbol
    return isinstance(base, Text)


def _only_use(side: Side, position: int, name: str) -> int | None:
    """The one line that uses the value of a line, if what it is made of has not changed then."""
    lines = side.run.lines
    own = next(i for i, each in enumerate(lines) if _is_same(each, lines[position]))
    loop = lines[own].loop
    if any(name in each.carried for each in side.moments.loops if each.loop is loop):
        return None
    if count(side.run.trace.returned.value, name):
        return None
    found: int | None = None
    for i in range(own + 1, len(lines)):
        line = lines[i]
        if line.again:
            continue
        uses = count(chosen(side.writer(line.names), line.node), name)
        if uses > 1 or (uses and found is not None):
            return None
        found = i if uses else found
        if name in line.values:
            break
    if found is None:
        return None
    made_of = nodes.names(chosen(side.writer(lines[own].names), lines[own].node)) - {name}
    between = set[str]().union(*(each.values for each in lines[own + 1 : found]))
    return None if made_of & between else found


def chosen(writer: Writer, node: Node) -> Node:
    """The tree with the branch in the place of every choice that a setting decides."""
    match node:
        case nodes.Choice(test, yes, no):
            return chosen(writer, yes if writer.value(test) else no)
    return nodes.rebuilt(node, lambda part: chosen(writer, part))


def _is_same(line: Line, other: Line) -> bool:
    return line.node is other.node and line.target is other.target
