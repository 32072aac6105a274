"""The expressions of a backward of which a line keeps, or gives back, the value."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from handgrad.checking.alignment.changes import Place, statements
from handgrad.checking.alignment.evaluating import results_of
from handgrad.checking.alignment.lines import LineValues, called
from handgrad.checking.alignment.pieces import Call, CodePiece, Function
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.variants import names_in, parsed
from handgrad.checking.tensors import is_tensor


@dataclass(eq=False)
class LineSlot:
    """One of them, with its values round by round, and what was there as its line began last.

    name: the variable that keeps it, "" where it is given back. before: what that was, round by
    round, where the line adds to it or multiplies it; else nothing.
    """

    piece: CodePiece
    place: Place
    statement: ast.stmt
    values: list[np.ndarray]
    scope: CallScope
    name: str
    before: list[np.ndarray]

    @property
    def value(self) -> np.ndarray:
        """The value of the last round."""
        return self.values[-1]

    @property
    def called(self) -> str:
        """The last name or key of what keeps it."""
        return called(parsed(self.name)) if self.name else ""

    @property
    def of_tensors(self) -> bool:
        """True for a line of a function on PyTorch's tensors."""
        return any(map(is_tensor, self.scope.call.names.values()))

    def needed(self, right: np.ndarray, before: Any, *, is_share: bool) -> np.ndarray:
        """The value with which the line leaves another one behind; is_share: with which it adds it.

        before: what its variable is as the line begins.
        """
        match getattr(self.statement, "op", None):
            case ast.Add():
                right = right if is_share else right - before
            case ast.Sub():
                right = -right if is_share else before - right
            case ast.Mult():
                right = right / before
            case ast.Div():
                right = before / right
        return right

    @property
    def is_stored(self) -> bool:
        """True where the line writes into an array, of which the shape stays."""
        targets = self.statement.targets if isinstance(self.statement, ast.Assign) else []
        return bool(targets) and all(isinstance(each, ast.Subscript) for each in targets)

    @property
    def is_sum(self) -> bool:
        """True where the line adds to its variable, or subtracts from it."""
        return isinstance(getattr(self.statement, "op", None), ast.Add | ast.Sub)

    def left(self, *, is_share: bool) -> np.ndarray:
        """The value that the line leaves behind, or adds."""
        match getattr(self.statement, "op", None):
            case ast.Add():
                return self.value if is_share else self.before[-1] + self.value
            case ast.Sub():
                return -self.value if is_share else self.before[-1] - self.value
            case ast.Mult():
                return self.before[-1] * self.value
            case ast.Div():
                return self.before[-1] / self.value
        return self.value

    def at(self, names: dict[str, Any], results: Sequence[Any]) -> LineSlot | None:
        """The same as its line begins with other values; None where it is not to be had there."""
        call, known = replace(self.scope.call, names=names), results_of(self.statement, results)
        scope = CallScope(self.scope.function, call, known)
        value, before = scope.array(self.place.get()), _before(self.statement, scope)
        if value is None or (self.before and before is None):
            return None
        if not value.ndim:  # a number that is written into an array fills it
            value = np.full(self.value.shape, value, dtype=np.float64)
        return replace(self, scope=scope, values=[value], before=[] if before is None else [before])

    @cached_property
    def fed(self) -> dict[str, ast.Assign]:
        """The lists that its expression reads, and the one line that makes each."""
        read = names_in(self.place.get())
        lists = {name for name in read if isinstance(self.scope.call.names.get(name), list | tuple)}
        makers: dict[str, list[ast.Assign]] = {}
        for each in ast.walk(self.scope.function):
            match each:
                case ast.Assign([ast.Name(name)], ast.List() | ast.Tuple()) if name in lists:
                    makers.setdefault(name, []).append(each)
        return {name: lines[0] for name, lines in makers.items() if len(lines) == 1}

    def made(self) -> np.ndarray | None:
        """The value that its expression, as the tree is now, gives; None if not to be had."""
        lists = {name: line.value for name, line in self.fed.items()}
        return self.scope.changed(self.place.get(), lists)


def slots(piece: CodePiece, lines: LineValues) -> Iterator[LineSlot]:
    """Those of one function, in the order of its text."""
    for function, call in piece.regions:
        if isinstance(function.body, ast.expr):
            continue
        for _, statement in statements(function.body):
            if statement not in lines.names:
                continue
            if isinstance(statement, ast.Assign | ast.Return):
                yield from _of_line(piece, function, call, statement, lines)
            elif isinstance(statement, ast.AugAssign):
                yield from _of_change(piece, function, call, statement, lines)


def _of_change(
    piece: CodePiece,
    function: Function,
    call: Call,
    statement: ast.AugAssign,
    lines: LineValues,
) -> Iterator[LineSlot]:
    """The slot of a line that adds to a variable, or multiplies it."""
    begun = zip(lines.names[statement], lines.results[statement], strict=True)
    rounds = [
        CallScope(function, replace(call, names=names), results_of(statement, results))
        for names, results in begun
    ]
    values = [each.array(statement.value) for each in rounds]
    before = [_before(statement, each) for each in rounds]
    known = [each for each in values if each is not None and each.size]
    were = [each for each in before if each is not None and each.dtype.kind == "f"]
    if len(known) == len(were) == len(rounds) and len({each.shape for each in known}) == 1:
        name, place = ast.unparse(statement.target), Place(statement, "value")
        yield LineSlot(piece, place, statement, known, rounds[-1], name, were)


def _before(statement: ast.stmt, scope: CallScope) -> np.ndarray | None:
    return scope.array(statement.target) if isinstance(statement, ast.AugAssign) else None


def _of_line(
    piece: CodePiece,
    function: Function,
    call: Call,
    statement: ast.Assign | ast.Return,
    lines: LineValues,
) -> Iterator[LineSlot]:
    known = results_of(statement, lines.results[statement][-1])
    scope = CallScope(function, replace(call, names=lines.names[statement][-1]), known)
    whole = Place(statement, "value")
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    places, names = [whole], [ast.unparse(target) if target is not None else ""]
    if isinstance(statement.value, ast.Tuple):
        several = statement.value.elts
        places = [Place(statement.value, "elts", i) for i in range(len(several))]
        names = [""] * len(several)
        if isinstance(target, ast.Tuple) and len(target.elts) == len(several):
            names = [ast.unparse(each) for each in target.elts]
    made = lines.values.get(statement, [])
    for i, (place, name) in enumerate(zip(places, names, strict=True)):
        values = made[i :: len(places)] if len(made) % len(places) == 0 else []
        if values and values[-1].size and len({each.shape for each in values}) == 1:
            yield LineSlot(piece, place, statement, values, scope, name, [])
