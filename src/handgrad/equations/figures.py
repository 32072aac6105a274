"""A right side with its numbers put in, where that is short enough to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from handgrad.documents.formulas.formula import Formula
from handgrad.documents.formulas.numbers import matrix
from handgrad.equations.reductions import summed_rows
from handgrad.equations.shaping import len_of, shape
from handgrad.equations.writer import Writer
from handgrad.program import Node
from handgrad.program.arranging import is_transpose
from handgrad.program.functions import is_array
from handgrad.program.sizes import ONE

_MOST_MATRICES: Final = 3
_MOST_ENTRIES: Final = 24
_COMPUTED: Final = frozenset({"add", "subtract", "multiply", "divide", "negative", "matmul"})


def figures(writer: Writer, node: Node) -> Formula | None:
    """The right side with matrices for names, where it is short and more than one of them."""
    writer = replace(writer, figures=matrix, defined=node)
    if not _is_plain(writer, node) or not _computes(writer, node):
        return None
    arrays = [each.value for each in _leaves(writer, node) if is_array(each.value)]
    if len(arrays) > _MOST_MATRICES:
        return None
    if any(each.ndim > 2 or each.size > _MOST_ENTRIES for each in arrays):
        return None
    return writer.write(node)


def _is_plain(writer: Writer, value: Any) -> bool:
    """Sums, products and transposes of names and numbers, nothing else."""
    node = writer.bare(value)
    if not isinstance(node, Node) or writer.has_symbol(node) or node.op in ("input", "size"):
        return True
    if node.op in ("matmul", "dot") and (found := summed_rows(writer, *node.args)):
        array, _, axis = found
        return len_of(array, axis) <= _MOST_MATRICES
    if node.op in ("multiply", "divide") and not _reads_as_product(node):
        return False
    if node.op in _COMPUTED or is_transpose(node):
        return all(_is_plain(writer, each) for each in node.args)
    return False


def _computes(writer: Writer, value: Any) -> bool:
    node = writer.bare(value)
    if not isinstance(node, Node) or writer.has_symbol(node):
        return False
    return node.op in _COMPUTED or any(_computes(writer, each) for each in node.operands)


def _leaves(writer: Writer, value: Any) -> Iterator[Node]:
    node = writer.bare(value)
    if isinstance(node, Node):
        if writer.has_symbol(node) or not node.operands:
            yield node
        else:
            for each in node.operands:
                yield from _leaves(writer, each)


def _reads_as_product(node: Node) -> bool:
    """True where matrices put for names show what is done; a column beside a matrix would not."""
    shapes = [found for each in node.args if (found := shape(each))]
    return len(shapes) < 2 or all(each[-1] != ONE for each in shapes)
