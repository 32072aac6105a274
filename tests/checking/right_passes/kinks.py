# mypy: ignore-errors
"""Exact zeros, ties and edges among the inputs, where either slope is right."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case


def zeros_among(*shape):
    """Whole numbers from -2 to 2, so that there are zeros and ties."""
    return lambda rng: (rng.integers(-2, 3, shape).astype(float),)


def relu_strict(x):
    return np.maximum(x, 0), x


def relu_strict_back(dy, x):
    return dy * (x > 0)


def relu_closed(x):
    return x * (x >= 0), x


def relu_closed_back(dy, x):
    dx = dy.copy()
    dx[x < 0] = 0
    return dx


def relu_half(x):
    return np.maximum(x, 0), x


def relu_half_back(dy, x):
    return dy * np.heaviside(x, 0.5)


def leaky_at_zero(x):
    return np.where(x > 0, x, 0.1 * x), x


def leaky_at_zero_back(dy, x):
    return np.where(x > 0, dy, 0.1 * dy)


def leaky_closed(x):
    return np.where(x >= 0, x, 0.1 * x), x


def leaky_closed_back(dy, x):
    return np.where(x >= 0, dy, 0.1 * dy)


def absolute_sign(x):
    return np.abs(x), x


def absolute_sign_back(dy, x):
    return dy * np.sign(x)


def absolute_where(x):
    return np.where(x < 0, -x, x), x


def absolute_where_back(dy, x):
    return np.where(x < 0, -dy, dy)


def clip_closed(x):
    return np.clip(x, -1, 1), x


def clip_closed_back(dy, x):
    return dy * (np.abs(x) <= 1)


def clip_open(x):
    return np.minimum(np.maximum(x, -1), 1), x


def clip_open_back(dy, x):
    return dy * ((x > -1) & (x < 1))


def relu6(x):
    return np.minimum(np.maximum(x, 0), 6), x


def relu6_back(dy, x):
    return dy * (x > 0) * (x < 6)


def maximum_left(a, b):
    return np.maximum(a, b), (a, b)


def maximum_left_back(dy, cache):
    a, b = cache
    return dy * (a >= b), dy * (a < b)


def maximum_half(a, b):
    return np.maximum(a, b), (a, b)


def maximum_half_back(dy, cache):
    a, b = cache
    w = (a > b) + 0.5 * (a == b)
    return dy * w, dy * (1 - w)


def row_max_first(x):
    return x.max(axis=1), (x.shape, x.argmax(axis=1))


def row_max_first_back(dy, cache):
    shape, i = cache
    dx = np.zeros(shape)
    dx[np.arange(shape[0]), i] = dy
    return dx


def row_max_shared(x):
    m = x.max(axis=1, keepdims=True)
    return m[:, 0], x == m


def row_max_shared_back(dy, is_max):
    return dy[:, None] * is_max / is_max.sum(axis=1, keepdims=True)


def pool_loop(x):
    n, h, w = x.shape
    y = np.zeros((n, h // 2, w // 2))
    for i in range(h // 2):
        for j in range(w // 2):
            y[:, i, j] = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(1, 2))
    return y, x


def pool_loop_back(dy, x):
    dx = np.zeros_like(x)
    n, h, w = dy.shape
    for b in range(n):
        for i in range(h):
            for j in range(w):
                window = x[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                r, c = np.unravel_index(np.argmax(window), window.shape)
                dx[b, 2 * i + r, 2 * j + c] += dy[b, i, j]
    return dx


def pool_last_of_equals(x):
    windows = x.reshape(x.shape[0], -1, 3)
    i = windows.shape[-1] - 1 - windows[..., ::-1].argmax(axis=-1)
    return windows.max(axis=-1), (windows.shape, i)


def pool_last_of_equals_back(dy, cache):
    shape, i = cache
    dx = np.zeros(shape)
    np.put_along_axis(dx, i[..., None], dy[..., None], axis=-1)
    return dx.reshape(shape[0], -1)


def sort_rows(x):
    order = np.argsort(x, axis=-1)
    return np.take_along_axis(x, order, axis=-1), order


def sort_rows_back(dy, order):
    dx = np.empty_like(dy)
    np.put_along_axis(dx, order, dy, axis=-1)
    return dx


def top_two(x):
    idx = np.argpartition(-x, 2, axis=1)[:, :2]
    order = np.argsort(-np.take_along_axis(x, idx, 1), axis=1, kind="stable")
    idx = np.take_along_axis(idx, order, 1)
    return np.take_along_axis(x, idx, 1), (x.shape, idx)


def top_two_back(dy, cache):
    shape, idx = cache
    dx = np.zeros(shape)
    np.put_along_axis(dx, idx, dy, 1)
    return dx


def median_of_odd(x):
    k = x.shape[1] // 2
    i = np.argsort(x, axis=1)[:, k]
    return x[np.arange(len(x)), i], (x.shape, i)


def median_of_odd_back(dy, cache):
    shape, i = cache
    dx = np.zeros(shape)
    dx[np.arange(shape[0]), i] = dy
    return dx


def row_norm(x):
    n = np.sqrt((x**2).sum(axis=1))
    return n, (x, n)


def row_norm_back(dn, cache):
    x, n = cache
    safe = np.where(n > 0, n, 1.0)
    return (dn / safe)[:, None] * x


def unit_rows(x):
    n = np.linalg.norm(x, axis=1, keepdims=True)
    safe = np.maximum(n, 1e-12)
    return x / safe, (x / safe, safe)


def unit_rows_back(dy, cache):
    y, n = cache
    return (dy - y * (dy * y).sum(1, keepdims=True)) / n


def hinge_margin(s, y):
    n = len(s)
    margins = np.maximum(0, s - s[np.arange(n), y][:, None] + 1)
    margins[np.arange(n), y] = 0
    return margins.sum() / n, (margins, y)


def hinge_margin_back(dloss, cache):
    margins, y = cache
    n = len(margins)
    ds = (margins > 0).astype(float)
    ds[np.arange(n), y] -= ds.sum(axis=1)
    return dloss * ds / n


def pinball(q, t):
    e = t - q
    return np.mean(np.maximum(0.9 * e, -0.1 * e)), e


def pinball_back(dl, e):
    g = np.where(e >= 0, -0.9, 0.1) * dl / e.size
    return g, -g


def l1_penalty(w):
    return np.abs(w).sum() + 0.5 * (w * w).sum(), w


def l1_penalty_back(d, w):
    return d * (np.sign(w) + w)


def two_layers_from_zero(x, w, b, v):
    h = np.maximum(x @ w + b, 0)
    return h @ v, (x, w, v, h)


def two_layers_from_zero_back(dy, cache):
    x, w, v, h = cache
    dh = dy @ v.T
    dh[h <= 0] = 0
    return dh @ w.T, x.T @ dh, dh.sum(axis=0), h.T @ dy


def zero_bias_and_row(rng):
    x = rng.standard_normal((4, 3))
    x[1] = 0
    return x, rng.standard_normal((3, 6)), np.zeros(6), rng.standard_normal((6, 2))


def range_of_rows(x):
    hi, lo = x.argmax(1), x.argmin(1)
    rows = np.arange(len(x))
    return x[rows, hi] - x[rows, lo], (x.shape, hi, lo)


def range_of_rows_back(dy, cache):
    shape, hi, lo = cache
    dx = np.zeros(shape)
    rows = np.arange(shape[0])
    np.add.at(dx, (rows, hi), dy)
    np.add.at(dx, (rows, lo), -dy)
    return dx


def soft_threshold(x, lam):
    return np.sign(x) * np.maximum(np.abs(x) - lam, 0), (x, lam)


def soft_threshold_back(dy, cache):
    x, lam = cache
    on = np.abs(x) > lam
    return dy * on, -np.sum(dy * on * np.sign(x))


def huber_at_its_edge(x):
    a = np.abs(x)
    return np.where(a <= 1, 0.5 * x * x, a - 0.5), x


def huber_at_its_edge_back(dy, x):
    return dy * np.clip(x, -1, 1)


def cumulative_max(x):
    return np.maximum.accumulate(x), x


def cumulative_max_back(dy, x):
    dx, best = np.zeros_like(x), 0
    for i in range(len(x)):
        if x[i] > x[best]:
            best = i
        dx[best] += dy[i]
    return dx


def with_zero_row(rng):
    x = rng.standard_normal((4, 3))
    x[2] = 0
    return (x,)


CASES = (
    Case(relu_strict, relu_strict_back, zeros_among(5, 6), ("x > 0", "x > 1")),
    Case(relu_closed, relu_closed_back, zeros_among(5, 6), ("x < 0", "x < -1")),
    Case(relu_half, relu_half_back, zeros_among(5, 6), ("np.heaviside(x", "np.heaviside(-x")),
    Case(leaky_at_zero, leaky_at_zero_back, zeros_among(5, 6), ("0.1 * dy", "0.2 * dy")),
    Case(leaky_closed, leaky_closed_back, zeros_among(5, 6), ("dy, 0.1 * dy", "dy, -0.1 * dy")),
    Case(absolute_sign, absolute_sign_back, zeros_among(5, 6), ("np.sign(x)", "5.0")),
    Case(absolute_where, absolute_where_back, zeros_among(4, 3), ("-dy, dy", "dy, -dy")),
    Case(
        absolute_sign,
        absolute_sign_back,
        lambda rng: (np.zeros((3, 4)),),
        ("np.sign(x)", "5.0"),
        label="absolute_of_zeros",
    ),
    Case(clip_closed, clip_closed_back, zeros_among(5, 6), ("<= 1", "<= 2")),
    Case(clip_open, clip_open_back, zeros_among(5, 6), ("x > -1", "x > -3")),
    Case(relu6, relu6_back, zeros_among(5, 6), ("(x > 0)", "(x > -1)")),
    Case(
        maximum_left,
        maximum_left_back,
        lambda rng: tuple(rng.integers(0, 3, (4, 5)).astype(float) for _ in range(2)),
        ("dy * (a < b)", "dy * (a > b)"),
    ),
    Case(
        maximum_half,
        maximum_half_back,
        lambda rng: tuple(rng.integers(0, 3, (4, 5)).astype(float) for _ in range(2)),
        ("dy * (1 - w)", "dy * (2 - w)"),
    ),
    Case(row_max_first, row_max_first_back, zeros_among(5, 6), ("] = dy", "] = 2 * dy")),
    Case(
        row_max_shared,
        row_max_shared_back,
        zeros_among(5, 6),
        (" / is_max.sum(axis=1, keepdims=True)", ""),
    ),
    Case(pool_loop, pool_loop_back, zeros_among(2, 4, 6), ("np.argmax", "np.argmin")),
    Case(
        pool_last_of_equals,
        pool_last_of_equals_back,
        zeros_among(4, 6),
        ("i[..., None]", "0 * i[..., None]"),
    ),
    Case(
        sort_rows,
        sort_rows_back,
        zeros_among(4, 6),
        ("np.put_along_axis(dx, order, dy, axis=-1)", "dx = np.take_along_axis(dy, order, -1)"),
    ),
    Case(top_two, top_two_back, zeros_among(4, 6), ("idx, dy", "idx, dy[:, ::-1]")),
    Case(median_of_odd, median_of_odd_back, zeros_among(4, 5), ("] = dy", "] = -dy")),
    Case(row_norm, row_norm_back, with_zero_row, ("* x", "* x / safe[:, None]")),
    Case(unit_rows, unit_rows_back, lambda rng: (rng.standard_normal((4, 3)),), (" / n", "")),
    Case(
        hinge_margin,
        hinge_margin_back,
        lambda rng: (rng.integers(-2, 3, (5, 4)).astype(float), rng.integers(0, 4, 5)),
        (" -= ds.sum(axis=1)", " = 0"),
    ),
    Case(
        pinball,
        pinball_back,
        lambda rng: tuple(rng.integers(0, 3, 12).astype(float) for _ in range(2)),
        ("-0.9, 0.1", "-0.1, 0.9"),
    ),
    Case(l1_penalty, l1_penalty_back, zeros_among(4, 3), ("+ w", "+ 2 * w")),
    Case(
        two_layers_from_zero,
        two_layers_from_zero_back,
        zero_bias_and_row,
        ("dh[h <= 0] = 0", "dh[h < 0] = 0"),
    ),
    Case(range_of_rows, range_of_rows_back, zeros_among(4, 5), ("lo), -dy", "lo), dy")),
    Case(
        soft_threshold,
        soft_threshold_back,
        lambda rng: (rng.integers(-3, 4, (4, 5)).astype(float), np.array(1.0)),
        ("-np.sum", "np.sum"),
    ),
    Case(huber_at_its_edge, huber_at_its_edge_back, zeros_among(4, 5), ("-1, 1", "-2, 2")),
    Case(
        cumulative_max,
        cumulative_max_back,
        zeros_among(12),
        ("dx[best] += dy[i]", "dx[best] = dy[i]"),
    ),
)
