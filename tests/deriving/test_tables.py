"""Tables that rounds fill are changed in place, both ways, and never what is still to be read."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest
import scipy.special

import handgrad as hg


def soft_dtw(d, gamma=1.0):
    n, m = d.shape
    r = np.full((n + 1, m + 1), np.inf)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            z = -np.array([r[i - 1, j - 1], r[i - 1, j], r[i, j - 1]]) / gamma
            r[i, j] = d[i - 1, j - 1] - gamma * scipy.special.logsumexp(z)
    return r[n, m]


def transducer(blank, emit):
    t_max, u_max = blank.shape
    a = np.full((t_max, u_max), -1e30)
    a[0, 0] = 0
    for u in range(1, u_max):
        a[0, u] = a[0, u - 1] + emit[0, u - 1]
    for t in range(1, t_max):
        a[t, 0] = a[t - 1, 0] + blank[t - 1, 0]
        for u in range(1, u_max):
            above = a[t - 1, u] + blank[t - 1, u]
            a[t, u] = np.logaddexp(above, a[t, u - 1] + emit[t, u - 1])
    return -(a[-1, -1] + blank[-1, -1])


def transducer_by_branches(blank, emit):
    t_max, u_max = blank.shape
    a = np.zeros((t_max, u_max))
    for t in range(t_max):
        for u in range(u_max):
            if t == 0 and u == 0:
                continue
            if t == 0:
                a[t, u] = a[t, u - 1] + emit[t, u - 1]
            elif u == 0:
                a[t, u] = a[t - 1, u] + blank[t - 1, u]
            else:
                above = a[t - 1, u] + blank[t - 1, u]
                a[t, u] = np.logaddexp(above, a[t, u - 1] + emit[t, u - 1])
    return -(a[-1, -1] + blank[-1, -1])


def affine_gaps(s, gap=1.0, more=0.5):
    n, m = s.shape
    match, down, along = (np.full((n + 1, m + 1), -1e9) for _ in range(3))
    match[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            gaps = np.logaddexp(down[i - 1, j - 1], along[i - 1, j - 1])
            match[i, j] = s[i - 1, j - 1] + np.logaddexp(match[i - 1, j - 1], gaps)
            down[i, j] = np.logaddexp(match[i - 1, j] - gap, down[i - 1, j] - more)
            along[i, j] = np.logaddexp(match[i, j - 1] - gap, along[i, j - 1] - more)
    return np.logaddexp(match[n, m], np.logaddexp(down[n, m], along[n, m]))


def knapsack(w, c):
    table = np.zeros((len(w) + 1, len(c)))
    for i in range(len(w)):
        table[i + 1] = table[i]
        for j in range(1, len(c)):
            table[i + 1, j] = np.logaddexp(table[i, j], table[i, j - 1] + w[i] * c[j])
    return table[-1]


def gauss_seidel(u, f):
    v = u.copy()
    for i in range(1, len(u) - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] * np.sin(f[i, j] * v[i, j]))
    return v


TABLES: Final[dict[Any, Any]] = {
    soft_dtw: {"d": ("N", "M")},
    transducer: {"blank": ("N", "M"), "emit": ("N", "M")},
    transducer_by_branches: {"blank": ("N", "M"), "emit": ("N", "M")},
    affine_gaps: {"s": ("N", "M")},
    knapsack: {"w": ("N",), "c": ("M",)},
    gauss_seidel: {"u": ("N", "M"), "f": ("N", "M")},
}


class Counted(np.ndarray):
    """An array that counts the elements of its copies."""

    made = 0

    def copy(self, *_: Any) -> Any:
        Counted.made += self.size
        return np.ndarray.copy(self)


class Counting:
    """NumPy with the elements counted of all arrays that it makes and fills."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if name not in ("empty", "zeros", "full"):
            return function

        def made(*args: Any, **named: Any) -> Any:
            found = function(*args, **named).view(Counted)
            Counted.made += found.size
            return found

        return made


