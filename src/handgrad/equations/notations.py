"""The notation of functions of arrays: one table.

A function that is not in it is written by its name and its arrays, and its docstring's first
sentence explains it beside the symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from handgrad.documents.formulas.formula import (
    Big,
    Cases,
    Fenced,
    Formula,
    FormulaRow,
    Matrix,
    Number,
    Operator,
    Root,
    Script,
    Sign,
    Symbol,
    Text,
    occurs,
    row,
    separated,
)
from handgrad.equations import families, indexing, windows
from handgrad.equations.glossary import applied
from handgrad.equations.parts import (
    ATOM,
    BIG,
    CONDITION,
    PRODUCT,
    SUM,
    UNARY,
    Part,
    argument,
    juxtaposed,
    power,
    subscripted,
)
from handgrad.equations.places import moved, turned
from handgrad.equations.shaping import UNFILLED, Subscripts, axis_of, number, shape
from handgrad.equations.shaping import argument as given
from handgrad.equations.shaping import stacked as stacked_arrays
from handgrad.equations.words import by_name, explain
from handgrad.equations.writes import Writes
from handgrad.program import Node

#: The fewest numbers of which some are left out.
FEWEST: Final = 4

Notation = Callable[[Writes, Node, Subscripts], Part]


def called(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """The operation by its notation, or by its name."""
    return NOTATIONS.get(node.op, named)(writer, node, subscripts)


def named(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """The name of the function and those of its arguments that are arrays, or all of them."""
    word = by_name(writer, node)
    arrays = [each for each in node.args if shape(each)] or node.args
    inside = separated(tuple(writer.write(each, SUM) for each in arrays)) if arrays else row()
    return Part(row(word, Fenced(inside)), UNARY)


def of_one(name: str) -> Notation:
    """A function of one array, element by element."""
    return lambda writer, node, subscripts: Part(
        applied(name, writer.write(node.args[0], CONDITION, subscripts)), UNARY
    )


def of_all(name: str) -> Notation:
    """max(a, b)"""

    def written(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
        inside = separated(tuple(writer.write(each, SUM, subscripts) for each in node.args))
        return Part(row(Operator(name), Fenced(inside)), UNARY)

    return written


def fixed(formula: Formula) -> Notation:
    return lambda writer, node, subscripts: Part(formula, ATOM)


def lettered(symbol: Formula) -> Notation:
    """A function with a letter of its own, explained beside the symbols: σ(x)."""

    def written(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
        explain(writer, node, symbol)
        inside = writer.write(node.args[0], CONDITION, subscripts)
        return Part(row(symbol, Fenced(inside)), UNARY)

    return written


def operator(name: str) -> Notation:
    """A function by a word of the literature, explained beside the symbols."""

    def written(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
        word = Operator(name)
        explain(writer, node, word)
        return Part(row(word, Fenced(writer.write(node.args[0]))), UNARY)

    return written


def root(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    return Part(Root(writer.write(node.args[0], CONDITION, subscripts)), UNARY)


def absolute(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    return Part(Fenced(writer.write(node.args[0], CONDITION, subscripts), "|"), ATOM)


def square(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    return power(writer.part(node.args[0], subscripts), Number("2"))


def log_one_plus(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    inside = row(Number("1"), Sign("+"), writer.write(node.args[0], SUM, subscripts))
    return Part(row(Operator("log"), Fenced(inside)), UNARY)


def log_of_sum(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    left, right = (applied("exp", writer.write(x, CONDITION, subscripts)) for x in node.args[:2])
    return Part(row(Operator("log"), Fenced(row(left, Sign("+"), right))), UNARY)


def exp_minus_one(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    inside = writer.write(node.args[0], CONDITION, subscripts)
    return Part(row(applied("exp", inside), Sign("−"), Number("1")), SUM)


def clip(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    formula = writer.write(node.args[0], SUM, subscripts)
    limits = given(node, 1, "min", "a_min"), given(node, 2, "max", "a_max")
    for name, limit in zip(("max", "min"), limits, strict=True):
        if limit is not None:
            inside = separated((formula, writer.write(limit, SUM, subscripts)))
            formula = row(Operator(name), Fenced(inside))
    return Part(formula, UNARY)


def infinite(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    inside = Fenced(writer.write(node.args[0], CONDITION, subscripts), "|")
    return Part(row(inside, Sign("="), Symbol("infinity")), CONDITION)


def undefined(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    inside = writer.write(node.args[0], SUM, subscripts)
    return Part(row(inside, Sign("="), Text("NaN")), CONDITION)


def full(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    return writer.part(given(node, 1, "fill_value"), subscripts)


def count(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """arange: (0, …, n − 1), or of one element its place, i − 1."""
    if subscripts and subscripts[-1] is not None:
        place = moved(subscripts[-1], -1)
        if len(node.args) > 1 and number(node.args[0]) != 0:
            place = row(writer.write(node.args[0], SUM), Sign("+"), place)
        return Part(place, SUM if isinstance(place, FormulaRow) else ATOM)
    last = moved(indexing.bound(writer, node.args[1 if len(node.args) > 1 else 0]), -1)
    start: Formula = Number("0")
    if len(node.args) > 1:
        told = writer.write(node.args[0], SUM)
        start = told if number(node.args[0]) != 0 or occurs(told, last) else start
    if isinstance(start, Number) and isinstance(last, Number):
        return Part(listed(range(int(start.digits), int(last.digits) + 1)), ATOM)
    return Part(Fenced(separated((start, moved(start, 1), Sign("⋯"), last))), ATOM)


def listed(values: Sequence[Any]) -> Formula:
    """(0, 1, 2), or (0, 1, ⋯, 63)."""
    every = [Number(str(each)) for each in values]
    if len(every) < FEWEST:
        return Fenced(separated(tuple(every)))
    return Fenced(separated((*every[:2], Sign("⋯"), every[-1])))


def is_count(writer: Writes, node: Any) -> bool:
    """True where the value numbers an axis."""
    inner = writer.bare(node)
    if not isinstance(inner, Node) or writer.has_symbol(inner):
        return False
    return inner.op == "arange" or (inner.op == "flip" and is_count(writer, inner.args[0]))


def flipped(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """An axis the other way round: of one step that which is as far from the end."""
    if isinstance(number(given(node, 1, "axis")), int) or len(shape(node)) == 1:
        axis = axis_of(node)
        subscript = subscripts[axis] if len(subscripts) >= -axis else None
        if subscript is not None:
            at = len(subscripts) + axis
            size = writer.scope.dimensions.size(shape(node)[axis])
            return writer.part(
                node.args[0], (*subscripts[:at], turned(subscript, size), *subscripts[at + 1 :])
            )
    return backwards(writer, node)


def backwards(writer: Writes, node: Node) -> Part:
    """x^←: an axis the other way round; one that is not the last stands below the arrow."""
    axis, axes = axis_of(node), len(shape(node))
    arrow: Formula = Sign("←")
    if axis != -1:
        arrow = Script(arrow, Number(str(axes + axis)))
    writer.scope.helpers.setdefault(
        "flip",
        (Script(Sign("·"), sup=arrow), "The values of the last axis, or of that below, backwards."),
    )
    return power(writer.part(node.args[0]), arrow)


def in_blocks(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """[Σ_t A_i,t B_t,j]_i,j: a product made of those of blocks."""
    i, j, t = map(Symbol, "ijt")
    left, right = map(writer.part, node.args[:2])
    of_blocks = subscripted(left, separated((i, t))), subscripted(right, separated((t, j)))
    body = juxtaposed([part.formula for part in of_blocks])
    formula = Script(Fenced(Big("sum", body, t), "["), separated((i, j)))
    explain(writer, node, formula)
    return Part(formula, ATOM)


def taken(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Rows of a table: W with the row's number as its index."""
    return subscripted(writer.part(node.args[0]), writer.write(node.args[1]))


