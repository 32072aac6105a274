"""Expectations that rules ask for, of whatever computes them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

from handgrad.limits.inputs import Side
from handgrad.limits.variables import Variable


class Ask(NamedTuple):
    """One expectation: `kind` "second" is E[u v], "given" that given the gates behind u and v,
    "tangent" the tangent kernel of u and v."""

    moments: Expectations
    kind: str
    u: Variable
    v: Variable


#: A rule yields what it needs to know and returns the answer.
Rule = Generator[Ask, Any, Any]


class Expectations(Protocol):
    """What a rule may know of the `Moments` that it is a rule of."""

    sides: tuple[Side, Side]
    is_diagonal: bool
    gates: Any
    known: dict[Ask, Any]

    @property
    def alone(self) -> tuple[Expectations, Expectations]: ...
    def second(self, u: Variable, v: Variable) -> Any: ...
    def ask(self, kind: str, u: Variable, v: Variable) -> Ask: ...
    def recall(self, ask: Ask) -> Any: ...
    def rule(self, ask: Ask) -> Rule: ...
