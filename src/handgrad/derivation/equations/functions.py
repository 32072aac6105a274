"""How functions of arrays are written."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from handgrad.derivation.equations.carriers import stacked_axis
from handgrad.derivation.equations.comprehensions import within
from handgrad.derivation.equations.glossary import applied
from handgrad.derivation.equations.marks import marked
from handgrad.derivation.equations.parts import (
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
from handgrad.derivation.equations.places import moved, turned
from handgrad.derivation.formulas.formula import (
    Big,
    Cases,
    Fenced,
    Formula,
    Matrix,
    Number,
    Operator,
    Root,
    Row,
    Script,
    Sign,
    Symbol,
    Text,
    row,
    separated,
)
from handgrad.trees import nodes
from handgrad.trees.nodes import Node
from handgrad.trees.text import called

if TYPE_CHECKING:
    from handgrad.derivation.equations.expression import Writer
    from handgrad.derivation.equations.marks import Marks

Notation = Callable[["Writer", nodes.Call, "Marks"], Part]

_LIBRARIES: Final = ("numpy", "array_api_compat", "array_api_strict", "torch", "jax", "builtins")


def cases(
    writer: Writer, pairs: Sequence[tuple[Node, Node]], otherwise: Node, marks: Marks
) -> Part:
    """A value for each condition, and one where none holds."""
    where, elsewhere = writer.frame.words
    rows: list[tuple[Formula, Formula]] = [
        (
            writer.write(value, SUM, marks),
            row(Text(f"{where} "), writer.write(test, CONDITION, marks)),
        )
        for value, test in pairs
    ]
    rows.append((writer.write(otherwise, SUM, marks), Text(elsewhere)))
    return Part(Cases(tuple(rows)), CONDITION)


def of_one(name: str) -> Notation:
    """A function of one array, element by element."""

    def written(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
        return Part(applied(name, writer.write(node.arguments[0], CONDITION, marks)), UNARY)

    return written


def of_all(name: str) -> Notation:
    """max(a, b)"""

    def written(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
        inside = separated(tuple(writer.write(each, SUM, marks) for each in node.arguments))
        return Part(row(Operator(name), Fenced(inside)), UNARY)

    return written


def fixed(formula: Formula) -> Notation:
    return lambda writer, node, marks: Part(formula, ATOM)


def lettered(symbol: Formula) -> Notation:
    """A function with a letter of its own, explained beside the symbols: σ(x)."""

    def written(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
        explain(writer, node.function, symbol)
        inside = writer.write(node.arguments[0], CONDITION, marks)
        return Part(row(symbol, Fenced(inside)), UNARY)

    return written


def named(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """The name of the function and those of its arguments that are arrays, or all of them."""
    word = by_name(writer, node)
    arrays = [each for each in node.arguments if writer.is_value(each)] or node.arguments
    inside = separated(tuple(writer.write(each, SUM) for each in arrays)) if arrays else row()
    return Part(row(word, Fenced(inside)), UNARY)


def by_name(writer: Writer, node: nodes.Call) -> Formula:
    """The function's name, explained beside the symbols."""
    plain = called(node.function).strip("_") or "f"
    word = Operator(plain) if plain.isascii() and plain.isalnum() else Text(plain.replace("_", " "))
    explain(writer, node.function, word)
    return word


def explain(writer: Writer, function: Node, symbol: Formula) -> None:
    """Keep the function's own words for the list of symbols, unless a library has it."""
    found = writer.value(function)
    module = getattr(found, "__module__", None) or ""
    if not inspect.isfunction(inspect.unwrap(found)) if callable(found) else True:
        return
    if module.split(".")[0] in _LIBRARIES:
        return
    writer.frame.helpers.setdefault(called(function), (symbol, first_sentence(found)))


def first_sentence(function: Callable[..., object]) -> str:
    """The first sentence of a docstring, or what comes before its first semicolon."""
    words = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.;])\s", words, maxsplit=1)[0].rstrip(";")


