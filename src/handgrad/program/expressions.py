"""Expressions of the emitter: what stands on the right of a statement, and names on its left.

Each primitive's record spells it, and precedence is one scale: 3 comparison, 5 sum, 6 product,
7 sign, 8 power, 9 call, index and name. Numbers of Python are written with `math`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.program.inplace import CHANGES
from handgrad.program.libraries import NUMPY, Library
from handgrad.program.naming import Names
from handgrad.program.node import PRIMITIVES, Node, Program
from handgrad.program.primitives.table import HELPERS, TORCH_TYPES, TYPES
from handgrad.program.sizes import Size

#: Longer expressions are taken apart.
LONG: Final = 84
#: An expression this short is repeated where it only shows an array in another way.
SHORT: Final = 14
_MODULE: Final = re.compile(r"\bnp\.")
#: What is worth a line of its own where an expression gets long.
_WHOLE: Final = ("sum", "mean", "max", "min", "prod", "contract", "exp", "log", "tanh", "sigmoid")
ONCE: Final = ("const", "table", "size", "input")
"""What is written where it is used."""
_SAME: Final = (
    *("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh"),
    *("sinh", "cosh", "floor", "ceil", "hypot", "degrees", "radians", "erf", "cbrt"),
)
_MATH: Final = {
    **{name: name for name in (*_SAME, "erfc", "gamma")},
    "gammaln": "lgamma",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
}
_BUILTIN: Final = {"abs": "abs", "maximum": "max", "minimum": "min"}
_LARGEST: Final = float(np.finfo(float).max)
_RECKONED: Final = ("add", "subtract", "multiply", "divide", "power")
_TAKING: Final = ("contract", "floor_divide", "remainder", "fmod")
_LOGIC: Final = {"logical_and": "and", "logical_or": "or"}


class Expressions(ABC):
    """The expressions of one function, and the state of its source.

    loose: sums and products may be put together in another order than the program's, as a reader
    would; a forward is written with its own bits. numbers: nodes that are numbers of Python.
    """

    def __init__(
        self, library: Library = NUMPY, taken: Iterable[str] = (), *, loose: bool = False
    ) -> None:
        self.library, self.loose = library, loose
        #: True for a program whose floats are all of one type, as those of tensors are.
        self.floats_alike = False
        self.names = Names(taken)
        self.alias = self.names.fresh(library.alias)
        self.math = self.names.fresh("math")
        own = {"numpy", library.name}
        self.names.reserve(name for name in HELPERS if not own.isdisjoint(HELPERS[name]))
        self.lines: list[str] = []
        self.variables: dict[int, str] = {}
        self.numbers: dict[int, bool] = {}
        self.helpers: dict[str, str] = {}
        self.tables: dict[str, Any] = {}
        self.indent = 1
        #: An array whose type new arrays have.
        self.like = ""
        self.uses: dict[int, int] = {}
        #: Carried arrays that rounds may change in place.
        self.owned: set[int] = set()
        #: The statement that changes an array in place, by the array.
        self.taken: dict[int, Node] = {}
        self.uses_math = False
        #: Writes the statements that stand behind those of a node.
        self.behind: Callable[[Node], None] = lambda node: None

    # Names and sizes

    def name(self, node: Node, name: str, *, number: bool = False) -> None:
        """Let a node be a variable that is there already."""
        self.variables[id(node)] = name
        self.numbers[id(node)] = number

    def size(self, size: Size | int) -> str:
        return self.names.size(size)[0]

    def sizes(self, shape: Sequence[Size | int]) -> str:
        return "(" + ", ".join(map(self.size, shape)) + ("," if len(shape) == 1 else "") + ")"

    @property
    def float(self) -> str:
        """The type of the arrays of floats."""
        return f"{self.like}.dtype" if self.like else f"{self.alias}.float64"

    def dtype(self) -> str:
        """Further arguments of a function that makes an array."""
        if not self.like:
            return ""
        where = f", device={self.like}.device" if self.library.name == "torch" else ""
        return f", dtype={self.float}{where}"

    def kind(self, node: Node) -> str:
        """Further arguments of a function that makes an array of a node's kind."""
        if node.kind == "f":
            return self.dtype()
        if self.library.name != "torch":
            return f", dtype={TYPES[node.kind]}"
        where = f", device={self.like}.device" if self.like else ""
        if node.kind == "c" and self.like:
            return f", dtype={self.float}.to_complex(){where}"
        return f", dtype={TORCH_TYPES[node.kind].replace('torch', self.alias)}{where}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def assign(self, node: Node, name: str = "") -> str:
        """A statement that gives a node a variable; what makes it long has one before."""
        text = self.text(node)
        while len(text) > LONG and (inner := self._inner(node)):
            self.assign(max(inner, key=lambda n: len(self.text(n))))
            text = self.text(node)
        name = self.named(node, name)
        self.variables[id(node)] = name
        self.let(node, name, text)
        return name

    def named(self, node: Node, name: str = "") -> str:
        """A name for the variable of a node."""
        return self.names.fresh(name or node.name or self.describe(node))

    def let(self, node: Node, name: str, text: str) -> None:
        """The statement that gives a variable its value."""
        self.line(f"{name} = {text}")

    def describe(self, node: Node) -> str:
        """A name for what the user has none for: `sum_dy_y` for the sum of dy times y."""
        if node.op == "size" or self.is_number(node):
            return "scale" if node.kind == "f" else "count"
        words = [self.word(self.variables[id(a)]) for a in leaves(node, self.variables)]
        words = list(dict.fromkeys(words))
        prefix = "" if node.op in ("add", "subtract", "multiply", "divide", "contract") else node.op
        name = "_".join(filter(None, [prefix, *words]))
        if words and all(words) and len(name) <= 24 and name not in words:
            return name
        return {"contract": "product"}.get(node.op, prefix or "t")

    def word(self, variable: str) -> str:
        """A variable as a part of another one's name."""
        return variable

    def _inner(self, node: Node) -> list[Node]:
        """Sums, products of matrices and the like that are written inside of an expression."""
        found: list[Node] = []
        for each in node.args:
            if id(each) in self.variables or each.op in ONCE or self.is_number(each):
                continue
            inner = self._inner(each)
            is_whole = each.op in _WHOLE and len(self.text(each)) > SHORT
            found += [each] if is_whole and not inner else inner
        return found

    # Expressions

    def is_number(self, node: Node) -> bool:
        """Return whether a node is a number of Python, made of constants, sizes and settings."""
        if id(node) not in self.numbers:
            self.numbers[id(node)] = node.op in ("const", "size") or (
                not node.shape
                and bool(node.args)
                and node.op not in ("loop", "part", *CHANGES)
                and all(map(self.is_number, node.args))
            )
        return self.numbers[id(node)]

    def arg(self, node: Node, above: int = 0) -> str:
        """An operand, in brackets where its precedence is no higher than what is asked for."""
        text, precedence = self.expression(node)
        return f"({text})" if precedence <= above and precedence < 9 else text

    def text(self, node: Node) -> str:
        return self.expression(node)[0]

    def expression(self, node: Node) -> tuple[str, int]:
        """A node as an expression, and its precedence."""
        if id(node) in self.variables:
            return self.variables[id(node)], 9
        if node.op == "const":
            return self._constant(node.attrs["value"])
        if node.op == "size":
            return self.names.size(node.attrs["size"])
        if node.op == "table":
            return self._table(node)
        if self.is_number(node):
            return number_text(self, node)
        spelling = self._spelling(node)
        if callable(spelling):
            found = spelling(self, node)
            text, precedence = found if isinstance(found, tuple) else (found, 9)
            return _MODULE.sub(f"{self.alias}.", text), precedence
        if not spelling[0].isalpha():
            return self.infix(node, spelling, PRIMITIVES[node.op].precedence)
        if spelling in HELPERS:
            return self.call(spelling, node.args), 9
        operands = ", ".join(self.operand(node, a) for a in node.args)
        return f"{_MODULE.sub(f'{self.alias}.', spelling)}({operands})", 9

    def _spelling(self, node: Node) -> Any:
        record = PRIMITIVES[node.op]
        return getattr(record, self.library.column, "") or record.text

    def infix(self, node: Node, sign: str, precedence: int) -> tuple[str, int]:
        """An operator between its operands; comparisons do not chain."""
        if len(node.args) == 1:
            return f"{sign}{self.operand(node, node.args[0], precedence - 1)}", precedence
        left, right = node.args
        again = (
            self.loose and right.op == node.op and sign in "+*" and self._may_follow(left, right)
        )
        below = precedence if precedence == 3 or sign == "**" else precedence - 1
        first = self.operand(node, left, below)
        second = self.operand(node, right, precedence - 1 if again else precedence)
        if sign == "**" and right.op == "const" and id(right) not in self.variables:
            second = self.text(right)
        return f"{first} {sign} {second}", precedence

    def _may_follow(self, left: Node, node: Node) -> bool:
        """Return whether the first operand is the same behind a factor: a product of matrices, or
        a quotient that is cut off, would take that in, and truths behind a number would become
        floats of the library's usual type.
        """
        while node.op in ("add", "multiply", "divide") and id(node) not in self.variables:
            node = node.args[0]
        if node.kind == "b" and self.is_number(left):
            return False
        return node.op not in _TAKING or self.expression(node)[1] > 6

    def operand(self, node: Node, operand: Node, above: int = 0) -> str:
        """An operand of an element-wise node; integers become floats of the arrays' type."""
        ones = operand.op == "reshape" and id(operand) not in self.variables
        if (
            ones
            and not operand.args[0].shape
            and any(other is not operand and other.ndim >= operand.ndim for other in node.args)
        ):
            operand = operand.args[0]
        if not self.is_number(operand):
            mixed = operand.kind == "i" or self._is_truth(node, operand)
            if node.kind in "fc" and self.like and mixed:
                return self.as_float(operand)
            if self.library.name == "torch" and (node.op, operand.kind) == ("subtract", "b"):
                return f"{self.arg(operand, 8)}.to({self.alias}.int64)"
        return self.arg(operand, above)

    def _is_truth(self, node: Node, operand: Node) -> bool:
        """Return whether truths are reckoned with that a library subtracts from nothing, or makes
        floats of its own usual type of, as nothing else in the node has one.
        """
        if operand.kind != "b" or node.op not in _RECKONED or self.library.name == "numpy":
            return False
        floats = any(a.kind == "f" and not self.is_number(a) for a in node.args)
        return node.op == "subtract" or not floats

    def converted(self, node: Node, kind: str) -> str:
        """An array as one of floats or of complex numbers for PyTorch."""
        if kind == "f":
            return self.as_float(node)
        own = f"{self.float}.to_complex()" if self.like else f"{self.alias}.complex128"
        return f"{self.arg(node, 8)}.to({own})"

    def as_float(self, node: Node) -> str:
        """An array of integers or truths as one of floats."""
        if self.library.name == "torch":
            return f"{self.arg(node, 8)}.to({self.float})"
        return f"{self.arg(node, 8)}.astype({self.float})"

    def _constant(self, value: Any) -> tuple[str, int]:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, float) and abs(value) == _LARGEST and self.like:
            # That of doubles is infinite among singles.
            end = "min" if value < 0 else "max"
            return f"{self.alias}.finfo({self.float}).{end}", 9
        text = repr(value)
        if text.lstrip("-") in ("inf", "nan"):
            self.uses_math = True
            text = text.replace("inf", f"{self.math}.inf").replace("nan", f"{self.math}.nan")
        return text, 7 if text.startswith("-") else 9

    def _table(self, node: Node) -> tuple[str, int]:
        value = np.asarray(node.attrs["value"])
        tables = self.tables.items()
        same = (n for n, v in tables if v.dtype == value.dtype and np.array_equal(v, value))
        name = next(same, "")
        if not name:
            name = self.names.fresh(node.name or "table")
            self.tables[name] = value
        if node.kind not in "fc" or not self.like:
            return name, 9
        if self.library.name == "torch":
            own = self.like if node.kind == "f" else f"{self.float}.to_complex()"
            return f"{name}.to({own})", 9
        if node.kind == "c":
            return (f"{self.alias}.asarray({name})" if self.library.name == "jax" else name), 9
        return f"{self.alias}.asarray({name}, dtype={self.float})", 9

    def table_home(self, values: Any) -> str:
        """The module that makes a table: NumPy for JAX, which may make floats single."""
        is_real = values.dtype.kind in "fc"
        return "numpy" if self.library.name == "jax" and is_real else self.alias

    def call(self, helper: str, args: Iterable[Node], **keywords: Any) -> str:
        """A call of a function that the source defines for itself."""
        if helper not in self.helpers:
            clash = helper in self.names.arguments
            self.helpers[helper] = self.names.fresh(helper) if clash else helper
        given = [*map(self.arg, args), *(f"{k}={v}" for k, v in keywords.items())]
        return f"{self.helpers[helper]}({', '.join(given)})"

    def transposed(self, node: Node) -> str:
        """The transpose of the last two axes."""
        swap = (*range(node.ndim - 2), node.ndim - 1, node.ndim - 2)
        plain = node.op == "transpose" and id(node) not in self.variables
        if plain and node.attrs["axes"] == swap:
            return self.arg(node.args[0], 6)
        ending = ".T" if node.ndim == 2 else ".swapaxes(-1, -2)"
        return f"{self.arg(node, 8)}{ending}"

    def index(self, node: Node) -> str:
        """The index of a change."""
        from handgrad.program.primitives.index import index_text

        return str(index_text(self, node, node.args[2:]))

    # Statements

    @abstractmethod
    def program(
        self,
        program: Program,
        keep: Iterable[int] = (),
        carried: Sequence[tuple[Node, Node]] = (),
        copied: Iterable[Node] = (),
    ) -> None:
        """Statements for all that the outputs need; nodes in `keep` get a variable.

        A carried value's next takes over its variable where nothing reads the old one any more.
        Views in `copied` are of arrays that change afterwards.
        """

    def stored(self, name: str, where: str, text: str) -> str:
        """A statement that puts a value into an array."""
        if not self.library.changes:
            return f"{name} = {name}.at[{where}].set({text})"
        return f"{name}[{where}] = {text}"


def leaves(node: Node, variables: Mapping[int, str]) -> list[Node]:
    """The operands of an expression that are variables, in order."""
    found: list[Node] = []
    for each in node.args:
        if id(each) in variables:
            found.append(each)
        elif each.op not in ("const", "size"):
            found += leaves(each, variables)
    return found


def number_text(e: Expressions, node: Node) -> tuple[str, int]:
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
