"""Insertions: a sign, factor, term, sum or transpose that was left out at an expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations, product
from typing import Final

import numpy as np

from handgrad.checking.alignment.scope import CallScope, distinct
from handgrad.checking.alignment.spellings import flipped, permuted
from handgrad.checking.alignment.variants import (
    MISSING,
    SIGN,
    TERM_MISSING,
    Variant,
    filled,
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
#: Factors that derivatives are made of, and the values of a variable of which they are.
_DERIVATIVES: Final = (
    ("a * (1 - b)", (0.0, 1.0), "(1 − {})", "factor missing"),
    ("a * (1 - b ** 2)", (-1.0, 1.0), "(1 − {}²)", "activation derivative forgotten"),
    ("a * (b * (1 - b))", (0.0, 1.0), "{} (1 − {})", "activation derivative forgotten"),
)


def inserted_at(
    node: ast.expr, array: np.ndarray | None, scope: CallScope, *, is_part: bool
) -> Iterator[Variant]:
    """Changes that put back a thing left out at a node; one that `is_part` of more may grow."""
    part, dimensions = said(node), 2 if array is None else array.ndim
    is_float = array is None or array.dtype.kind == "f"
    if is_float or not dimensions:
        yield filled("-a", a=node), "wrong sign", part, SIGN
    if dimensions >= 2:
        new = filled("a.T" if dimensions == 2 else "a.swapaxes(-1, -2)", a=node)
        yield new, "transpose missing", part, "{} should be transposed"
    sizes = {float(value) for _, value in scope.sizes}
    for number in ("2", "0.5", *(["3"] if 3.0 not in sizes else [])):
        phrase = f"the factor {number} is missing in {part}"
        yield filled(f"{number} * a", a=node), "scale missing", f"{number} {part}", phrase
    for axis in range(dimensions):
        for more in ("", ", keepdims=True"):
            new = filled(f"a.sum(axis={axis}{more})", a=node)
            yield new, "not reduced", part, f"a sum over axis {axis} of {{}} is missing"
        new = flipped(node, (axis,), scope)
        yield new, "flipped", part, "{} should be flipped, in the reverse order"
    if array is not None and dimensions > 1:
        new = flipped(node, (dimensions - 2, dimensions - 1), scope)
        yield new, "flipped", part, "{} should be flipped along its last two axes"
    if is_float:
        yield from _with_one(node, is_part=is_part)
    if array is not None and array.ndim == 2 and len(set(array.shape)) == 1:
        phrase = f"the term {{}} is missing: {part} is not symmetric, and its transpose counts too"
        yield filled("(a + a.T) / 2", a=node), "term missing", f"{part}ᵀ", phrase
    if isinstance(node, ast.Name) and array is not None and is_float:
        yield from _without_mean(node, array)
    yield from _with_names(node, array, scope, is_part=is_part)


def _with_one(node: ast.expr, *, is_part: bool) -> Iterator[Variant]:
    """The same and 1, and what is missing to 1."""
    part = said(node)
    is_short = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
    if is_short or (is_part and isinstance(node, ast.Call)):
        for power, words in ((2, "factor {} of its square"), (3, "factors {} of its cube")):
            phrase = f"the power is missing, the {words}"
            yield filled(f"a ** {power}", a=node), "factor missing", part, phrase
        phrase = MISSING + f" beside {part}"
        yield filled("a * (1 - a)", a=node), "factor missing", f"(1 − {part})", phrase
    for text, label in (("a + 1", "1"), ("a - 1", "−1"), ("1 - a", f"1 − {part}")):
        yield filled(text, a=node), "term missing", label, TERM_MISSING + f" beside {part}"


def of_whole(node: ast.expr, array: np.ndarray | None, scope: CallScope) -> Iterator[Variant]:
    """Things left out of the whole of an expression: a size as its scale, a sum over axes.

    Anywhere within, either is a longer change with the same effect.
    """
    dimensions = 2 if array is None else array.ndim
    if dimensions:
        phrase = "a sum over all of {} is missing"
        yield filled("a.sum()", a=node), "not reduced", said(node), phrase
    for axes in ((0, 1), (0, 2), (1, 2), (0, 2, 3), (0, 1, 2)):
        if max(axes) < dimensions > 2:
            phrase = f"a sum over axes {axes} of {{}} is missing"
            yield filled(f"a.sum(axis={axes})", a=node), "not reduced", said(node), phrase
    phrase = MISSING + f" in {said(node)}"
    for other, _ in distinct(scope.sizes):
        for text, root in (("a / b", ""), ("a / b ** 0.5", "√")):
            label = f"1/{root}{said(other)}"
            yield filled(text, a=node, b=other), "scale missing", label, phrase
    if array is not None and not array.ndim and array.dtype.kind == "f":
        yield from _with_masks(node, scope)
    if array is not None and not isinstance(node, ast.Name):
        yield from _without_mean(node, array)
    if array is not None and array.ndim:
        yield from _with_products(node, array, scope)


def _with_products(node: ast.expr, array: np.ndarray, scope: CallScope) -> Iterator[Variant]:
    """A product of matrices, or of a matrix and a vector, as a further term."""
    known: list[tuple[ast.expr, tuple[int, ...]]] = []
    for each, value in scope.atoms:
        if value.ndim and value.dtype.kind == "f":
            known.append((each, value.shape))
            known += [(filled("a.T", a=each), value.shape[::-1])] if value.ndim == 2 else []
    for (left, one), (right, other) in product(known, known):
        is_product = len(other) == 2 or (len(one), len(other)) == (2, 1)
        if is_product and one[-1] == other[0] and one[:-1] + other[1:] == array.shape:
            new = filled("a @ b", a=left, b=right)
            phrase = TERM_MISSING + f" beside {said(node)}"
            yield filled("a + b", a=node, b=new), "term missing", said(new), phrase


def reordered(node: ast.expr, array: np.ndarray, scope: CallScope) -> Iterator[Variant]:
    """The axes of an array in other orders, as layouts of images have them."""
    for axes in _LAYOUTS.get(array.ndim, ()):
        new = permuted(node, axes, scope)
        phrase = f"the axes of {{}} belong in the order {axes}: a transpose is missing"
        yield new, "axes permuted", said(node), phrase


def _with_masks(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """A number for the rows of which a value is positive, as a hinge has it, 0 for the others."""
    for each, value in scope.atoms:
        if value.ndim == 1 and value.dtype.kind == "f" and (value == 0).any():
            phrase = f"the mask {{}} is forgotten in {said(node)}"
            for text in ("(b > 0) * a", "(b > 0)[:, None] * a"):
                new = filled(text, a=node, b=each)
                yield new, "mask forgotten", f"({said(each)} > 0)", phrase


def _without_mean(node: ast.expr, array: np.ndarray) -> Iterator[Variant]:
    """The gradient of x − mean x: the values without their mean along an axis."""
    for axis in range(array.ndim):
        new = filled(f"a - a.mean(axis={axis}, keepdims=True)", a=node)
        yield new, "term missing", f"−mean({said(node)})", TERM_MISSING


def _with_names(
    node: ast.expr, array: np.ndarray | None, scope: CallScope, *, is_part: bool
) -> Iterator[Variant]:
    part = said(node)
    for other, value in scope.atoms:
        # Zeros stand for nothing, as a bias does that begins so; what 1 and −1 do, a sign does too.
        if not np.any(value) or (not value.ndim and abs(float(value)) == 1.0):
            continue
        kind, fits = value.dtype.kind, array is None or spreads(value, array.shape)
        if not fits:
            if kind == "f" and array is not None and _grows(array, value, is_part=is_part):
                phrase = MISSING + f" in {part}"
                yield filled("a * b", a=node, b=other), "factor missing", said(other), phrase
            continue
        # x − x and x / x are other ways to write 0 and 1, which no derivation has.
        if said(other) == part or (kind in "iu" and value.ndim):
            continue
        yield from _as_factor(node, other, value)
        if kind == "f":
            yield from _in_derivatives(node, other, value)
            if value.ndim or array is None or not array.ndim or 0.0 < value <= _GUARD:
                phrase = TERM_MISSING + f" beside {part}"
                for text, label in (("a + b", said(other)), ("a - b", f"−{said(other)}")):
                    yield filled(text, a=node, b=other), "term missing", label, phrase


def _grows(array: np.ndarray, value: np.ndarray, *, is_part: bool) -> bool:
    """Return whether a product with a larger array may stand for one: along axes that it has."""
    if is_part and spreads(array, value.shape):
        return True
    axes = zip(array.shape[::-1], value.shape[::-1], strict=False)
    return value.ndim <= array.ndim and all(1 in (a, b) or a == b for a, b in axes)


def _as_factor(node: ast.expr, other: ast.expr, value: np.ndarray) -> Iterator[Variant]:
    """The values times a variable, or divided by it."""
    kind, name, phrase = "factor missing", said(other), MISSING + f" in {said(node)}"
    forms = ("a * b", name), ("a / b", f"1/{name}")
    if value.dtype.kind == "b":
        kind, phrase = "mask forgotten", f"the mask {{}} is forgotten in {said(node)}"
        forms = ("a * b", name), ("a * ~b", f"~{name}")
    elif not value.ndim:
        kind = "scale missing"
    for text, label in forms:
        yield filled(text, a=node, b=other), kind, label, phrase


def _in_derivatives(node: ast.expr, other: ast.expr, value: np.ndarray) -> Iterator[Variant]:
    """The values times what a derivative is made of, of a variable that is the activation."""
    part, name = said(node), said(other)
    for text, (least, most), label, kind in _DERIVATIVES:
        if ((value >= least) & (value <= most)).all():
            phrase = MISSING + f" in {part}"
            if kind != "factor missing":
                phrase = "the derivative of the activation, the factor {}, is forgotten in " + part
            yield filled(text, a=node, b=other), kind, label.format(name, name), phrase
    if (value > 0).any() and not (value > 0).all():
        phrase = f"the mask {{}} is forgotten in {part}"
        yield filled("a * (b > 0)", a=node, b=other), "mask forgotten", f"({name} > 0)", phrase
