"""The expressions of a backward of which a line keeps, or gives back, the value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from handgrad.checking.alignment.changes import Place, statements
from handgrad.checking.alignment.lines import LineValues
from handgrad.checking.alignment.pieces import Call, CodePiece, Function
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.tensors import is_tensor


@dataclass(eq=False)
class LineSlot:
    """One of them, with its values round by round, and what was there as its line began last.

    name: the variable that keeps it, "" where it is given back.
    """

    piece: CodePiece
    place: Place
    statement: ast.stmt
    values: list[np.ndarray]
    scope: CallScope
    name: str

    @property
    def value(self) -> np.ndarray:
        """The value of the last round."""
        return self.values[-1]

    @property
    def of_tensors(self) -> bool:
        """True for a line of a function on PyTorch's tensors."""
        return any(map(is_tensor, self.scope.call.names.values()))

    @cached_property
    def fed(self) -> dict[str, ast.Assign]:
        """The lists that its expression reads, and the one line that makes each."""
        read = {each.id for each in ast.walk(self.place.get()) if isinstance(each, ast.Name)}
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
            if isinstance(statement, ast.Assign | ast.Return) and statement in lines.names:
                yield from _of_line(piece, function, call, statement, lines)


def _of_line(
    piece: CodePiece,
    function: Function,
    call: Call,
    statement: ast.Assign | ast.Return,
    lines: LineValues,
) -> Iterator[LineSlot]:
    scope = CallScope(function, replace(call, names=lines.names[statement][-1]))
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
            yield LineSlot(piece, place, statement, values, scope, name)
