"""A right side with its numbers put in, where that is short enough to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.expression import Writer, is_array
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.reductions import summed_rows
from handgrad.derivation.formulas.formula import Formula
from handgrad.derivation.formulas.numbers import matrix
from handgrad.trees import nodes
from handgrad.trees.nodes import Node

_MOST_MATRICES: Final = 3
_MOST_ENTRIES: Final = 24


def figures(frame: Frame, node: Node, names: dict[str, Any]) -> Formula | None:
    """The right side with matrices for names, where it is short and more than one of them."""
    writer = Writer(replace(frame.at(names), dimensions=Dimensions()), figures=matrix)
    arrays = [part for part in nodes.walk(node) if is_array(writer.value(part))]
    if not _is_plain(writer, node) or not any(
        isinstance(part, nodes.MatMul | nodes.Sum | nodes.Product) for part in nodes.walk(node)
    ):
        return None
    leaves = [writer.value(part) for part in arrays if isinstance(part, nodes.Name)]
    if len(leaves) > _MOST_MATRICES or any(
        leaf.ndim > 2 or leaf.size > _MOST_ENTRIES for leaf in leaves
    ):
        return None
    return writer.write(node)


def _is_plain(writer: Writer, node: Node) -> bool:
    """Sums, products and transposes of names and numbers, nothing else."""
    node = writer.bare(node)
    match node:
        case nodes.MatMul(left, right) if found := summed_rows(writer, left, right):
            array, _, axis = found
            return writer.shape(array)[axis] <= _MOST_MATRICES
        case nodes.Name() | nodes.Constant() | nodes.Attribute():
            return True
        case nodes.Product() if not _reads_as_product(writer, node):
            return False
        case nodes.Sum() | nodes.Product() | nodes.Negative() | nodes.MatMul():
            return all(_is_plain(writer, each) for each in nodes.children(node))
        case nodes.Term(_, value) | nodes.Factor(_, value) | nodes.Transpose(value):
            return _is_plain(writer, value)
    return False


def _reads_as_product(writer: Writer, node: nodes.Product) -> bool:
    """Whether matrices put for names show what is done; a column beside a matrix would not."""
    shapes = [shape for each in node.factors if (shape := writer.shape(each.value))]
    return len(shapes) < 2 or all(shape[-1] != 1 for shape in shapes)
