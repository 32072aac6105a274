"""Arrays that a backward leaves as zeros, and integers where a gradient belongs."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from tests.checking.functions import normal
from tests.checking.test_named_lines import mended


def split(x: Any, w: Any) -> Any:
    d = len(w)
    a, b = x[:, :d], x[:, d:]
    return np.tanh(a * w) * b, (x, w, a, b)


def half_stored(dy: Any, cache: Any) -> Any:
    x, w, a, b = cache
    d = len(w)
    t = np.tanh(a * w)
    du = dy * b * (1 - t * t)
    dx = np.zeros_like(x)
    dx[:, :d] = du * w
    db = dy * t  # noqa: F841  (the fault)
    return dx, np.sum(du * a, axis=0)


def test_a_part_of_an_array_into_which_nothing_is_written() -> None:
    report = hg.check((split, half_stored), normal(4, 6), normal(3))
    [fault] = report.faults
    assert "nothing is written into dx[:, d:], where db belongs" in fault.message
    assert mended(report) == ["dx[:, d:] = db"]


def pooled(x: Any) -> Any:
    n, width = x.shape
    windows = x.reshape(n * width // 2, 2)
    best = np.argmax(windows, axis=1)
    return windows[np.arange(best.size), best].reshape(n, width // 2), (x, best)


def without_a_store(dy: Any, cache: Any) -> Any:
    x, best = cache
    dwindows = np.zeros((best.size, 2))
    dwindows = dwindows.reshape(x.shape)
    return dwindows


def idle(dy: Any, cache: Any) -> Any:
    x, best = cache
    dwindows = np.zeros((best.size, 2))
    pass  # noqa: PIE790  (the fault)
    return dwindows.reshape(x.shape)


def test_a_store_at_the_largest_of_each_row() -> None:
    for backward in (without_a_store, idle):
        report = hg.check((pooled, backward), normal(3, 4))
        assert mended(report) == ["dwindows[np.arange(best.size), best] = dy.ravel()"]


def squares(x: Any) -> Any:
    return np.stack([each**2 for each in x]), x


def nothing_known(dy: Any, x: Any) -> Any:
    dx = np.empty_like(x)
    for t in range(len(x)):
        dh = 2 * x[t] * dy[t]  # noqa: F841  (the fault)
    return dx


def does_nothing(dy: Any, x: Any) -> Any:
    dx = np.zeros_like(x)
    for _ in range(len(x)):
        pass
    return dx


def test_an_array_of_nothing_is_to_be_filled() -> None:
    report = hg.check((squares, nothing_known), normal(3, 4))
    assert "dx[t] = dh" in mended(report)


def test_a_line_that_does_nothing_is_told() -> None:
    [fault] = hg.check((squares, does_nothing), normal(3, 4)).faults
    assert "nothing is written into the zeros of dx = np.zeros_like(x)" in fault.message
    first = does_nothing.__code__.co_firstlineno
    assert f"(line {first + 1}); line {first + 3} does nothing" in fault.message
    assert fault.line == first + 3


def recurrent(x: Any, w: Any) -> Any:
    h = np.zeros(w.shape[0])
    states = []
    for each in x:
        h = np.tanh(each + h @ w)
        states.append(h)
    return np.stack(states), (states, w)


def counted_in(dy: Any, cache: Any) -> Any:
    states, w = cache
    dw, dx, dh = np.zeros_like(w), np.zeros_like(dy), np.zeros(len(w))
    for t in reversed(range(len(dy))):
        dh = dh + dy[t]
        da = dh * (1 - states[t] ** 2)
        dx[t] = t
        before = states[t - 1] if t else np.zeros(len(w))
        dw += np.outer(before, da)
        dh = w @ da
    return dx, dw


def test_a_gradient_belongs_where_a_counter_stands() -> None:
    report = hg.check((recurrent, counted_in), normal(3, 2), normal(2, 2))
    assert mended(report) == ["dx[t] = da"]


def added(x: Any, v: Any) -> Any:
    return x * v, (x, v)


def turned_twice(dy: Any, cache: Any) -> Any:
    x, v = cache
    dx = dy * v
    for _ in range(2):
        dx = dx + np.abs(dx) + 1.0
        dx = dx - 1.0
    return dx, np.sum(dy * x, axis=0)


def test_the_first_line_that_is_not_linear_is_the_first_to_run() -> None:
    [fault] = hg.check((added, turned_twice), normal(4, 3), normal(3)).faults
    assert fault.line == turned_twice.__code__.co_firstlineno + 4
