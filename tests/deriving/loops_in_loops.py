"""Forwards with loops inside of loops, and with arrays that are filled part by part."""

from __future__ import annotations

import numpy as np


def last_state(x, w):
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.tanh(h * w + x[t])
    return h


def state_of_two_loops(x, w):
    h = np.zeros(x.shape[2])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h = np.tanh(h * w + x[i, j])
    return h


def states_squared(x, w):
    h = np.zeros(x.shape[2])
    out = np.zeros(x.shape[2])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            h = np.tanh(h * w + x[i, j])
        out = out + h * h
    return out


def sum_of_pairs(x, w):
    s = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            s = s + np.tanh(x[i] * x[j]) * w
    return s


def table_of_pairs(x, w):
    s = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            s[i, j] = np.sum(np.tanh(x[i] - x[j]) * w)
    return s


def rows_of_states(x, w):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * w + x[i, j]
            y[i, j] = s
    return y


def rows_added_to(x, w):
    y = np.zeros((x.shape[0], x.shape[1]))
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            y[i] += w[j] * x[i]
    return y


def rows_used_again(x, w):
    y = np.zeros((x.shape[0], w.shape[1]))
    for t in range(x.shape[0]):
        y[t] = np.tanh(x[t] @ w)
    return y * y


def first_and_others(x, w):
    y = np.zeros_like(x)
    y[0] = x[0] * w
    y[1:] = x[1:] - x[:-1]
    return y


def left_and_right(x, w):
    y = np.zeros((x.shape[0], 2 * w.shape[0]))
    y[:, : w.shape[0]] = x * w
    y[:, w.shape[0] :] = np.tanh(x)
    return y


def shifted(x):
    y = x * 2
    y[1:] += x[:-1]
    return y


CASES = [
    (last_state, {"x": ("N", "D"), "w": ("D",)}),
    (state_of_two_loops, {"x": ("N", "T", "D"), "w": ("D",)}),
    (states_squared, {"x": ("N", "T", "D"), "w": ("D",)}),
    (sum_of_pairs, {"x": ("N", "D"), "w": ("D",)}),
    (table_of_pairs, {"x": ("N", "D"), "w": ("D",)}),
    (rows_of_states, {"x": ("N", "T"), "w": ()}),
    (rows_added_to, {"x": ("N", "D"), "w": ("K",)}),
    (rows_used_again, {"x": ("N", "D"), "w": ("D", "E")}),
    (first_and_others, {"x": ("N", "D"), "w": ("D",)}),
    (left_and_right, {"x": ("N", "D"), "w": ("D",)}),
    (shifted, {"x": ("N", "D")}),
]
