"""Operands whose sizes do not fit: the part of a line that raised, and the shapes in it.

NumPy's sentence for it speaks of core dimensions and signatures; the shapes of the two operands, by
their text, are what a reader compares.
"""

from __future__ import annotations

import ast
import linecache
from itertools import islice
from types import TracebackType
from typing import Any, Final

import numpy as np

_OPERATORS: Final = (ast.MatMult, ast.Mult, ast.Add, ast.Sub, ast.Div, ast.Pow)
#: Expressions that can be evaluated again, because they call no function.
_PLAIN: Final = (
    *(
        ast.Name,
        ast.Load,
        ast.Constant,
        ast.Subscript,
        ast.Slice,
        ast.Tuple,
        ast.BinOp,
        ast.UnaryOp,
    ),
    *(ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.Expression),
)


def misfit(error: BaseException) -> str | None:
    """A sentence on two operands that could not be combined; None for any other exception."""
    if not isinstance(error, ValueError) or error.__traceback__ is None:
        return None
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    try:
        expression = ast.parse(f"({_source(last)})", mode="eval").body
    except (SyntaxError, ValueError, LookupError):
        return None
    if not isinstance(expression, ast.BinOp) or not isinstance(expression.op, _OPERATORS):
        return None
    shapes = [_shape(side, last) for side in (expression.left, expression.right)]
    if None in shapes or _combine(expression.op, *shapes):
        return None
    left, right = (ast.unparse(side) for side in (expression.left, expression.right))
    return (
        f"{ast.unparse(expression)} cannot be computed, {left} being {shapes[0]} and {right} "
        f"{shapes[1]}"
    )


def _source(traceback: TracebackType) -> str:
    """The text of the expression that was being computed."""
    code = traceback.tb_frame.f_code
    first, last, start, end = next(
        islice(code.co_positions(), traceback.tb_lasti // 2, None), (None,) * 4
    )
    if first is None or last is None or start is None or end is None:
        raise LookupError
    lines = [linecache.getline(code.co_filename, i).encode() for i in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode()


def _shape(side: ast.expr, traceback: TracebackType) -> tuple[int, ...] | None:
    """The shape of an operand, computed again where that calls nothing."""
    for node in ast.walk(side):
        transposed = isinstance(node, ast.Attribute) and node.attr in ("T", "mT")
        if not (transposed or isinstance(node, _PLAIN)):
            return None
    frame = traceback.tb_frame
    try:
        code = compile(ast.Expression(side), "<operand>", "eval")
        value: Any = eval(code, frame.f_globals, dict(frame.f_locals))
    except Exception:  # it cannot be computed alone
        return None
    return value.shape if isinstance(value, np.ndarray | np.generic) else None


def _combine(operator: ast.operator, left: Any, right: Any) -> bool:
    """Return whether shapes fit, so that the exception is about something else."""
    if isinstance(operator, ast.MatMult):
        if not left or not right or left[-1] != right[-2:][0]:
            return False
        left, right = left[:-2], right[:-2]
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        return False
    return True
