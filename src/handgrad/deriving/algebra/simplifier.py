"""What a simplification offers to its parts: its arrays, their costs, and how it is done again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from handgrad.deriving.algebra.choose import Costs
from handgrad.deriving.algebra.steps import Simplification
from handgrad.deriving.algebra.terms import Fact
from handgrad.deriving.algebra.values import Twin
from handgrad.program.node import Node


class Simplifier(Protocol):
    """The simplification of one program's backward."""

    costs: Costs
    own: set[int]
    flows: set[int]
    steps: list[Simplification]

    def inner(self, own: set[int], flows: set[int], twin: Twin | None) -> Simplifier:
        """The simplification of a loop's body, whose inputs are what is there."""

    def simplified(
        self, body: Sequence[Node], roots: Sequence[Node], facts: Iterable[Fact] = ()
    ) -> tuple[list[Node], list[Simplification]]:
        """The roots in fewer operations, and the steps."""

    def needed(self, roots: Iterable[Node]) -> set[int]:
        """The arrays of the backward that roots are made of."""

    def note_meetings(self, nodes: Iterable[Node]) -> None:
        """Notes which factors meet often."""

    def rewritten(self, roots: Sequence[Node]) -> list[Node]:
        """The roots with everything below them written anew."""

    def cost(self, nodes: Iterable[Node], beside_others: bool = False) -> float:
        """The cost of nodes."""

    def spare(self, nodes: Iterable[Node], *, yes: bool) -> None:
        """Lets arrays of the forward be found again, or be kept."""
