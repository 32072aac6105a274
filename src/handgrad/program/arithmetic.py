"""Python's operators: one table of them, and classes of operands that they go through."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

_Method: TypeAlias = Callable[[Any, Any], Any]


class OperatorSign(NamedTuple):
    """An operator: its name in the array API, its text, that of `__add__`, and its syntax."""

    name: str
    text: str
    method: str
    syntax: type[ast.AST]

    @property
    def function(self) -> Callable[..., Any]:
        """The function of Python's module of operators."""
        found: Callable[..., Any] = getattr(operator, f"__{self.method}__")
        return found

    @property
    def in_place(self) -> Callable[[Any, Any], Any]:
        """The function that may change its first operand, as `+=` does."""
        found: Callable[[Any, Any], Any] = getattr(operator, f"__i{self.method}__")
        return found


ARITHMETIC: Final = (
    OperatorSign("add", "+", "add", ast.Add),
    OperatorSign("subtract", "-", "sub", ast.Sub),
    OperatorSign("multiply", "*", "mul", ast.Mult),
    OperatorSign("divide", "/", "truediv", ast.Div),
    OperatorSign("floor_divide", "//", "floordiv", ast.FloorDiv),
    OperatorSign("remainder", "%", "mod", ast.Mod),
    OperatorSign("pow", "**", "pow", ast.Pow),
)
BITS: Final = (
    OperatorSign("bitwise_and", "&", "and", ast.BitAnd),
    OperatorSign("bitwise_or", "|", "or", ast.BitOr),
    OperatorSign("bitwise_xor", "^", "xor", ast.BitXor),
    OperatorSign("bitwise_left_shift", "<<", "lshift", ast.LShift),
    OperatorSign("bitwise_right_shift", ">>", "rshift", ast.RShift),
)
BINARY: Final = (*ARITHMETIC, OperatorSign("matmul", "@", "matmul", ast.MatMult), *BITS)
COMPARISONS: Final = (
    OperatorSign("equal", "==", "eq", ast.Eq),
    OperatorSign("not_equal", "!=", "ne", ast.NotEq),
    OperatorSign("less", "<", "lt", ast.Lt),
    OperatorSign("less_equal", "<=", "le", ast.LtE),
    OperatorSign("greater", ">", "gt", ast.Gt),
    OperatorSign("greater_equal", ">=", "ge", ast.GtE),
)
UNARY: Final = (
    OperatorSign("negative", "-", "neg", ast.USub),
    OperatorSign("positive", "+", "pos", ast.UAdd),
    OperatorSign("bitwise_invert", "~", "invert", ast.Invert),
)
SIGNS: Final = (*BINARY, *COMPARISONS, *UNARY)
#: The functions of operators by their names in the array API, and those that change in place.
FUNCTIONS: Final = {each.name: each.function for each in SIGNS}
IN_PLACE: Final = {each.name: each.in_place for each in BINARY}
#: The names by the classes of Python's syntax trees.
NAMES: Final = {each.syntax: each.name for each in SIGNS}


def between(name: str) -> tuple[_Method, _Method]:
    """The methods of an operator for its left operand and for its right one."""
    return (
        lambda self, other: self.operate(name, self, other),
        lambda self, other: self.operate(name, other, self),
    )


def left(name: str) -> _Method:
    return between(name)[0]


def alone(name: str) -> Callable[[Any], Any]:
    return lambda self: self.operate(name, self)


class ArithmeticOperand:
    """Operands that meet others in arithmetic, one of them this: all goes through `operate`."""

    __slots__ = ()

    def operate(self, name: str, *operands: Any) -> Any:
        """The operator of this name on its operands; NotImplemented where they do not go with it.

        Each class of operands has its own.
        """
        raise NotImplementedError

    __add__, __radd__ = between("add")
    __sub__, __rsub__ = between("subtract")
    __mul__, __rmul__ = between("multiply")
    __truediv__, __rtruediv__ = between("divide")
    __floordiv__, __rfloordiv__ = between("floor_divide")
    __mod__, __rmod__ = between("remainder")
    __pow__, __rpow__ = between("pow")
    __neg__ = alone("negative")
    __lt__, __gt__ = left("less"), left("greater")


class ComparableOperand(ArithmeticOperand):
    """Operands that all comparisons go through, those for equality too."""

    __slots__ = ()

    __eq__, __ne__ = left("equal"), left("not_equal")
    __le__, __ge__ = left("less_equal"), left("greater_equal")
    __hash__ = object.__hash__