def looked_up(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Of a table of logarithms the entry that the second array says."""
    return subscripted(
        Part(Fenced(writer.write(node.args[0])), ATOM), writer.write(node.args[1], SUM)
    )


def stacked(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """The arrays of a list together: (V_τ)_τ, or (a, b); of those of a sequence one step."""
    arrays = stacked_arrays(node)
    if arrays is None:
        return (
            stored(writer, node, subscripts)
            if node.op == "store"
            else named(writer, node, subscripts)
        )
    items, axis = arrays
    if (found := families.stacked(writer, items)) is not None:
        return found
    if indexing.generic(writer, items) is not None:
        step = indexing.at_steps(writer, items, axis, subscripts)
        return indexing.whole(writer, items) if step is None else step
    return Part(Fenced(separated(tuple(writer.write(each) for each in items))), ATOM)


def stored(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """An array that was written into: the latest value first, as it holds wherever it stands."""
    rows: list[tuple[Formula, Formula]] = []
    while not rows or (node.op in ("store", "replaced") and not writer.has_symbol(node)):
        base, index, value = node.args[:3]
        if node.op == "replaced":
            view = index.operands[0] if index.operands else index
            if view.op != "getitem":
                return named(writer, node, subscripts)
            value, index = index, view.args[1]
        where = separated(tuple(indexing.places(writer, base, index)))
        rows.append((writer.write(value, SUM), row(Text("at "), Fenced(where, "["))))
        node = base
    if node.op not in UNFILLED:
        rows.append((writer.write(node, SUM), Text(writer.scope.words[1])))
    return Part(Cases(tuple(rows)), CONDITION)


def summed_indices(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """einsum: Σ_d q_n,i,d k_n,j,d for einsum("nid,njd->nij", q, k)."""
    spec, *arrays = node.args
    if not isinstance(spec, str) or "." in spec or not all(subscripts) or not subscripts:
        return named(writer, node, subscripts)
    inputs, arrow, output = spec.replace(" ", "").partition("->")
    letters = inputs.split(",")
    if not arrow or len(output) != len(subscripts) or len(letters) != len(arrays):
        return named(writer, node, subscripts)
    known = dict(zip(output, subscripts, strict=True))
    taken = [subscript.name for subscript in subscripts if isinstance(subscript, Symbol)]
    for each, array in zip(letters, arrays, strict=True):
        for letter, size in zip(each, shape(array), strict=True):
            if letter not in known:
                known[letter] = writer.letter(size, taken)
    factors = [
        writer.write(array, PRODUCT, tuple(known[letter] for letter in each))
        for each, array in zip(letters, arrays, strict=True)
    ]
    below = tuple(
        subscript for letter, subscript in known.items() if letter not in output and subscript
    )
    body = juxtaposed(factors)
    return Part(Big("sum", body, separated(below)), BIG) if below else Part(body, PRODUCT)


def joined(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """Blocks beside each other, [A ∣ B], or below each other, [A; B]."""
    items = node.args[0]
    axes = len(shape(node))
    axis = number(given(node, 1, "axis", "dim")) or 0
    if node.op == "hstack":
        axis = axes - 1
    if families.is_family(writer.scope, items):
        return families.stacked(writer, items) or named(writer, node, subscripts)
    beside = isinstance(axis, int) and axes > 0 and axis % axes == axes - 1
    inner = (*subscripts[:-1], None) if subscripts and beside else ()
    written = tuple(writer.write(each, CONDITION, inner) for each in items)
    if not beside and all(map(_is_block_row, written)):
        return Part(Matrix(tuple(map(_blocks, written))), ATOM)
    return Part(Fenced(separated(written, "∣" if beside else ";"), "["), ATOM)


def _is_block_row(formula: Formula) -> bool:
    return isinstance(formula, Fenced) and formula.left == "[" and len(_blocks(formula)) > 1


def _blocks(formula: Formula) -> tuple[Formula, ...]:
    """The blocks of a row [A ∣ B]."""
    inside = formula.body if isinstance(formula, Fenced) else formula
    parts = inside.parts if isinstance(inside, FormulaRow) else (inside,)
    return tuple(part for part in parts if part != Sign("∣"))


def arg_max(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    found = families.arg_max(writer, node)
    if found is not None:
        return found
    inside = argument(writer.write(node.args[0]))
    return Part(row(Operator("arg"), Big("max", inside)), BIG)


def outer(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    left, right = node.args[:2]
    turned_right = power(writer.part(right), Sign("⊤")).formula
    return Part(juxtaposed([writer.write(left, PRODUCT), turned_right]), PRODUCT)


def element(writer: Writes, node: Node, subscripts: Subscripts) -> Part:
    """One of several results; of a tuple that a loop counts with, its part."""
    whole, place = node.args
    if whole.op == "counter":
        return Part(Script(writer.write(whole), Number(str(place + 1))), ATOM)
    if whole.op == "blocks":
        return Part(
            Script(
                Fenced(writer.write(whole.args[0], CONDITION, subscripts)), Number(str(place + 1))
            ),
            ATOM,
        )
    return Part(Script(Fenced(writer.write(whole)), Number(str(place + 1))), ATOM)


#: Functions of one array by their own name, as in exp(x).
_OF_ONE: Final = ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "sign")

#: Functions that are written alike whatever the axes of their arrays.
ELEMENTWISE: Final[dict[str, Notation]] = {
    **{name: of_one(name) for name in _OF_ONE},
    "erf": lettered(Operator("erf")),
    "log1p": log_one_plus,
    "expm1": exp_minus_one,
    "logaddexp": log_of_sum,
    "sqrt": root,
    "abs": absolute,
    "square": square,
    "maximum": of_all("max"),
    "minimum": of_all("min"),
    "isinf": infinite,
    "isnan": undefined,
    "weights": operator("softmax"),
    **dict.fromkeys(("logistic", "sigmoid"), lettered(Symbol("sigma"))),
    "activate": lettered(Symbol("f")),
    "activation_gradient": windows.activation_gradient,
    "draw_mask": windows.drawn,
}
NOTATIONS: Final[dict[str, Notation]] = {
    **ELEMENTWISE,
    "max": of_all("max"),
    "min": of_all("min"),
    "clip": clip,
    **dict.fromkeys(("zeros", "zeros_like"), fixed(Number("0"))),
    **dict.fromkeys(("ones", "ones_like"), fixed(Number("1"))),
    "full": full,
    "full_like": full,
    "eye": fixed(Symbol("I")),
    "arange": count,
    "flip": flipped,
    "_tiled": in_blocks,
    "take": taken,
    **dict.fromkeys(("at_labels", "at_state"), looked_up),
    "total": families.total,
    "stack": stacked,
    "store": stacked,
    "replaced": stored,
    "einsum": summed_indices,
    "concat": joined,
    "hstack": joined,
    "argmax": arg_max,
    "outer": outer,
    "element": element,
    "window": windows.window,
    "scatter": windows.scatter,
    "pad": windows.padded,
    "crop": windows.padded,
    "window_sum": windows.window_sum,
    "sum_to": windows.summed_to,
}
