"""The emitter for C: the expression of one element, in a loop over the axes.

It is the emitter of arrays with another column of spellings; an array that is there is read by its
place in memory, and what a loop makes has a variable in it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from handgrad.program.c_spellings import KEYWORDS, MATH, SIGNS, SPELLINGS
from handgrad.program.emit import Emitter
from handgrad.program.libraries import C
from handgrad.program.naming import Names
from handgrad.program.node import PRIMITIVES, Node, Program
from handgrad.program.primitives.table import HELPERS

#: The types of the kinds of numbers; those of floats are those of the derivation.
_TYPES: Final = {"i": "long long", "b": "_Bool"}


class CNames(Names):
    """Names in C: in letters of ASCII, none of the language's own."""

    def __init__(self) -> None:
        super().__init__()
        own = (name for name in HELPERS if "c" in HELPERS[name])
        self.taken = {*KEYWORDS, *MATH, *(f"{name}f" for name in MATH), *own}

    def fresh(self, base: str) -> str:
        plain = "".join(x if x.isascii() else _in_ascii(x) for x in base).lstrip("_")
        return super().fresh(plain or "t")


def _in_ascii(sign: str) -> str:
    """A letter such as σ by its name."""
    words = unicodedata.name(sign, "t").lower().split()
    return words[-1] if words[-1].isascii() and words[-1].isidentifier() else "t"


class CEmitter(Emitter):
    """Writes the statements of one function in C.

    real: the type of floats. Integers among floats are cast, because C divides them otherwise.
    """

    def __init__(self, real: str, *, loose: bool = False) -> None:
        super().__init__(C, loose=loose)
        self.real = real
        self.names = CNames()
        #: Arrays that are filled: the element that is stored in one has another name.
        self.filled: set[str] = set()
        self._called: dict[int, str] = {}

    # Names

    def type_of(self, node: Node) -> str:
        return _TYPES.get(node.kind, self.real)

    def named(self, node: Node, name: str = "") -> str:
        """A name for a node, the same in each loop that computes it."""
        if id(node) not in self._called:
            base = name or node.name or self.describe(node)
            base = f"{base}_i" if base in self.filled else base
            self._called[id(node)] = self.names.fresh(base)
        return self._called[id(node)]

    def word(self, variable: str) -> str:
        return variable.partition("[")[0].lstrip("*")

    def let(self, node: Node, name: str, text: str) -> None:
        self.line(f"const {self.type_of(node)} {name} = {text};")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines of a block; its variables end with it."""
        before = dict(self.variables)
        self.line(f"{head} {{")
        self.indent += 1
        yield
        self.indent -= 1
        self.line("}")
        self.variables = before

    def compute(self, known: Iterable[Node], wanted: Sequence[Node], *, keep: bool = False) -> None:
        """Variables for what stands in several places; with `keep` for all that is wanted."""
        inputs = [n for n in known if id(n) in self.variables]
        kept = map(id, wanted) if keep else ()
        self.program(Program(inputs, list(wanted)), keep=kept)

    # Expressions

    def function(self, name: str) -> str:
        """A function of <math.h> for the type of floats."""
        return f"{name}f" if self.real == "float" else name

    def helper(self, name: str) -> str:
        self.helpers[name] = name
        return name

    def literal(self, text: str) -> str:
        """A number with a point, of the type of floats."""
        number = float(text)
        if self.real == "float" and np.isfinite(number):
            with np.errstate(over="ignore"):
                text = str(np.float32(number))
            text = "3.40282347e+38" if text == "inf" else text
            text = "-3.40282347e+38" if text == "-inf" else text
        text = text if set(text) & set(".e") else f"{text}.0"
        return f"{text}f" if self.real == "float" else text

    def cast(self, node: Node, kind: str) -> tuple[str, int]:
        own = self.real if kind in "fc" else _TYPES[kind]
        return (f"({own}){self.arg(node, 6)}", 7) if node.kind != kind else self.expression(node)

    def expression(self, node: Node) -> tuple[str, int]:
        if id(node) in self.variables or node.op in ("const", "size"):
            return super().expression(node)
        record = PRIMITIVES.get(node.op)
        if (spelling := SPELLINGS.get(node.op)) is not None:
            whole = node.kind == "i" and node.op not in ("where", "astype", "like")
            if callable(spelling) and not whole:
                found = spelling(self, node)
                return found if isinstance(found, tuple) else (found, 9)
        elif record is not None and record.text in SIGNS:
            return self.infix(node, str(record.text), record.precedence)
        raise refused_in_c(node, f"{node.op}{' of integers' if node.kind == 'i' else ''}")

    def operand(self, node: Node, operand: Node, above: int = 0) -> str:
        text, precedence = self.expression(operand)
        if node.kind == "f" and operand.kind in "ib":
            if operand.op == "const":
                text = self.literal(repr(float(operand.attrs["value"])))
            else:
                text, precedence = self.cast(operand, "f")
        is_signed = text.startswith("-") and above >= 5  # two signs are one of another meaning
        return f"({text})" if precedence <= above or is_signed else text

    def _constant(self, value: object) -> tuple[str, int]:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, bool):
            return str(int(value)), 9
        if isinstance(value, complex):
            raise UnwritableError("complex numbers")
        if not isinstance(value, float):
            return str(value), 7 if str(value).startswith("-") else 9
        if not np.isfinite(value):
            name = "NAN" if np.isnan(value) else "INFINITY"
            return (f"-{name}", 7) if value < 0 else (name, 9)
        return self.literal(repr(value)), 7 if np.signbit(value) else 9


class UnwritableError(Exception):
    """Something that C has no loop over rows for: its line, what it is, what is allowed."""


def refused_in_c(node: Node | None, what: str) -> UnwritableError:
    """The refusal of a node, with the line of the user's source where it has one."""
    where = f"line {node.line}: " if node is not None and node.line else ""
    return UnwritableError(
        f"{where}{what} is not written for C; allowed: functions of elements, sums and extremes "
        "over rows, or the source for numpy, torch or jax"
    )
