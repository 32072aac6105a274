"""docs/derived.md: every op is derived from its forward again, checked, and beside its own."""

from __future__ import annotations

import numpy as np
import pytest

from docs.derived.page import PAGE, WHY, page, rows
from docs.derived.row import DerivedRow, row
from docs.derived.terms import are_same
from handgrad.ops import OPS

#: So many ops are derived with the terms that they have by hand, at least.
LEAST_SAME = 37


@pytest.fixture(scope="module")
def found() -> list[DerivedRow]:
    return rows()


@pytest.mark.slow
def test_every_op_is_derived_and_right(found: list[DerivedRow]) -> None:
    assert [each.op for each in found] == list(OPS)
    assert [each.op for each in found if not each.is_right] == []


@pytest.mark.slow
def test_most_have_the_terms_by_hand_and_the_others_a_reason(found: list[DerivedRow]) -> None:
    others = {each.op for each in found if not each.has_same_terms}
    assert others == WHY.keys()
    assert len(found) - len(others) >= LEAST_SAME


@pytest.mark.slow
def test_the_page_is_what_the_derivations_say(found: list[DerivedRow]) -> None:
    assert PAGE.read_text("utf-8") == page(found)


@pytest.mark.parametrize(
    ("op", "terms"),
    [
        ("layer_norm", {"x": (3, 3, True), "gamma": (1, 1, True), "beta": (1, 1, True)}),
        ("tanh", {"x": (2, 2, True)}),
        ("silu", {"x": (3, 3, True)}),  # of which one factor by hand is a sum
        ("avg_pool1d", {"x": (1, 2, True)}),  # one loop, and a sum that is spelled out
    ],
)
def test_an_op_is_judged_by_its_terms(op: str, terms: dict[str, tuple[int, int, bool]]) -> None:
    found = row(op)
    assert found.is_right
    assert found.terms == terms


@pytest.mark.parametrize(("op", "rounds"), [("lstm", 6), ("leaky_rnn", 3)])
def test_a_loop_is_judged_by_what_its_rounds_hand_on(op: str, rounds: int) -> None:
    found = row(op)
    assert found.rounds == (rounds, rounds)
    assert found.has_same_terms


def test_terms_are_matched_one_by_one() -> None:
    a, b = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    assert are_same({0: [a], 1: [b]}, {7: [b], 3: [a]})
    assert are_same({0: [a, b]}, {0: [a + b]})  # of one kind: a sum that is spelled out
    assert not are_same({0: [a], 1: [b]}, {0: [a + b]})
    assert not are_same({0: [a], 1: [a]}, {0: [a]})
    assert are_same({0: [a], 1: [0 * a]}, {0: [a]})
