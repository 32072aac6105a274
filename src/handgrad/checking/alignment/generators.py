"""The table of changes: for each kind of expression, what may have been meant instead."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from handgrad.checking.alignment.borrowing import (
    Borrowed,
    insertions,
    of_argument,
    of_index,
    renamed,
    windows,
)
from handgrad.checking.alignment.changes import (
    Both,
    Change,
    Head,
    Place,
    expressions,
    statements,
)
from handgrad.checking.alignment.derivatives import of_derivative, of_jacobian, of_square
from handgrad.checking.alignment.inserting import inserted_at, of_whole, reordered
from handgrad.checking.alignment.meant import (
    carried,
    of_blocks,
    of_condition,
    of_corner,
    of_earlier,
    of_factor,
    of_margin,
    of_rows,
    of_selected,
    of_step,
)
from handgrad.checking.alignment.pieces import CodePiece, Function
from handgrad.checking.alignment.replacing import (
    bounds,
    is_branch,
    of_bound,
    of_expression,
    other_sizes,
)
from handgrad.checking.alignment.scope import CallScope, distinct
from handgrad.checking.alignment.size import size_of
from handgrad.checking.alignment.spellings import added_at
from handgrad.checking.alignment.variants import SIGN, Variant, names_in, values_in
from handgrad.checking.alignment.wording import said
from handgrad.checking.alignment.words import SourceWords
from handgrad.checking.attempts import attempted

#: Kinds of which the part is a term of a sum.
_OF_TERMS: Final = ("term missing", "wrong sign", "extra term")
#: Operations of an update that are taken for one another.
_TURNED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
}
#: Statements that are left out or stand in another order.
_LINES: Final = (ast.Assign, ast.AugAssign, ast.Expr)
#: Statements that make values.
_SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.Return)
#: Kinds of which the part is a factor.
_FACTORS: Final = ("factor missing", "mask forgotten", "activation derivative forgotten")
#: Lines behind one that read a variable as well, so that it is one fault and not one in each.
_SEVERAL: Final = 2
#: The words of a factor that is a window, whatever its index: it stands elsewhere as it is.
_WINDOW: Final = 1.5
#: The same of a number that forward has.
_NUMBER: Final = 1.0
#: The same of a slice of which nothing is left, which nobody means.
_NOTHING: Final = 0.0


def changes(
    piece: CodePiece, borrowed: Borrowed, *, inserted: bool, only: Container[Any] | None = None
) -> Iterator[Change]:
    """All changes of a function's lines: those of what is there, or insertions.

    only: the lines that are changed, where not all are.
    """
    for function, call in piece.regions:
        scope = CallScope(function, call)
        yield from _of_function(function, scope, borrowed, only, inserted=inserted)
        if inserted:
            lines = attempted(borrowed.stores.changes(scope))
            yield from (each for each in lines if only is None or each.statement in only)


def varied(place: Place, variant: Variant, statement: ast.stmt, scope: CallScope) -> Change:
    """The change to a variant; a term that is a variable is told with what it is."""
    new, kind, part, phrase = variant
    told = scope.explained(part) if kind in _OF_TERMS else part
    return Change(place, new, kind, part, phrase.replace("{}", told), statement)


def within(
    place: Place, statement: ast.stmt, scope: CallScope, borrowed: Borrowed
) -> Iterator[Change]:
    """All changes of one expression of a line."""
    own = Head(place.parent, place.field, place.index)
    yield from _replacements(own, statement, scope, borrowed)
    yield from _insertions(own, statement, scope, borrowed)


def _of_function(
    function: Function,
    scope: CallScope,
    borrowed: Borrowed,
    only: Container[Any] | None,
    *,
    inserted: bool,
) -> Iterator[Change]:
    body = function.body
    if isinstance(body, ast.expr):
        holders: list[tuple[Place | None, Any]] = [(None, function)]
    else:
        holders = list(statements(body))
        if not inserted:
            yield from _carried(holders, function, scope)
            yield from _as_forward_together(holders, borrowed, only)
    for (place, statement), behind in zip(holders, [*holders[1:], (None, None)], strict=True):
        if isinstance(statement, ast.FunctionDef | ast.While | ast.ClassDef):
            continue
        if only is not None and statement not in only:
            continue
        if place is not None and not inserted:
            yield from _of_statement(place, statement, scope)
            yield from _in_order(place, statement, *behind)
            yield from _as_forward(statement, borrowed, scope)
            yield from _scaled(place, statement, scope)
            yield from _from_here_on(place, statement, scope)
        own = _header(statement)
        if inserted:
            yield from _insertions(own, statement, scope, borrowed)
        else:
            yield from _replacements(own, statement, scope, borrowed)


def _as_forward(statement: ast.stmt, borrowed: Borrowed, scope: CallScope) -> Iterator[Change]:
    """The values that forward sets the same variables to."""
    if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Name):
        for each in borrowed.as_forward.set_to(statement):
            yield varied(Place(statement, "value"), each, statement, scope)


def _as_forward_together(
    holders: list[tuple[Place | None, Any]], borrowed: Borrowed, only: Container[Any] | None
) -> Iterator[Change]:
    """The same of all lines of a block that forward has otherwise, as the two sides of a window."""
    blocks: dict[int, list[ast.stmt]] = {}
    for place, statement in holders:
        if place is not None:
            blocks.setdefault(id(place.holder), []).append(statement)
    for block in blocks.values():
        for lines, new in borrowed.as_forward.together(block):
            if only is None or lines[0] in only:
                part = " and ".join(said(each.targets[0]) for each in lines)
                phrase = f"{part} belong there as forward has them"
                others = [(Place(each, "value"), own) for each, own in zip(lines, new, strict=True)]
                first, *rest = others
                yield Change(*first, "stale variable", part, phrase, lines[0], (*rest,))


def _carried(
    holders: list[tuple[Place | None, Any]], function: Function, scope: CallScope
) -> Iterator[Change]:
    own = [(place, each) for place, each in holders if place is not None]
    for place, statement, new, name, factor in attempted(carried(own, function, scope)):
        part, kind = said(ast.Name(name)), "term missing"
        phrase = f"{part} is never set in the loop: the path through the next step is missing"
        if factor:
            part, kind = factor, "factor missing"
            phrase = f"the factor {factor} of {name} from one step to the next is missing"
        yield Change(place, new, kind, part, phrase, statement)


def _header(statement: Any) -> ast.AST:
    """The statement's own expressions: of a loop what it goes over, of a condition its test."""
    if isinstance(statement, ast.For):
        return Head(statement, "iter")
    if isinstance(statement, ast.If):
        return Head(statement, "test")
    if isinstance(statement, ast.With | ast.Try):
        return ast.Pass()
    return statement


