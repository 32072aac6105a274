"""Which lines are no equations, because they only give a value another name or shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handgrad.derivation.equations.carriers import is_counted, stacked_axis
from handgrad.derivation.equations.expression import Writer
from handgrad.derivation.formulas.formula import Text
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.side import Side


def only_renames(side: Side, position: int, name: str, node: Node) -> bool:
    """Whether a line says nothing new; what it stands for is then kept as the name's alias."""
    frame, writer = side.frame, side.writer_at(position)
    if name in side.looped:
        return isinstance(node, nodes.Name) and name in (node.id, side.same.get(node.id))
    if name in frame.glossary.results:
        return node == nodes.Name(name)
    match node:
        case nodes.Name(other):
            if other != name:
                frame.aliases[name] = node
            return True
        case nodes.Call(function, _, _) if called(function) in ("zeros_like", "zeros"):
            frame.aliases[name] = nodes.Constant(0)
            return True
        case nodes.Call(function, (nodes.Name(family), *_), _) if called(function) == "stack":
            sequence = frame.sequences.get(family)
            if sequence is not None and sequence.owner is not None:
                side.written.add(name)
                return True
            if family in frame.families:
                axis = stacked_axis(writer, node)
                frame.families[family] = frame.families[family][0], axis
                frame.aliases[name] = nodes.Name(family)
                return True
    later = set[str]().union(*(each.values for each in side.run.lines[position + 1 :]))
    if _has_no_need_of_a_name(side, writer, name, node) and not later & nodes.names(node):
        frame.aliases[name] = node
        return True
    return False


def _has_no_need_of_a_name(side: Side, writer: Writer, name: str, node: Node) -> bool:
    """Steps or columns of another array, a mask of places, and cos for the cosine of something."""
    is_word = isinstance(side.frame.symbol(name), Text)
    match node:
        case nodes.Index(nodes.Name(of), index):
            positions = index.items if isinstance(index, nodes.Sequence) else (index,)
            is_part = all(
                isinstance(each, nodes.Slice) or each == nodes.Constant(...) for each in positions
            )
            return is_part and (is_word or of in side.frame.sequences)
        case nodes.Call(function, (nodes.Name(),), _):
            return is_word and called(function) == name
    return is_counted(writer, node)