def elements(source: str, arrays: list[Any], rng: np.random.Generator) -> int:
    """The elements of the arrays that a forward and its backward make."""
    found: dict[str, Any] = {}
    exec(source, found)
    found |= {"np": Counting(), "math": math}
    Counted.made = 0
    y, cache = found["forward"](*arrays)
    found["backward"](rng.standard_normal(np.shape(y)), cache)
    return Counted.made


@pytest.mark.parametrize("forward", TABLES, ids=lambda f: f.__name__)
def test_a_table_is_of_its_own_order_both_ways(forward):
    """The proof of a derivation has the values; here are its order, and the elements made."""
    given = TABLES[forward]
    derived = hg.derive(forward, **given)
    both = derived.orders()
    assert both["backward"].operations <= both["forward"].operations
    assert str(both["backward"].operations) == "O(M·N)"
    rng = np.random.default_rng(5)
    made = []
    for n in (16, 32):
        lengths = {"N": n, "M": n}
        arrays = [rng.standard_normal([lengths[x] for x in shape]) for shape in given.values()]
        made.append(elements(derived.to("numpy"), arrays, rng))
    assert made[1] < 5 * made[0]  # 8 with a copy in each outer round


@pytest.mark.parametrize("forward", TABLES, ids=lambda f: f.__name__)
def test_tables_run_in_pytorch_too(forward):
    pytest.importorskip("torch")
    assert "autograd.Function" in hg.derive(forward, **TABLES[forward]).to("torch")


def view_handed_on(x, w):
    a, prev, y = np.zeros((3, x.shape[1])), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for t in range(len(x)):
        y = y + prev * x[t]
        a[0] = np.tanh(x[t] + w * prev)
        y = y + np.sin(prev) * a[0]
        prev = a[0]
    return y + a.sum(0)


def row_read_afterwards(x):
    a, y = np.zeros((len(x) + 1, x.shape[1])), np.zeros(x.shape[1])
    for t in range(len(x)):
        row = a[t].copy()
        a[t] = np.sin(row) + x[t]
        a[t + 1] = a[t] * row + 1
        y = y + row * a[t + 1]
    return y + a.sum(0)


def two_of_each_other(x, k):
    a, b = np.ones((len(x) + 1, x.shape[1])), np.ones((len(x) + 1, x.shape[1]))
    for t in range(len(x)):
        a[t + 1] = a[t] + k * b[t] * x[t]
        b[t + 1] = b[t] - k * a[t] * a[t + 1]
    return a[-1] * b[-2] + a.sum(0)


def exchanged(u, k):
    a, b = u.copy(), u.copy()
    for _ in range(5):
        b[1:-1] = a[1:-1] + k * (a[:-2] - 2 * a[1:-1] + a[2:]) * np.tanh(b[1:-1])
        a, b = b, a
    return a


def neighbours(x, w):
    v = x.copy()
    for _ in range(4):
        for i in range(len(x) - 1):
            m = v[i] * w + v[i + 1]
            v[i + 1] = v[i] - np.tanh(m)
            v[i] = m
    return v


def every_state(x):
    a, states = np.zeros(x.shape), []
    for t in range(len(x)):
        a[t] = x[t] * x[t]
        states.append(a.copy())
    return np.stack(states) * 2


@pytest.mark.parametrize(
    ("forward", "given"),
    [
        (view_handed_on, {"x": ("N", "D"), "w": ()}),
        (row_read_afterwards, {"x": ("N", "D")}),
        (two_of_each_other, {"x": ("N", "D"), "k": ()}),
        (exchanged, {"u": ("N", "D"), "k": ()}),
        (neighbours, {"x": ("N",), "w": ()}),
        (every_state, {"x": ("N", "D")}),
    ],
)
def test_what_is_read_of_an_array_before_it_changes_is_as_it_was(forward, given):
    """The derivation is proved by differences at two sizes."""
    source = hg.derive(forward, **given).forward_source
    assert "for " in source


def test_an_input_is_not_written_to_after_a_loop_of_no_rounds():
    def forward(x):
        h = x
        for _ in range(len(x) - 1):
            h = h * 0.5 + x
        h = h.copy()
        h[0] = 1.0
        return h

    x = np.array([3.0])
    assert hg.derive(forward, x=("N",)).forward(x)[0] == 1.0
    assert x == 3.0
