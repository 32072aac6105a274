"""An op's backward derived from its forward, beside the one by hand."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import handgrad as hg
from docs.derived.by_hand import by_hand
from docs.derived.terms import TermsOf, are_same, rounds_among, spelled_out
from handgrad.deriving import Derivation
from handgrad.deriving.algebra.choose import Costs, Count
from handgrad.ops.samples import gradient_names
from handgrad.program.node import Node


@dataclass(frozen=True)
class DerivedRow:
    """An op's row of the page.

    terms: of each gradient, how many the derived one has and the one by hand, and whether they are
    the same. rounds: of what the rounds of the loops by hand hand on, how much the derived rounds
    hand on with the same terms, and how much there is.
    """

    op: str
    derivation: Derivation
    is_right: bool
    terms: Mapping[str, tuple[int, int, bool]]
    rounds: tuple[int, int]
    costs: Count
    costs_by_hand: Count

    @property
    def has_same_terms(self) -> bool:
        same, all_rounds = self.rounds
        return same == all_rounds and all(each for _, _, each in self.terms.values())


def row(op: str) -> DerivedRow:
    """Derives, checks and compares; one after the other, for every op in a second."""
    derivation = derived(op)
    hand = by_hand(op, derivation)
    pair = derivation.pair
    lengths = pair.traced.world.lengths
    found: dict[str, tuple[int, int, bool]] = {}
    same_rounds: set[int] = set()
    for opens in (True, False):
        ours = TermsOf(pair.backward, pair.cotangents, lengths, opens=opens)
        others = TermsOf(hand.program, hand.cotangents, lengths, opens=opens)
        for path, one, other in zip(pair.wanted, ours.outputs, others.outputs, strict=True):
            name = str(path[0])
            if not (name in found and found[name][2]):
                counts = len(spelled_out(one)), len(spelled_out(other))
                found[name] = (*counts, are_same(one, other))
        same_rounds |= rounds_among(others, ours)
    return DerivedRow(
        op,
        derivation,
        is_right(derivation),
        found,
        (len(same_rounds), len(others.rounds)),
        _costs(lengths, pair.backward.outputs, pair.kept, pair.cotangents),
        _costs(lengths, hand.program.outputs, hand.kept, hand.cotangents),
    )


def derived(op: str) -> Derivation:
    """From the reference forward alone, for the gradients that the op has."""
    found = hg.derive(op)
    names = [str(path[0]) for path in found.pair.wanted]
    wanted = [name for name in names if name in gradient_names(op)]
    return found if wanted == names else hg.derive(op, wrt=wanted)


def is_right(derivation: Derivation) -> bool:
    """The verdict of hg.check on the derived pair, at the arrays that it was derived from."""
    traced = derivation.pair.traced
    arrays = {str(path[0]): node.value for path, node in traced.inputs.items()}
    settings = {str(each.path[0]): each.example for each in traced.arguments.settings}

    def forward(*given: Any) -> Any:
        return derivation.forward(**dict(zip(arrays, given, strict=True)), **settings)

    names = [str(path[0]) for path in derivation.pair.wanted]
    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in arrays]
    )
    return hg.check((forward, derivation.backward), *arrays.values(), wrt=names).ok


def _costs(
    lengths: Mapping[str, int],
    gradients: Sequence[Node],
    kept: Sequence[Node],
    cotangents: Sequence[Node],
) -> Count:
    costs = Costs(lengths, larger=1, function=1.0, comes=1.0, goes=1.0)
    return costs.total(gradients, set(map(id, kept)), free=set(map(id, cotangents)))
