# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Recurrences: loops over time with everything in lists and dictionaries."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case, normal


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def rnn(xs, wx, wh, b):
    hs = {-1: np.zeros(wh.shape[0])}
    for t in range(len(xs)):
        hs[t] = np.tanh(xs[t] @ wx + hs[t - 1] @ wh + b)
    return np.stack([hs[t] for t in range(len(xs))]), (xs, wx, wh, hs)


def rnn_back(dhs, cache):
    xs, wx, wh, hs = cache
    dxs, dwx, dwh, db = np.zeros_like(xs), np.zeros_like(wx), np.zeros_like(wh), 0
    dnext = 0
    for t in reversed(range(len(xs))):
        da = (dhs[t] + dnext) * (1 - hs[t] ** 2)
        dxs[t] = wx @ da
        dwx += np.outer(xs[t], da)
        dwh += np.outer(hs[t - 1], da)
        db = db + da
        dnext = wh @ da
    return dxs, dwx, dwh, db


def lstm(x, h0, wx, wh, b):
    n, t_max, _ = x.shape
    h, c = h0, np.zeros_like(h0)
    steps, out = [], []
    for t in range(t_max):
        a = x[:, t] @ wx + h @ wh + b
        i, f, o, g = np.split(a, 4, axis=1)
        i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), np.tanh(g)
        c_new = f * c + i * g
        tc = np.tanh(c_new)
        steps.append((x[:, t], h, c, i, f, o, g, tc))
        h, c = o * tc, c_new
        out.append(h)
    return np.stack(out, 1), (steps, wx, wh, x.shape)


def lstm_back(dout, cache):
    steps, wx, wh, shape = cache
    dx = np.zeros(shape)
    dwx, dwh, db = np.zeros_like(wx), np.zeros_like(wh), np.zeros(wh.shape[1])
    dh, dc = 0.0, 0.0
    for t in range(shape[1] - 1, -1, -1):
        xt, h, c, i, f, o, g, tc = steps[t]
        dh = dh + dout[:, t]
        dc = dc + dh * o * (1 - tc**2)
        da = np.hstack(
            [dc * g * i * (1 - i), dc * c * f * (1 - f), dh * tc * o * (1 - o), dc * i * (1 - g**2)]
        )
        dx[:, t] = da @ wx.T
        dwx += xt.T @ da
        dwh += h.T @ da
        db += da.sum(0)
        dh, dc = da @ wh.T, dc * f
    return dx, dh, dwx, dwh, db


def gru(x, wz, wr, wn, uz, ur, un):
    h = np.zeros((x.shape[1], uz.shape[0]))
    steps = []
    for xt in x:
        z, r = sigmoid(xt @ wz + h @ uz), sigmoid(xt @ wr + h @ ur)
        n = np.tanh(xt @ wn + r * (h @ un))
        steps.append((xt, h, z, r, n))
        h = (1 - z) * n + z * h
    return h, (steps, wz, wr, wn, uz, ur, un)


def gru_back(dh, cache):
    steps, *weights = cache
    wz, wr, wn, uz, ur, un = weights
    dwz, dwr, dwn, duz, dur, dun = (np.zeros_like(w) for w in weights)
    dx = []
    for xt, h, z, r, n in steps[::-1]:
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (h - n) * z * (1 - z)
        hu = h @ un
        dr = dn * hu * r * (1 - r)
        dwn += xt.T @ dn
        dun += h.T @ (dn * r)
        dwz += xt.T @ dz
        duz += h.T @ dz
        dwr += xt.T @ dr
        dur += h.T @ dr
        dx.insert(0, dn @ wn.T + dz @ wz.T + dr @ wr.T)
        dh = dh * z + (dn * r) @ un.T + dz @ uz.T + dr @ ur.T
    return np.array(dx), dwz, dwr, dwn, duz, dur, dun


def last_state_only(x, w, u):
    h = np.zeros((x.shape[0], u.shape[0]))
    hs = [h]
    for t in range(x.shape[1]):
        h = np.maximum(0, x[:, t] @ w + h @ u)
        hs.append(h)
    return h, (x, w, u, hs)


