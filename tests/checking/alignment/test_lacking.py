"""Terms that a line lacks, as the derivation has them, and other faults of strangers' backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg


class Gru:
    """A gated unit through time, in functions that a decorator stands before."""

    @staticmethod
    def forward(x: Any, h0: Any, wz: Any, uz: Any, wh: Any, uh: Any) -> Any:
        h, steps = h0, []
        for t in range(x.shape[0]):
            z = 1 / (1 + np.exp(-(x[t] @ wz + h @ uz)))
            c = np.tanh(x[t] @ wh + h @ uh)
            new = (1 - z) * h + z * c
            steps.append((h, z, c))
            h = new
        return h, (x, wz, uz, wh, uh, steps)

    @staticmethod
    def backward(dh: Any, cache: Any) -> Any:
        x, wz, uz, wh, uh, steps = cache
        dx = np.zeros_like(x)
        dwz, duz, dwh, duh = (np.zeros_like(w) for w in (wz, uz, wh, uh))
        for t in reversed(range(x.shape[0])):
            h, z, c = steps[t]
            dz = dh * (c - h) * z * (1 - z)
            dc = dh * z * (1 - c * c)
            dwz += x[t].T @ dz
            duz += h.T @ dz
            dwh += x[t].T @ dc
            duh += h.T @ dc
            dx[t] = dz @ wz.T + dc @ wh.T
            dh = dz @ uz.T + dc @ uh.T
        return dx, dh, dwz, duz, dwh, duh


def test_a_path_through_time_that_is_forgotten() -> None:
    rng = np.random.default_rng(5)
    shapes = ((4, 2, 3), (2, 5), (3, 5), (5, 5), (3, 5), (5, 5))
    report = hg.check(Gru, *(rng.standard_normal(shape) for shape in shapes))
    for fault in report.faults:
        assert "the term dh (1 − z) is missing" in fault.message
        assert (
            fault.diff.splitlines()[-1].strip("+ ") == "dh = dz @ uz.T + dc @ uh.T + dh * (1 - z)"
        )
    assert {fault.gradient for fault in report.faults} == {"x", "h0", "wz", "uz", "wh", "uh"}


def focal(z: Any, t: Any) -> Any:
    p = 1 / (1 + np.exp(-z))
    pt = np.where(t > 0, p, 1 - p)
    return -((1 - pt) ** 2) * np.log(pt), (t, pt)


def without_the_weight(g: Any, cache: Any) -> Any:
    t, pt = cache
    dpt = -((1 - pt) ** 2) / pt
    sign = np.where(t > 0, 1.0, -1.0)
    return g * dpt * pt * (1 - pt) * sign, None


def test_a_term_of_a_derivative_that_dy_is_multiplied_by() -> None:
    rng = np.random.default_rng(6)
    z, t = rng.standard_normal(7), (rng.random(7) > 0.5).astype(float)
    report = hg.check((focal, without_the_weight), z, t)
    fault = next(each for each in report.faults if each.gradient == "z")
    assert "the term 2 log(pt) (1 − pt) is missing" in fault.message
    assert "dpt = " in fault.diff


def dice(p: Any, t: Any) -> Any:
    i, u = (p * t).sum(1), p.sum(1) + t.sum(1)
    return 1 - 2 * i / u, (p, t, i, u)


def without_a_square(g: Any, cache: Any) -> Any:
    p, t, i, u = cache
    dp = -2 * (t * u[:, None] - i[:, None]) / u[:, None]
    dt = -2 * (p * u[:, None] - i[:, None]) / u[:, None] ** 2
    return g[:, None] * dp, g[:, None] * dt


def normalised(x: Any) -> Any:
    std = np.sqrt(x.var(0) + 1e-5)
    xh = (x - x.mean(0)) / std
    return xh, (xh, std)


def with_another_size(dy: Any, cache: Any) -> Any:
    xh, std = cache
    n = dy.shape[1]
    return (n * dy - dy.sum(0) - xh * (dy * xh).sum(0)) / (n * std)


def tanh_of_product(x: Any, w: Any) -> Any:
    z = x @ w
    return np.tanh(z), (x, w, z)


def with_a_power_missing(dy: Any, cache: Any) -> Any:
    x, w, z = cache
    dz = dy * (1 - np.tanh(z))
    return dz @ w.T, x.T @ dz


def correlated(x: Any, w: Any) -> Any:
    k, o = w.shape[0], x.shape[1] - w.shape[0] + 1
    y = np.zeros((len(x), o, o))
    for i in range(k):
        for j in range(k):
            y += x[:, i : i + o, j : j + o] * w[i, j]
    return y, (x, w)


def with_counters_exchanged(dy: Any, cache: Any) -> Any:
    x, w = cache
    k, o = w.shape[0], dy.shape[1]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(k):
        for j in range(k):
            dw[i, j] = (x[:, j : j + o, i : i + o] * dy).sum()
            dx[:, i : i + o, j : j + o] += dy * w[i, j]
    return dx, dw


@pytest.mark.parametrize(
    ("pair", "shapes", "line"),
    [
        ((dice, without_a_square), ((3, 6), (3, 6)), "/ u[:, None] ** 2"),
        ((normalised, with_another_size), ((6, 4),), "n = dy.shape[0]"),
        ((tanh_of_product, with_a_power_missing), ((5, 4), (4, 3)), "(1 - np.tanh(z) ** 2)"),
        ((correlated, with_counters_exchanged), ((2, 6, 6), (3, 3)), "dw[j, i] ="),
    ],
    ids=lambda value: value[1].__name__ if isinstance(value, tuple) and callable(value[0]) else "",
)
def test_the_line_that_is_meant(pair: Any, shapes: Any, line: str) -> None:
    rng = np.random.default_rng(7)
    report = hg.check(pair, *(rng.uniform(0.2, 2, shape) for shape in shapes))
    assert report.faults
    for fault in report.faults:
        assert line in fault.diff.splitlines()[-1]


def drawn(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape) for shape in shapes]


def gated(x: Any, h: Any, wz: Any, wh: Any) -> Any:
    kept, out = [], []
    for t in range(x.shape[1]):
        z = 1 / (1 + np.exp(-x[:, t] @ wz))
        n = np.tanh(h @ wh)
        kept.append((h, z, n))
        h = (1 - z) * h + z * n
        out.append(h)
    return np.stack(out, axis=1), (x, wz, wh, kept)


def gated_backward(dout: Any, cache: Any) -> Any:
    x, wz, wh, kept = cache
    dx, dwz, dwh = np.zeros_like(x), np.zeros_like(wz), np.zeros_like(wh)
    dh = np.zeros_like(kept[0][0])
    for t in reversed(range(len(kept))):
        h, z, n = kept[t]
        dh = dh + dout[:, t]
        dz = dh * (n - h) * z * (1 - z)
        dn = dh * z * (1 - n**2)
        dwz += x[:, t].T @ dz
        dwh += h.T @ dn
        dx[:, t] = dz @ wz.T
        dh = dn @ wh.T
    return dx, dh, dwz, dwh


def test_a_part_of_what_a_loop_hands_on() -> None:
    """The right value is the gradient of h but for what the step before adds by itself."""
    report = hg.check((gated, gated_backward), *drawn((2, 4, 3), (2, 3), (3, 3), (3, 3)))
    assert {fault.gradient for fault in report.faults} == {"x", "h", "wz", "wh"}
    for fault in report.faults:
        assert fault.diff.endswith("+        dh = dn @ wh.T + dh * (1 - z)")


def grouped(x: Any, gamma: Any) -> Any:
    groups = x.reshape(len(x), 2, -1)
    rstd = 1 / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    hat = ((groups - groups.mean(-1, keepdims=True)) * rstd).reshape(x.shape)
    return hat * gamma[:, None], (hat, rstd, gamma)


def grouped_backward(dy: Any, cache: Any) -> Any:
    hat, rstd, gamma = cache
    g, groups = dy.reshape(len(dy), 2, -1), hat.reshape(len(dy), 2, -1)
    inner = g - g.mean(-1, keepdims=True) - groups * (g * groups).mean(-1, keepdims=True)
    dgamma = (dy * hat).sum((0, 2)).reshape(gamma.shape)
    return (inner * rstd).reshape(dy.shape), dgamma


def test_a_factor_before_a_reshape_along_an_axis_in_the_middle() -> None:
    report = hg.check((grouped, grouped_backward), *drawn((2, 4, 5), (4,)))
    (fault,) = report.faults
    assert "(dy * gamma[:, None]).reshape(len(dy), 2, -1)" in fault.diff


def correlated(x: Any, w: Any) -> Any:
    y = np.zeros((len(x) - len(w) + 1, x.shape[1] - w.shape[1] + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = (x[i : i + len(w), j : j + w.shape[1]] * w).sum()
    return y, (x, w)


def correlated_backward(dy: Any, cache: Any) -> Any:
    x, w = cache
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(dy.shape[0]):
        for j in range(dy.shape[1]):
            window = (slice(i, i + len(w)), slice(j, j + w.shape[1]))
            dx[window] += dy[i, j] * w
            dw += dy[j, i] * x[window]
    return dx, dw


def test_two_numbers_of_an_index_the_other_way_round_are_no_transpose() -> None:
    report = hg.check((correlated, correlated_backward), *drawn((5, 5), (2, 2)))
    (fault,) = report.faults
    assert fault.diff.endswith("+            dw += dy[i, j] * x[window]")
