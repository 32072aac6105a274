"""Changes that other lines ask for: the index, constant, step or condition that forward has."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeGuard

import numpy as np

from handgrad.checking.alignment.changes import Both, Place
from handgrad.checking.alignment.pieces import CodePiece, Function
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import (
    Variant,
    binary,
    filled,
    indices,
    multiplied,
    names_in,
    operands,
    parsed,
    replaced,
    taken_at,
)
from handgrad.checking.alignment.wording import said

#: Values made in a round of which one may be what the next round begins with.
_MOST_CARRIED: Final = 12
#: Elements of a block of which the copies are added up.
_MOST_COPIES: Final = 9
_LETTERS: Final = "ijkmnpqr"


class AsForward:
    """Expressions of forward in which a name stands with a constant, or is taken at an index; and
    those that its variables are set to.
    """

    def __init__(self, pieces: Iterable[CodePiece]) -> None:
        self._of: dict[str, dict[str, ast.expr]] = {}
        self._set: dict[str, dict[str, ast.expr]] = {}
        #: Numbers that forward multiplies by.
        self.numbers: dict[float, ast.expr] = {}
        for node in (each for piece in pieces if piece.in_forward for each in ast.walk(piece.tree)):
            match node:
                case ast.BinOp(ast.Name() | ast.Attribute() as name, ast.Add(), ast.Constant()):
                    self._note(name, node)
                case ast.BinOp(ast.Name() | ast.Attribute() as name, ast.Add(), ast.Name()):
                    self._note(name, node)
                case ast.Subscript(ast.Name() | ast.Attribute() as name, ast.Tuple(elements)):
                    if all(isinstance(each, ast.Slice | ast.Constant) for each in elements):
                        self._note(name, node)
                case ast.Subscript(ast.Name() | ast.Attribute() as name, ast.Name()):
                    self._note(name, node)
                    column = ast.Tuple([ast.Slice(), ast.Constant(None)], ast.Load())
                    self._note(name, ast.Subscript(node, column, ast.Load()))
                case ast.BinOp(ast.Constant(float(number)) as own, ast.Mult()):
                    self.numbers.setdefault(number, own)
                case ast.BinOp(ast.UnaryOp(_, ast.Constant(float(number)) as own), ast.Mult()):
                    self.numbers.setdefault(number, own)
                case ast.BinOp(_, ast.Mult(), ast.Constant(float(number)) as own):
                    self.numbers.setdefault(number, own)
                case ast.Assign([target], value):
                    self._set.setdefault(ast.unparse(target), {})[ast.unparse(value)] = value

    def _note(self, name: ast.expr, node: ast.expr) -> None:
        plain = copy.deepcopy(node)
        plain.ctx = ast.Load()  # type: ignore[attr-defined]
        self._of.setdefault(ast.unparse(name), {}).setdefault(ast.unparse(plain), plain)

    def variants(self, node: ast.expr, place: Place, scope: CallScope) -> Iterator[Variant]:
        """The expressions in the place of their name."""
        around = place.parent
        if isinstance(around, ast.Attribute | ast.Subscript):
            return
        for new in self._of.get(ast.unparse(node), {}).values():
            if scope.array(new) is None or ast.unparse(around) == ast.unparse(new):
                continue
            phrase = "{} belongs there, as forward has it"
            if isinstance(new, ast.BinOp):
                phrase = f"the term {said(new.right)} of forward is missing: {{}} belongs there"
            kind = "stale variable"
            if isinstance(new, ast.Subscript) and isinstance(new.slice, ast.Tuple):
                kind, phrase = "wrong axis", f"it broadcasts along another axis: {phrase}"
            yield new, kind, f"{said(new)} for {said(node)}", phrase

    def scaled(self, node: ast.expr) -> Iterator[Variant]:
        """The expression times a number that forward multiplies by."""
        for own in self.numbers.values():
            phrase = f"the factor {{}} of forward is missing in {said(node)}"
            yield filled("c * a", c=own, a=node), "scale missing", said(own), phrase

    def together(
        self, lines: Iterable[ast.stmt]
    ) -> Iterator[tuple[list[ast.Assign], list[ast.expr]]]:
        """Two lines or more of one block that forward has otherwise, with what it sets them to."""
        own = [each for each in lines if isinstance(each, ast.Assign) and len(each.targets) == 1]
        found = [(each, new) for each in own for new, *_ in islice(self.set_to(each), 1)]
        if len(found) > 1:
            yield [each for each, _ in found], [new for _, new in found]

    def set_to(self, statement: ast.Assign) -> Iterator[Variant]:
        """The values that forward sets the variables of a line to."""
        own = ast.unparse(statement.value)
        for text, new in self._set.get(ast.unparse(statement.targets[0]), {}).items():
            if text != own and not isinstance(new, ast.Name):
                phrase = "{} belongs there, as forward has it"
                yield new, "stale variable", f"{said(new)} for {said(statement.value)}", phrase


def of_earlier(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """The value of the step before for that of a step: `hs[t - 1] if t > 0 else h0`."""
    match node:
        case ast.Subscript(stacked, ast.Name() as index, ast.Load()):
            own = scope.array(node)
        case _:
            return
    if own is None or not own.ndim or own.dtype.kind != "f":
        return
    before = filled("a[i - 1]", a=stacked, i=index)
    first = (
        each for each, value in scope.atoms if (value.shape, value.dtype) == (own.shape, own.dtype)
    )
    for start in (parsed("0.0"), *first):
        if ast.unparse(start) != ast.unparse(node):
            new = filled("a if i > 0 else b", a=before, i=index, b=start)
            part = f"{said(before)}, and {said(start)} at the first step, for {said(node)}"
            phrase = "the value of the step before belongs there: {}"
            yield new, "stale variable", part, phrase


def of_blocks(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """The sum over the copies of which every k-th is taken: `dy[::2]` is one of two of them."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return
    free = iter(each for each in _LETTERS if each not in scope.call.names)
    rounds: list[tuple[str, ast.expr]] = []
    index: list[ast.expr] = []
    copies = 1
    for each in indices(node.slice):
        match each:
            case ast.Slice(None, None, ast.expr() as step) if _is_stride(
                number := scope.value(step)
            ):
                letter = next(free, "")
                rounds.append((letter, step))
                index.append(ast.Slice(ast.Name(letter, ast.Load()), None, step))
                copies *= number
            case _:
                index.append(each)
    if not rounds or copies > _MOST_COPIES:
        return
    one = ast.unparse(taken_at(node, index))
    loops = " ".join(f"for {letter} in range({ast.unparse(step)})" for letter, step in rounds)
    phrase = "a sum over the copies is missing: of each block {} takes one, and every one counts"
    yield parsed(f"sum({one} {loops})"), "not reduced", said(node), phrase


