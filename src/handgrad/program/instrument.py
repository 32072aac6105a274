"""A function's source with every operation going to a recorder, compiled again.

Python itself runs the result: branches, loops, unpacking, comprehensions, closures and methods mean
what they mean anyway. Every operator, call, subscript and attribute goes through a method of
`__record__`, every assignment and loop is announced to it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from handgrad.program.arithmetic import NAMES
from handgrad.program.nodes import ProgramError, Site
from handgrad.program.source import definition, owner_of, recompiled, unreadable

_RECORDER: Final = "__record__"
_SITES: Final = "__sites__"
#: Names that mean something by the frame they are called in.
_OF_THE_FRAME: Final = frozenset({"super", "locals", "vars", "globals", "eval", "exec", "dir"})


def is_instrumented(function: FunctionType) -> bool:
    return _RECORDER in function.__code__.co_freevars


def instrumented(function: FunctionType, recorder: Any) -> FunctionType:
    """The function with its operations recorded.

    Raises ProgramError where its source is not to be had, or is that of a generator or a lambda.
    """
    code, sites = _compiled(function.__code__, function.__qualname__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {_RECORDER: CellType(recorder), _SITES: CellType(sites)}
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


@functools.lru_cache(4096)
def _compiled(code: CodeType, name: str) -> tuple[CodeType, tuple[Site, ...]]:
    """The code that records, and the sites that it refers to by number."""
    unwanted = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if code.co_flags & unwanted:
        raise ProgramError(f"{name} is a generator or a coroutine; allowed: a function")
    known = definition(code)
    if known is None:
        raise ProgramError(unreadable(code))
    tree, text, before = known
    if not isinstance(tree, ast.FunctionDef):
        raise ProgramError(f"{name} is no function written with def; allowed: one that is")
    owner = owner_of(name)
    instrumenter = _Instrumenter(text, before, owner)
    tree.body = instrumenter.block(tree.body)
    return recompiled(known, code, owner, (_RECORDER, _SITES)), tuple(instrumenter.sites)


class _Instrumenter(ast.NodeTransformer):
    """`offset` turns lines of the source into lines of its file; `owner` is the class around."""

    def __init__(self, source: str, offset: int, owner: str) -> None:
        # In bytes, as the columns of ast are, and cut once.
        self.lines = [line.encode() for line in re.split("\r\n|\r|\n", source)]
        self.offset = offset
        self.owner = owner
        self.sites: list[Site] = []
        self._temporaries = 0

    # Telling the recorder

    def site(self, node: Any) -> ast.expr:
        self.sites.append(
            Site(
                node.lineno + self.offset,
                node.col_offset,
                node.end_lineno + self.offset,
                node.end_col_offset,
                self._text(node),
            )
        )
        number = ast.Constant(len(self.sites) - 1)
        return ast.Subscript(ast.Name(_SITES, ast.Load()), number, ast.Load())

    def _text(self, node: Any) -> str:
        """The source of a node, on one line."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b"\n".join(lines).decode().split())

    def record(
        self, method: str, *args: ast.expr, keywords: list[ast.keyword] | None = None
    ) -> ast.Call:
        recorder = ast.Name(_RECORDER, ast.Load())
        return ast.Call(ast.Attribute(recorder, method, ast.Load()), list(args), keywords or [])

    def operate(self, node: Any, operator: ast.AST, *operands: ast.expr) -> ast.expr:
        name = ast.Constant(NAMES[type(operator)])
        return self.record("operate", self.site(node), name, *operands)

    def temporary(self) -> str:
        self._temporaries += 1
        return f"__{self._temporaries}__"

    def attribute_name(self, name: str) -> str:
        """The name as a class body mangles it."""
        private = name.startswith("__") and not name.endswith("__")
        return f"_{self.owner.lstrip('_')}{name}" if private and self.owner else name

    # Expressions

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self.operate(node, node.op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.decided(node.operand))
        if isinstance(node.operand, ast.Constant):
            return node
        return self.operate(node, node.op, self.visit(node.operand))

    def decided(self, node: ast.expr) -> ast.expr:
        """An expression whose truth decides what is computed next."""
        return self.record("decided", self.site(node), self.visit(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        *parts, last = node.values
        return ast.BoolOp(node.op, [*map(self.decided, parts), self.visit(last)])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            item, items = self.visit(node.left), self.visit(node.comparators[0])
            found = self.record("contains", self.site(node), item, items)
            return (
                found
                if isinstance(node.ops[0], ast.In)
                else ast.UnaryOp(ast.Not(), self.record("decided", self.site(node), found))
            )
        names_more = any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))
        if any(type(each) not in NAMES for each in node.ops) or (len(node.ops) > 1 and names_more):
            self.generic_visit(node)
            return node
        if len(node.ops) > 1:
            # Each operand is computed once, and only where all comparisons before it hold.
            nothing = ast.arguments([], [], None, [], [], None, [])
            operands = [ast.Lambda(nothing, self.visit(each)) for each in node.comparators]
            names = ast.Tuple([ast.Constant(NAMES[type(o)]) for o in node.ops], ast.Load())
            left = self.visit(node.left)
            return self.record("compare", self.site(node), names, left, *operands)
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        return self.operate(node, node.ops[0], left, right)

    def visit_Match(self, node: ast.Match) -> ast.Match:
        return ast.Match(self.decided(node.subject), [self.visit(each) for each in node.cases])

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        guard = node.guard and self.decided(node.guard)
        return ast.match_case(node.pattern, guard, self.block(node.body))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.record("test", self.site(node.test), self.visit(node.test))
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in _OF_THE_FRAME:
            self.generic_visit(node)
            return node
        args = [self.visit(each) for each in node.args]
        keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        site = self.site(node)
        if isinstance(node.func, ast.Attribute):
            owner, name = self.visit(node.func.value), self.attribute_name(node.func.attr)
            return self.record("method", site, owner, ast.Constant(name), *args, keywords=keywords)
        return self.record("call", site, self.visit(node.func), *args, keywords=keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = self.attribute_name(node.attr)
        if not isinstance(node.ctx, ast.Load):
            return ast.Attribute(self.visit(node.value), name, node.ctx)
        return self.record("attribute", self.site(node), self.visit(node.value), ast.Constant(name))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        return self.record("item", self.site(node), self.visit(node.value), self.visit(node.slice))

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        parts = (node.lower, node.upper, node.step)
        return self.record(
            "slice", *(ast.Constant(None) if each is None else self.visit(each) for each in parts)
        )

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = ast.Constant(node.target.id)
        value = self.record("named", self.site(node), name, self.visit(node.value))
        return ast.NamedExpr(node.target, value)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        iterable = self.looped(node.iter, node.target)
        tests = [self.decided(each) for each in node.ifs]
        return ast.comprehension(node.target, iterable, tests, node.is_async)

    def looped(self, iterable: ast.expr, target: ast.expr) -> ast.expr:
        """The iterable of a loop, with the names that take its items."""
        names = ast.Constant(_names(target))
        return self.record("loop", self.site(iterable), self.visit(iterable), names)

    # Statements

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            changed = self.visit(statement)
            found += changed if isinstance(changed, list) else [changed]
        return found or [ast.Pass()]

    def bind(self, node: ast.stmt, targets: list[ast.expr]) -> list[ast.stmt]:
        """The announcement of the names that a statement sets."""
        names = [
            each.id
            for target in targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        ]
        if not names:
            return []
        labels = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        values = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        return [ast.Expr(self.record("bind", self.site(node), labels, values))]

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.visit(node.value)
        match node.targets:
            case [ast.Subscript() as target]:
                return [self.store(node, target, value)]
        stores: list[ast.stmt] = []
        targets = [self.target(each, stores) for each in node.targets]
        return [ast.Assign(targets, value), *stores, *self.bind(node, targets)]

    def target(self, node: ast.expr, stores: list[ast.stmt]) -> ast.expr:
        """The target with names for the elements of arrays that it sets; `stores` sets these."""
        match node:
            case ast.Subscript():
                name = self.temporary()
                stores.append(self.store(node, node, ast.Name(name, ast.Load())))
                return ast.Name(name, ast.Store())
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return ast.Tuple([self.target(each, stores) for each in items], ast.Store())
            case ast.Starred(value=value):
                return ast.Starred(self.target(value, stores), ast.Store())
            case ast.Attribute():
                return self.visit_Attribute(node)
        return node

    def store(self, node: Any, target: ast.Subscript, value: ast.expr) -> ast.stmt:
        array, index = self.visit(target.value), self.visit(target.slice)
        return ast.Expr(self.record("store", self.site(node), array, index, value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        assign = ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.visit_Assign(assign)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        operator = ast.Constant(NAMES[type(node.op)])
        value = self.visit(node.value)

        def changed(old: ast.expr) -> ast.expr:
            return self.record("augment", self.site(node), operator, old, value)

        if isinstance(node.target, ast.Name):
            assign = ast.Assign([node.target], changed(ast.Name(node.target.id, ast.Load())))
            return [assign, *self.bind(node, [node.target])]
        # The object, and the index, are found once.
        owner = self.temporary()
        found: list[ast.stmt] = [
            ast.Assign([ast.Name(owner, ast.Store())], self.visit(node.target.value))
        ]
        here = ast.Name(owner, ast.Load())
        if isinstance(node.target, ast.Attribute):
            name = self.attribute_name(node.target.attr)
            old = self.record("attribute", self.site(node), here, ast.Constant(name))
            target = ast.Attribute(here, name, ast.Store())
            return [*found, ast.Assign([target], changed(old))]
        index = self.temporary()
        found.append(ast.Assign([ast.Name(index, ast.Store())], self.visit(node.target.slice)))
        where = ast.Name(index, ast.Load())
        old = self.record("item", self.site(node), here, where)
        done = self.record("store", self.site(node), here, where, changed(old))
        return [*found, ast.Expr(done)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        stores: list[ast.stmt] = []
        target = self.target(node.target, stores)
        iterable = self.looped(node.iter, node.target)
        body = [*stores, *self.bind(node.iter, [target]), *self.block(node.body)]  # type: ignore[arg-type]
        orelse = self.block(node.orelse) if node.orelse else []
        return [ast.For(target, iterable, body, orelse)]

    def visit_While(self, node: ast.While) -> ast.stmt:
        test = self.record("test", self.site(node.test), self.visit(node.test))
        orelse = self.block(node.orelse) if node.orelse else []
        return ast.While(test, self.block(node.body), orelse)

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = self.record("test", self.site(node.test), self.visit(node.test))
        orelse = self.block(node.orelse) if node.orelse else []
        return ast.If(test, self.block(node.body), orelse)


def _names(target: ast.expr) -> Any:
    """The names of a target, nested as it is; "" for what is no name."""
    match target:
        case ast.Name(id=name):
            return name
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(map(_names, items))
    return ""


def follows(function: Callable[..., Any], recorder: Any) -> FunctionType | None:
    """The function as it records itself; None where its source cannot be followed."""
    try:
        return followed(function, recorder)
    except ProgramError:
        return None


def followed(function: Callable[..., Any], recorder: Any) -> FunctionType:
    """The function as it records itself. Raises ProgramError with what there is against it."""
    if not isinstance(function, FunctionType):
        name = getattr(function, "__name__", type(function).__name__)
        raise ProgramError(f"{name} is no function of Python; allowed: one written with def")
    return function if is_instrumented(function) else instrumented(function, recorder)