def root(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    value = writer.write(node.arguments[0], CONDITION, marks)
    return Part(Root(value), UNARY)


def absolute(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return Part(Fenced(writer.write(node.arguments[0], CONDITION, marks), "|"), ATOM)


def square(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return power(writer.part(node.arguments[0], marks), Number("2"))


def log_one_plus(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    inside = row(Number("1"), Sign("+"), writer.write(node.arguments[0], SUM, marks))
    return Part(row(Operator("log"), Fenced(inside)), UNARY)


def log_of_sum(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    left, right = (applied("exp", writer.write(x, CONDITION, marks)) for x in node.arguments)
    return Part(row(Operator("log"), Fenced(row(left, Sign("+"), right))), UNARY)


def exp_minus_one(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    inside = writer.write(node.arguments[0], CONDITION, marks)
    return Part(row(applied("exp", inside), Sign("−"), Number("1")), SUM)


def clip(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    given = (*node.arguments, *(each.value for each in node.keywords))
    formula = writer.write(given[0], SUM, marks)
    for name, limit in zip(("max", "min"), given[1:], strict=False):
        if limit != nodes.Constant(None):
            inside = separated((formula, writer.write(limit, SUM, marks)))
            formula = row(Operator(name), Fenced(inside))
    return Part(formula, UNARY)


def infinite(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    inside = Fenced(writer.write(node.arguments[0], CONDITION, marks), "|")
    return Part(row(inside, Sign("="), Symbol("infinity")), CONDITION)


def full(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return writer.part(node.arguments[1], marks)


def count(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """arange: (0, …, n − 1), or of one element its place, i − 1."""
    if marks and marks[-1] is not None:
        place = moved(marks[-1], -1)
        start = node.arguments[0] if len(node.arguments) > 1 else nodes.Constant(0)
        if writer.value(start) != 0:
            place = row(writer.write(start, SUM), Sign("+"), place)
        return Part(place, SUM if isinstance(place, Row) else ATOM)
    end = writer.value(node.arguments[-1])
    size = writer.frame.dimensions.size
    last = size(end) if isinstance(end, int) else writer.write(node.arguments[-1], SUM)
    first = Number("0"), Number("1"), Sign("⋯"), row(last, Sign("−"), Number("1"))
    return Part(Fenced(separated(first)), ATOM)


def flipped(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """An axis the other way round: of one step that which is as far from the end."""
    axis = next((writer.value(each.value) for each in node.keywords if each.name == "axis"), None)
    shape = writer.shape(node)
    if isinstance(axis, int) or len(shape) == 1:
        place = (axis or 0) % len(shape) - len(shape)
        mark = marks[place] if len(marks) >= -place else None
        if mark is not None:
            at = len(marks) + place
            size = writer.frame.dimensions.size(shape[place])
            turned_round = (*marks[:at], turned(mark, size), *marks[at + 1 :])
            return writer.part(node.arguments[0], turned_round)
    return named(writer, node, marks)


def operator(name: str) -> Notation:
    """A function by a word of the literature, explained beside the symbols."""

    def written(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
        word = Operator(name)
        explain(writer, node.function, word)
        return Part(row(word, Fenced(writer.write(node.arguments[0]))), UNARY)

    return written


def ends(writer: Writer, node: Node) -> tuple[Formula, Formula] | None:
    """The first and last number of a range, which may be reversed; None for anything else."""
    match node:
        case nodes.Call(function, (inner,), _) if called(function) == "reversed":
            found = ends(writer, inner)
            return None if found is None else (found[1], found[0])
        case nodes.Call(function, (*before, end), ()) if (
            called(function) == "range" and len(before) < 2
        ):
            value = writer.value(end)
            size = writer.frame.dimensions.size
            last = size(value) if isinstance(value, int) else writer.write(end, SUM)
            first = writer.write(before[0]) if before else Number("0")
            return first, row(last, Sign("−"), Number("1"))
    return None


def taken(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """Rows of a table: W with the row's number as its index."""
    table, rows = node.arguments[:2]
    return subscripted(writer.part(table), writer.write(rows))


def total(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """Python's own sum, over a loop or over a list that a loop made."""
    inner = node.arguments[0]
    match inner:
        case nodes.Loop(_, element, clauses):
            inside = within(writer, clauses)
            below, above = inside.index, None
            counted = _counted(writer, clauses)
            if below is not None and counted is not None:
                below, above = row(below, Sign("="), Number("0")), counted
            return Part(Big("sum", inside.write(element, BIG, marks), below, above), BIG)
        case nodes.Name(name) if (found := writer.family(name)) is not None:
            return Part(Big("sum", *found), BIG)
    return named(writer, node, marks)


def _counted(writer: Writer, clauses: tuple[nodes.Clause, ...]) -> Formula | None:
    """The last number of a loop over range(n) alone."""
    match clauses:
        case (nodes.Clause(_, nodes.Call(function, (end,), ()), ()),) if (
            called(function) == "range"
        ):
            return row(writer.write(end, SUM), Sign("−"), Number("1"))
    return None


def stacked(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """The arrays of a list together: (V_τ)_τ, or (a, b); of those of a sequence one step."""
    match node.arguments[0]:
        case nodes.Name(name) if name in writer.frame.sequences and any(marks):
            axis = stacked_axis(writer, node) + len(marks)
            place = marks[axis]
            if place is not None:
                return writer.step(name, place, marked((*marks[:axis], *marks[axis + 1 :])))
        case nodes.Name(name) if (found := writer.family(name)) is not None:
            element, index = found
            return Part(Script(Fenced(element), index), UNARY)
        case nodes.Sequence(_, items):
            return Part(Fenced(separated(tuple(writer.write(each) for each in items))), ATOM)
    return writer.part(node.arguments[0])


def joined(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    """Blocks beside each other, [A ∣ B], or below each other, [A; B]."""
    axis = next((writer.value(each.value) for each in node.keywords if each.name == "axis"), 0)
    if len(node.arguments) > 1:
        axis = writer.value(node.arguments[1])
    match node.arguments[0]:
        case nodes.Sequence(_, items):
            axes = len(writer.shape(items[0]))
            beside = isinstance(axis, int) and axes > 0 and axis % axes == axes - 1
            written = tuple(writer.write(each) for each in items)
            if not beside and all(map(_is_block_row, written)):
                return Part(Matrix(tuple(map(_blocks, written))), ATOM)
            return Part(Fenced(separated(written, "∣" if beside else ";"), "["), ATOM)
    return stacked(writer, node, marks)


def _is_block_row(formula: Formula) -> bool:
    return isinstance(formula, Fenced) and formula.left == "[" and len(_blocks(formula)) > 1


def _blocks(formula: Formula) -> tuple[Formula, ...]:
    """The blocks of a row [A ∣ B]."""
    inside = formula.body if isinstance(formula, Fenced) else formula
    parts = inside.parts if isinstance(inside, Row) else (inside,)
    return tuple(part for part in parts if part != Sign("∣"))


def arg_max(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    match writer.bare(node.arguments[0]):
        case nodes.Name(name) if (found := writer.family(name)) is not None:
            element, index = found
            return Part(row(Operator("arg"), Big("max", element, index)), BIG)
    inside = argument(writer.write(node.arguments[0]))
    return Part(row(Operator("arg"), Big("max", inside)), BIG)


def dotted(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return Part(juxtaposed([writer.write(each, PRODUCT) for each in node.arguments[:2]]), PRODUCT)


def outer(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    left, right = node.arguments[:2]
    return Part(
        juxtaposed([writer.write(left, PRODUCT), power(writer.part(right), Sign("⊤")).formula]),
        PRODUCT,
    )


def swapped(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return power(writer.part(node.arguments[0]), Sign("⊤"))


def elementwise(operator: str) -> Notation:
    """xp.multiply(a, b) and its like, as the sign."""

    def written(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
        left, right = node.arguments[:2]
        if operator in "+-":
            terms = nodes.Term(1, left), nodes.Term(1 if operator == "+" else -1, right)
            return writer.part(nodes.Sum(terms), marks)
        factors = nodes.Factor(False, left), nodes.Factor(operator == "/", right)
        return writer.part(nodes.Product(factors), marks)

    return written


def negated(writer: Writer, node: nodes.Call, marks: Marks) -> Part:
    return writer.part(nodes.Negative(node.arguments[0]), marks)
