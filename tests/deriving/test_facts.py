"""Sums that are constant: proved from what arrays are, or stated by who knows the data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from handgrad.deriving.algebra.facts import assumptions, found_facts, made_true
from handgrad.deriving.algebra.read import Reader
from handgrad.deriving.algebra.terms import BaseTable, told
from handgrad.errors import ArgumentError
from handgrad.program import primitives  # noqa: F401 (fills the tables)
from handgrad.program.node import Node, World, build, within
from handgrad.program.sizes import Size

N, D = Size.of("N"), Size.of("D")


@pytest.fixture
def world() -> World:
    found = World()
    found.lengths |= {"N": 4, "D": 5}
    return found


def array(name: str, seed: int) -> Node:
    value = np.random.default_rng(seed).standard_normal((4, 5))
    return Node("input", (), {}, (N, D), "f", value, name)


def test_deviations_from_a_mean_sum_to_zero(world: World) -> None:
    with within(world):
        x = array("x", 0)
        mean = build("mean", x, axis=(1,), keepdims=True)
        mean.name = "mean"
        centred = x - mean
        centred.name = "centred"
        reader = Reader(BaseTable())
        reader.read([mean, centred])
        (fact,) = found_facts(reader, [mean, centred])
    assert (fact.over, fact.value) == (frozenset({1}), Fraction(0))
    assert told(fact.why) == "Σ centred = 0, because Σ(x − mean) = 0"


def test_what_the_example_shows_alone_is_no_fact(world: World) -> None:
    with within(world):
        x, y = array("x", 0), array("y", 0)
        mean = build("mean", y, axis=(1,), keepdims=True)
        difference = x - mean
        reader = Reader(BaseTable())
        reader.read([mean, difference])
        assert found_facts(reader, [mean, difference]) == []


def test_stated_facts_are_made_true_of_examples() -> None:
    (stated,) = assumptions({"sum(q, -1)": 1})
    q = made_true([stated], "q", np.random.default_rng(1).standard_normal((3, 4)))
    np.testing.assert_allclose(q.sum(-1), 1)
    (zero,) = assumptions({"np.sum(q, axis=0)": 0})
    np.testing.assert_allclose(zero.true_of(q).sum(0), 0, atol=1e-12)


@pytest.mark.parametrize("text", ["q == 1", "max(q, -1)", "sum(q)"])
def test_other_assumptions_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="allowed: sums over one axis"):
        assumptions({text: 1})


def test_a_fact_about_no_array_is_refused(world: World) -> None:
    (stated,) = assumptions({"sum(z, -1)": 1})
    with pytest.raises(ArgumentError, match="z is no array"):
        stated.fact(Reader(BaseTable()), [array("x", 0)])
    with pytest.raises(ArgumentError, match="allowed: one of them"):
        stated.true_of(np.zeros(()))
