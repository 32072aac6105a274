"""The notation of primitives: one table, which formulas of derivations are written by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from handgrad.deriving.filled import stored
from handgrad.deriving.indexed import (
    Writing,
    at_index,
    beside,
    contracted,
    is_turned,
    selected,
    turned_over,
)
from handgrad.documents.formulas.formula import (
    Accent,
    Big,
    Cases,
    Fenced,
    Formula,
    Fraction,
    Number,
    Operator,
    Root,
    Script,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.equations.parts import (
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
    power,
    subscripted,
)
from handgrad.program.node import Node
from handgrad.program.sizes import Size

Notation = Callable[[Writing, Node], Part]

#: The digits of a number in a formula.
_DIGITS: Final = 6
_ONE: Final = Number("1")


def by_name(writer: Writing, node: Node) -> Part:
    """A function that has no sign: f with its name below it."""
    word = Script(Symbol("f"), Text(node.op.replace("_", " ")))
    inside = separated(tuple(map(writer.of, node.args)))
    return Part(row(word, Fenced(inside)), UNARY)


def shown(writer: Writing, node: Node) -> Part:
    """The array itself, which the operation only arranges or copies."""
    return writer.part(node.args[0])


def reshaped(writer: Writing, node: Node) -> Part:
    """x with its new shape below it, unless axes of length 1 are all that changes."""
    x = node.args[0]
    one = Size.of(1)
    lengths = [[size for size in each.shape if size != one] for each in (x, node)]
    if lengths[0] == lengths[1] or writer.outside(x).op in ("const", "zeros", "ones"):
        return writer.part(x)
    shape = separated(tuple(writer.size(size).formula for size in node.shape))
    return Part(Script(writer.of(x, ATOM), Fenced(shape)), ATOM)


def function(name: str) -> Notation:
    """A function by its word in the literature: exp(x)."""
    return lambda writer, node: Part(
        row(Operator(name), Fenced(separated(tuple(map(writer.of, node.args))))), UNARY
    )


def letter(symbol: Formula) -> Notation:
    return lambda writer, node: Part(
        row(symbol, Fenced(separated(tuple(map(writer.of, node.args))))), UNARY
    )


def infix(sign: str, strength: int) -> Notation:
    """Two operands with a sign between them; the right one binds more tightly."""

    def written(writer: Writing, node: Node) -> Part:
        left, right = node.args
        after = strength + 1 if sign == "−" else strength
        return Part(row(writer.of(left, strength), Sign(sign), writer.of(right, after)), strength)

    return written


def relation(sign: str) -> Notation:
    return lambda writer, node: Part(
        row(writer.of(node.args[0], SUM), Sign(sign), writer.of(node.args[1], SUM)), CONDITION
    )


def logic(sign: str) -> Notation:
    return lambda writer, node: Part(
        row(writer.of(node.args[0]), Sign(sign), writer.of(node.args[1])), CONDITION
    )


def product(writer: Writing, node: Node) -> Part:
    left, right = node.args
    if left is right:
        return power(writer.part(left), Number("2"))
    if right.op == "const" and left.op != "const":
        left, right = right, left
    factors = writer.of(left, PRODUCT), writer.of(right, PRODUCT)
    for one, other in (factors, factors[::-1]):
        if isinstance(one, Fraction) and one.numerator == _ONE:
            if isinstance(other, Symbol | Script | Accent):
                return Part(Fraction(other, one.denominator), UNARY)
            return Part(beside(one, other), PRODUCT)
    if left.ndim and right.ndim:
        return Part(row(factors[0], Sign("⊙"), factors[1]), PRODUCT)
    return Part(beside(*factors), PRODUCT)


def quotient(writer: Writing, node: Node) -> Part:
    return Part(Fraction(writer.of(node.args[0]), writer.of(node.args[1])), UNARY)


def fences(left: str) -> Notation:
    return lambda writer, node: Part(Fenced(writer.of(node.args[0]), left), ATOM)


def fixed(formula: Formula) -> Notation:
    return lambda writer, node: Part(formula, ATOM)


def raised(exponent: Formula) -> Notation:
    return lambda writer, node: power(writer.part(node.args[0]), exponent)


def number(writer: Writing, node: Node) -> Part:
    value = node.attrs["value"]
    if isinstance(value, bool | np.bool_):
        return Part(Number(str(int(value))), ATOM)
    if isinstance(value, complex):
        return Part(row(constant(value.real).formula, Sign("+"), constant(value.imag).formula), SUM)
    found = constant(float(f"{float(value):.{_DIGITS}g}"))
    return found if found.strength != SUM else Part(found.formula, SUM)


def table(writer: Writing, node: Node) -> Part:
    """An array that the forward brings with it."""
    return Part(Symbol("C"), ATOM)


def cases(writer: Writing, node: Node) -> Part:
    condition, one, other = node.args
    rows = (
        (writer.of(one), row(Text("if "), writer.of(condition))),
        (writer.of(other), Text("otherwise")),
    )
    return Part(Cases(rows), CONDITION)


def clipped(writer: Writing, node: Node) -> Part:
    formula = writer.of(node.args[0])
    for name, limit in zip(("max", "min"), node.args[1:], strict=False):
        formula = row(Operator(name), Fenced(separated((formula, writer.of(limit)))))
    return Part(formula, UNARY)


def infinite(writer: Writing, node: Node) -> Part:
    inside = Fenced(writer.of(node.args[0]), "|")
    sign = "<" if node.op == "isfinite" else "="
    return Part(row(inside, Sign(sign), Symbol("infinity")), CONDITION)


def undefined(writer: Writing, node: Node) -> Part:
    """Only NaN differs from itself."""
    inside = writer.of(node.args[0], SUM)
    return Part(row(inside, Sign("≠"), inside), CONDITION)


def inverse(writer: Writing, node: Node) -> Part:
    return Part(row(Sign("¬"), writer.of(node.args[0], ATOM)), CONDITION)


def negative(writer: Writing, node: Node) -> Part:
    return Part(row(Sign("−"), writer.of(node.args[0], PRODUCT)), SUM)


def negative_exponent(writer: Writing, node: Node) -> Part:
    return power(writer.part(node.args[0]), writer.of(node.args[1]))


def softplus(writer: Writing, node: Node) -> Part:
    inside = row(_ONE, Sign("+"), Operator("exp"), Fenced(writer.of(node.args[0])))
    return Part(row(Operator("log"), Fenced(inside)), UNARY)


def logistic(writer: Writing, node: Node) -> Part:
    return Part(row(Symbol("sigma"), Fenced(writer.of(node.args[0]))), UNARY)


def log_one_plus(writer: Writing, node: Node) -> Part:
    inside = row(_ONE, Sign("+"), writer.of(node.args[0], SUM))
    return Part(row(Operator("log"), Fenced(inside)), UNARY)


def exp_minus_one(writer: Writing, node: Node) -> Part:
    return Part(row(Operator("exp"), Fenced(writer.of(node.args[0])), Sign("−"), _ONE), SUM)


def log_of_sum(writer: Writing, node: Node) -> Part:
    left, right = (row(Operator("exp"), Fenced(writer.of(each))) for each in node.args)
    return Part(row(Operator("log"), Fenced(row(left, Sign("+"), right))), UNARY)


def root(writer: Writing, node: Node) -> Part:
    return Part(Root(writer.of(node.args[0])), UNARY)


def big(kind: str) -> Notation:
    """Σ or max over the axes that are named below it, by their lengths."""

    def written(writer: Writing, node: Node) -> Part:
        body, below = _over(writer, node)
        formula = fenced(*body) if body.strength < BIG else body.formula
        return Part(Big(kind, formula, below), BIG)

    return written


def _over(writer: Writing, node: Node) -> tuple[Part, Formula | None]:
    """The operand of a reduction, and its axes by their lengths; None where it is over all."""
    x = node.args[0]
    axes = [axis for axis in node.attrs.get("axis", ()) if axis < x.ndim]
    if not axes or len(axes) == x.ndim:
        return writer.part(x), None
    if any(x.shape.count(x.shape[axis]) > 1 for axis in axes):
        # Two axes of one length are told apart by indices.
        letters = writer.symbols.indices[: x.ndim]
        below = separated(tuple(letters[axis] for axis in axes))
        return at_index(writer.part(x), separated(tuple(letters))), below
    return writer.part(x), separated(tuple(writer.size(x.shape[axis]).formula for axis in axes))


def running(kind: str) -> Notation:
    """A sum of all up to an element."""
    return lambda writer, node: Part(
        Big(kind, writer.of(node.args[0], BIG), row(Sign("≤"), writer.symbols.indices[0])), BIG
    )


def mean(writer: Writing, node: Node) -> Part:
    """⟨x⟩ with the axes as those of Σ below it."""
    body, below = _over(writer, node)
    inside = Fenced(body.formula, "⟨")
    return Part(inside if below is None else Script(inside, below), ATOM)


def transposed(writer: Writing, node: Node) -> Part:
    """xᵀ where the last two axes change places, else x with the order of the axes."""
    if is_turned(node):
        return turned_over(writer, node.args[0])
    axes = tuple(node.attrs["axes"])
    order = separated(tuple(Number(str(axis + 1)) for axis in axes))
    return power(writer.part(node.args[0]), Fenced(order))


def joined(writer: Writing, node: Node) -> Part:
    sign = "∣" if node.attrs.get("axis", 0) == node.ndim - 1 else ";"
    return Part(Fenced(separated(tuple(map(writer.of, node.args)), sign), "["), ATOM)


def stacked(writer: Writing, node: Node) -> Part:
    return Part(Fenced(separated(tuple(map(writer.of, node.args)))), ATOM)


def counted(writer: Writing, node: Node) -> Part:
    last = writer.size(Size.of(node.attrs["size"]) - 1).formula
    return Part(Fenced(separated((Number("0"), _ONE, Sign("⋯"), last))), ATOM)


def inverted(writer: Writing, node: Node) -> Part:
    """A⁻¹, and A⁺ where it has none."""
    sign = Sign("+") if node.op == "pinv" else row(Sign("−"), _ONE)
    return power(writer.part(node.args[0]), sign)


def solved(writer: Writing, node: Node) -> Part:
    """A⁻¹ b"""
    left, right = node.args
    found = power(writer.part(left), row(Sign("−"), _ONE))
    return Part(beside(found.formula, writer.of(right, PRODUCT)), PRODUCT)


def turned_around(writer: Writing, node: Node) -> Part:
    """x with an index that runs backwards."""
    x = node.args[0]
    axes = node.attrs["axis"]
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    turned = {axis % x.ndim for axis in axes}
    index = [
        Fenced(separated((writer.size(Size.of(length) - 1).formula, Sign("⋯"), _ONE, Number("0"))))
        if axis in turned
        else Sign(":")
        for axis, length in enumerate(x.shape)
    ]
    return _indexed(writer.part(x), index)


def rolled(writer: Writing, node: Node) -> Part:
    """x with an index that goes round."""
    x = node.args[0]
    shift, axis = node.attrs["shift"], node.attrs["axis"]
    if axis is None:
        return by_name(writer, node)
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = axis if isinstance(axis, tuple) else (axis,)
    by_axis = {each % x.ndim: Size.of(by) for each, by in zip(axes, shifts, strict=True)}
    index: list[Formula] = []
    for each, length in enumerate(x.shape):
        if each not in by_axis:
            index.append(Sign(":"))
            continue
        back = row(writer.symbols.indices[0], Sign("−"), writer.size(by_axis[each]).formula)
        on = row(
            writer.symbols.indices[0], Sign("+"), writer.size(Size.of(0) - by_axis[each]).formula
        )
        moved = on if _is_negative(by_axis[each]) else back
        index.append(row(Fenced(moved), Operator("mod"), writer.size(length).formula))
    return _indexed(writer.part(x), index)


def _is_negative(size: Size) -> bool:
    return all(coefficient < 0 for _, coefficient in size.terms)


def _indexed(base: Part, index: Sequence[Formula]) -> Part:
    """A value with an index for each of its axes, in brackets where it has one already."""
    whole = Fenced(base.formula) if isinstance(base.formula, Script) else base.formula
    return subscripted(Part(whole, base.strength), separated(tuple(index)))


def in_order(writer: Writing, node: Node) -> Part:
    return Part(row(Operator("arg"), Operator("sort"), Fenced(writer.of(node.args[0]))), UNARY)


def between(word: str) -> Notation:
    """Two operands with a word between them: a mod b."""
    return lambda writer, node: Part(
        row(writer.of(node.args[0], PRODUCT), Operator(word), writer.of(node.args[1], UNARY)), SUM
    )


def argument(kind: str) -> Notation:
    return lambda writer, node: Part(
        row(Operator("arg"), Big(kind, writer.of(node.args[0], BIG))), BIG
    )


#: Functions by their words in the literature.
FUNCTIONS: Final = frozenset(
    {
        *("exp", "log", "log2", "log10", "exp2", "erf", "erfc", "sign", "max", "min", "arg"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan"),
        *("arcsinh", "arccosh", "arctanh", "sinc", "round", "sort"),
        *("det", "diag", "trace", "tril", "triu", "softmax", "trunc"),
    }
)

NOTATIONS: Final[dict[str, Notation]] = {
    **{name: function(name) for name in sorted(FUNCTIONS)},
    **{name: relation(sign) for name, sign in RELATIONS.items()},
    **{name: logic(sign) for name, sign in LOGIC.items()},
    "add": infix("+", SUM),
    "subtract": infix("−", SUM),
    "multiply": product,
    "divide": quotient,
    "negative": negative,
    "power": negative_exponent,
    "square": raised(Number("2")),
    "reciprocal": raised(row(Sign("−"), _ONE)),
    "conj": lambda writer, node: Part(Accent("bar", writer.of(node.args[0])), ATOM),
    "sqrt": root,
    "softplus": softplus,
    "sigmoid": logistic,
    "expit": logistic,
    "log1p": log_one_plus,
    "expm1": exp_minus_one,
    "logaddexp": log_of_sum,
    "maximum": function("max"),
    "minimum": function("min"),
    "abs": fences("|"),
    "floor": fences("⌊"),
    "ceil": fences("⌈"),
    "clip": clipped,
    "where": cases,
    "isinf": infinite,
    "isfinite": infinite,
    "isnan": undefined,
    "logical_not": inverse,
    "invert": inverse,
    "const": number,
    "table": table,
    "size": lambda writer, node: writer.size(node.attrs["size"]),
    "sum": big("sum"),
    "prod": big("prod"),
    "max": big("max"),
    "min": big("min"),
    "any": big("max"),
    "all": big("min"),
    "cumsum": running("sum"),
    "mean": mean,
    "argmax": argument("max"),
    "argsort": in_order,
    "flip": turned_around,
    "roll": rolled,
    "inv": inverted,
    "pinv": inverted,
    "solve": solved,
    "diagonal": function("diag"),
    "remainder": between("mod"),
    "fmod": between("mod"),
    "fmax": function("max"),
    "fmin": function("min"),
    "rint": function("round"),
    "real": function("Re"),
    "imag": function("Im"),
    "angle": function("arg"),
    "cholesky": function("chol"),
    "gamma": letter(Symbol("Gamma")),
    "digamma": letter(Symbol("psi")),
    "cumprod": running("prod"),
    "argmin": argument("min"),
    "transpose": transposed,
    "contract": contracted,
    "getitem": selected,
    "store": stored,
    "add_at": stored,
    "concatenate": joined,
    "pile": stacked,
    "arange": counted,
    "eye": fixed(Symbol("I")),
    "reshape": reshaped,
    "zeros": fixed(Number("0")),
    "ones": fixed(_ONE),
    **dict.fromkeys(
        ("broadcast_to", "stop", "like", "astype", "cast", "copy", "full"),
        shown,
    ),
}
