"""A node as one line of plain text, as formulas are read: `−x̂ mean(dx̂ x̂)`.

For messages. A node with a name is called by it, but for sums and means, which are written out.
Brackets stand where Python needs them; calls such as `reshape` are left out, because they change no
value.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any, Final

from handgrad.program import arranging
from handgrad.program.arithmetic import BINARY, BITS, COMPARISONS
from handgrad.program.arranging import is_transpose
from handgrad.program.functions import Method
from handgrad.program.nodes import Node

#: Operations that arrange values and change none; they read as their operand.
SHAPING: Final = arranging.SHAPING | {"replaced"}
_GREEK: Final = {"alpha": "α", "beta": "β", "gamma": "γ", "eps": "ε", "sigma": "σ", "mu": "μ"}
_HAT: Final = "̂"
_TEST, _SUM, _PRODUCT, _UNARY, _ATOM = range(5)
#: The signs between two operands and how tightly they bind; a product has none.
_INFIX: Final = {
    **{each.name: (f" {each.text} ", _PRODUCT) for each in BINARY if each.name != "pow"},
    **{each.name: (f" {each.text} ", _TEST) for each in (*COMPARISONS, *BITS)},
    "add": (" + ", _SUM),
    "subtract": (" − ", _SUM),
    "multiply": (" ", _PRODUCT),
    "divide": ("/", _PRODUCT),
}


def symbol(name: str) -> str:
    """`dx_hat` as dx̂, `dgamma` as dγ; other names as they are."""
    short, hat = (name[: -len("_hat")], _HAT) if name.endswith("_hat") else (name, "")
    for word, letter in _GREEK.items():
        if short in (word, "d" + word):
            short = short.replace(word, letter)
    return short + hat


def text(value: Any) -> str:
    """A node by its name, or written out; a setting as it is."""
    return _write(value, _TEST)


def definition(node: Node) -> str:
    """The node written out, also where it has a name."""
    return _parts(node)[0]


def _write(value: Any, around: int, source: ast.expr | None = None) -> str:
    """The text, in brackets where the surroundings bind more tightly.

    `source` is the expression that the value stands for there.
    """
    named = source.id if isinstance(source, ast.Name) else ""
    if not isinstance(value, Node):
        if source is None or isinstance(source, ast.Constant):
            return _setting(value)
        written = ast.unparse(source).replace("-", "−")
        written = re.sub(r"\w+", lambda word: symbol(word[0]), written)
        return written if named or around == _TEST else f"({written})"
    if value.name and value.op not in ("sum", "mean"):
        return symbol(named if named in value.names else value.name)
    written, strength = _parts(value)
    return written if strength >= around else f"({written})"


def operand_text(node: Node, operand: Any) -> str:
    """The text of an operand, by the name that the node's source has for it."""
    return next(
        (_argument(node, i, _TEST) for i, each in enumerate(node.args) if each is operand),
        text(operand),
    )


def _argument(node: Node, number: int, around: int) -> str:
    sources = _sources(node.site.text, isinstance(node.function, Method)) if node.site else ()
    source = sources[number] if number < len(sources) else None
    return _write(node.args[number], around, source)


@lru_cache(4096)
def _sources(line: str, is_method: bool) -> tuple[ast.expr, ...]:
    """The expressions in the source of an operation that its arguments come from, in order."""
    try:
        statement = ast.parse(line).body[0] if line else None
    except SyntaxError:  # a part of an expression over several lines
        return ()
    match statement:
        case ast.AugAssign(target, _, value):
            return target, value
        case ast.Expr(ast.BinOp(left, _, right) | ast.Compare(left, _, [right])):
            return left, right
        case ast.Expr(ast.UnaryOp(_, operand)):
            return (operand,)
        case ast.Expr(ast.Subscript(value, _) | ast.Attribute(value, _)):
            return (value,)
        case ast.Expr(ast.Call(ast.Attribute(owner), args)) if is_method:
            return owner, *args
        case ast.Expr(ast.Call(_, args)):
            return tuple(args)
    return ()


def _parts(node: Node) -> tuple[str, int]:
    """The text of a node, and its strength: how tightly it binds."""
    args = node.args
    if node.op in _INFIX and len(args) == 2:
        sign, strength = _INFIX[node.op]
        return _argument(node, 0, strength) + sign + _argument(node, 1, strength + 1), strength
    match node.op:
        case "input":
            return symbol(node.name) or "an input", _ATOM
        case "negative":
            return "−" + _argument(node, 0, _PRODUCT), _PRODUCT
        case "pow" if args[1] == 2:
            return _argument(node, 0, _ATOM) + "²", _ATOM
        case "pow":
            return f"{_argument(node, 0, _ATOM)}^{_argument(node, 1, _ATOM)}", _ATOM
        case _ if is_transpose(node):
            return _argument(node, 0, _ATOM) + "ᵀ", _ATOM
        case "getitem":
            return f"{_argument(node, 0, _ATOM)}[{_index_text(node)}]", _ATOM
        case "store":
            array, value = _write(args[0], _ATOM), text(args[2])
            return f"{array} with [{_index(args[1])}] = {value}", _TEST
        case "bitwise_invert":
            return "~" + _argument(node, 0, _UNARY), _UNARY
        case "element":
            return _write(args[0], _ATOM), _ATOM
    if node.op in SHAPING and args:
        inner = args[0]
        if isinstance(inner, Node) and not inner.name:
            return _parts(inner)
        return _argument(node, 0, _ATOM), _ATOM
    if node.op in ("sum", "mean", "max", "min", "prod"):
        return f"{node.op}({_argument(node, 0, _TEST)})", _ATOM
    inner = ", ".join(_argument(node, i, _TEST) for i in range(len(args)))
    return f"{node.op}({inner})", _ATOM


def _index_text(node: Node) -> str:
    """The index as it stands in the source, with the variables of loops; else its values."""
    line = node.site.text if node.site is not None else ""
    try:
        expression = ast.parse(line, mode="eval").body
    except SyntaxError:  # a statement, or a part of an expression over several lines
        expression = None
    if not isinstance(expression, ast.Subscript):
        return _index(node.args[1])
    written = ast.get_source_segment(line, expression.slice) or ""
    return written.replace("-", "−")


def _index(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index, index))
    if isinstance(index, slice):
        first, last = ("" if each is None else text(each) for each in (index.start, index.stop))
        return f"{first}:{last}" + ("" if index.step is None else f":{text(index.step)}")
    return "..." if index is ... else text(index)


def _setting(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(text, value))})"
    return str(value).replace("-", "−")
