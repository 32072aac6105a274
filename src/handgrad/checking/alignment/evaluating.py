"""The values of a user's expressions, node by node, where nothing of it changes anything.

They are looked up and computed from the tree, for a search that asks for thousands of changed
expressions would spend most of its time on compiling each.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

#: Methods and functions that change nothing.
PURE: Final = frozenset(
    {
        *("sum", "mean", "max", "min", "reshape", "transpose", "astype", "copy", "dot", "var"),
        *("std", "exp", "log", "sqrt", "tanh", "maximum", "minimum", "where", "outer", "matmul"),
        *("swapaxes", "abs", "sign", "square", "zeros_like", "ones_like", "einsum", "len"),
        *("float", "int", "squeeze", "ravel", "expand_dims", "concatenate", "stack", "tensordot"),
        *("clip", "log1p", "expm1", "cosh", "sinh", "prod", "cumsum", "cumulative_sum", "flip"),
        *("roll", "power"),
        *("tril", "triu", "multiply", "divide", "add", "subtract", "broadcast_to", "permute"),
        *("repeat", "tile", "take", "argmax", "argmin", "eye", "diag", "moveaxis", "trace"),
        *("bincount", "hstack", "vstack", "dstack", "column_stack", "pad", "flatten", "cbrt"),
        *("sin", "cos", "tan", "arctan", "reciprocal", "negative", "fmax", "fmin", "heaviside"),
        *("logical_and", "logical_or", "logical_not", "diagflat", "kron", "inner", "vdot"),
        *("range", "arange", "slice", "zeros", "ones", "empty", "empty_like"),
    }
)

#: The functions behind operators.
_OPERATORS: Final[Mapping[type[ast.AST], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}

#: Results of calls by their text.
Results = Mapping[str, Any]
NO_RESULTS: Final[Results] = MappingProxyType({})


def evaluated(
    node: ast.expr,
    scope: Mapping[str, Any],
    names: Mapping[str, Any],
    results: Results = NO_RESULTS,
) -> Any:
    """The value of an expression with these variables, None where that takes an unknown call.

    results: those of calls, by their text.
    """
    try:
        with np.errstate(all="ignore"):
            return _Expression(scope, names, results).value(node)
    except Exception:  # a name that has no value there, or sizes that do not fit
        return None


class _Expression:
    """Expressions with the values of their variables."""

    def __init__(
        self, scope: Mapping[str, Any], names: Mapping[str, Any], results: Results
    ) -> None:
        self.scope, self.names, self.results = scope, names, results

    def value(self, node: ast.expr | None) -> Any:
        """The value of one; raises as its operations do, and LookupError for what is unknown."""
        match node:
            case ast.Name(name):
                return self._of_name(name)
            case ast.Constant(value):
                return value
            case ast.BinOp(left, op, right):
                return _OPERATORS[type(op)](self.value(left), self.value(right))
            case ast.Call():
                return self._of_call(node)
            case ast.Attribute(owner, name):
                return getattr(self.value(owner), name)
            case ast.Subscript(owner, index):
                return self.value(owner)[self.value(index)]
            case ast.UnaryOp(op, operand):
                return _OPERATORS[type(op)](self.value(operand))
            case ast.Slice(lower, upper, step):
                return slice(self.value(lower), self.value(upper), self.value(step))
            case ast.Tuple(several):
                return tuple(map(self.value, several))
            case ast.List(several):
                return [*map(self.value, several)]
            case ast.Compare(left, ops, others):
                return self._compared(self.value(left), ops, others)
            case ast.IfExp(test, then, otherwise):
                return self.value(then if self.value(test) else otherwise)
            case None:  # an end of a slice
                return None
        raise LookupError(node)

    def _of_name(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        return self.scope[name] if name in self.scope else getattr(builtins, name)

    def _of_call(self, node: ast.Call) -> Any:
        if self.results and (text := ast.unparse(node)) in self.results:
            return self.results[text]
        if not is_pure(node):
            raise LookupError(node)
        named = {each.arg: self.value(each.value) for each in node.keywords if each.arg}
        if len(named) < len(node.keywords):  # of `**`
            raise LookupError(node)
        return self.value(node.func)(*map(self.value, node.args), **named)

    def _compared(self, left: Any, ops: Sequence[ast.cmpop], others: Sequence[ast.expr]) -> Any:
        """The value of a comparison, or of a chain of them as far as they hold."""
        found: Any = True
        for op, other in zip(ops, others, strict=True):
            right = self.value(other)
            found = _OPERATORS[type(op)](left, right)
            if len(ops) > 1 and not found:
                break
            left = right
        return found


def is_pure(node: ast.Call) -> bool:
    """Return whether a call changes nothing when it is made, by the name of what is called."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return (node.func.id if isinstance(node.func, ast.Name) else name) in PURE


def results_of(node: ast.AST, results: Sequence[Any]) -> Results:
    """Results of the calls in a statement that are not known, by their text.

    results: in their order; none is told apart where there are others, as in a loop.
    """
    texts = [ast.unparse(each) for each in _in_order(node) if not is_pure(each)]
    known = dict(zip(texts, results, strict=False))
    return known if len(known) == len(texts) == len(results) else {}


def _in_order(node: ast.AST) -> Iterator[ast.Call]:
    """Calls in the order in which they are made."""
    for each in ast.iter_child_nodes(node):
        yield from _in_order(each)
    if isinstance(node, ast.Call):
        yield node
