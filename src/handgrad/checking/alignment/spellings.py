"""What arrays of NumPy and tensors of PyTorch are asked for in words of their own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import filled, option, parsed
from handgrad.checking.tensors import is_tensor


def flipped(node: ast.expr, axes: Sequence[int], scope: CallScope) -> Any:
    """The values the other way round along these axes: tensors take no slice of step −1."""
    if is_tensor(scope.value(node)):
        return filled(f"a.flip({', '.join(map(str, axes))})", a=node)
    index = ["::-1" if axis in axes else ":" for axis in range(max(axes) + 1)]
    return filled(f"a[{', '.join(index)}]", a=node)


def permuted(node: ast.expr, axes: Sequence[int], scope: CallScope) -> Any:
    """The array with its axes in another order."""
    name = "permute" if is_tensor(scope.value(node)) else "transpose"
    return filled(f"a.{name}({', '.join(map(str, axes))})", a=node)


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
