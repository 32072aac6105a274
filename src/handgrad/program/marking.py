"""The source of traced functions with its loops, comprehensions and counters marked."""

from __future__ import annotations

import ast
import functools
import types
from collections import Counter
from typing import Any

from handgrad.program.arithmetic import ARITHMETIC
from handgrad.program.source import definition, owner_of, recompiled

#: In a copy's globals: what a `for` goes over, what a comprehension has made, what `i += 1` makes.
EACH, MADE, STEPPED = "__each__", "__made__", "__stepped__"
#: The methods of arithmetic by the syntax of a step.
_OPERATORS = {each.syntax: each.method for each in ARITHMETIC}


class _Marking(ast.NodeTransformer):
    """`for x in xs` goes over `__each__(xs)`, so that lists that loops filled are known."""

    def _call(self, iterable: ast.expr) -> ast.expr:
        name = ast.Name(EACH, ast.Load())
        return ast.copy_location(ast.Call(name, [iterable], []), iterable)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name(MADE, ast.Load()), [node], []), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        _Stepping(node).mark()
        self.generic_visit(node)
        node.iter = self._call(node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._call(node.iter)
        return node


class _Stepping(ast.NodeTransformer):
    """`i += 1` in a loop is `i = __stepped__("iadd", i, 1)`, where nothing else binds `i`."""

    def __init__(self, loop: ast.For) -> None:
        self._loop = loop
        nodes = list(ast.walk(loop))
        names = (n for n in nodes if isinstance(n, ast.Name))
        bound = Counter(n.id for n in names if isinstance(n.ctx, ast.Store))
        stepping = Counter(found[0] for n in nodes if (found := _step(n)) is not None)
        self._names = {name for name, times in stepping.items() if bound[name] == times}

    def mark(self) -> None:
        self._loop.body = [self.visit(statement) for statement in self._loop.body]

    def visit(self, node: ast.AST) -> Any:
        """Statements of this loop; one inside has its own steps, a function its own names."""
        if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.Lambda | ast.ClassDef):
            return node
        found = _step(node)
        if found is None or found[0] not in self._names:
            return self.generic_visit(node)
        name, sign, value = found
        args = [ast.Constant(sign), ast.Name(name, ast.Load()), value]
        call = ast.Call(ast.Name(STEPPED, ast.Load()), args, [])
        return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], call), node)


def _step(node: ast.AST) -> tuple[str, str, ast.expr] | None:
    """The name, operator and operand of `i += 1` or `i = i + 1`; None for anything else."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        sign = _OPERATORS.get(type(node.op))
        return (node.target.id, f"i{sign}", node.value) if sign else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        (target, *others), left = node.targets, node.value.left
        sign = _OPERATORS.get(type(node.value.op))
        if sign and not others and isinstance(target, ast.Name) and isinstance(left, ast.Name):
            return (target.id, sign, node.value.right) if target.id == left.id else None
    return None


def marked(code: types.CodeType, name: str) -> types.CodeType:
    """A function's code with its loops marked, where its source is there; else as it is.

    name: the function's qualified one.
    """
    return _marked(code, name, code.co_filename)


@functools.lru_cache(4096)
def _marked(code: types.CodeType, name: str, file: str) -> types.CodeType:
    """The same once for a code of one file: Python takes equal ones of two files for one."""
    del file
    known = definition(code)
    if known is None or not isinstance(known.tree, ast.FunctionDef):
        return code
    loops = (isinstance(each, ast.For | ast.comprehension) for each in ast.walk(known.tree))
    if known.tree.name != code.co_name or not any(loops):
        return code
    _Marking().visit(known.tree)
    return recompiled(known, code, owner_of(name))
