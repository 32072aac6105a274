"""A value of the derivation as one expression, in the variables that a line of the user's has.

It is simplified as a derived backward is, and what changes nothing on the inputs that were drawn,
as a clip within its bounds, is left out: the expression is told only where it was run in earnest.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from itertools import product
from types import ModuleType
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.paths import same
from handgrad.checking.alignment.pool import SweptForward
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import parsed
from handgrad.checking.attempts import Inapplicable
from handgrad.deriving.algebra import simplified
from handgrad.program.emit import Emitter
from handgrad.program.libraries import LIBRARIES, Library
from handgrad.program.node import FIXED, Node, Program, build

#: Nodes between a value and the user's variables.
_MOST_NODES: Final = 200
#: Numbers that are written as they are, whichever variables have them.
_PLAIN: Final = (0.0, 1.0, 2.0, -1.0)
#: Operations that are the same of some elements as of all.
_ELEMENTWISE: Final = ("negative", "multiply", "divide", "add", "subtract", "power", "log", "exp")
#: Times that a size may go into a number.
_FEW: Final = 9.5
#: The cotangent of a derivative that dy is multiplied by.
_ONE: Final = "_one"
#: Functions of the derivation that no library has.
_WRITTEN: Final = {"sigmoid": "(1 / (1 + {0}.exp(-({1}))))"}


class Speller:
    """Writes values of a derivation with the variables of one scope."""

    def __init__(self, scope: CallScope, derived: SweptForward, *, of_tensors: bool) -> None:
        self._scope, self._derived = scope, derived
        self._library = LIBRARIES["torch" if of_tensors else "numpy"]
        self._of_forward = {id(each) for each in (*derived.inputs, *derived.body)}
        self._arrays: dict[tuple[int, ...], list[tuple[ast.expr, np.ndarray]]] = {}
        for each, value in scope.atoms:
            is_number = value.size == 1
            if not is_number or (value.dtype.kind == "f" and value.item() not in _PLAIN):
                self._arrays.setdefault(value.shape, []).append((each, value))

    def spelled(self, node: Node) -> ast.expr | None:
        """The expression, None where there is none."""
        try:
            return self._spelled(node)
        except Exception:  # of a form that is no expression
            return None

    def _spelled(self, node: Node) -> ast.expr:
        derived = self._derived
        with derived.at_work():
            given: dict[str, Node] = {}
            cut = self._cut(node, given, {})
            body = Program([], [cut]).body
            forward = [each for each in body if id(each) in self._of_forward]
            program = Program(derived.inputs, forward)
            (made,), _ = simplified(program, [*given.values()], [cut], None, derived.world)
            return _Ones().visit(parsed(self._text(made, given.values())))

    def _cut(self, node: Node, given: dict[str, Node], made: dict[int, Node]) -> Node:
        """The value over the forward and over variables that hold what comes back."""
        if id(node) in self._of_forward or node.op in FIXED:
            return node
        if id(node) in made:
            return made[id(node)]
        if len(made) > _MOST_NODES or isinstance(node.value, tuple):
            raise Inapplicable
        name = self._variable(node)
        if not name and node.op == "input":
            if not np.size(node.value) or not np.all(np.asarray(node.value) == 1):
                raise Inapplicable
            name = _ONE
        if name:
            new = given.setdefault(
                name, Node("input", (), {}, node.shape, node.kind, node.value, name)
            )
        elif node.op == "add_at":
            new = self._everywhere(node, given, made)
        else:
            args = [self._cut(each, given, made) for each in node.args]
            new = self._plain(node, args) or build(node.op, *args, **node.attrs)
        made[id(node)] = new
        return new

    def _everywhere(self, node: Node, given: dict[str, Node], made: dict[int, Node]) -> Node:
        """A value put at some elements as a product with the variable that is 1 at those alone.

        Its operands are taken at all elements then, as at the classes that are a target.
        """
        zeros, put, *at = node.args
        ones = build("add_at", zeros, np.ones_like(put.value), *at, **node.attrs)
        if not self._variable(ones) or np.any(zeros.value):
            raise Inapplicable

        def everywhere(each: Node) -> Node:
            taken, *where = each.args or [each]
            is_taken = each.op == "getitem" and each.attrs == node.attrs
            if is_taken and all(map(_is_equal_node, where, at)):
                return self._cut(taken, given, made)
            if np.size(each.value) == 1:
                held = each.args[0] if each.op == "reshape" else each
                return self._cut(held, given, made)
            if each.op not in _ELEMENTWISE:
                raise Inapplicable
            return build(each.op, *map(everywhere, each.args), **each.attrs)

        return build("multiply", self._cut(ones, given, made), everywhere(put))

    def _plain(self, node: Node, args: Iterable[Node]) -> Node | None:
        """The operand that a value is, where it is only kept within bounds that it has.

        What forward chooses between by a condition of its own is no such bound.
        """
        is_bound = node.op == "where" and id(node.args[0]) not in self._of_forward
        if is_bound or node.op in ("clip", "reshape"):
            for each in args:
                if each.kind == node.kind and _is_equal(each.value, node.value):
                    return each
        return None

    def _variable(self, node: Node) -> str:
        """The text of a variable that holds a value, "" where none does.

        Of several, as inputs that were given the same values, that of its own name.
        """
        value = np.asarray(node.value)
        found = [
            ast.unparse(each)
            for each, array in self._arrays.get(value.shape, ())
            if array.dtype.kind == value.dtype.kind and same(array.ravel(), value.ravel())
        ]
        return node.name if node.name in found else next(iter(found), "")

    def _text(self, made: Node, given: Iterable[Node]) -> str:
        emitter = _InScope(self._scope, self._library)
        for each in given:
            emitter.name(each, each.name)
        done: dict[int, Node] = {id(each): each for each in given}
        text = emitter.text(self._named(made, emitter, done))
        if emitter.helpers or emitter.uses_math or emitter.tables or len(done) > _MOST_NODES:
            raise Inapplicable
        return text

    def _named(self, node: Node, emitter: Emitter, done: dict[int, Node]) -> Node:
        """The node over those that the user has in a variable."""
        if id(node) in done:
            return done[id(node)]
        name = self._variable(node)
        if name or node.op in FIXED:
            new = node
        elif node.op == "input" or isinstance(node.value, tuple):
            raise Inapplicable
        else:
            args = [self._named(each, emitter, done) for each in node.args]
            new = self._plain(node, args) or build(node.op, *args, **node.attrs)
        if name:
            emitter.name(new, name)
        done[id(node)] = new
        return new


class _InScope(Emitter):
    """Writes expressions with the modules and functions that a scope has."""

    def __init__(self, scope: CallScope, library: Library) -> None:
        super().__init__(library, loose=True)
        self._known = {**scope.call.scope, **scope.call.names}
        found = (
            name
            for name, each in self._known.items()
            if isinstance(each, ModuleType) and each.__name__ == self.library.name
        )
        self.alias = next(found, self.alias)

    def call(self, helper: str, args: Iterable[Node], **keywords: object) -> str:
        """A call of the user's function of that name, or what it is."""
        given = [*map(self.arg, args)]
        if callable(self._known.get(helper)) and not keywords:
            return f"{helper}({', '.join(given)})"
        if helper not in _WRITTEN:
            raise Inapplicable
        return _WRITTEN[helper].format(self.alias, *given)