def _places(own: ast.AST) -> Iterator[tuple[Place, ast.expr]]:
    if isinstance(own, Head):
        yield own.place, own.place.get()
        yield from expressions(own.place.get())
    elif isinstance(own, ast.Lambda):
        yield Place(own, "body"), own.body
        yield from expressions(own.body)
    else:
        yield from expressions(own)


def _replacements(
    own: ast.AST, statement: Any, scope: CallScope, borrowed: Borrowed
) -> Iterator[Change]:
    places = list(_places(own))
    for place, node in places:
        found = chain(of_index(node, borrowed, scope), of_rows(node, scope))
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            found = chain(
                found,
                of_argument(place, node, borrowed),
                of_derivative(node, scope),
                of_jacobian(place, node, scope),
                of_square(node),
                of_expression(place, node, scope),
                borrowed.as_forward.variants(node, place, scope),
                of_blocks(node, scope),
                of_earlier(node, scope),
                of_step(node),
                of_condition(node),
                of_factor(place, node, scope),
                of_corner(node, scope),
                of_selected(node, scope),
            )
        yield from (varied(place, each, statement, scope) for each in attempted(found))
        for each in attempted(of_margin(node, scope)):
            yield replace(varied(place, each, statement, scope), words=_NOTHING)
    for place, node in bounds(own):
        for each in attempted(of_bound(node)):
            yield varied(place, each, statement, scope)
        for inner, size in [(place, node), *expressions(node)]:
            for each in attempted(other_sizes(size, scope)):
                yield varied(inner, each, statement, scope)
    for ((first, new), *others), part, phrase in attempted(renamed(places, scope)):
        said_so = phrase.replace("{}", part)
        yield Change(first, new, "stale variable", part, said_so, statement, (*others,))


