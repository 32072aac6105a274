"""The parts that kinds of changes share: new nodes, and sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.wording import is_module

#: A new node, the kind of the fault, the part concerned, and the sentence.
Variant = tuple[Any, str, str, str]
SIGN: Final = "term {} has the wrong sign"
MISSING: Final = "the factor {} is missing"
TERM_MISSING: Final = "the term {} is missing"


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def filled(text: str, **nodes: ast.expr) -> Any:
    """An expression in which nodes, put in as they are, stand for some names."""
    return replaced(_template(text), nodes)


@cache
def _template(text: str) -> ast.expr:
    return parsed(text)


def replaced(node: Any, nodes: dict[str, ast.expr]) -> Any:
    """A node made anew with others for some names, without its place in a file."""
    match node:
        case ast.Name(name) if name in nodes:
            return nodes[name]
        case ast.AST() if not node._fields:  # an operator, which any number of nodes may have
            return node
        case ast.AST():
            return type(node)(*[replaced(getattr(node, each), nodes) for each in node._fields])
        case list():
            return [replaced(each, nodes) for each in node]
    return node


def indices(index: ast.expr) -> list[ast.expr]:
    """The indices of the axes."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def taken_at(array: ast.Subscript, parts: list[ast.expr]) -> ast.Subscript:
    """The same array at other indices of its axes."""
    index = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
    return ast.Subscript(array.value, index, array.ctx)


def binary(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    """An operation on nodes that may stand elsewhere in the tree too: none of them is changed."""
    return ast.BinOp(left, op, right)


def operands(node: ast.expr, op: type[ast.operator]) -> Iterator[ast.expr]:
    """The terms of a sum or the factors of a product, however its brackets stand."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, op):
        yield from operands(node.left, op)
        yield from operands(node.right, op)
    else:
        yield node


def multiplied(factors: Iterable[ast.expr]) -> ast.expr:
    """The product of one factor or more, from the left."""
    return reduce(lambda left, right: binary(left, ast.Mult(), right), factors)


def names_in(node: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """The variables in a node; with a context those that it reads, or sets."""
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, context)}


def values_in(statement: ast.stmt) -> Iterator[ast.Name]:
    """The names of values in a statement: of no module or function, and not asked for a size."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        match waiting.pop():
            case ast.Attribute(_, "shape" | "size" | "ndim") | ast.Call(ast.Name("len")):
                pass
            case ast.Call(ast.Name(), given, named):
                waiting += [*given, *named]
            case ast.Name() as name:
                if not is_module(name):
                    yield name
            case other:
                waiting += ast.iter_child_nodes(other)


def written_into(tree: ast.AST) -> set[str]:
    """The variables of which lines set elements."""
    return {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
    }


def spreads(value: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Return whether an array broadcasts to a shape."""
    try:
        return np.broadcast_shapes(value.shape, shape) == shape
    except ValueError:
        return False


def option(name: str, value: Any) -> ast.keyword:
    return ast.keyword(name, ast.Constant(value))
