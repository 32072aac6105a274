"""From the source of a function that runs to its tree.

Read is the part of Python in which mathematics is written: assignments to names, `if` on a setting,
`for` over a bounded range, comprehensions, `return`. Anything else (writing into an array, `while`,
`try`, ...) is a `TreeError` with the line it stands on. What only checks or shapes stays out by
convention: checks are in an op's `validate`, never in forward or backward, and names of sizes, axes
and array libraries are read like any other, but are no equations, because no array is their value.

A backward may be written in parts: a line `a, b = backward_data(dy, cache)`, where backward_data is
a function of the same module and gets what its own arguments are called, is read as its body.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

from handgrad.errors import HandgradError
from handgrad.trees import nodes
from handgrad.trees.nodes import Factor, Keyword, Node, Term

REDUCTIONS: Final = ("sum", "mean", "max", "min")


class TreeError(HandgradError, ValueError):
    """A function whose source cannot be read as a tree: what stands there, and on which line."""


@dataclass(frozen=True)
class Parameter:
    """One argument: its shape as annotated ("*batch D"; "" if not), and whether it is an option."""

    name: str
    shape: str
    optional: bool
    keyword_only: bool


@dataclass(frozen=True)
class Function:
    """A function as data. `names` are the globals and closure that its body sees."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Node, ...]
    doc: str
    source: Callable[..., Any] = field(repr=False)
    names: Mapping[str, Any] = field(repr=False)

    @property
    def signature(self) -> inspect.Signature:
        """That of the function in Python."""
        return inspect.signature(self.source)