def _is_stride(number: object) -> TypeGuard[int]:
    return type(number) is int and number > 1


def of_step(node: ast.expr) -> Iterator[Variant]:
    """A window that begins at k·s and is not strided, where the k-th of strided ones is meant."""
    match node:
        case ast.Slice(
            ast.BinOp(one, ast.Mult(), other) as lower, ast.BinOp(again, ast.Add(), length), None
        ) if ast.unparse(lower) == ast.unparse(again):
            for start, step in ((one, other), (other, one)):
                upper = filled("a + k * n", a=start, k=step, n=length)
                new = ast.Slice(start, upper, step)
                part = f"{ast.unparse(new)} for {ast.unparse(node)}"
                yield new, "shifted", part, "the stride of the slice belongs to its elements: {}"


def of_condition(node: ast.expr) -> Iterator[Variant]:
    """A comparison that took in a term beside it, and one of the two that bound a mask."""
    match node:
        case ast.Compare(left, [op], [ast.BinOp(first, other, rest)]):
            new = binary(ast.Compare(left, [op], [first]), other, rest)
            phrase = "the brackets of {} belong elsewhere: a comparison of the whole is a boolean"
            yield new, "brackets", said(node), phrase
        case ast.Compare(
            left, [ast.Lt() | ast.LtE() as op], [ast.Constant(int() | float()) as end]
        ):
            text = "a > -b" if isinstance(op, ast.Lt) else "a >= -b"
            below = filled(text, a=left, b=end)
            phrase = "the condition {} is forgotten: the mask has two sides"
            yield filled("a & b", a=node, b=below), "mask forgotten", f"({said(below)})", phrase


