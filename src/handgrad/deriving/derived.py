"""The parts of a derivation: both programs, their sources, the proof, and the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from handgrad.deriving.algebra import Simplification
from handgrad.deriving.guards import fixed_letters
from handgrad.deriving.orders import Order, Orders, of_size
from handgrad.deriving.pair import DerivedPair
from handgrad.deriving.proof import Proof
from handgrad.deriving.written import Written
from handgrad.program.node import Node, Program
from handgrad.program.sizes import Size


@dataclass(frozen=True)
class ChainRule:
    """The gradients as the chain rule gives them, and the steps that made them shorter."""

    gradients: tuple[Node, ...]
    steps: tuple[Simplification, ...]


@dataclass(frozen=True, eq=False)
class Derived:
    """A forward and the backward derived from it, as programs and as sources."""

    name: str
    pair: DerivedPair = field(repr=False)
    written: Written = field(repr=False)
    proof: Proof = field(repr=False)
    chain: ChainRule = field(repr=False)

    @property
    def steps(self) -> tuple[Simplification, ...]:
        return self.chain.steps

    @property
    def programs(self) -> dict[str, Program]:
        return {"forward": self.pair.forward, "backward": self.pair.backward}

    @property
    def forward_source(self) -> str:
        return self.written.source_of("forward")

    @property
    def backward_source(self) -> str:
        return self.written.source_of("backward")

    @property
    def cache(self) -> tuple[str, ...]:
        return self.written.cache

    @cached_property
    def fixed(self) -> Mapping[str, int]:
        return fixed_letters(self.pair.traced.world)

    def orders(self, bounds: Mapping[str, Order] | None = None) -> dict[str, Orders]:
        """The orders of operations and memory of the forward and of the backward.

        bounds: letters that are known to be at most others.
        """
        counters = self.pair.traced.world.counters
        known = {letter: of_size(count, bounds or {}) for letter, count in counters.items()}
        known |= {letter: of_size(Size.of(n), {}) for letter, n in self.fixed.items()}
        programs = {"forward": self.pair.traced.program, "backward": self.pair.backward}
        return {
            name: Orders.of(program, {**known, **(bounds or {})})
            for name, program in programs.items()
        }

    @property
    def order(self) -> str:
        """The orders in a line: `backward: O(D·N), forward: O(D·N)`."""
        orders = self.orders()
        return ", ".join(f"{name}: {orders[name].operations}" for name in ("backward", "forward"))
