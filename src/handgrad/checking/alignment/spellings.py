"""What arrays of NumPy and tensors of PyTorch are asked for in words of their own."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import option, parsed
from handgrad.checking.tensors import is_tensor


def flipped(node: ast.expr, axes: Sequence[int], scope: CallScope) -> ast.expr:
    """The values the other way round along these axes: tensors take no slice of step −1."""
    if is_tensor(scope.value(node)):
        function = ast.Attribute(node, "flip", ast.Load())
        return ast.Call(function, [ast.Constant(axis) for axis in axes], [])
    whole, back = ast.Slice(), ast.Slice(None, None, parsed("-1"))
    index = [back if axis in axes else whole for axis in range(max(axes) + 1)]
    taken = index[0] if len(index) == 1 else ast.Tuple([*index], ast.Load())
    return ast.Subscript(node, taken, ast.Load())


def permuted(node: ast.expr, axes: Sequence[int], scope: CallScope) -> ast.expr:
    """The array with its axes in another order."""
    name = "permute" if is_tensor(scope.value(node)) else "transpose"
    function = ast.Attribute(node, name, ast.Load())
    return ast.Call(function, [ast.Constant(axis) for axis in axes], [])


def added_at(
    array: ast.expr, index: ast.expr, value: ast.expr, scope: CallScope
) -> tuple[ast.expr, str]:
    """The sum of values at every index, however often it occurs, and what this call is named."""
    if is_tensor(scope.value(array)):
        function = ast.Attribute(array, "index_put_", ast.Load())
        indices = index if isinstance(index, ast.Tuple) else ast.Tuple([index], ast.Load())
        keywords = [option("accumulate", True)]
        return ast.Call(function, [indices, value], keywords), "index_put_(…, accumulate=True)"
    names = (name for name, each in scope.call.scope.items() if each is np)
    name = f"{next(names, 'np')}.add.at"
    return ast.Call(parsed(name), [array, index, value], []), name
