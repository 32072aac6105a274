"""Wrong backwards out of a right source: one expression or statement of it changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_FUNCTIONS = {"sum": "mean", "mean": "sum", "max": "min", "exp": "log", "tanh": "sin"}
_AXES = {"0": "-1", "-1": "0"}
_ARRANGING = ("matrix_transpose", "swapaxes", "permute_dims", "flip", "where")


@dataclass(frozen=True)
class Mutant:
    """A source with one change in some of its lines, and the change in words."""

    source: str
    lines: range
    told: str

    @property
    def line(self) -> int:
        return self.lines.start


def mutants(source: str, function: str, apart_from: str, decorator: str) -> Iterator[Mutant]:
    """Those of a function and of all that it calls in its module which `apart_from` does not.

    A decorator of this name is left out of every mutant.
    """
    text = source.replace(f"@{decorator}\n", "# a plain function\n")
    tree = ast.parse(text)
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    own = _called(functions, function) - _called(functions, apart_from)
    for name in filter(own.__contains__, functions):  # in the order of the file, in every run
        body = functions[name].body
        documented = ast.get_docstring(functions[name]) is not None
        for statement in body[1:] if documented else body:
            for node in ast.walk(statement):
                for new in _changes(node):
                    yield _mutant(text, node, new)


def _called(functions: dict[str, ast.FunctionDef], name: str) -> set[str]:
    """The module's functions that one calls, itself included."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in functions and each not in found:
            found.add(each)
            waiting += [n.id for n in ast.walk(functions[each]) if isinstance(n, ast.Name)]
    return found


def _mutant(text: str, node: Any, new: ast.AST) -> Mutant:
    rows = text.encode().split(b"\n")
    first, last = node.lineno - 1, node.end_lineno - 1
    after = ast.unparse(ast.fix_missing_locations(new))
    put = after if isinstance(node, ast.stmt) else f"({after})"
    start, end = rows[first][: node.col_offset], rows[last][node.end_col_offset :]
    rows[first : last + 1] = [start + put.encode() + end, *[b""] * (last - first)]
    told = f"{ast.unparse(node)} became {after}"
    return Mutant(b"\n".join(rows).decode(), range(first + 1, last + 2), told)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            yield ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right)
            yield left
            yield right
        case ast.BinOp(left, ast.Mult(), right):
            yield left
            yield right
            yield ast.BinOp(left, ast.Div(), right)
        case ast.BinOp(left, ast.Div(), right):
            yield left
            yield ast.BinOp(left, ast.Mult(), right)
        case ast.BinOp(left, ast.Pow(), ast.Constant(int(number))):
            yield ast.BinOp(left, ast.Pow(), ast.Constant(number + 1))
            yield left
        case ast.BinOp(left, ast.MatMult(), right):
            yield ast.BinOp(right, ast.MatMult(), left)
        case ast.UnaryOp(ast.USub(), ast.Name() | ast.BinOp() as inner):
            yield inner
        case ast.Compare(left, [op], right):
            other = {ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.LtE: ast.GtE}
            if type(op) in other:
                yield ast.Compare(left, [other[type(op)]()], right)
        case ast.Constant(float(number)):
            yield ast.Constant(2 * number)
            yield ast.Constant(-number)
        case ast.Attribute(inner, "T" | "mT", ast.Load()):
            yield inner
        case ast.Call(ast.Attribute(owner, name), args):
            if name in _FUNCTIONS:
                other_function = ast.Attribute(owner, _FUNCTIONS[name], ast.Load())
                yield ast.Call(other_function, args, node.keywords)
            if name in _ARRANGING:
                yield args[1] if name == "where" else args[0]
            for i, keyword in enumerate(node.keywords):
                axis = ast.unparse(keyword.value) if keyword.arg == "axis" else ""
                if axis in _AXES:
                    other_axis = ast.parse(_AXES[axis], mode="eval").body
                    named = [*node.keywords]
                    named[i] = ast.keyword("axis", other_axis)
                    yield ast.Call(node.func, args, named)
        case ast.Subscript(value, ast.BinOp(index, ast.Add() | ast.Sub(), ast.Constant(1)), ctx):
            if isinstance(ctx, ast.Load):
                yield ast.Subscript(value, index, ctx)
        case ast.AugAssign(target, ast.Add(), value):
            yield ast.Assign([target], value, lineno=node.lineno)
            yield ast.AugAssign(target, ast.Sub(), value)
        case ast.Return(ast.Tuple([first, second, *others])):
            yield ast.Return(ast.Tuple([second, first, *others], ast.Load()))
