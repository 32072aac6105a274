"""Expressions of a source as formulas are read: `−x_hat * np.mean(a)` as −x̂ mean(a)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from handgrad.program.text import symbol

_INFIX: Final[dict[type[ast.operator], tuple[str, int]]] = {
    ast.Add: (" + ", 1),
    ast.Sub: (" − ", 1),
    ast.Mult: (" ", 2),
    ast.MatMult: (" @ ", 2),
    ast.Div: ("/", 2),
    ast.FloorDiv: (" // ", 2),
    ast.Mod: (" % ", 2),
}
#: What arranges values and changes none reads as its operand.
_SHAPING: Final = frozenset({"reshape", "astype", "asarray", "copy", "ravel", "squeeze", "array"})
#: Names of modules that were not seen at run.
_MODULES: Final = ("np", "numpy", "torch", "math")
_POWERS: Final = {2: "²", 3: "³"}


def mark_modules(function: ast.AST, names: Mapping[str, Any]) -> None:
    """Note at the names of modules that they are: `xp.sum(a)` is a sum of a, `x.sum(0)` of x."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(names.get(node.id), ModuleType):
            node.is_module = True  # type: ignore[attr-defined]


def is_module(name: ast.Name) -> bool:
    return getattr(name, "is_module", name.id in _MODULES)


def said(node: ast.AST, around: int = 0) -> str:
    """The text, in brackets where what stands around binds more tightly."""
    match node:
        case ast.Name(name):
            return symbol(name)
        case ast.Attribute(owner, "T"):
            return said(owner, 4) + "ᵀ"
        case ast.Attribute(ast.Name("self" | "cache" | "ctx"), name):
            return symbol(name)
        case ast.Constant(value):
            return str(value).replace("-", "−")
        case ast.UnaryOp(ast.USub(), operand):
            return "−" + said(operand, 2)
        case ast.BinOp(left, ast.Pow(), ast.Constant(power)) if power in _POWERS:
            return said(left, 4) + _POWERS[int(str(power))]
        case ast.BinOp(left, op, right) if type(op) in _INFIX:
            sign, strength = _INFIX[type(op)]
            written = said(left, strength) + sign + said(right, strength + 1)
            return written if strength >= around else f"({written})"
        case ast.Call(ast.Attribute(owner, name), args):
            if not (isinstance(owner, ast.Name) and is_module(owner)):
                args = [owner, *args]
            if name in _SHAPING and args:
                return said(args[0], around)
            listed = args[:1] if name in ("sum", "mean", "max", "min", "prod") else args
            return f"{name}({', '.join(map(said, listed))})"
        case ast.Call(ast.Name(name), args):
            return f"{name}({', '.join(map(said, args))})"
        case ast.Compare() | ast.BoolOp() | ast.IfExp() | ast.BinOp() if around:
            return f"({said(node)})"
    return ast.unparse(node).replace("-", "−")
