"""The writer as notations know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from handgrad.documents.formulas.formula import Formula
from handgrad.equations.parts import CONDITION, Part
from handgrad.equations.scope import LoopPosition, Scope
from handgrad.equations.shaping import Subscripts
from handgrad.program.sizes import Size


class Writes(Protocol):
    """What a notation may ask of the `Writer`, whose table it stands in."""

    @property
    def scope(self) -> Scope: ...
    @property
    def place(self) -> LoopPosition | None: ...
    @property
    def figures(self) -> Callable[[Any], Formula] | None: ...
    def part(self, value: Any, subscripts: Subscripts = ()) -> Part: ...
    def write(
        self, value: Any, around: int = CONDITION, subscripts: Subscripts = ()
    ) -> Formula: ...
    def bare(self, node: Any) -> Any: ...
    def has_symbol(self, node: Any) -> bool: ...
    def at(self, place: LoopPosition) -> Writes: ...
    def letter(self, size: Size, taken: list[str]) -> Formula: ...
