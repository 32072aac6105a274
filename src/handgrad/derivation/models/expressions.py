"""From a node of a program to a formula that says exactly what it computes.

What stands between the ops of a layer is short, so every operation is written with its axes and
indices as the code has them: counted from 0, from the end where negative. ⊙ and the other signs
between arrays broadcast as in NumPy; a product of matrices has no sign.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    LOGIC,
    PRODUCT,
    RELATIONS,
    SUM,
    UNARY,
    Part,
    constant,
    fenced,
    is_condition,
    juxtaposed,
    power,
)
from handgrad.derivation.equations.products import divided
from handgrad.derivation.equations.shaping import is_last_two, only_new_axes
from handgrad.derivation.formulas.formula import (
    Big,
    Cases,
    Fenced,
    Formula,
    Number,
    Operator,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.errors import HandgradError
from handgrad.program import Frame, Node
from handgrad.program.functions import is_array
from handgrad.program.text import SHAPING

_ELEMENTWISE: Final = frozenset({"exp", "log", "tanh", "sin", "cos"})
_OF_SEVERAL: Final = {"maximum": "max", "minimum": "min"}
_REDUCTIONS: Final = frozenset({"sum", "max", "min", "prod", "mean"})
#: Operations whose result has the same values as their operand, in the same shape.
_SAME: Final = frozenset({"asarray", "astype", "copy", "require", "positive", "float"})
_RESHAPING: Final = frozenset({"reshape", "expand_dims", "squeeze", "ravel", "flatten"})
_CONSTANTS: Final = {"zeros": "0", "zeros_like": "0", "ones": "1", "ones_like": "1"}
_EMPTY: Final = frozenset({"empty", "empty_like"})
#: Operations whose result does not depend on the values of their operand.
CONSTANT: Final = frozenset(_CONSTANTS) | _EMPTY
#: Operations that only say where values stand.
ARRANGING: Final = (
    SHAPING | _SAME | _RESHAPING | {"getitem", "permute_dims", "matrix_transpose", "swapaxes"}
)


class NotComposedError(HandgradError):
    """A layer whose passes are not ops and operations on arrays between them."""


@dataclass(frozen=True)
class Expressions:
    """Writes nodes by the symbols that they have, and what has none by its operation."""

    symbols: Mapping[Node, Formula]
    sizes: Dimensions
    #: The words of a case: "if", "otherwise".
    words: tuple[str, str]
    #: The settings among the arguments of every call that was followed.
    settings: Mapping[Frame, tuple[Any, ...]]
    #: The nodes that functions returned which made them.
    returned: Set[Node]
    #: The helper functions that were written by their names, with the symbol of each.
    helpers: dict[Callable[..., Any], Formula] = field(default_factory=dict)

    def definition(self, node: Node) -> Formula:
        """The node written out, also where it has a symbol."""
        formula, strength = self._defined(node)
        return fenced(formula, strength) if is_condition(formula) else formula

    def write(self, value: Any, around: int = CONDITION) -> Formula:
        formula, strength = self.part(value)
        return formula if strength >= around else fenced(formula, strength)

    def part(self, value: Any) -> Part:
        """A node by its symbol or written out; a setting as it is."""
        if isinstance(value, Node):
            if value in self.symbols:
                symbol = self.symbols[value]
                return Part(symbol, UNARY if not isinstance(symbol, Row) else SUM)
            return self._defined(value)
        if isinstance(value, tuple | list):
            return Part(Fenced(separated(tuple(map(self.write, value)))), ATOM)
        if isinstance(value, bool | int | float | str) or value is None or value is ...:
            return constant(value)
        return Part(_word(str(value)), ATOM)

    def _defined(self, node: Node) -> Part:
        if node.op == "input":
            return self._input(node)
        if (helper := self._helper(node)) is not None:
            return helper
        if _only_reshapes(node):
            return self._reshaped(node)
        args = node.args
        match node.op, args:
            case "add" | "subtract", (left, right):
                sign = "+" if node.op == "add" else "−"
                return Part(row(self.write(left, SUM), Sign(sign), self.write(right, BIG)), SUM)
            case "multiply" | "divide", (left, right):
                first, second = ((*self.part(each), _is_full(each)) for each in (left, right))
                if node.op == "divide":
                    return divided([] if left == 1 else [first], [second])
                return divided([first, second] if _is_full(right) else [second, first], [])
            case "negative", (value,):
                return Part(row(Sign("−"), self.write(value, BIG)), SUM)
            case "matmul" | "dot", (left, right):
                return Part(
                    juxtaposed([self.write(left, PRODUCT), self.write(right, PRODUCT)]), PRODUCT
                )
            case "pow", (base, exponent):
                return power(self.part(base), self.write(exponent))
            case "sqrt", (value,):
                return Part(Root(self.write(value)), UNARY)
            case "abs", (value,):
                return Part(Fenced(self.write(value), "|"), ATOM)
            case "logistic", (value,) if node.function is not None:
                self.helpers[node.function] = Symbol("sigma")
                return Part(row(Symbol("sigma"), Fenced(self.write(value))), UNARY)
            case "where", (test, yes, no):
                return self._cases([(yes, self.write(test))], no)
            case "bitwise_invert" | "logical_not", (value,):
                return Part(row(Sign("¬"), self.write(value, ATOM)), UNARY)
            case "getitem", (value, index):
                return self._item(value, index, node)
            case "store", _:
                return self._stored(node)
            case "element", (Node(op="blocks") as whole, position):
                width = node.value.shape[-1]
                part = slice(position * width, (position + 1) * width)
                return Part(Script(self._base(whole.args[0]), self._index((..., part))), ATOM)
            case "element", (whole, position):
                return Part(Script(Fenced(self.write(whole)), Number(str(position))), ATOM)
            case "concat", (parts, *_):
                return self._joined(node, parts)
            case "permute_dims", (value, *axes):
                return self._permuted(node, value, axes)
            case "matrix_transpose", (value,):
                return self._transposed(value)
            case "swapaxes", (value, *_) if is_last_two(node):
                return self._transposed(value)
        if node.op in _SAME:
            return self.part(args[0])
        if node.op in RELATIONS:
            relation = Sign(RELATIONS[node.op])
            both = self.write(args[0], SUM), self.write(args[1], SUM)
            return Part(row(both[0], relation, both[1]), CONDITION)
        if node.op in LOGIC:
            several = tuple(self.write(each, SUM) for each in args[:2])
            return Part(separated(several, LOGIC[node.op]), CONDITION)
        if node.op in _ELEMENTWISE:
            return Part(row(Operator(node.op), Fenced(self.write(args[0]))), UNARY)
        if node.op in _OF_SEVERAL:
            inside = separated(tuple(self.write(each, SUM) for each in args[:2]))
            return Part(row(Operator(_OF_SEVERAL[node.op]), Fenced(inside)), UNARY)
        if node.op == "broadcast_to":
            return self._shaped("broadcast", node)
        if node.op in _CONSTANTS:
            value = Number(_CONSTANTS[node.op])
            return Part(Script(value, self.sizes.shape(node.value)), ATOM)
        if node.op in _REDUCTIONS and (reduced := self._reduced(node)) is not None:
            return reduced
        return self._called(node, _word(node.op), {**node.kwargs})

    def _input(self, node: Node) -> Part:
        """A number as it is, an array of the layer's or of its module by its name."""
        if np.ndim(node.value) == 0 and np.asarray(node.value).dtype.kind in "fiu":
            return constant(node.value.item())
        return Part(_word(node.name.rpartition(".")[2] or "array"), ATOM)

    def _called(self, node: Node, name: Formula, settings: Mapping[str, Any]) -> Part:
        """name(a, b; axis = 1)"""
        if not all(map(_is_setting, (*node.args, *settings.values()))):
            raise NotComposedError(f"notes: {node.op} takes an object that is no array")
        inside = separated(tuple(self.write(each, SUM) for each in node.args))
        for key, value in settings.items():
            if value is not None and not isinstance(value, type | np.dtype) and key != "dtype":
                inside = row(inside, Sign(";"), _word(key), Sign("="), self.write(value, SUM))
        return Part(row(name, Fenced(inside)), UNARY)

    def _reshaped(self, node: Node) -> Part:
        """One reshape for several, and none where the shape is the old one again."""
        inner: Any = node
        while isinstance(inner, Node) and inner not in self.symbols and _only_reshapes(inner):
            inner = inner.args[0]
        if np.shape(inner.value) == np.shape(node.value):
            return self.part(inner)
        below = self.sizes.shape(node.value)
        return Part(row(Script(Operator("reshape"), below), Fenced(self.write(inner))), UNARY)

    def _shaped(self, name: str, node: Node) -> Part:
        shape = self.sizes.shape(node.value)
        return Part(row(Script(Operator(name), shape), Fenced(self.write(node.args[0]))), UNARY)

    def _transposed(self, value: Any) -> Part:
        return power(self.part(value), Sign("⊤"))

    def _permuted(self, node: Node, value: Any, axes: list[Any]) -> Part:
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple) else tuple(axes)
        order = order or node.kwargs.get("axes") or tuple(range(np.ndim(node.value)))[::-1]
        usual = tuple(range(len(order)))
        if order == (*usual[:-2], *usual[:-3:-1]):
            return self._transposed(value)
        below = Fenced(separated(tuple(Number(str(each)) for each in order)))
        return Part(row(Script(Operator("permute"), below), Fenced(self.write(value))), UNARY)

    def _item(self, value: Any, index: Any, node: Node) -> Part:
        """x_[1:, :]; where only axes are added, the shape says it."""
        positions = index if isinstance(index, tuple) else (index,)
        kept = tuple(each for each in positions if each is not None)
        inside = Script(self._base(value), self._index(kept))
        if len(kept) == len(positions):
            return Part(inside, ATOM)
        shape = self.sizes.shape(node.value)
        return Part(row(Script(Operator("reshape"), shape), Fenced(inside)), UNARY)

    def _base(self, value: Any) -> Formula:
        """What an index can stand at: anything but a symbol with an index in brackets."""
        formula, _ = self.part(value)
        plain = isinstance(formula, Symbol | Text) or (
            isinstance(formula, Script) and not isinstance(formula.sub, Fenced)
        )
        return Fenced(formula) if not plain or isinstance(formula, Script) else formula

    def _index(self, positions: tuple[Any, ...]) -> Formula:
        return Fenced(separated(tuple(map(self._position, positions))), "[")

    def _position(self, position: Any) -> Formula:
        if position is ...:
            return Sign("⋯")
        if isinstance(position, slice):
            parts = [position.start, position.stop]
            if position.step is not None:
                parts.append(position.step)
            written = [row() if each is None else self.write(each, SUM) for each in parts]
            return separated(tuple(written), ":")
        return self.write(position, SUM)

    def _stored(self, node: Node) -> Part:
        """The latest value first: it holds wherever an earlier one was written too."""
        rows: list[tuple[Formula, Formula]] = []
        while (node.op == "store" and node not in self.symbols) or not rows:
            base, index, value = node.args
            positions = index if isinstance(index, tuple) else (index,)
            where = row(Text("at "), self._index(positions))
            rows.append((self.write(value, SUM), where))
            node = base
        if node.op not in _EMPTY:
            rows.append((self.write(node, SUM), Text(self.words[1])))
        return Part(Cases(tuple(rows)), CONDITION)

    def _cases(self, pairs: list[tuple[Any, Formula]], otherwise: Any) -> Part:
        where, elsewhere = self.words
        rows = [(self.write(value, SUM), row(Text(f"{where} "), test)) for value, test in pairs]
        rows.append((self.write(otherwise, SUM), Text(elsewhere)))
        return Part(Cases(tuple(rows)), CONDITION)

    def _joined(self, node: Node, parts: Any) -> Part:
        """[a ∣ b] along the last axis, [a; b] along the first."""
        axis = node.kwargs.get("axis", node.args[1] if len(node.args) > 1 else 0)
        axes = np.ndim(node.value)
        written = tuple(map(self.write, parts))
        if axis % axes == axes - 1:
            return Part(Fenced(separated(written, "∣"), "["), ATOM)
        if axis % axes == 0:
            return Part(Fenced(separated(written, ";"), "["), ATOM)
        name = Script(Operator("concat"), Number(str(axis % axes)))
        return Part(row(name, Fenced(separated(written))), UNARY)

    def _reduced(self, node: Node) -> Part | None:
        """Σ over axes that stand below it, counted from 0; without one, over all."""
        value, *others = node.args
        settings = dict(node.kwargs)
        axis = settings.pop("axis", others[0] if others else None)
        kept = settings.pop("keepdims", False)
        if len(others) > 1 or any(each is not None for each in settings.values()):
            return None
        below: Formula | None = None
        if axis is not None:
            axes = axis if isinstance(axis, tuple) else (axis,)
            numbers = tuple(Number(str(each % np.ndim(value.value))) for each in axes)
            below = row(Text("axis "), separated(numbers))
            if kept:
                below = row(below, Sign(","), Space(), Text("kept"))
        return Part(Big(node.op, self.write(value, BIG), below), BIG)

    def _helper(self, node: Node) -> Part | None:
        """A function that only arranges values, in several ways, by its name: split heads_3(x).

        It has a docstring, one array, and does not belong to a layer.
        """
        frame = node.frame
        function = frame.function
        parameters = inspect.signature(function).parameters if frame.site is not None else {}
        if not parameters or "self" in parameters or not inspect.getdoc(function):
            return None
        if node not in self.returned:
            return None
        inner, only_reshapes = node, True
        while inner.frame is frame and inner.op in ARRANGING and inner not in self.symbols:
            if not isinstance(inner.args[0], Node):
                return None
            only_reshapes &= _only_reshapes(inner)
            inner = inner.args[0]
        if only_reshapes or inner.frame is frame or node.args[0] is inner:
            return None
        return Part(row(self._helper_name(node), Fenced(self.write(inner))), UNARY)

    def _helper_name(self, node: Node) -> Formula:
        function = node.frame.function
        name = _word(function.__name__.strip("_"))
        self.helpers[function] = name
        given = tuple(map(self.write, self.settings.get(node.frame, ())))
        return Script(name, separated(given)) if given else name


def _only_reshapes(node: Node) -> bool:
    """True where the values stay in their order."""
    if node.op == "getitem":
        return only_new_axes(node.args[1])
    return node.op in _RESHAPING or (node.op in _SAME and isinstance(node.args[0], Node))


def _is_setting(value: Any) -> bool:
    """True for what can be written: an array, a number, a word, or several of these."""
    if isinstance(value, tuple | list):
        return all(map(_is_setting, value))
    plain = Node | int | float | str | slice | type | np.dtype | None
    return value is ... or isinstance(value, plain)


def _is_full(value: Any) -> bool:
    """True for an array that ⊙ stands beside; a number only scales."""
    return isinstance(value, Node) and is_array(value.value) and np.size(value.value) > 1


def _word(name: str) -> Formula:
    plain = name.strip("_").replace("_", " ")
    allowed = "".join(each for each in plain if each.isalnum() or each in " .,")
    return Text(allowed or "array")
