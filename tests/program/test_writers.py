"""Index arrays of which it is known that they name no place twice."""

import numpy as np
import pytest

from handgrad.program import primitives  # noqa: F401 (fills the tables)
from handgrad.program.node import Node, Program, World, as_node, build, within
from handgrad.program.primitives.index import Slot
from handgrad.program.primitives.select import beside
from handgrad.program.primitives.writers import distinct, last_writers
from handgrad.program.run import run
from handgrad.program.sizes import Size

N, M = Size.of("N"), Size.of("M")


@pytest.fixture
def lengths():
    w = World()
    w.lengths |= {"N": 5, "M": 4}
    with within(w):
        yield w.lengths


def leaf(shape, kind="f"):
    value = np.random.default_rng(0).random([{"N": 5, "M": 4}[str(s)] for s in shape])
    value = (3 * value).astype(int) if kind == "i" else value > 0.5 if kind == "b" else value
    return Node("input", (), {}, shape, kind, value, "x")


def test_counts_orders_and_masks_name_places_once(lengths):
    x = leaf((N, M))
    i = build("arange", size=N)
    assert distinct([i])
    assert distinct([i, i])
    assert distinct([leaf((N,), "b")])
    for op, more in (("argsort", {}), ("argpartition", {"kth": Size.of(2)})):
        order = build(op, x, axis=1, **more)
        assert distinct(beside(order, 1, x.shape))
        top = build("getitem", order, index=(slice(None), slice(Size.of(-2), None)))
        assert distinct(beside(top, 1, top.shape))
    assert distinct([as_node(np.array([3, 0, 2]))])


def test_given_integers_and_repeated_constants_may_repeat(lengths):
    x = leaf((N, M))
    assert not distinct([leaf((N,), "i")])
    assert not distinct([leaf((N,), "i"), leaf((N,), "i")])
    assert not distinct([as_node(np.array([0, 2, 0]))])
    assert not distinct([as_node(np.array([0, -5]))])
    assert not distinct([build("argsort", x, axis=1)])
    assert not distinct(beside(leaf((N, M), "i"), 1, x.shape))


def test_the_last_value_for_a_place_stays(lengths):
    base, i, g = leaf((N,)), leaf((M,), "i"), leaf((M,))
    out = last_writers(g, base, [i], (Slot(0),))
    places = np.array([2, 0, 2, 0])
    (found,) = run(Program([base, i, g], [out]), [base.value, places, g.value], lengths)
    np.testing.assert_array_equal(found, g.value * [0, 0, 1, 1])