def _of_statement(place: Place, statement: ast.stmt, scope: CallScope) -> Iterator[Change]:
    """Other statements: += for =, an update that repeats indices, none at all."""

    def change(new: Any, kind: str, part: str, phrase: str) -> Change:
        return Change(place, new, kind, part, phrase.replace("{}", part), statement)

    match statement:
        case ast.AugAssign(target, op, value):
            new: ast.stmt = ast.Assign([copy.deepcopy(target)], value)
            yield change(new, "extra term", said(target), "{} is added to where it should be set")
            if type(op) in _TURNED:
                other = ast.AugAssign(target, _TURNED[type(op)](), value)
                yield change(other, "wrong sign", said(value), SIGN)
            if isinstance(op, ast.Add | ast.Sub):
                signed = value if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), value)
                yield from _each_once(change, target, signed, scope)
        case ast.Assign([ast.Name() | ast.Subscript() | ast.Attribute() as held], value):
            phrase = "{} is overwritten where a sum belongs (+=): " + (
                "of every step, the last one counts"
                if _is_repeated(statement, scope.function)
                else "what it was before is lost"
            )
            used = (each for each in ast.walk(value) if isinstance(each, type(held)))
            reads = ast.unparse(held) in map(ast.unparse, used)  # it sets itself on purpose
            for added in (ast.Add(), ast.Sub()) if not reads else ():
                new = ast.AugAssign(held, added, value)
                yield change(new, "term missing", said(held), phrase)
            if isinstance(held, ast.Subscript):
                phrase = "{} is overwritten where it should be multiplied (*=)"
                new = ast.AugAssign(held, ast.Mult(), value)
                yield change(new, "factor missing", said(held), phrase)
            yield from _each_once(change, held, value, scope)
        case ast.If(test, [ast.Continue()], []):
            phrase = "rounds in which {} are left out, and should not be"
            yield replace(change(ast.Pass(), "wrong branch", said(test), phrase), words=_NUMBER)
    if isinstance(statement, _LINES):
        yield change(ast.Pass(), "extra term", ast.unparse(statement), "{} is too many")


def _in_order(
    place: Place, statement: ast.stmt, after: Place | None, later: Any
) -> Iterator[Change]:
    """A line of a block behind the one that follows it."""
    are_lines = isinstance(statement, _LINES) and isinstance(later, _LINES)
    if after is not None and are_lines and place.holder is after.holder:
        part = f"{ast.unparse(later)} before {ast.unparse(statement)}"
        phrase, swap = f"the order of two lines is wrong: {part}", ((after, statement),)
        yield Change(place, later, "stale variable", part, phrase, statement, swap)


def _is_repeated(statement: ast.stmt, function: ast.AST) -> bool:
    """Return whether a statement is in a loop."""
    loops = (each for each in ast.walk(function) if isinstance(each, ast.For | ast.While))
    return any(each is statement for loop in loops for each in ast.walk(loop))


def _each_once(
    change: Callable[[Any, str, str, str], Change],
    target: ast.expr,
    value: ast.expr,
    scope: CallScope,
) -> Iterator[Change]:
    """A sum at every index for a line that sets or adds at each once."""
    if not isinstance(target, ast.Subscript):
        return
    array = copy.deepcopy(target.value)
    array.ctx = ast.Load()  # type: ignore[attr-defined]
    call, name = added_at(array, target.slice, value, scope)
    phrase = "{} is overwritten where a sum belongs: of a repeated index the last one counts"
    phrase += f", and {name} adds each"
    yield change(ast.Expr(call), "term missing", said(target), phrase)


def _scaled(place: Place, statement: ast.stmt, scope: CallScope) -> Iterator[Change]:
    """A line after one that changes an array in place, by which all of it is divided by a size."""
    match statement:
        case ast.AugAssign(ast.Subscript(name)) | ast.Assign([ast.Subscript(name)]):
            pass
        case ast.AugAssign(ast.Name() | ast.Attribute() as name):
            pass
        case _:
            return
    own, every = scope.array(name), distinct((*scope.atoms, *scope.sizes))
    numbers = [other for other, value in every if value not in (0.0, 1.0)]
    for other in numbers if own is not None and own.dtype.kind == "f" else ():
        for op, label in ((ast.Div(), f"1/{said(other)}"), (ast.Mult(), said(other))):
            held: Any = copy.copy(name)
            held.ctx = ast.Store()
            new = Both([statement, ast.AugAssign(held, op, other)])
            phrase = f"the factor {label} of {said(name)} is missing"
            yield Change(place, new, "scale missing", label, phrase, statement)


def _from_here_on(place: Place, statement: ast.stmt, scope: CallScope) -> Iterator[Change]:
    """A line before one, by which a variable that several lines read on gains a factor.

    It changes each of them, and is a word more for each. One that is read before as it is, or is an
    argument: else the line that sets it lacks the same.
    """
    body = scope.function.body
    if not isinstance(statement, _SIMPLE) or not isinstance(body, list):
        return
    lines = [each for _, each in statements(body) if isinstance(each, _SIMPLE)]
    at = next((i for i, each in enumerate(lines) if each is statement), len(lines))
    before, after = ast.Module([*lines[:at]], []), lines[at + 1 :]
    arguments = {each.arg for each in scope.function.args.args} - names_in(before, ast.Store)
    read = (each for each in values_in(statement) if isinstance(each.ctx, ast.Load))
    for own in {each.id: each for each in read}.values():
        array = scope.array(own)
        if array is None or not array.ndim or array.dtype.kind != "f":
            continue
        later = sum(own.id in names_in(each, ast.Load) for each in after)
        if later < _SEVERAL or own.id not in arguments | names_in(before, ast.Load):
            continue
        for new, kind, part, phrase in attempted(inserted_at(own, array, scope, is_part=False)):
            if kind in _FACTORS:
                line = ast.Assign([ast.Name(own.id, ast.Store())], new)
                said_so = f"{phrase.replace('{}', part)}, here and below"
                every = Change(place, Both([line, statement]), kind, part, said_so, statement)
                yield replace(every, words=size_of(every, SourceWords()) + later)