class _Ones(ast.NodeTransformer):
    """Makes cotangents of ones the number, which nothing is multiplied by."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.Constant(1), ast.Mult(), other):
                return other
            case ast.BinOp(other, ast.Mult() | ast.Div(), ast.Constant(1)):
                return other
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(1) if node.id == _ONE else node


def _is_equal_node(one: Node, other: Node) -> bool:
    return _is_equal(one.value, other.value)


def _is_equal(one: object, other: object) -> bool:
    a, b = np.asarray(one), np.asarray(other)
    return a.shape == b.shape and np.array_equal(a, b)


class _Sized(ast.NodeTransformer):
    """One number as another expression wherever it stands."""

    def __init__(self, number: float, new: ast.expr) -> None:
        self.number, self.new = number, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if _number(node) == self.number else self.generic_visit(node)


def _number(node: ast.AST) -> float | None:
    """The value of a share that is written as a number, such as 0.25 or 1/3."""
    match node:
        case ast.Constant(float(value)):
            return value
        case ast.BinOp(ast.Constant(int(part)), ast.Div(), ast.Constant(int(whole))):
            return part / whole
    return None


def with_sizes(node: ast.expr, scope: CallScope) -> Iterator[ast.expr]:
    """The same with a number as few over a size: other inputs have another size."""
    known = (each for each in map(_number, ast.walk(node)) if each is not None)
    numbers = dict.fromkeys(each for each in known if each not in _PLAIN)
    for number, (size, value) in product(numbers, scope.sizes):
        few = number * float(value)
        if 0.5 < few < _FEW and abs(few - round(few)) < 1e-9:
            new = ast.BinOp(ast.Constant(round(few)), ast.Div(), size)
            yield _Sized(number, new).visit(copy.deepcopy(node))
