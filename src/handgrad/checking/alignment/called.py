"""Other calls: another function, axis or order of the operands, or none."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.spellings import flipped
from handgrad.checking.alignment.variants import Variant, filled, option
from handgrad.checking.alignment.wording import said

_REDUCING: Final = ("sum", "mean", "max", "min", "prod", "var", "std", "cumsum", "concatenate")
#: Functions that add or multiply up along an axis, and what that is called.
_CUMULATIVE: Final = frozenset({"cumsum", "cumulative_sum", "cumprod", "cumulative_prod"})
_AXIS: Final = ("axis", "dim")
#: Functions of an array and a number that an activation is written with.
_CLIPPED: Final = ("maximum", "fmax", "clip", "relu")
#: Methods that change no value but for rounding it.
_ROUNDING: Final = frozenset(
    {"astype", "float16", "float32", "bfloat16", "half", "round", "around", "rint"}
)
_FUNCTIONS: Final = {
    "sum": ("mean", "cumsum"),
    "mean": ("sum",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "tanh": ("cosh", "sinh"),
    "sin": ("cos",),
    "cos": ("sin",),
    "exp": ("log", "expm1"),
    "log": ("exp", "log1p"),
    "sqrt": ("square",),
    "square": ("sqrt",),
    "triu": ("tril",),
    "tril": ("triu",),
    "dot": ("outer",),
    "repeat": ("tile",),
    "tile": ("repeat",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "abs": ("sign",),
    "var": ("std",),
    "std": ("var",),
    "append": (),
}


def is_reduction(call: ast.Call) -> bool:
    """Return whether this is a method that reduces, of which the first argument is an axis."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _REDUCING[:7]


def of_call(node: ast.Call, scope: CallScope) -> Iterator[Variant]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_method = owner is not None and scope.array(owner) is not None
    operand = owner if is_method else node.args[0] if node.args else None
    if name in _CLIPPED and len(node.args) == 2:
        yield from _decided_elsewhere(node, scope)
    for other in _FUNCTIONS.get(name, ()):
        func = copy.deepcopy(node.func)
        if isinstance(func, ast.Attribute):
            func.attr = other
        new = ast.Call(func, node.args, node.keywords)
        if {name, other} == {"sum", "mean"}:
            kind = "sum for mean" if name == "sum" else "mean for sum"
            yield new, kind, said(node), f"{{}} should be a {other}"
        else:
            yield new, "stale variable", f"{other} for {name}", "another function belongs there: {}"
    if operand is not None and not isinstance(operand, ast.Starred):
        if name in _ROUNDING:
            part = ", ".join(said(each).rpartition(".")[2] for each in node.args) or name
            yield operand, "inaccurate", part, "{} rounds its values"
        elif name == "reversed":
            yield operand, "flipped", said(node), "the order of {} is reversed and should not be"
        else:
            yield operand, "extra factor", said(node), "{} should not be applied"
    if name in _CUMULATIVE and operand is not None:
        yield from _from_the_end(node, operand, scope, is_method=is_method)
    if name in _REDUCING and not any(k.arg == "axis" for k in node.keywords):
        array = None if operand is None else scope.array(operand)
        every = range(0 if array is None or name == "concatenate" else array.ndim)
        some: list[Any] = [tuple(each for each in every if each != left) for left in every]
        for axis in (0, 1, -1, *(some if len(every) > 2 else ())):
            new = ast.Call(node.func, node.args, [*node.keywords, option("axis", axis)])
            along = "axes" if isinstance(axis, tuple) else "axis"
            phrase = f"{{}} is to be taken along {along} {axis} alone"
            yield new, "wrong axis", said(node), phrase
    if name in _REDUCING:
        kept = [k for k in node.keywords if k.arg != "keepdims"]
        if len(kept) == len(node.keywords):
            kept.append(option("keepdims", True))
        new = ast.Call(node.func, node.args, kept)
        yield new, "wrong shape", said(node), "keepdims of {} makes another axis broadcast"
        for keyword in node.keywords:
            if keyword.arg == "axis":
                others = [k for k in node.keywords if k is not keyword]
                new = ast.Call(node.func, node.args, others)
                yield new, "wrong axis", said(node), "{} is to be taken over all axes"
    if name == "where" and len(node.args) == 3:
        a, b, c = node.args
        part = said(node)
        new = ast.Call(node.func, [a, c, b], node.keywords)
        yield new, "wrong branch", part, "the branches of {} are exchanged"
    elif len(node.args) == 2:
        new = ast.Call(node.func, node.args[::-1], node.keywords)
        yield new, "operands swapped", said(node), "the operands of {} are exchanged"
    if name in ("transpose", "permute") and len(node.args) > 2:
        for i, j in combinations(range(len(node.args)), 2):
            swapped = [*node.args]
            swapped[i], swapped[j] = swapped[j], swapped[i]
            new = ast.Call(node.func, swapped, node.keywords)
            yield new, "axes permuted", said(node), "two axes of {} are exchanged in the transpose"
    if name == "pop":
        new = filled("f()" if node.args else "f(0)", f=node.func)
        phrase = "another element belongs there, first and last are swapped in order: {}"
        yield new, "stale variable", said(new), phrase
    if name == "range":
        new = filled("reversed(a)", a=node)
        yield new, "flipped", said(node), "the order of {} should be reversed"


def _decided_elsewhere(node: ast.Call, scope: CallScope) -> Iterator[Variant]:
    """The elements where another array is positive, for those where the array is so itself."""
    own = [each for each in node.args if not isinstance(each, ast.Constant)]
    array = scope.array(own[0]) if len(own) == 1 else None
    if array is None or not array.ndim:
        return
    for other, value in scope.atoms:
        if value.shape == array.shape and value.dtype.kind == "f" and said(other) != said(own[0]):
            mask = filled("b > 0", b=other)
            phrase = f"{said(other)} decides what passes, and not {said(own[0])} itself: {{}}"
            new = filled("a * m", a=own[0], m=mask)
            yield new, "mask forgotten", f"the mask ({said(mask)})", phrase


def _from_the_end(
    node: ast.Call, operand: ast.expr, scope: CallScope, *, is_method: bool
) -> Iterator[Variant]:
    """Sums of what comes after, where those of what comes before stand."""
    own = scope.array(operand)
    given = [*node.args[not is_method :], *(k.value for k in node.keywords if k.arg in _AXIS)]
    axis = scope.array(given[0]) if given else np.zeros((), int)
    if own is None or axis is None or axis.dtype.kind != "i" or not own.ndim or axis.ndim:
        return
    axes = (int(axis) % own.ndim,)
    func, args = node.func, [flipped(operand, axes, scope), *node.args[1:]]
    if is_method:
        func, args = ast.Attribute(args[0], func.attr, ast.Load()), node.args  # type: ignore[attr-defined]
    new = flipped(ast.Call(func, args, node.keywords), axes, scope)
    yield new, "flipped", said(node), "{} should be flipped: it begins at the other end"
