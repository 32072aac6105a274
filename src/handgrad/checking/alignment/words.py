"""The words of a source's nodes, made of those of their parts, which many changes have alike."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, Final

from handgrad.checking.alignment.changes import Both, text_of

#: Names, of attributes too, numbers with their sign, strings, operators. A minus between two has
#: spaces around it.
_WORD: Final = re.compile(
    r"-?\d[\w.]*|self\.\w+|\w+|'[^']*'|\"[^\"]*\"|\*\*|//|[<>=!+*/@-]=|->|[^\s\w]"
)
_OPERATORS: Final[dict[type[ast.operator], tuple[str, int]]] = {
    ast.Add: ("+", 4),
    ast.Sub: ("-", 4),
    ast.Mult: ("*", 5),
    ast.MatMult: ("@", 5),
    ast.Div: ("/", 5),
    ast.Mod: ("%", 5),
    ast.FloorDiv: ("//", 5),
    ast.Pow: ("**", 7),
}
_COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: A sign binds so tightly, and so does all that needs no brackets; the loose ones bind least.
_SIGN: Final = 6
_ALONE: Final = 8
_LOOSE: Final = (ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr, ast.UnaryOp)


class SourceWords:
    """The words of nodes, each found once: the trees may not change while they are asked for."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, list[str]] = {}

    def of(self, node: ast.AST) -> list[str]:
        """The words of a statement or an expression; of a loop or a condition those of its head."""
        if node not in self._known:
            self._known[node] = self._made(node)
        return self._known[node]

    def _made(self, node: Any) -> list[str]:
        match node:
            case Both():
                return [word for each in node.body for word in self.of(each)]
            case ast.For():
                return self.of(node.iter)
            case ast.If():
                return self.of(node.test)
            case ast.Assign(targets, value):
                own = (word for each in targets for word in (*self._bare(each), "="))
                return [*own, *self.of(value)]
            case ast.AugAssign(target, op, value) if type(op) in _OPERATORS:
                signs = _WORD.findall(_OPERATORS[type(op)][0] + "=")
                return [*self.of(target), *signs, *self.of(value)]
            case ast.Return(ast.expr() as value):
                return ["return", *self.of(value)]
            case ast.Name(name):
                return [name]
            case ast.Attribute(ast.Name("self"), name):
                return [f"self.{name}"]
            case ast.Attribute(owner, name) if not isinstance(owner, ast.Constant):
                return [*self._within(owner, _ALONE), ".", name]
            case ast.Subscript(owner, index):
                return [*self._within(owner, _ALONE), "[", *self._bare(index), "]"]
            case ast.Call(function, args, keywords) if not _is_generated(args):
                given = self._listed([*args, *keywords])
                return [*self._within(function, _ALONE), "(", *given, ")"]
            case ast.keyword(str(name), value):
                return [name, "=", *self.of(value)]
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                sign, level = _OPERATORS[type(op)]
                is_power = isinstance(op, ast.Pow)
                before, after = self._within(left, level + is_power), level + (not is_power)
                return [*before, sign, *self._within(right, after)]
            case ast.UnaryOp(ast.USub(), operand):
                first, *rest = self._within(operand, _SIGN)
                return [f"-{first}", *rest] if first[0].isdigit() else ["-", first, *rest]
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARED:
                # A comparison binds less than all operators.
                return [*self._within(left, 4), _COMPARED[type(op)], *self._within(right, 4)]
            case ast.Tuple():
                return ["(", *self._bare(node), ")"]
            case ast.List(elts):
                return ["[", *self._listed(elts), "]"]
            case ast.Slice(lower, upper, step):
                parts = [[] if each is None else self.of(each) for each in (lower, upper)]
                return [*parts[0], ":", *parts[1], *([":", *self.of(step)] if step else [])]
        return _WORD.findall(text_of(node))

    def _bare(self, node: ast.AST) -> list[str]:
        """Those of a tuple without its brackets, where none are needed."""
        if not isinstance(node, ast.Tuple):
            return self.of(node)
        return [*self._listed(node.elts), *([","] if len(node.elts) == 1 else [])]

    def _listed(self, nodes: Iterable[ast.AST]) -> list[str]:
        found = [word for each in nodes for word in (",", *self.of(each))]
        return found[1:]

    def _within(self, node: ast.AST, level: int) -> list[str]:
        """In the brackets that an expression needs within what binds so tightly."""
        own = self.of(node)
        return ["(", *own, ")"] if _level(node) < level else own


def _level(node: ast.AST) -> int:
    match node:
        case ast.BinOp(_, op) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)][1]
        case ast.UnaryOp(ast.USub() | ast.Invert()):
            return _SIGN
        case ast.BinOp():
            return 0
    return 0 if isinstance(node, _LOOSE) else _ALONE


def _is_generated(args: list[ast.expr]) -> bool:
    return len(args) == 1 and isinstance(args[0], ast.GeneratorExp)
