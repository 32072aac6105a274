# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Recurrent cells and backpropagation through time."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds


def sigmoid(z):
    return 0.5 * (1 + np.tanh(0.5 * z))


# tanh RNN over time; the cache is a list with one entry per step


def rnn_forward(x, h0, Wx, Wh, b):
    hs, h = [], h0
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ Wx + h @ Wh + b)
        hs.append(h)
    return np.stack(hs), (x, h0, Wx, Wh, hs)


def rnn_backward(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = (dhs[t] + dh_next) * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += (hs[t - 1] if t > 0 else h0).T @ da
        db += da.sum(0)
        dh_next = da @ Wh.T
    return dx, dh_next, dWx, dWh, db


def rnn_without_the_next_step(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    for t in range(x.shape[0]):
        da = dhs[t] * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += (hs[t - 1] if t > 0 else h0).T @ da
        db += da.sum(0)
        if t == 0:
            dh0 = da @ Wh.T
    return dx, dh0, dWx, dWh, db


def rnn_without_tanh_derivative(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = dhs[t] + dh_next
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += (hs[t - 1] if t > 0 else h0).T @ da
        db += da.sum(0)
        dh_next = da @ Wh.T
    return dx, dh_next, dWx, dWh, db


def rnn_no_initial_state_gradient(dhs, cache):
    dx, dh0, dWx, dWh, db = rnn_backward(dhs, cache)
    return dx, np.zeros_like(dh0), dWx, dWh, db


def rnn_initial_state_none(dhs, cache):
    dx, _, dWx, dWh, db = rnn_backward(dhs, cache)
    return dx, None, dWx, dWh, db


def rnn_bias_of_one_step(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh = np.zeros_like(Wx), np.zeros_like(Wh)
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = (dhs[t] + dh_next) * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += (hs[t - 1] if t > 0 else h0).T @ da
        db = da.sum(0)
        dh_next = da @ Wh.T
    return dx, dh_next, dWx, dWh, db


def rnn_dwh_of_the_same_step(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = (dhs[t] + dh_next) * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += hs[t].T @ da
        db += da.sum(0)
        dh_next = da @ Wh.T
    return dx, dh_next, dWx, dWh, db


def rnn_dwh_without_first_step(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = (dhs[t] + dh_next) * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        if t > 0:
            dWh += hs[t - 1].T @ da
        db += da.sum(0)
        dh_next = da @ Wh.T
    return dx, dh_next, dWx, dWh, db


def rnn_carry_untransposed(dhs, cache):
    x, h0, Wx, Wh, hs = cache
    dx = np.zeros_like(x)
    dWx, dWh, db = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(Wh[0])
    dh_next = np.zeros_like(h0)
    for t in reversed(range(x.shape[0])):
        da = (dhs[t] + dh_next) * (1 - hs[t] ** 2)
        dx[t] = da @ Wx.T
        dWx += x[t].T @ da
        dWh += (hs[t - 1] if t > 0 else h0).T @ da
        db += da.sum(0)
        dh_next = da @ Wh
    return dx, dh_next, dWx, dWh, db


ALL = ("x", "h0", "Wx", "Wh", "b")

RNN = Exercise(
    "tanh RNN",
    rnn_forward,
    rnn_backward,
    lambda rng: (
        rng.normal(size=(4, 3, 2)),
        rng.normal(size=(3, 5)),
        0.5 * rng.normal(size=(2, 5)),
        0.5 * rng.normal(size=(5, 5)),
        rng.normal(size=5),
    ),
    (
        Bug(
            rnn_without_the_next_step,
            "the gradient that comes back from step t + 1 is left out",
            kinds("term missing"),
            ALL,
        ),
        Bug(
            rnn_without_tanh_derivative,
            "1 − h² is left out",
            kinds("activation derivative forgotten", "factor missing"),
            ALL,
        ),
        Bug(
            rnn_no_initial_state_gradient,
            "dh0 is zero",
            kinds("gradient is zero"),
            ("h0",),
        ),
        Bug(rnn_initial_state_none, "dh0 is None", kinds("wrong type"), ("h0",)),
        Bug(
            rnn_bias_of_one_step,
            "= where += belongs: db is of the first step alone",
            kinds("term missing"),
            ("b",),
        ),
        Bug(
            rnn_dwh_of_the_same_step,
            "h_t where h_{t−1} belongs in dWh",
            kinds("stale variable"),
            ("Wh",),
        ),
        Bug(
            rnn_dwh_without_first_step,
            "the first step, whose h_{t−1} is h0, is left out of dWh",
            kinds("term missing"),
            ("Wh",),
            ("h0",),
        ),
        Bug(
            rnn_carry_untransposed,
            "da Wh where da Whᵀ belongs",
            kinds("transpose missing"),
            ALL,
            ("Wh",),
        ),
    ),
)

# One step of a tanh RNN


def step_forward(x, h, Wx, Wh, b):
    a = x @ Wx + h @ Wh + b
    y = np.tanh(a)
    return y, (x, h, Wx, Wh, a, y)


def step_backward(dy, cache):
    x, h, Wx, Wh, a, y = cache
    da = dy * (1 - y * y)
    return da @ Wx.T, da @ Wh.T, x.T @ da, h.T @ da, da.sum(axis=0)


def step_tanh_of_input(dy, cache):
    x, h, Wx, Wh, a, y = cache
    da = dy * (1 - a * a)
    return da @ Wx.T, da @ Wh.T, x.T @ da, h.T @ da, da.sum(axis=0)


def step_dh_with_dy(dy, cache):
    x, h, Wx, Wh, a, y = cache
    da = dy * (1 - y * y)
    return da @ Wx.T, dy @ Wh.T, x.T @ da, h.T @ da, da.sum(axis=0)


RNN_STEP = Exercise(
    "one step of a tanh RNN",
    step_forward,
    step_backward,
    lambda rng: (
        rng.normal(size=(3, 2)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(2, 4)),
        rng.normal(size=(4, 4)),
        rng.normal(size=4),
    ),
    (
        Bug(
            step_tanh_of_input,
            "1 − a² where 1 − tanh(a)² belongs",
            kinds("stale variable"),
            ("x", "h", "Wx", "Wh", "b"),
            ("a",),
        ),
        Bug(
            step_dh_with_dy,
            "dh starts from dy, before the derivative of tanh",
            kinds("activation derivative forgotten", "factor missing", "stale variable"),
            ("h",),
        ),
    ),
)

# An LSTM cell, stacked [x; h] form; y is (h, c) in one array so that both have a cotangent


def lstm_forward(x, h, c, W, b):
    H = h.shape[1]
    z = np.concatenate([x, h], axis=1) @ W + b
    i, f, o = sigmoid(z[:, :H]), sigmoid(z[:, H : 2 * H]), sigmoid(z[:, 2 * H : 3 * H])
    g = np.tanh(z[:, 3 * H :])
    c_new = f * c + i * g
    t = np.tanh(c_new)
    return np.concatenate([o * t, c_new], axis=1), (x, h, c, W, i, f, o, g, t)


def lstm_backward(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new, dc_new = dy[:, :H], dy[:, H:]
    dc = dc_new + dh_new * o * (1 - t * t)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc * f, dW, dz.sum(0)


def lstm_previous_cell_without_forget_gate(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new, dc_new = dy[:, :H], dy[:, H:]
    dc = dc_new + dh_new * o * (1 - t * t)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc, dW, dz.sum(0)


def lstm_without_cell_cotangent(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new = dy[:, :H]
    dc = dh_new * o * (1 - t * t)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc * f, dW, dz.sum(0)


def lstm_candidate_as_sigmoid(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new, dc_new = dy[:, :H], dy[:, H:]
    dc = dc_new + dh_new * o * (1 - t * t)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * g * (1 - g)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc * f, dW, dz.sum(0)


def lstm_gate_order(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new, dc_new = dy[:, :H], dy[:, H:]
    dc = dc_new + dh_new * o * (1 - t * t)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc * f, dW, dz.sum(0)


def lstm_tanh_of_c_itself(dy, cache):
    x, h, c, W, i, f, o, g, t = cache
    H, D = h.shape[1], x.shape[1]
    dh_new, dc_new = dy[:, :H], dy[:, H:]
    dc = dc_new + dh_new * o * (1 - c * c)
    di, df, do, dg = dc * g, dc * c, dh_new * t, dc * i
    gates = [di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)]
    dz = np.concatenate(gates, axis=1)
    dxh = dz @ W.T
    dW = np.concatenate([x, h], axis=1).T @ dz
    return dxh[:, :D], dxh[:, D:], dc * f, dW, dz.sum(0)


LSTM = Exercise(
    "LSTM cell",
    lstm_forward,
    lstm_backward,
    lambda rng: (
        rng.normal(size=(3, 2)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(6, 16)),
        rng.normal(size=16),
    ),
    (
        Bug(
            lstm_previous_cell_without_forget_gate,
            "dc_{t−1} without the factor f",
            kinds("factor missing"),
            ("c",),
            ("f",),
        ),
        Bug(
            lstm_without_cell_cotangent,
            "the cotangent of c_t itself is left out",
            kinds("term missing"),
            ("x", "h", "c", "W", "b"),
        ),
        Bug(
            lstm_candidate_as_sigmoid,
            "the candidate is a tanh, but its derivative is a sigmoid's",
            kinds(
                "other derivative",
                "stale variable",
                "activation derivative forgotten",
                "factor missing",
            ),
            ("x", "h", "W", "b"),
        ),
        Bug(
            lstm_gate_order,
            "the gates come back in the order i, f, g, o",
            kinds("gradients swapped", "operands swapped", "axes permuted"),
            ("x", "h", "W", "b"),
        ),
        Bug(
            lstm_tanh_of_c_itself,
            "1 − c² where 1 − tanh(c_t)² belongs",
            kinds("stale variable", "function missing"),
            ("x", "h", "c", "W", "b"),
            ("c",),
        ),
    ),
)

# A GRU cell


def gru_forward(x, h, Wz, Wr, Wn, Uz, Ur, Un):
    z = sigmoid(x @ Wz + h @ Uz)
    r = sigmoid(x @ Wr + h @ Ur)
    n = np.tanh(x @ Wn + (r * h) @ Un)
    return (1 - z) * n + z * h, (x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n)


def gru_backward(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_without_direct_path(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_update_gate_sign(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (n - h) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_reset_not_applied_back(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, h.T @ dn


GRU = Exercise(
    "GRU cell",
    gru_forward,
    gru_backward,
    lambda rng: (
        rng.normal(size=(3, 2)),
        rng.normal(size=(3, 4)),
        *(rng.normal(size=(2, 4)) for _ in range(3)),
        *(rng.normal(size=(4, 4)) for _ in range(3)),
    ),
    (
        Bug(
            gru_without_direct_path,
            "the direct path of h, dy z, is left out",
            kinds("term missing"),
            ("h",),
            ("z",),
        ),
        Bug(
            gru_update_gate_sign,
            "n − h where h − n belongs",
            kinds("wrong sign"),
            ("x", "h", "Wz", "Uz"),
        ),
        Bug(
            gru_reset_not_applied_back,
            "r is forgotten in dh and in dUn",
            kinds("factor missing"),
            ("h", "Un"),
            ("r",),
        ),
    ),
)

EXERCISES = (RNN, RNN_STEP, LSTM, GRU)
