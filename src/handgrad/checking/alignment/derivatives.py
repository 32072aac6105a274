"""Derivatives that are taken for one another: of softmax, log-softmax, sigmoid and tanh."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from handgrad.checking.alignment.changes import Place
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import (
    Variant,
    binary,
    multiplied,
    operands,
    option,
    parsed,
)
from handgrad.checking.alignment.wording import said

#: Parts that a row of probabilities may be away from 1.
_NEAR = 1e-6


def of_derivative(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """Other readings of a product that is, or is part of, such a derivative."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return
    yield from _of_logistic(node)
    factors = list(operands(node, ast.Mult))
    for factor in factors:
        axis = _summed_to_one(factor, scope)
        if axis is not None:
            yield from _of_softmax(factor, [f for f in factors if f is not factor], axis)


def _of_logistic(node: ast.BinOp) -> Iterator[Variant]:
    """s (1 − s), the derivative of sigmoid, and 1 − s², that of tanh, for each other."""
    left, right = node.left, node.right
    rest: ast.expr | None = None
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
        rest, left = left.left, left.right
    if _is_rest(right, left):
        # 1 − s² as the product that is the smallest change.
        new = binary(left, ast.Add(), ast.Constant(1))
        new = binary(new if rest is None else binary(rest, ast.Mult(), new), ast.Mult(), right)
        part = said(binary(left, ast.Mult(), right))
        phrase = "{} is the derivative of sigmoid: that of tanh belongs there"
        yield new, "other derivative", part, phrase


def _is_rest(node: ast.expr, other: ast.expr) -> bool:
    """Return whether a node is 1 minus another."""
    match node:
        case ast.BinOp(ast.Constant(1 | 1.0), ast.Sub(), own):
            return ast.unparse(own) == ast.unparse(other)
    return False


def of_square(node: ast.expr) -> Iterator[Variant]:
    """s (1 − s) for 1 − s²."""
    match node:
        case ast.BinOp(ast.Constant(1 | 1.0) as one, ast.Sub(), square):
            own: ast.expr | None = None
            match square:
                case ast.BinOp(base, ast.Pow(), ast.Constant(2)):
                    own = base
                case ast.BinOp(base, ast.Mult(), again) if ast.unparse(base) == ast.unparse(again):
                    own = base
            if own is not None:
                new = binary(binary(one, ast.Sub(), own), ast.Mult(), own)
                phrase = "{} is the derivative of tanh: that of sigmoid belongs there"
                yield new, "other derivative", said(node), phrase


def _summed_to_one(node: ast.expr, scope: CallScope) -> int | None:
    """The axis along which a value is one of probabilities, None where there is none."""
    value = scope.array(node)
    if value is None or not value.ndim or value.dtype.kind != "f" or not (value >= 0).all():
        return None
    for axis in reversed(range(value.ndim)):
        if value.shape[axis] > 1 and np.allclose(value.sum(axis), 1.0, 0.0, _NEAR):
            return axis - value.ndim
    return None


def _of_softmax(p: ast.expr, rest: list[ast.expr], axis: int) -> Iterator[Variant]:
    """All of softmax's Jacobian for its diagonal; and the backward of log-softmax for its own."""
    others = [each for each in rest if not _is_rest(each, p)]
    if not others:
        return
    inner = multiplied(others)
    weighted = _sum(binary(p, ast.Mult(), inner), axis)
    new = binary(p, ast.Mult(), binary(inner, ast.Sub(), weighted))
    phrase = "the term {} of softmax's backward is missing: each output depends on all inputs"
    kind = "term missing" if len(others) == len(rest) else "other derivative"
    yield new, kind, f"−{said(p)} {said(weighted)}", phrase
    match others:
        case [ast.BinOp(dy, ast.Sub(), ast.Call() as taken)] if "sum" in ast.unparse(taken.func):
            new = binary(dy, ast.Sub(), binary(p, ast.Mult(), _sum(dy, axis)))
            phrase = "the factor {} is too many: this is softmax's backward, not log-softmax's"
            yield new, "extra factor", said(p), phrase


def of_jacobian(place: Place, node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """The matrix of softmax's derivatives for probabilities, or its diagonal, that come back."""
    if not isinstance(place.parent, ast.Return):
        return
    factors = list(operands(node, ast.Mult))
    alias = next((name for name, module in scope.call.scope.items() if module is np), "")
    for p in [node, *(factors if len(factors) == 2 else ())]:
        rest = [each for each in factors if p is not node and each is not p]
        if not alias or _summed_to_one(p, scope) != -1 or not all(_is_rest(e, p) for e in rest):
            continue
        text, value = ast.unparse(p), scope.array(p)
        text = text if isinstance(p, ast.Name | ast.Attribute) else f"({text})"
        new = f"{alias}.diag({text}) - {alias}.outer({text}, {text})"
        if value is not None and value.ndim > 1:
            eye = f"{alias}.eye({text}.shape[-1])"
            new = f"{text}[..., None] * ({eye} - {text}[..., None, :])"
        phrase = "{} belongs there, a matrix: each output of softmax depends on all inputs"
        yield parsed(new), "other derivative", said(parsed(new)), phrase


def _sum(node: ast.expr, axis: int) -> ast.expr:
    keywords = [ast.keyword("axis", parsed(f"{axis}"))]
    keywords.append(option("keepdims", True))
    return ast.Call(ast.Attribute(node, "sum", ast.Load()), [], keywords)
