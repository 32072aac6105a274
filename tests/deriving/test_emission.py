"""Emitted statements: in an order in which they run, of the types that the forward has."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from tests.rows import rows

RNG = np.random.default_rng(4)


def counted_before(x, edges):
    """The weights are made before the mask that says how many there are."""
    mask = edges[0] != edges[1]
    ends = edges[1][mask]
    weight = np.ones(x.shape[0] + len(ends))
    to = np.concatenate([ends, np.arange(x.shape[0])])
    degree = np.zeros(x.shape[0])
    np.add.at(degree, to, weight)
    return x / degree[:, None]


def test_a_mask_is_counted_after_it_is_made():
    edges = np.array([[0, 1, 2, 3], [1, 1, 0, 2]])
    derived = hg.derive(counted_before, RNG.standard_normal((4, 3)), edges)
    x, edges = RNG.standard_normal((5, 2)), np.array([[0, 1, 2, 3, 4], [1, 1, 2, 2, 4]])
    y, cache = derived.forward(x, edges)
    np.testing.assert_allclose(y, counted_before(x, edges))
    np.testing.assert_allclose(
        derived.backward(np.ones_like(x), cache), counted_before(np.ones_like(x), edges)
    )


def of_a_product(w):
    product = w @ w.T
    product.reshape(-1)[:: w.shape[0] + 1] += 1.0
    return np.linalg.inv(product)


def with_edges(x):
    return np.pad(x, 1, constant_values=-1) * x.sum()


def of_masks(x):
    """Two masks meet in one sum: NumPy subtracts no truth from another."""
    largest, least = x.max(-1), x.min(-1)
    return (largest - least) / (largest + least)


@rows("forward", (of_a_product, with_edges, of_masks))
def test_results_and_gradients_are_those_of_the_forward(forward):
    derived = hg.derive(forward, RNG.random((3, 4)) + 1)
    x = RNG.random((2, 5)) + 1
    y, cache = derived.forward(x)
    np.testing.assert_allclose(y, forward(x), rtol=1e-9)
    dy, way = RNG.standard_normal(y.shape), RNG.standard_normal(x.shape)
    slope = ((forward(x + 1e-6 * way) - forward(x - 1e-6 * way)) * dy).sum() / 2e-6
    assert (derived.backward(dy, cache) * way).sum() == pytest.approx(slope, rel=1e-5)


def rotated(x):
    """A recurrence of complex numbers, as linear recurrent units have it."""
    turn = np.exp(-x[0] + 1j * x[1])
    h, found = np.zeros_like(turn), []
    for row in x:
        h = turn * h + row
        found.append(h)
    return np.abs(np.stack(found)) ** 2


def test_a_loop_of_complex_numbers_runs_in_reverse():
    derived = hg.derive(rotated, x=("T", "D"))
    x = RNG.random((5, 3))
    y, cache = derived.forward(x)
    np.testing.assert_allclose(y, rotated(x))
    dy, way = RNG.standard_normal(y.shape), RNG.standard_normal(x.shape)
    slope = ((rotated(x + 1e-6 * way) - rotated(x - 1e-6 * way)) * dy).sum() / 2e-6
    assert (derived.backward(dy, cache) * way).sum() == pytest.approx(slope, rel=1e-5)


def loading(theta, m):
    """At theta of 0 a division by 0 cancels in the values, and on one side alone."""
    x = m / theta[1]
    return theta[0] * (1 - np.exp(-x)) / x


def call(spot, strike, sigma):
    return spot / (1 + np.exp(-np.log(spot / strike) / sigma))


@pytest.mark.parametrize(
    ("forward", "shapes"), [(loading, [(2,), ("N",)]), (call, [("N",), ("N",), ("N",)])]
)
def test_the_end_of_a_domain_is_no_smooth_point(forward, shapes):
    derived = hg.derive(forward, *shapes)
    arrays = [RNG.random(2 if shape == (2,) else 5) + 0.5 for shape in shapes]
    y, cache = derived.forward(*arrays)
    np.testing.assert_allclose(y, forward(*arrays))
    assert all(np.isfinite(each).all() for each in derived.backward(np.ones_like(y), cache))


def windows(x):
    """Blocks of half the length: the length is not found from theirs at 1."""
    half = x.shape[0] // 2
    return np.tanh(x.reshape(x.shape[0] // half, half)) * half


def test_lengths_that_are_divided_by_each_other_are_read_where_they_stand():
    derived = hg.derive(windows, RNG.standard_normal(6))
    x = RNG.standard_normal(8)
    np.testing.assert_allclose(derived.forward(x)[0], windows(x))


def of_the_longest(x, lengths):
    """The longest length cuts the arrays: it is that of the example."""
    n = int(lengths.max())
    mask = np.arange(n) < lengths[:, None]
    return (np.tanh(x[:, :n]) * mask @ x[:n]).sum(1)


def counted_in_a_sum(x, edges):
    mask = edges[0] != edges[1]
    weight = np.ones(x.shape[0] + mask.sum())
    degree = np.zeros(x.shape[0])
    np.add.at(degree, np.concatenate([edges[1][mask], np.arange(x.shape[0])]), weight)
    return x / degree[:, None]


def centres(x, kinds):
    number = int(kinds.max()) + 1
    sums = np.zeros((number, x.shape[1]))
    np.add.at(sums, kinds, x)
    return sums / np.bincount(kinds, minlength=number)[:, None]


def test_numbers_of_kinds_are_those_of_the_example():
    kinds = np.array([0, 1, 2, 1, 0])
    derived = hg.derive(centres, RNG.standard_normal((5, 3)), kinds)
    x, kinds = RNG.standard_normal((4, 2)), np.array([2, 1, 0, 2])
    np.testing.assert_allclose(derived.forward(x, kinds)[0], centres(x, kinds))


def test_a_branch_on_a_value_stands_before_what_fails_elsewhere():
    x, lengths = RNG.standard_normal((3, 5)), np.array([2, 3, 1])
    derived = hg.derive(of_the_longest, x, lengths)
    with pytest.raises(ValueError, match=r"n == 3 is False at line \d+; allowed: True"):
        derived.forward(x, np.array([2, 5, 1]))
    source = derived.forward_source
    assert source.index("raise ValueError") < source.index("np.tanh")
    edges = np.array([[0, 1, 2, 3], [1, 1, 0, 2]])
    derived = hg.derive(counted_in_a_sum, RNG.standard_normal((4, 3)), edges)
    with pytest.raises(ValueError, match=r"N \+ mask.sum\(\) == 7 is False at line \d+"):
        derived.forward(RNG.standard_normal((6, 3)), edges)


def padded(x, w):
    """Arrays as long as a mask selects, made in each round and in none before."""
    total = 0.0
    for t in range(len(w)):
        z = np.zeros(x[x > 0].shape)
        z[0] = w[t]
        total = total + (z * x[x > 0]).sum() * w[t]
    return total


def test_what_a_mask_selects_is_counted_before_the_loop_that_asks():
    source = hg.derive(padded, x=("N", "D"), w=("T",)).forward_source
    assert source.index("np.count_nonzero") < source.index("for t in range")
