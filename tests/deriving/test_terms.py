"""Sums of products over named indices: equal sums are equal objects."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from handgrad.deriving.algebra.terms import (
    BaseTable,
    Component,
    Fact,
    Factor,
    Mask,
    Sum,
    add,
    scaled,
)
from handgrad.program.node import Node
from handgrad.program.sizes import Size

N, D = Size.of("N"), Size.of("D")


def node(name: str, *shape: Size) -> Node:
    return Node("input", (), {}, shape, "f", np.ones([3] * len(shape)), name)


@pytest.fixture
def table() -> BaseTable:
    return BaseTable()


def summed(table: BaseTable, sum_: Sum, bound: dict[int, Size]) -> Sum:
    return table.multiply(sum_, {(): Fraction(1)}, bound)


def test_products_need_no_order(table: BaseTable) -> None:
    a, b = table.atom(node("a", N, D)), table.atom(node("b", N, D))
    assert table.multiply(a, b) == table.multiply(b, a)
    assert add(a, scaled(a, -1)) == {}


def test_names_of_bound_indices_do_not_matter(table: BaseTable) -> None:
    a, b = (table.number(node(name, N, D)) for name in "ab")
    one = table.product([Factor(a, (0, 7)), Factor(b, (0, 7))], {7: D})
    two = table.product([Factor(b, (0, 9)), Factor(a, (0, 9))], {9: D})
    assert one == two
    ((term, _),) = one.items()
    assert isinstance(table.bases[term[0].base], Component)


def test_factors_without_a_bound_index_stand_outside_of_its_sum(table: BaseTable) -> None:
    a, r = table.number(node("a", N, D)), table.number(node("r", N))
    inside = table.product([Factor(a, (0, 7)), Factor(r, (0,))], {7: D})
    outside = table.multiply(table.product([Factor(a, (0, 7))], {7: D}), table.atom(table.bases[r]))  # type: ignore[arg-type]
    assert inside == outside


def test_an_index_that_no_factor_has_is_a_length(table: BaseTable) -> None:
    r = table.number(node("r", N))
    assert table.product([Factor(r, (0,))], {7: D}) == table.multiply(
        table.size(D), {(Factor(r, (0,)),): Fraction(1)}
    )


def test_a_mean_of_what_is_constant_is_it(table: BaseTable) -> None:
    r = table.atom(node("r", N))
    below = table.powered(table.size(D), -1)
    assert below is not None
    assert table.multiply(summed(table, r, {7: D}), below) == r


def test_a_softmax_sums_to_one(table: BaseTable) -> None:
    e = table.number(node("e", N, D))
    total = table.product([Factor(e, (0, 7))], {7: D})
    below = table.powered(total, -1)
    assert below is not None
    p = table.multiply({(Factor(e, (0, 1)),): Fraction(1)}, below)
    assert summed(table, table.renamed(p, {1: 8}), {8: D}) == {(): Fraction(1)}


def test_roots_are_taken_of_one_factor_alone(table: BaseTable) -> None:
    a, b = table.atom(node("a", N)), table.atom(node("b", N))
    half = Fraction(1, 2)
    assert table.powered(table.multiply(a, b), half) is None
    assert table.powered(table.multiply(a, a), half) is None
    root = table.powered(a, half)
    assert root is not None
    assert table.multiply(root, root) == a


def test_definitions_are_put_in_inside_of_sums(table: BaseTable) -> None:
    c, x, m, w = node("c", N, D), node("x", N, D), node("m", N), node("w", N, D)
    base = table.number(c)
    definition = add(table.atom(x), scaled({(Factor(table.number(m), (0,)),): Fraction(1)}, -1))
    product = table.multiply(table.atom(c), table.atom(w))
    total = summed(table, table.renamed(product, {1: 7}), {7: D})
    written = table.replaced(total, base, definition)
    direct = table.multiply(definition, table.atom(w))
    assert written == summed(table, table.renamed(direct, {1: 7}), {7: D})
    assert written is not None
    assert len(written) == 2
    below = table.powered(table.atom(c), -1)
    assert below is not None
    assert table.replaced(below, base, definition) is None


def test_facts_take_a_factor_that_is_alone_under_its_sum(table: BaseTable) -> None:
    q, w = node("q", N, D), node("w", N, D)
    base = table.number(q)
    table.facts[base] = [Fact(base, frozenset({1}), Fraction(1), ("stated",))]
    alone = [Factor(base, (0, 7)), Factor(table.number(w), (0, 1))]
    assert table.product(alone, {7: D}) == table.atom(w)
    assert table.used[0].why == ("stated",)
    beside = [Factor(base, (0, 7)), Factor(table.number(w), (0, 7))]
    ((term, _),) = table.product(beside, {7: D}).items()
    assert table.inside(term[0].base) >= {base}


def test_a_mask_is_its_own_square_and_nothing_beside_its_opposite(table: BaseTable) -> None:
    condition = node("c", N)
    yes = Factor(table.number(Mask(condition)), (0,))
    no = Factor(table.number(Mask(condition, inverted=True)), (0,))
    assert table.product([yes, yes], {}) == {(yes,): Fraction(1)}
    assert table.product([yes, no], {}) == {}


def test_sizes_are_products_of_letters(table: BaseTable) -> None:
    assert table.size(N * D * 2) == scaled(table.multiply(table.size(N), table.size(D)), 2)
    assert len(table.size(N - 1)) == 1
    assert table.size(Size.of(0)) == {}


def test_a_sum_over_nothing_is_nothing(table: BaseTable) -> None:
    a = table.number(node("a", N, D))
    assert table.product([Factor(a, (0, 7))], {7: Size.of(0)}) == {}
