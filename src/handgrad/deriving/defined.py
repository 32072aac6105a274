"""Names of an emitted source: each is made before it is read, also where no proof comes by."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator

_Function = ast.FunctionDef | ast.Lambda


def unmade(source: str) -> list[str]:
    """The names that the source's functions read before anything has made them, in order."""
    tree = ast.parse(source)
    known = set(dir(builtins)) | {"__name__"}
    for each in tree.body:
        known |= set(_made(each))
    return list(dict.fromkeys(_read(tree.body, known)))


def _read(body: Iterable[ast.stmt], known: Collection[str]) -> Iterator[str]:
    """The names that statements read too early, where some are known before them."""
    found = set(known)
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield from _read(statement.body, {*found, statement.name, *_parameters(statement)})
        elif isinstance(statement, ast.ClassDef):
            yield from _read(statement.body, found)
        elif isinstance(statement, ast.For):
            yield from _in_expression(statement.iter, found)
            yield from _read(statement.body, {*found, *_names(statement.target, ast.Store)})
        elif isinstance(statement, ast.If):
            yield from _in_expression(statement.test, found)
            yield from _read([*statement.body, *statement.orelse], found)
        else:  # one with a block, such as `with`, may read what it makes
            own = _made(statement) if hasattr(statement, "body") else ()
            yield from _in_expression(statement, {*found, *own})
        found |= set(_made(statement))


def _in_expression(node: ast.AST, known: Collection[str]) -> Iterator[str]:
    """The same; a lambda or a comprehension inside may read the names that it makes itself."""
    own = {
        name
        for each in ast.walk(node)
        if isinstance(each, ast.Lambda)
        for name in _parameters(each)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.comprehension):
            own |= set(_names(each.target, ast.Store))
    is_step = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    targets = [node.target.id] if is_step else []  # type: ignore[attr-defined]
    yield from (name for name in [*_names(node, ast.Load), *targets] if name not in {*known, *own})


def _names(node: ast.AST, context: type[ast.expr_context]) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, context):
            yield each.id


def _made(statement: ast.stmt) -> Iterator[str]:
    """The names that are there after a statement."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((each.asname or each.name).partition(".")[0] for each in statement.names)
    else:
        yield from _names(statement, ast.Store)


def _parameters(function: _Function) -> Iterator[str]:
    args = function.args
    rest = [each for each in (args.vararg, args.kwarg) if each is not None]
    yield from (each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, *rest))
