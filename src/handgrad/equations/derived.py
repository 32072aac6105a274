"""The result of a derivation: equations, symbols, gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handgrad.documents.formulas.formula import Formula
from handgrad.equations.glossary import Glossary
from handgrad.program import Node


@dataclass(frozen=True)
class Arrived:
    """An array of the example that equations take as it is: an input, a gradient that comes in.

    `parts` are its symbols with what each stands for: one, or one for each step.
    """

    node: Node
    symbol: Formula
    name: str
    parts: tuple[tuple[Formula, Any], ...]
    is_gradient: bool = False


@dataclass(frozen=True)
class DerivedEquation:
    """`left` = `right`, the shape and value of both, and `right` with its numbers put in."""

    name: str
    left: Formula
    right: Formula
    shape: Formula
    value: Any
    figures: Formula | None
    #: Every array of the value with its symbol: one, or those of a list that a loop made.
    parts: tuple[tuple[Formula, Any], ...] = ()
    #: The operations and the names in them, alike for inputs of other sizes.
    computed: Any = None
    #: True where the same line ran before, in an earlier round of a loop.
    again: bool = False
    #: The range of the loop around it, as in t = 1, …, T.
    loop: Formula | None = None
    #: The step of that loop, as in t = 2, and the equation with its number in the place of t.
    step: Formula | None = None
    here: DerivedEquation | None = None
    #: True where the value replaces one of the same name in every round.
    updates: bool = False
    #: The nodes of the example whose values these are.
    nodes: tuple[Node, ...] = ()
    #: What these are made of, where no equation before makes it.
    arrived: tuple[Arrived, ...] = ()
    #: True where Python decided by the value of an array what is computed.
    is_decided: bool = False

    @property
    def says_nothing(self) -> bool:
        """True where both sides are written alike, as where a product has no name of its own."""
        return self.left == self.right


@dataclass(frozen=True)
class Meaning:
    """One symbol: as it is written, its name in the code, and what it is.

    `shape` of an array, `definition` of a number computed from others, `value` of a setting,
    `words` of a function.
    """

    symbol: Formula
    name: str
    shape: Formula | None = None
    definition: Formula | None = None
    value: Any = None
    words: str = ""


@dataclass(frozen=True)
class PairDerivation:
    """The equations of a forward and its backward, with their symbols and values."""

    forward: tuple[DerivedEquation, ...]
    backward: tuple[DerivedEquation, ...]
    symbols: tuple[Meaning, ...]
    #: The contents of the cache, by the names of its fields.
    kept: tuple[Meaning, ...]
    #: The inputs of the example, with every step of a sequence by itself.
    given: tuple[tuple[Formula, Any], ...]
    #: The gradients that come in, likewise.
    incoming: tuple[tuple[Formula, Any], ...]
    #: Their symbols, those of a sequence for step t.
    arriving: tuple[Formula, ...]
    #: The gradient of each input, in the order in which backward returns them.
    gradients: Mapping[str, Any]
    glossary: Glossary
    #: The counter of the steps of a sequence, where there is a loop over them.
    counter: Formula | None = None
    #: The names of backward that all gradients but the first are made of.
    behind_parameters: frozenset[str] = frozenset()
