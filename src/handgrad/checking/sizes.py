"""Operands whose sizes do not fit: the part of a line that raised, and the shapes in it.

NumPy's sentence for it speaks of core dimensions and signatures; the shapes of the two operands, by
their text, are what a reader compares.
"""

from __future__ import annotations

import ast
import linecache
import operator
from collections.abc import Callable
from itertools import islice
from types import FrameType, TracebackType
from typing import Any, Final

import numpy as np

_OPERATORS: Final[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
    ast.MatMult: operator.matmul,
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


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
    if not isinstance(expression, ast.BinOp) or type(expression.op) not in _OPERATORS:
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
    try:
        value = _value(side, traceback.tb_frame)
    except Exception:  # it cannot be computed alone
        return None
    return value.shape if isinstance(value, np.ndarray | np.generic) else None


def _value(expression: ast.expr | None, frame: FrameType) -> Any:
    """The value of an expression of names, indices, transposes and sums.

    Raises LookupError for any other.
    """
    match expression:
        case None:
            return None
        case ast.Constant():
            return expression.value
        case ast.Name(id=name):
            return frame.f_locals[name] if name in frame.f_locals else frame.f_globals[name]
        case ast.Attribute(value=of, attr="T" | "mT"):
            return getattr(_value(of, frame), expression.attr)
        case ast.Subscript(value=of, slice=index):
            return _value(of, frame)[_value(index, frame)]
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(_value(lower, frame), _value(upper, frame), _value(step, frame))
        case ast.Tuple(elts=items):
            return tuple(_value(each, frame) for each in items)
        case ast.UnaryOp(op=ast.USub(), operand=of):
            return -_value(of, frame)
        case ast.BinOp(left=left, op=kind, right=right):
            return _OPERATORS[type(kind)](_value(left, frame), _value(right, frame))
        case ast.Compare(left=left, ops=[kind], comparators=[right]):
            return _OPERATORS[type(kind)](_value(left, frame), _value(right, frame))
    raise LookupError


def _combine(kind: ast.operator, left: Any, right: Any) -> bool:
    """Return whether shapes fit, so that the exception is about something else."""
    if isinstance(kind, ast.MatMult):
        if not left or not right or left[-1] != right[-2:][0]:
            return False
        left, right = left[:-2], right[:-2]
    try:
        np.broadcast_shapes(left, right)
    except ValueError:
        return False
    return True
