"""Matrices whose elements repeat those of a vector, and blocks on a diagonal: SciPy's names."""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.index import Slot
from handgrad.program.primitives.joining import concatenate
from handgrad.program.primitives.rearrange import flip, ravel, reshape
from handgrad.program.primitives.reduce import part
from handgrad.program.primitives.table import applied, known, module_of_scipy
from handgrad.program.sizes import ONE, Size


def picked(values: Node, rows: Node, columns: Node, sign: int) -> Node:
    """The matrix whose element (i, j) is the value at rows[i] + sign · columns[j]."""
    i, j = reshape(rows, (-1, ONE)), reshape(columns, (ONE, -1))
    return build("getitem", values, i + j if sign > 0 else i - j, index=(Slot(0),))


def numbers(x: Node) -> Node:
    """The places in a vector."""
    return build("arange", size=x.shape[0])


def toeplitz(c: Any, r: Any = None) -> Node:
    """Constant along its diagonals: the first column, and the first row without its first."""
    column, row = ravel(c), ravel(c if r is None else r)
    values = concatenate([flip(column, 0), part(row, 0, ONE, None)], 0)
    return picked(values, flip(numbers(column), 0), numbers(row), 1)


def hankel(c: Any, r: Any = None) -> Node:
    """Constant along the diagonals the other way: the first column, and the last row."""
    column = ravel(c)
    row = build("zeros", shape=column.shape) if r is None else ravel(r)
    values = concatenate([column, part(row, 0, ONE, None)], 0)
    return picked(values, numbers(column), numbers(row), 1)


def circulant(c: Any) -> Node:
    """Columns that are the vector, turned one farther each."""
    x = as_node(c)
    i = reshape(numbers(x), (-1, ONE)) - reshape(numbers(x), (ONE, -1))
    return build("getitem", x, build("remainder", i, as_node(x.shape[0])), index=(Slot(0),))


def block_diag(*arrs: Any) -> Node:
    """Matrices on the diagonal of zeros."""
    blocks = [applied(np.atleast_2d, x) for x in arrs]
    width = Size.of(0)
    for x in blocks:
        width = width + x.shape[1]
    rows, before = [], Size.of(0)
    for x in blocks:
        after = width - before - x.shape[1]
        sides = [build("zeros", shape=(x.shape[0], n)) for n in (before, after)]
        rows.append(concatenate([sides[0], x, sides[1]], 1))
        before = before + x.shape[1]
    return concatenate(rows, 0)


for _function in (toeplitz, hankel, circulant, block_diag):
    known(getattr(module_of_scipy("linalg"), _function.__name__))(_function)
