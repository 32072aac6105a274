"""Guards of the forward set apart, so that a page opens with the usual case.

A guard is a case for a constant where something equals infinity or zero, such as a row that is
masked everywhere. Its equations are shown as they read where it holds nowhere, and stand once more
in an aside as they run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from handgrad.documents.formulas.formula import (
    Accent,
    Cases,
    Formula,
    FormulaRow,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
    parts_in,
)
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.models.symbols import renamed

_INFINITE: Final = Symbol("infinity")
_ZERO: Final = Number("0")


Equations = tuple[DerivedEquation, ...]


def usual(*passes: Equations) -> tuple[tuple[Equations, ...], Equations]:
    """The equations of each pass as they read without guards, and those with one as they run.

    An equation of which nothing is left but another symbol goes away, and that symbol stands for
    its own from there on.
    """
    guarded: list[DerivedEquation] = []
    aliases: dict[Formula, Formula] = {}
    return tuple(tuple(_usual(each, guarded, aliases)) for each in passes), tuple(guarded)


def _usual(
    equations: Equations, guarded: list[DerivedEquation], aliases: dict[Formula, Formula]
) -> Iterator[DerivedEquation]:
    for each in equations:
        changes = {case: _otherwise(case) for case in parts_in(each.right) if _is_guard(case)}
        if not changes and not aliases:
            yield each
            continue
        right = renamed(renamed(each.right, changes), aliases)
        if changes:
            guarded.append(each)
        if changes and isinstance(right, Symbol | Script | Text | Accent) and each.loop is None:
            aliases[each.left] = right
        elif right != each.right:
            yield replace(each, right=right, figures=None if changes else each.figures)
        else:
            yield each


def _is_guard(formula: Formula) -> bool:
    match formula:
        case Cases(((Number(), FormulaRow((_, *condition))), _)):
            pairs = pairwise(condition)
            return (Sign("="), _INFINITE) in pairs or tuple(condition[-2:]) == (Sign("="), _ZERO)
    return False


def _otherwise(formula: Formula) -> Formula:
    assert isinstance(formula, Cases)
    return formula.rows[1][0]