def last_state_only_back(dh, cache):
    x, w, u, hs = cache
    dx, dw, du = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u)
    for t in reversed(range(x.shape[1])):
        dh = dh * (hs[t + 1] > 0)
        dx[:, t] = dh @ w.T
        dw += x[:, t].T @ dh
        du += hs[t].T @ dh
        dh = dh @ u.T
    return dx, dw, du


def masked_rnn(x, w, u, mask):
    h = np.zeros((x.shape[0], u.shape[0]))
    kept = []
    for t in range(x.shape[1]):
        new = np.tanh(x[:, t] @ w + h @ u)
        kept.append((h, new))
        m = mask[:, t : t + 1]
        h = m * new + (1 - m) * h
    return h, (x, w, u, mask, kept)


def masked_rnn_back(dh, cache):
    x, w, u, mask, kept = cache
    dx, dw, du = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u)
    for t in reversed(range(x.shape[1])):
        h, new = kept[t]
        m = mask[:, t : t + 1]
        da = dh * m * (1 - new**2)
        dx[:, t] = da @ w.T
        dw += x[:, t].T @ da
        du += h.T @ da
        dh = da @ u.T + dh * (1 - m)
    return dx, dw, du


def state_space(x, a, b, c):
    h, hs, ys = np.zeros_like(b), [], []
    for u in x:
        h = a * h + b * u
        hs.append(h)
        ys.append(c @ h)
    return np.array(ys), (x, a, b, c, hs)


def state_space_back(dy, cache):
    x, a, b, c, hs = cache
    da, db, dc, dx = np.zeros_like(a), np.zeros_like(b), np.zeros_like(c), np.zeros_like(x)
    g = np.zeros_like(a)
    for t in reversed(range(len(x))):
        g = g * a if t < len(x) - 1 else g
        g = g + dy[t] * c
        dc += dy[t] * hs[t]
        db += g * x[t]
        dx[t] = g @ b
        if t:
            da += g * hs[t - 1]
    return dx, da, db, dc


def exponential_smoothing(x, alpha):
    s = [x[0]]
    for v in x[1:]:
        s.append(alpha * v + (1 - alpha) * s[-1])
    return np.array(s), (x, float(alpha), s)


def exponential_smoothing_back(ds, cache):
    x, alpha, s = cache
    dx, dalpha, run = np.zeros(len(x)), 0.0, 0.0
    for t in range(len(x) - 1, 0, -1):
        run += ds[t]
        dx[t] = run * alpha
        dalpha += run * (x[t] - s[t - 1])
        run *= 1 - alpha
    dx[0] = run + ds[0]
    return dx, dalpha


CASES = (
    Case(
        rnn, rnn_back, normal((5, 3), (3, 4), (4, 4), 4), ("dnext = wh @ da", "dnext = wh.T @ da")
    ),
    Case(
        lstm,
        lstm_back,
        normal((2, 4, 3), (2, 3), (3, 12), (3, 12), 12),
        ("dc * f\n", "dc * i\n"),
    ),
    Case(
        gru,
        gru_back,
        normal((4, 2, 3), (3, 3), (3, 3), (3, 3), (3, 3), (3, 3), (3, 3)),
        ("dh = dh * z + ", "dh = "),
    ),
    Case(
        last_state_only, last_state_only_back, normal((3, 4, 2), (2, 5), (5, 5)), ("du +=", "du =")
    ),
    Case(
        masked_rnn,
        masked_rnn_back,
        lambda rng: (
            rng.standard_normal((3, 4, 2)),
            rng.standard_normal((2, 5)),
            rng.standard_normal((5, 5)),
            np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]),
        ),
        (" + dh * (1 - m)", ""),
    ),
    Case(state_space, state_space_back, normal(6, 3, 3, 3), ("g = g + dy[t] * c", "g = dy[t] * c")),
    Case(
        exponential_smoothing,
        exponential_smoothing_back,
        lambda rng: (rng.standard_normal(6), 0.3),
        ("run *= 1 - alpha", "run *= alpha"),
    ),
)
