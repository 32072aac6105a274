"""Insertions: a sign, factor, term, sum or transpose that was left out at an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations, product
from typing import Final

import numpy as np

from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.spellings import flipped, permuted
from handgrad.checking.alignment.variants import (
    MISSING,
    SIGN,
    TERM_MISSING,
    Variant,
    binary,
    option,
    parsed,
    spreads,
)
from handgrad.checking.alignment.wording import said

#: The largest number that keeps a root or a quotient from what is next to 0.
_GUARD: Final = 0.1
#: Orders of the axes that are tried, by their number: of three all, of four those of layouts of
#: images and of heads. Of two, the transpose is.
_LAYOUTS: Final = {
    3: (*permutations(range(3)),)[1:],
    4: ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3), (1, 0, 2, 3), (1, 2, 3, 0), (3, 0, 1, 2)),
}


def inserted_at(
    node: ast.expr, array: np.ndarray | None, scope: CallScope, *, is_part: bool
) -> Iterator[Variant]:
    """Changes that put back a thing left out at a node; one that `is_part` of more may grow."""
    part = said(node)
    if array is None or array.dtype.kind == "f" or not array.ndim:
        yield ast.UnaryOp(ast.USub(), node), "wrong sign", part, SIGN
    dimensions = 2 if array is None else array.ndim
    if dimensions >= 2:
        new: ast.expr = ast.Attribute(node, "T", ast.Load())
        if dimensions > 2:
            new = _method(node, "swapaxes", ast.Constant(-1), ast.Constant(-2))
        yield new, "transpose missing", part, "{} should be transposed"
    sizes = {float(value) for _, value in scope.sizes}
    for number in ("2", "0.5", *(["3"] if 3.0 not in sizes else [])):
        new = binary(parsed(number), ast.Mult(), node)
        yield new, "scale missing", f"{number} {part}", f"the factor {number} is missing in {part}"
    for axis in range(dimensions):
        for keywords in ([], [option("keepdims", True)]):
            new = _method(node, "sum", keywords=[option("axis", axis), *keywords])
            yield new, "not reduced", part, f"a sum over axis {axis} of {{}} is missing"
        new = flipped(node, (axis,), scope)
        yield new, "flipped", part, "{} should be flipped, in the reverse order"
    if array is not None and dimensions > 1:
        new = flipped(node, (dimensions - 2, dimensions - 1), scope)
        yield new, "flipped", part, "{} should be flipped along its last two axes"
    if dimensions:
        yield _method(node, "sum"), "not reduced", part, "a sum over all of {} is missing"
    if dimensions > 2:
        for axes in ((0, 1), (0, 2), (1, 2), (0, 2, 3), (0, 1, 2)):
            listed = ast.Tuple([ast.Constant(each) for each in axes], ast.Load())
            new = _method(node, "sum", keywords=[ast.keyword("axis", listed)])
            yield new, "not reduced", part, f"a sum over axes {axes} of {{}} is missing"
    if array is None or array.dtype.kind == "f":
        yield from _with_one(node, is_part=is_part)
    if array is not None and array.ndim == 2 and len(set(array.shape)) == 1:
        whole = binary(node, ast.Add(), ast.Attribute(node, "T", ast.Load()))
        new = binary(whole, ast.Div(), ast.Constant(2))
        phrase = f"the term {{}} is missing: {part} is not symmetric, and its transpose counts too"
        yield new, "term missing", f"{part}ᵀ", phrase
    if isinstance(node, ast.Name) and array is not None and array.dtype.kind == "f":
        yield from _without_mean(node, array)
    yield from _with_names(node, array, scope, is_part=is_part)


def _with_one(node: ast.expr, *, is_part: bool) -> Iterator[Variant]:
    """The same and 1, and what is missing to 1."""
    part, one = said(node), ast.Constant(1)
    is_short = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
    if is_short or (is_part and isinstance(node, ast.Call)):
        for power, words in ((2, "factor {} of its square"), (3, "factors {} of its cube")):
            new = binary(node, ast.Pow(), ast.Constant(power))
            yield new, "factor missing", part, f"the power is missing, the {words}"
        rest = binary(one, ast.Sub(), node)
        label = f"(1 − {part})"
        yield binary(node, ast.Mult(), rest), "factor missing", label, MISSING + f" beside {part}"
    phrase = TERM_MISSING + f" beside {part}"
    for new, label in (
        (binary(node, ast.Add(), one), "1"),
        (binary(node, ast.Sub(), one), "−1"),
        (binary(one, ast.Sub(), node), f"1 − {part}"),
    ):
        yield new, "term missing", label, phrase


def of_whole(node: ast.expr, array: np.ndarray | None, scope: CallScope) -> Iterator[Variant]:
    """What was left out of the whole of an expression: a size as its scale, a product of matrices.

    Anywhere within, either is a longer change with the same effect.
    """
    part = said(node)
    seen: set[float] = set()
    for other, value in scope.sizes:
        if float(value) in seen:
            continue
        seen.add(float(value))
        root = binary(other, ast.Pow(), ast.Constant(0.5))
        for factor, label in ((other, said(other)), (root, f"√{said(other)}")):
            phrase = MISSING + f" in {part}"
            yield binary(node, ast.Div(), factor), "scale missing", f"1/{label}", phrase
            yield binary(node, ast.Mult(), factor), "scale missing", label, phrase
    if array is not None and not array.ndim and array.dtype.kind == "f":
        yield from _with_masks(node, scope)
    if array is not None and array.ndim:
        if not isinstance(node, ast.Name):
            yield from _without_mean(node, array)
        yield from _with_terms(node, array, scope)


def reordered(node: ast.expr, array: np.ndarray, scope: CallScope) -> Iterator[Variant]:
    """The axes of an array in other orders, as layouts of images have them."""
    for axes in _LAYOUTS.get(array.ndim, ()):
        new = permuted(node, axes, scope)
        phrase = f"the axes of {{}} belong in the order {axes}: a transpose is missing"
        yield new, "axes permuted", said(node), phrase


def _with_masks(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """A number for the rows of which a value is positive, as a hinge has it, 0 for the others."""
    column = ast.Tuple([ast.Slice(), ast.Constant(None)], ast.Load())
    for each, value in scope.atoms:
        if value.ndim == 1 and value.dtype.kind == "f" and (value == 0).any():
            mask = ast.Compare(each, [ast.Gt()], [ast.Constant(0)])
            for new in (mask, ast.Subscript(mask, column, ast.Load())):
                phrase = f"the mask {{}} is forgotten in {said(node)}"
                yield binary(new, ast.Mult(), node), "mask forgotten", f"({said(mask)})", phrase


def _without_mean(node: ast.expr, array: np.ndarray) -> Iterator[Variant]:
    """The gradient of x − mean x: the values without their mean along an axis."""
    for axis in range(array.ndim):
        keywords = [option("axis", axis), option("keepdims", True)]
        mean = _method(node, "mean", keywords=keywords)
        yield binary(node, ast.Sub(), mean), "term missing", f"−{said(mean)}", TERM_MISSING


def _with_terms(node: ast.expr, array: np.ndarray, scope: CallScope) -> Iterator[Variant]:
    """A product of matrices, or of a matrix and a vector, as a further term."""
    known: list[tuple[ast.expr, tuple[int, ...]]] = []
    for each, value in scope.atoms:
        if value.ndim and value.dtype.kind == "f":
            known.append((each, value.shape))
            if value.ndim == 2:
                known.append((ast.Attribute(each, "T", ast.Load()), value.shape[::-1]))
    for (left, one), (right, other) in product(known, known):
        is_product = len(other) == 2 or (len(one), len(other)) == (2, 1)
        if is_product and one[-1] == other[0] and one[:-1] + other[1:] == array.shape:
            new = binary(left, ast.MatMult(), right)
            phrase = TERM_MISSING + f" beside {said(node)}"
            yield binary(node, ast.Add(), new), "term missing", said(new), phrase


def _with_names(
    node: ast.expr, array: np.ndarray | None, scope: CallScope, *, is_part: bool
) -> Iterator[Variant]:
    part = said(node)
    for other, value in scope.atoms:
        # Zeros stand for nothing, as a bias does that begins so; what 1 and −1 do, a sign does too.
        if not np.any(value) or (not value.ndim and abs(float(value)) == 1.0):
            continue
        if array is not None and not spreads(value, array.shape):
            if (
                is_part
                and array is not None
                and spreads(array, value.shape)
                and value.dtype.kind == "f"
            ):
                name = said(other)
                phrase = MISSING + f" in {part}"
                yield binary(node, ast.Mult(), other), "factor missing", name, phrase
                yield binary(node, ast.Div(), other), "factor missing", f"1/{name}", phrase
            continue
        name = said(other)
        # x − x and x / x are other ways to write 0 and 1, which no derivation has.
        if name == part or (value.dtype.kind in "iu" and value.ndim):
            continue
        kind, phrase = "factor missing", MISSING + f" in {part}"
        if value.dtype.kind == "b":
            kind, phrase = "mask forgotten", f"the mask {{}} is forgotten in {part}"
        elif not value.ndim:
            kind = "scale missing"
        yield binary(node, ast.Mult(), other), kind, name, phrase
        if value.dtype.kind == "b":
            yield (
                binary(node, ast.Mult(), ast.UnaryOp(ast.Invert(), other)),
                kind,
                f"~{name}",
                phrase,
            )
            continue
        inverse = binary(node, ast.Div(), other)
        yield inverse, kind, f"1/{name}", phrase
        if value.dtype.kind == "f" and not value.ndim and 0.0 < value <= _GUARD:
            new = binary(node, ast.Add(), other)
            yield new, "term missing", name, TERM_MISSING + f" beside {part}"
        if value.dtype.kind in "iu":
            continue
        one = ast.Constant(1)
        for new, label in (
            (binary(one, ast.Sub(), other), f"(1 − {name})"),
            (binary(one, ast.Sub(), binary(other, ast.Pow(), ast.Constant(2))), f"(1 − {name}²)"),
            (binary(other, ast.Mult(), binary(one, ast.Sub(), other)), f"{name} (1 − {name})"),
            (ast.Compare(other, [ast.Gt()], [ast.Constant(0)]), f"({name} > 0)"),
        ):
            kind = "activation derivative forgotten"
            phrase = f"the derivative of the activation, the factor {{}}, is forgotten in {part}"
            if label == f"(1 − {name})":
                kind, phrase = "factor missing", MISSING + f" in {part}"
            elif label.endswith("> 0)"):
                kind, phrase = "mask forgotten", f"the mask {{}} is forgotten in {part}"
            yield binary(node, ast.Mult(), new), kind, label, phrase
        if value.ndim or array is None or not array.ndim:
            for op, sign in ((ast.Add(), ""), (ast.Sub(), "−")):
                phrase = TERM_MISSING + f" beside {part}"
                yield binary(node, op, other), "term missing", f"{sign}{name}", phrase


def _method(
    node: ast.expr, name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None
) -> ast.expr:
    return ast.Call(ast.Attribute(node, name, ast.Load()), list(args), keywords or [])
