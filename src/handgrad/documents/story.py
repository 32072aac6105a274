"""A page's run as steps: every array, and of each of its elements how it is computed from others.

A script shows it, so it is plain data that becomes JSON. An element is opened by a tree and the
indices of its leaves, so that the trees of a sum of products are written once for all elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from handgrad.documents.formulas.formula import Formula

PLACE: Final = "@"
#: The number of an array (a leaf of it), [number], or [operation, tree, tree, ...].
Tree: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Pane:
    """A matrix of an array: the flat index of every element in it, row by row.

    `element` is the symbol of one of them, where PLACE stands for its indices, counted from 1; the
    first of these are `index`. `symbol` is that of the matrix, where it has its own.
    """

    rows: tuple[tuple[int, ...], ...]
    element: Formula
    symbol: Formula | None = None
    index: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantity:
    """An array of the run; `beside` is the array whose gradient it is."""

    symbol: Formula
    name: str
    shape: tuple[int, ...]
    values: tuple[float, ...]
    panes: tuple[Pane, ...]
    backward: bool = False
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """An array that a step computes.

    `trees` are those of its elements, `elements` for each of them the number of its tree and the
    flat indices of the tree's leaves in order; both are empty where it is not opened.
    """

    quantity: int
    trees: tuple[Tree, ...] = ()
    elements: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One equation; `target` is its anchor on the page, `moment` says of which step of a loop."""

    phase: Literal["forward", "backward"]
    formula: Formula
    target: str
    operands: tuple[int, ...]
    results: tuple[Result, ...]
    moment: Formula | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """`editable` where every number follows from the trees, so that all can be computed anew."""

    quantities: tuple[Quantity, ...]
    steps: tuple[StoryStep, ...]
    editable: bool