def _insertions(
    own: ast.AST, statement: Any, scope: CallScope, borrowed: Borrowed
) -> Iterator[Change]:
    """What was left out at an expression: a sign, a factor, a term, a sum, an axis."""
    for place, node in _places(own):
        if not _takes_insertions(place, node):
            continue
        array = scope.array(node)
        if array is None and (scope.value(node) is not None or _is_owner(place, node)):
            continue
        if array is not None and array.dtype.kind == "i" and not array.ndim:
            yield from _strides(place, node, statement, scope)
            continue
        is_part = isinstance(place.parent, ast.BinOp) or is_branch(place)
        # A mask by x² < 1 is one by |x| < 1, but nobody means it.
        is_compared = isinstance(place.parent, ast.Compare)
        found = inserted_at(node, array, scope, is_part=is_part) if not is_compared else iter(())
        if array is not None:
            found = chain(found, insertions(node, array, borrowed, scope))
        if array is not None and array.ndim and array.dtype.kind == "f":
            for each in borrowed.as_forward.scaled(node):
                yield replace(varied(place, each, statement, scope), words=_NUMBER)
        if array is not None and (_is_reshaped(place) or _reshapes(node)):
            found = chain(found, reordered(node, array, scope))
        if isinstance(place.parent, ast.stmt | ast.Tuple | ast.Lambda):
            found = chain(found, of_whole(node, array, scope))
        yield from (varied(place, each, statement, scope) for each in attempted(found))
        match place.parent:
            case ast.AugAssign(ast.Subscript() as target) if array is not None:
                for each in attempted(windows(node, array, target, borrowed, scope)):
                    yield replace(varied(place, each, statement, scope), words=_WINDOW)


def _strides(place: Place, node: ast.expr, statement: Any, scope: CallScope) -> Iterator[Change]:
    """The number of a round kept as a place, `i * stride`, as another of the function is."""
    if not isinstance(node, ast.Name) or not isinstance(place.parent, ast.Assign):
        return
    products = (each for each in ast.walk(scope.function) if isinstance(each, ast.BinOp))
    steps = {ast.unparse(e.right): e.right for e in products if isinstance(e.op, ast.Mult)}
    for text, step in steps.items():
        value = scope.array(step)
        if value is not None and value.dtype.kind == "i" and not value.ndim and value > 1:
            new, phrase = ast.BinOp(node, ast.Mult(), step), f"the factor {said(step)} is missing"
            yield Change(place, new, "factor missing", text, f"{phrase} in {said(node)}", statement)


def _is_reshaped(place: Place) -> bool:
    """Return whether an expression is what a method or a function gives another shape."""
    match place.parent:
        case ast.Attribute(attr="reshape" | "view" | "flatten" | "ravel"):
            return True
        case ast.Call(ast.Attribute(attr="reshape" | "ravel")):
            return True
    return False


def _reshapes(node: ast.expr) -> bool:
    """Return whether an expression gives something another shape."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".reshape")


def _is_owner(place: Place, node: ast.expr) -> bool:
    """Return whether a name stands before a dot, as that of a module or an object does."""
    return isinstance(place.parent, ast.Attribute) and isinstance(node, ast.Name)


def _is_indexed(place: Place) -> bool:
    """Return whether an array is read at several numbers: x[i, j] says itself which element."""
    match place.parent:
        case ast.Subscript(slice=ast.Tuple(elts)):
            each_is_one = all(isinstance(each, ast.Name | ast.BinOp) for each in elts)
            return place.field == "value" and len(elts) > 1 and each_is_one
    return False


def _takes_insertions(place: Place, node: ast.expr) -> bool:
    if isinstance(getattr(node, "ctx", None), ast.Store) or isinstance(
        node, ast.Constant | ast.Slice | ast.Tuple | ast.List | ast.Dict | ast.Starred
    ):
        return False
    if place.field in ("slice", "func", "lower", "upper", "step"):
        return False
    if _is_indexed(place):
        return False
    if isinstance(getattr(place.parent, "ctx", None), ast.Store):  # an array that is written to
        return False
    return not isinstance(place.parent, ast.keyword)
