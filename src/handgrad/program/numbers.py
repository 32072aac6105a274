"""Numbers of Python: what is made of constants, sizes and settings is written with `math`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handgrad.program.node import PRIMITIVES, Node

if TYPE_CHECKING:
    from handgrad.program.emit import Emitter

_SAME: Final = (
    *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh"),
    *("sinh", "cosh", "floor", "ceil", "hypot", "degrees", "radians", "erf", "cbrt"),
)
_MATH: Final = {
    **{name: name for name in _SAME},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
}
_BUILTIN: Final = {"abs": "abs", "maximum": "max", "minimum": "min"}
_LOGIC: Final = {"logical_and": "and", "logical_or": "or"}


def number_text(e: Emitter, node: Node) -> tuple[str, int]:
    """A node of numbers as an expression, and its precedence."""
    record = PRIMITIVES[node.op]
    if isinstance(record.text, str) and not record.text[0].isalpha():
        return e.infix(node, record.text, record.precedence)
    operands = ", ".join(map(e.arg, node.args))
    if node.op in _MATH:
        e.uses_math = True
        return f"{e.math}.{_MATH[node.op]}({operands})", 9
    if node.op in _BUILTIN:
        return f"{e.names.builtin(_BUILTIN[node.op])}({operands})", 9
    if node.op == "square":
        return f"{e.arg(node.args[0], 8)} ** 2", 8
    if node.op == "where":
        condition, one, other = (e.arg(a, 2) for a in node.args)
        return f"{one} if {condition} else {other}", 1
    if node.op in _LOGIC:
        return f" {_LOGIC[node.op]} ".join(e.arg(a, 2) for a in node.args), 2
    if node.op == "logical_not":
        return f"not {e.arg(node.args[0], 2)}", 2
    if node.op in ("stop", "broadcast_to", "reshape"):
        return e.expression(node.args[0])
    if node.op == "sign":
        x = e.arg(node.args[0], 3)
        return f"({x} > 0) - ({x} < 0)", 5
    if node.op == "reciprocal":
        return f"1 / {e.arg(node.args[0], 6)}", 6
    if node.op == "astype":
        kind = {"f": "float", "i": "int", "b": "bool"}[node.attrs["kind"]]
        return f"{e.names.builtin(kind)}({operands})", 9
    e.numbers[id(node)] = False
    return f"{e.names.builtin('float')}({e.text(node)})", 9
