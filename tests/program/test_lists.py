"""Python's own ways over arrays in forwards, lists of rounds above all, and rarer functions."""

# ruff: noqa: PERF401 (lists are filled as people fill them)

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from handgrad import derive
from tests.program.test_array_functions import case, holds
from tests.rows import rows


def combined(x):
    pairs = sum(np.sin(x[:, i] - 2 * x[:, j]) for i, j in itertools.combinations(range(4), 2))
    corners = sum(x[:, i] * x[:, j + 2] for i, j in itertools.product((0, 1), repeat=2))
    return pairs * corners


def segment_sums(x, i):
    return np.add.reduceat(np.tanh(x), [0, 2, 3], axis=1) * np.add.reduceat(x, i[:1])[0, 0]


def listed(x):
    rows = [np.tanh(x[t]).sum() for t in range(x.shape[0])]
    return np.mean(rows) * np.exp([rows[0], rows[1]]) + np.dot(rows, x[:, 0])


def vectorized(x, y):
    def bump(a, b):
        return a * np.exp(-b * b)

    return np.vectorize(bump)(x, y)


def by_lines(x):
    parts = np.apply_along_axis(lambda line: line / (1 + line @ line), 1, x)
    return parts * np.apply_along_axis(lambda line: np.outer(line, line)[0], 0, x)


def planes(x):
    return np.apply_along_axis(lambda line: np.stack([line[:2], line[1:3] ** 2]), 1, x)


def products(x, w):
    rows = []
    for n in range(len(x)):
        row = []
        for k in range(w.shape[1]):
            row.append(np.tanh(x[n] @ w[:, k]))
        rows.append(row)
    return np.array(rows)


def pairs(x):
    out = [[0.0, 1.0]]
    for row in x:
        out.append([row.sum(), row.max()])
    return np.array(out) ** 2


def cubes(x, w):
    out = []
    for n in range(len(x)):
        plane = []
        for k in range(w.shape[1]):
            line = []
            for d in range(x.shape[1]):
                line.append(x[n, d] * w[d, k])
            plane.append(line)
        out.append(plane)
    return np.sin(np.array(out))


def states(x):
    out = []
    for row in x:
        h, line = np.zeros(3), []
        for value in row:
            h = np.tanh(h + value)
            line.append(h)
        out.append(line)
    return np.array(out)


def strongest(x):
    i, j = np.unravel_index(np.argmax(np.abs(x)), x.shape)
    return x[i, j] ** 2 * (1 + i)


CASES = [
    case("combinations", combined, x=("N", 4)),
    case("reduceat", segment_sums, x=("N", "D"), i=("N", int)),
    case("range index", lambda x, i: x[range(len(i)), i] ** 2, x=("N", "D"), i=("N", int)),
    case("range reversed", lambda x: x[range(len(x) - 1, 0, -2)] ** 2, x=("N",)),
    case("lists", listed, x=("N", "D")),
    case("vectorize", vectorized, x=("N", "D"), y=("D",)),
    case("apply_along_axis", by_lines, x=("N", "D")),
    case("apply_along_axis-planes", planes, x=("N", "D", "K")),
    case("lists of lists", products, x=("N", "D"), w=("D", "K")),
    case("lists of pairs", pairs, x=("N", "D")),
    case("lists three deep", cubes, x=("N", "D"), w=("D", "K")),
    case("states in lists", states, x=("N", "D")),
    case("fromiter", lambda x: np.fromiter((v * v for v in x), dtype=float), x=("N",)),
    case("cov", lambda x, y: np.cov(x, y, rowvar=False), x=("N", "D"), y=("N", "K")),
    case("cov-1", lambda x: np.cov(x, bias=True) * x, x=("N",)),
    case("corrcoef", lambda x: np.corrcoef(x), x=("N", "D")),
    case("resize", lambda x: np.resize(x, (2, len(x))) ** 2, x=("N", "D")),
    case("isin", lambda x, i: np.isin(i, [0, 2]) * x, x=("N",), i=("N", int)),
    case("unravel_index", strongest, x=("N", "D")),
    case("triu_indices_from", lambda x: x[np.triu_indices_from(x, 1)] ** 2, x=("N", "D")),
    case("bincount", lambda x: np.bincount([0, 1, 1], x[:3]) ** 2, x=("N",)),
    case("columns first", lambda x: x.reshape((-1, 2), order="F") ** 2, x=("N", "2*D")),
    case("ravel F", lambda x: x.flatten(order="F") * np.arange(x.size), x=("N", "D")),
    case("compress", lambda x: x.compress([True, False, True], axis=1) ** 2, x=("N", "D")),
    case("toeplitz", lambda x, y: scipy.linalg.toeplitz(x, y) ** 2, x=("N",), y=("D",)),
    case("toeplitz-1", lambda x: scipy.linalg.toeplitz(x) @ x, x=("N",)),
    case("hankel", lambda x, y: scipy.linalg.hankel(x, y) ** 2, x=("N",), y=("D",)),
    case("circulant", lambda x: scipy.linalg.circulant(x) @ x, x=("N",)),
    case("block_diag", lambda x, y: scipy.linalg.block_diag(x, y) ** 2, x=("N", "D"), y=("K",)),
]


@rows(("forward", "shapes"), CASES)
def test_function(forward: Callable[..., Any], shapes: Any) -> None:
    holds(forward, **shapes)


def states(x, shape):
    out, state = [], np.zeros(shape)
    for row in x:
        state = np.tanh(state * row.sum() + row[0])
        out.append(state)
    return out


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: np.vstack(states(x, 2)),
        lambda x: np.column_stack(states(x, 2)),
        lambda x: np.hstack(states(x, ())),
        lambda x: np.dstack(states(x, (2, 1))),
    ],
)
def test_what_rounds_append_is_told_however_it_is_joined(forward: Callable[..., Any]) -> None:
    d = derive(forward, x=("N", "D"))
    assert not d.fixed
    x = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(d.forward(x)[0], forward(x))


def test_nested_loops_add_to_one_sum_in_place() -> None:
    """The backward is of no higher order: no sum of the array's length in every round."""
    d = derive(products, x=("N", "D"), w=("D", "K"))
    assert str(d.order) == "backward: O(D·K·N), forward: O(D·K·N)"
    assert d.backward_source.count("np.zeros(") == 2
    assert ".copy()" not in d.backward_source


def test_selection_by_indices_costs_what_it_gives() -> None:
    def total(x, i):
        s = 0.0
        for t in range(len(i)):
            s = s + np.sin(x[i[t], i[t]])
        return s

    d = derive(total, x=("V", "V"), i=("N", int))
    assert str(d.order) == "backward: O(N + V²), forward: O(N + V²)"


def test_lists_of_all_rounds_hold_the_counts() -> None:
    d = derive(lambda x: np.array([list(row) for row in x]) * 2, x=("N", "D"))
    x = np.ones((3, 4))
    with pytest.raises(ValueError, match="D is 4; allowed: "):
        d.forward(x)