def read(function: Callable[..., Any], *, stores: bool = False) -> Function:
    """The tree of a Python function; a dispatched op is read as its reference.

    With `stores`, writing into the elements of an array is read too, as users' code does it.

    Raises TreeError where the source is not to be had or holds what a tree cannot say.
    """
    function = inspect.unwrap(function)
    name = getattr(function, "__qualname__", repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
        module = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        raise TreeError(
            f"{name}: its source cannot be read; allowed: a Python function that stands in a file"
        ) from None
    definition = module.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TreeError(f"{name} is no function written with def; allowed: one that is")
    closure = inspect.getclosurevars(function).nonlocals
    found = Function(
        name,
        _parameters(definition.args),
        _Reader(name, first - 1, stores).block(definition.body),
        inspect.getdoc(function) or "",
        function,
        {**function.__globals__, **closure},
    )
    return _with_parts(found)


def _parameters(arguments: ast.arguments) -> tuple[Parameter, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    found = [
        Parameter(each.arg, _shape(each.annotation), i >= required, False)
        for i, each in enumerate(positional)
    ]
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(each.arg, _shape(each.annotation), default is not None, True))
    return tuple(found)


def _shape(annotation: ast.expr | None) -> str:
    """The shape in `Float[Array, "N D"]`; of alternatives, all of them with "or"."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return " or ".join(filter(None, (_shape(left), _shape(right))))
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str() as shape)])):
            return shape.strip()
    return ""


def _with_parts(function: Function) -> Function:
    """The function with the bodies of its parts in the place of the calls."""
    body: list[Node] = []
    for statement in function.body:
        body += _part(statement, function) or (statement,)
    return replace(function, body=tuple(body))


def _part(statement: Node, function: Function) -> tuple[Node, ...]:
    """The body of the part that is called here; nothing for any other statement.

    Nor for a function that returns early, or has names for itself that the caller uses too.
    """
    match statement:
        case nodes.Assign(target, nodes.Call(nodes.Name(called), arguments, ())) if (
            called.startswith("backward_") and inspect.isfunction(function.names.get(called))
        ):
            definition = inspect.unwrap(function.names[called])
        case _:
            return ()
    if definition.__globals__ is not function.source.__globals__:
        return ()
    part = read(definition)
    *body, last = part.body
    inner = [each for statement in body for each in nodes.walk(statement)]
    own = set[str]().union(*(nodes.names(each.target) for each in inner if _binds(each)))
    if (
        arguments != tuple(nodes.Name(each.name) for each in part.parameters)
        or not isinstance(last, nodes.Return)
        or any(isinstance(each, nodes.Return) for each in inner)
        or (own - nodes.names(target)) & _read_names(function)
    ):
        return ()
    return (*body, *_assigned(target, last.value, last.line))


def _binds(node: Node) -> TypeGuard[nodes.Assign | nodes.For]:
    return isinstance(node, nodes.Assign | nodes.For)


def _read_names(function: Function) -> set[str]:
    """Every name that the function's own statements read."""
    parts = [each for statement in function.body for each in nodes.walk(statement)]
    values = (each.value for each in parts if isinstance(each, nodes.Assign | nodes.Return))
    tests = (each.test for each in parts if isinstance(each, nodes.Branch))
    iterables = (each.iterable for each in parts if isinstance(each, nodes.For))
    return set[str]().union(*map(nodes.names, (*values, *tests, *iterables)))


def _assigned(target: Node, value: Node, line: int) -> Iterator[Node]:
    """target = value, one by one where tuples are written out; what keeps its name is left out."""
    match target, value:
        case nodes.Sequence(_, targets), nodes.Sequence(_, values) if len(targets) == len(values):
            pairs = [pair for pair in zip(targets, values, strict=True) if pair[0] != pair[1]]
            new = set[str]().union(*(nodes.names(each) for each, _ in pairs))
            if not new & nodes.names(value):
                for each, its_value in pairs:
                    yield nodes.Assign(each, its_value, line)
                return
    yield nodes.Assign(target, value, line)


_COMPARISONS: Final = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


class _Reader:
    """Reads one function; `offset` turns line numbers of the snippet into those of the file."""

    def __init__(self, function: str, offset: int, stores: bool) -> None:
        self.function = function
        self.offset = offset
        self.stores = stores

    def refuse(self, part: ast.AST, what: str) -> TreeError:
        line = getattr(part, "lineno", 0) + self.offset
        return TreeError(
            f"{self.function}, line {line}: {what} cannot be read as an equation; allowed: "
            "assignments to names, if, for, comprehensions, return"
        )

    def block(self, statements: list[ast.stmt]) -> tuple[Node, ...]:
        found = (self.statement(each) for each in statements)
        return tuple(each for each in found if each is not None)

    def statement(self, part: ast.stmt) -> Node | None:
        line = part.lineno + self.offset
        match part:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Assert():
                return None
            case ast.Assign(targets=[ast.Subscript() as target], value=value) if self.stores:
                return nodes.Store(self.expression(target), self.expression(value), line)
            case ast.Assign(targets=[target], value=value):
                return nodes.Assign(self.target(target), self.expression(value), line)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return nodes.Assign(self.target(target), self.expression(value), line)
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value) if self.stores:
                both = ast.copy_location(ast.BinOp(target, op, value), part)
                return nodes.Store(self.expression(target), self.expression(both), line)
            case ast.AugAssign(target=ast.Name() as target, op=op, value=value):
                left = ast.Name(target.id, ast.Load())
                both = ast.copy_location(ast.BinOp(left, op, value), part)
                return nodes.Assign(self.target(target), self.expression(both), line)
            case ast.If(body=[ast.Raise()], orelse=[]):
                return None  # a check
            case ast.If(test=test, body=body, orelse=otherwise):
                return nodes.Branch(self.expression(test), self.block(body), self.block(otherwise))
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                return nodes.For(self.target(target), self.expression(iterable), self.block(body))
            case ast.Return(value=ast.expr() as value):
                return nodes.Return(self.expression(value), line)
        raise self.refuse(part, f"a statement of the kind {type(part).__name__}")

    def target(self, part: ast.expr) -> Node:
        match part:
            case ast.Name(id=name):
                return nodes.Name(name)
            case ast.Starred(value=value):
                return nodes.Starred(self.target(value))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return nodes.Sequence("tuple", tuple(self.target(item) for item in items))
        raise self.refuse(part, f"assigning to {ast.unparse(part)}")

    def expression(self, part: ast.expr) -> Node:
        match part:
            case ast.Name(id=name):
                return nodes.Name(name)
            case ast.Constant(value=value):
                return nodes.Constant(value)
            case ast.BinOp():
                return self.binary(part)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return nodes.Constant(-value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return nodes.Negative(self.expression(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.expression(operand)
            case ast.UnaryOp(op=op, operand=operand):
                sign = "not" if isinstance(op, ast.Not) else "~"
                return nodes.Logic(sign, (self.expression(operand),))
            case ast.BoolOp(op=op, values=values):
                sign = "and" if isinstance(op, ast.And) else "or"
                return nodes.Logic(sign, tuple(map(self.expression, values)))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return nodes.Compare(
                    _COMPARISONS[type(op)], self.expression(left), self.expression(right)
                )
            case ast.IfExp(test=test, body=yes, orelse=no):
                return nodes.Choice(*map(self.expression, (test, yes, no)))
            case ast.Call():
                return self.call(part)
            case ast.Attribute(value=value, attr=("T" | "mT") as form):
                return nodes.Transpose(self.expression(value), form)
            case ast.Attribute(value=value, attr=name):
                return nodes.Attribute(self.expression(value), name)
            case ast.Subscript(value=value, slice=index):
                return nodes.Index(self.expression(value), self.expression(index))
            case ast.Slice(lower=lower, upper=upper, step=step):
                parts = (
                    None if each is None else self.expression(each) for each in (lower, upper, step)
                )
                return nodes.Slice(*parts)
            case ast.Tuple(elts=items):
                return nodes.Sequence("tuple", tuple(map(self.expression, items)))
            case ast.Dict(keys=keys, values=values):
                return nodes.Call(nodes.Name("dict"), (), self.entries(part, keys, values))
            case ast.List(elts=items):
                return nodes.Sequence("list", tuple(map(self.expression, items)))
            case ast.Starred(value=value):
                return nodes.Starred(self.expression(value))
            case ast.GeneratorExp(elt=element, generators=clauses):
                return self.loop("generator", element, clauses)
            case ast.ListComp(elt=element, generators=clauses):
                return self.loop("list", element, clauses)
        raise self.refuse(part, f"`{ast.unparse(part)}`")

    def binary(self, part: ast.BinOp) -> Node:
        left, right = self.expression(part.left), self.expression(part.right)
        match part.op:
            case ast.Add() | ast.Sub():
                first = left.terms if isinstance(left, nodes.Sum) else (Term(1, left),)
                return nodes.Sum((*first, Term(1 if isinstance(part.op, ast.Add) else -1, right)))
            case ast.Mult() | ast.Div():
                before = left.factors if isinstance(left, nodes.Product) else (Factor(False, left),)
                return nodes.Product((*before, Factor(isinstance(part.op, ast.Div), right)))
            case ast.MatMult():
                return nodes.MatMul(left, right)
            case ast.Pow():
                return nodes.Power(left, right)
            case ast.FloorDiv():
                return nodes.Integral("//", left, right)
            case ast.Mod():
                return nodes.Integral("%", left, right)
            case ast.BitAnd():
                return nodes.Logic("&", (left, right))
            case ast.BitOr():
                return nodes.Logic("|", (left, right))
        raise self.refuse(part, f"`{ast.unparse(part)}`")

    def call(self, part: ast.Call) -> Node:
        arguments = tuple(map(self.expression, part.args))
        keywords = []
        for each in part.keywords:
            if each.arg is None:
                raise self.refuse(part, f"`**` in `{ast.unparse(part)}`")
            keywords.append(Keyword(each.arg, self.expression(each.value)))
        if isinstance(part.func, ast.Attribute):
            name, owner = part.func.attr, self.expression(part.func.value)
            function = nodes.Attribute(owner, name)
            library = isinstance(owner, nodes.Name) and owner.id in _LIBRARIES
            if name in REDUCTIONS and (arguments or not library):
                if library:
                    value, *rest = arguments
                    return nodes.Reduce(name, value, tuple(rest), tuple(keywords), function)
                return nodes.Reduce(name, owner, arguments, tuple(keywords), None)
            if name == "where" and library and len(arguments) == 3:
                return nodes.Where(*arguments, function)
            if name == "matrix_transpose" and library:
                return nodes.Transpose(arguments[0], "matrix_transpose", function)
            if name == "matmul" and library and len(arguments) == 2 and not keywords:
                return nodes.MatMul(*arguments)
            if not library and not isinstance(owner, nodes.Attribute):
                return nodes.Method(owner, name, arguments, tuple(keywords))
            return nodes.Call(function, arguments, tuple(keywords))
        return nodes.Call(self.expression(part.func), arguments, tuple(keywords))

    def entries(
        self, part: ast.expr, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]
    ) -> tuple[Keyword, ...]:
        """A dict with words for keys, as keywords of `dict`."""
        found = []
        for key, value in zip(keys, values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.refuse(part, f"`{ast.unparse(part)}`")
            found.append(Keyword(key.value, self.expression(value)))
        return tuple(found)

    def loop(self, form: str, element: ast.expr, clauses: list[ast.comprehension]) -> Node:
        return nodes.Loop(
            form,
            self.expression(element),
            tuple(
                nodes.Clause(
                    self.target(each.target),
                    self.expression(each.iter),
                    tuple(map(self.expression, each.ifs)),
                )
                for each in clauses
            ),
        )


#: The names under which an array library is called.
_LIBRARIES: Final = frozenset({"xp", "np", "numpy", "jnp", "torch"})
