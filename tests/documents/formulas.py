"""Looking into formulas: what stands where."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from handgrad.documents.formulas.formula import Big, Script, Symbol, Text


def parts(formula: Any) -> Iterator[Any]:
    """The formula and everything in it."""
    yield formula
    for item in dataclasses.fields(formula):
        yield from _inside(getattr(formula, item.name))


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _inside(each)
    elif dataclasses.is_dataclass(value):
        yield from parts(value)


def contains(formula: Any, part: Any) -> bool:
    return any(each == part for each in parts(formula))


def letters(formula: Any) -> set[str]:
    """Every letter and word of a formula."""
    return {
        each.name if isinstance(each, Symbol) else each.text.strip()
        for each in parts(formula)
        if isinstance(each, Symbol | Text)
    }


def indices(formula: Any) -> set[str]:
    """The letters that a sum or a subscript counts with."""
    found: set[str] = set()
    for each in parts(formula):
        if isinstance(each, Big) and each.below is not None:
            found |= letters(each.below) | (letters(each.above) if each.above else set())
        if isinstance(each, Script) and each.sub is not None:
            found |= letters(each.sub)
    return found