def of_selected(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """A cotangent that is spread over values of which one was taken, as a maximum takes one.

    It belongs where x is y, spread as the cotangent is.
    """
    own = scope.array(node) if isinstance(node, ast.Call | ast.Subscript) else None
    if own is None or own.dtype.kind != "f":
        return
    names = {each.id: each for each in ast.walk(node) if isinstance(each, ast.Name)}
    for name, used in names.items():
        value = scope.array(used)
        if value is None or not value.ndim or value.size >= own.size:
            continue
        for other, taken in scope.atoms:
            if ast.unparse(other) == name or (taken.shape, taken.dtype) != (value.shape, own.dtype):
                continue
            spread = scope.changed(node, {name: other})
            for each, values in scope.atoms if spread is not None else ():
                if values.shape == own.shape and (values == spread).any():
                    mask = filled("a == b", a=each, b=replaced(node, {name: other}))
                    phrase = "the mask {} is forgotten: only the value that was taken has a part"
                    yield (
                        filled("a * m", a=node, m=mask),
                        "mask forgotten",
                        f"({said(mask)})",
                        phrase,
                    )


def of_rows(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """One element of each row, by an index for each, where a row or all of them stand."""
    match node:
        case ast.Subscript(_, ast.Tuple([ast.Slice(None, None) | ast.Constant(int()), index])):
            each = scope.array(index)
            if each is None or each.dtype.kind != "i" or each.ndim != 1:
                return
            for name, module in scope.call.scope.items():
                if module is np:
                    rows = filled(f"{name}.arange(len(i))", i=index)
                    new = taken_at(node, [rows, index])
                    part = f"{said(new)} for {said(node)}"
                    yield new, "shifted", part, "one element of each row belongs there: {}"
                    return


def of_corner(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """Slices `:H` that begin elsewhere: `p:p + H` for a number p that is there."""
    if not isinstance(node, ast.Subscript):
        return
    parts = indices(node.slice)
    if not any(isinstance(each, ast.Slice) and each.upper for each in parts):
        return
    for start, value in scope.atoms:
        if not value.ndim and value.dtype.kind == "i" and value > 0:
            new = taken_at(node, [_moved(each, start) for each in parts])
            phrase = f"elements are taken from the corner, and belong {said(start)} further: {{}}"
            yield new, "shifted", f"{said(new)} for {said(node)}", phrase


def _moved(index: ast.expr, start: ast.expr) -> ast.expr:
    match index:
        case ast.Slice(None, ast.expr() as upper, None):
            return ast.Slice(start, binary(start, ast.Add(), upper), None)
    return index


def of_margin(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """Slices `p:-p` where p is 0, of which nothing is left: `p:n - p` is all of n elements then."""
    if not isinstance(node, ast.Subscript):
        return
    new, emptied = [*indices(node.slice)], ""
    for i, each in enumerate(new):
        match each:
            case ast.Slice(lower, ast.UnaryOp(ast.USub(), margin), None) if (
                scope.value(margin) == 0
            ):
                length = filled(f"a.shape[{i}] - p", a=node.value, p=margin)
                new[i], emptied = ast.Slice(lower, length, None), ast.unparse(each)
    if emptied:
        phrase = "the slice {} is empty where its end is −0: it counts from the other side"
        yield taken_at(node, new), "shifted", emptied, phrase


def of_factor(place: Place, node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """A factor that stands outside of sums, put beside one of the values in them."""
    if not _is_product(node) or _is_product(place.parent):
        return
    factors = list(operands(node, ast.Mult))
    for factor in factors:
        own = scope.array(factor)
        if own is None or not own.ndim:
            continue
        rest = [each for each in factors if each is not factor]
        names = {
            each.id: each
            for inner in rest
            if any(isinstance(part, ast.Call) for part in ast.walk(inner))
            for each in ast.walk(inner)
            if isinstance(each, ast.Name)
        }
        for name, used in names.items():
            value = scope.array(used)
            if value is None or not value.ndim or name == ast.unparse(factor):
                continue
            times = {name: binary(used, ast.Mult(), factor)}
            new = multiplied(replaced(each, times) for each in rest)
            part = f"{said(factor)} beside {said(used)}"
            phrase = "the factor stands outside of the sums and belongs inside, {}"
            yield new, "factor missing", part, phrase


def _is_product(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def carried(
    body: list[tuple[Place, ast.stmt]], function: Function, scope: CallScope
) -> Iterator[tuple[Place, ast.stmt, ast.stmt, str, str]]:
    """Assignments at the end of a loop, of names that it reads and never sets.

    Gives the place and the statement of the loop's last line, what may stand there, the name, and
    by what it is multiplied, if it is.
    """
    for loop in (each for _, each in body if isinstance(each, ast.For)):
        whole = ast.Module(loop.body, [])
        stored = names_in(whole, ast.Store)
        read = names_in(whole, ast.Load) - stored
        before = names_in(function, ast.Store) | {each.arg for each in function.args.args}
        last = next((pair for pair in body if pair[1] is loop.body[-1]), None)
        if last is None:
            continue
        for name in sorted(read & before):
            own = scope.array(ast.Name(name, ast.Load()))
            if own is None or own.dtype.kind != "f":
                continue
            made = [
                atom
                for atom, value in scope.atoms
                if value.shape == own.shape and value.dtype.kind == "f" and _root(atom) in stored
            ]
            texts = [(ast.unparse(each), "") for each in made[:_MOST_CARRIED]]
            texts += _times(name, own, scope)
            for text, factor in texts:
                new = ast.parse(f"{name} = {text}").body[0]
                place, statement = last
                yield place, statement, Both([statement, new]), name, factor


def _times(name: str, own: np.ndarray, scope: CallScope) -> Iterator[tuple[str, str]]:
    """A variable times others, or what is missing to 1 of them, or a matrix; and that factor."""
    for each, value in scope.atoms:
        other = ast.unparse(each)
        if value.dtype.kind != "f" or other == name:
            continue
        if value.shape in ((), own.shape) or (own.ndim and value.shape == own.shape[1:]):
            rest = f"(1 - {other})"
            yield from ((f"{name} * {other}", other), (f"{name} * {rest}", rest))
        elif own.ndim in (1, 2) and value.shape == (own.shape[-1], own.shape[-1]):
            yield from ((f"{name} @ {each}", each) for each in (other, f"{other}.T"))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
