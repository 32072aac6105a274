# mypy: ignore-errors
"""Inputs and results in other forms: numbers, lists, float32, whole numbers, None."""

from __future__ import annotations

import math

import numpy as np

from tests.checking.right_passes.case import Case, normal


def python_float(x):
    return float(np.sum(x**2)), x


def python_float_back(d, x):
    return 2.0 * d * x


def zero_dimensional(x):
    return np.array(np.sum(np.sin(x))), x


def zero_dimensional_back(d, x):
    return np.asarray(d) * np.cos(x)


def of_two_numbers(a, b):
    return math.exp(a) * b, (a, b)


def of_two_numbers_back(d, cache):
    a, b = cache
    return float(d * math.exp(a) * b), float(d * math.exp(a))


def with_a_constant(x, p):
    return x**p, (x, p)


def with_a_constant_back(d, cache):
    x, p = cache
    return d * p * x ** (p - 1)


def none_for_a_constant(x, p):
    return x**p, (x, p)


def none_for_a_constant_back(d, cache):
    x, p = cache
    return d * p * x ** (p - 1), None


def none_for_indices(table, idx, w):
    return table[idx] * w, (table, idx, w)


def none_for_indices_back(dy, cache):
    table, idx, w = cache
    dt = np.zeros_like(table)
    np.add.at(dt, idx, dy * w)
    return dt, None, (dy * table[idx]).sum(0)


def none_for_an_unused(x, mask):
    return x * (mask > 0), mask


def none_for_an_unused_back(dy, mask):
    return dy * (mask > 0), None


def zeros_for_indices(x, idx):
    return np.take(x, idx), (x, idx)


def zeros_for_indices_back(dy, cache):
    x, idx = cache
    return np.bincount(idx, dy, minlength=len(x)), np.zeros(idx.shape)


def in_float32(x, w):
    x, w = x.astype(np.float32), w.astype(np.float32)
    return x @ w, (x, w)


def in_float32_back(dy, cache):
    x, w = cache
    dy = dy.astype(np.float32)
    return dy @ w.T, x.T @ dy


def float32_inside(x, w):
    h = np.tanh((x @ w).astype(np.float32)).astype(np.float64)
    return h, (x, w, h)


def float32_inside_back(dy, cache):
    x, w, h = cache
    da = dy * (1 - h * h)
    return da @ w.T, x.T @ da


def float64_accumulator(x):
    total = np.zeros(x.shape[1])
    for row in x:
        total += row * row
    return total, x


def float64_accumulator_back(dy, x):
    dx = np.zeros(x.shape)
    for i, row in enumerate(x):
        dx[i] = 2 * row * dy
    return dx


def list_of_rows(x):
    return [np.exp(row) for row in x], x


def list_of_rows_back(dys, x):
    return [d * np.exp(row) for d, row in zip(dys, x, strict=True)]


def nested_lists(x):
    return np.array([[math.tanh(v) for v in row] for row in x.tolist()]), x


def nested_lists_back(dy, x):
    return [
        [d / math.cosh(v) ** 2 for d, v in zip(a, b, strict=True)]
        for a, b in zip(dy.tolist(), x.tolist(), strict=True)
    ]


def two_outputs(x, w):
    h = np.tanh(x @ w)
    return (h, h.sum(0)), (x, w, h)


def two_outputs_back(dys, cache):
    dh, dsum = dys
    x, w, h = cache
    da = (dh + dsum) * (1 - h * h)
    return da @ w.T, x.T @ da


def values_and_indices(x):
    i = x.argmax(1)
    return (x.max(1), i), (x.shape, i)


def values_and_indices_back(dys, cache):
    d, _ = dys
    shape, i = cache
    dx = np.zeros(shape)
    dx[np.arange(len(i)), i] = d
    return dx


def loss_and_prediction(x, y):
    p = 1 / (1 + np.exp(-x))
    return (((p - y) ** 2).mean(), p), (p, y)


def loss_and_prediction_back(dys, cache):
    dloss, dp = dys
    p, y = cache
    return (dloss * 2 * (p - y) / p.size + dp) * p * (1 - p)


def whole_numbers_weigh(x, k):
    return x * k, k


def whole_numbers_weigh_back(dy, k):
    return dy * k


def in_place_steps(x, w):
    y = x.copy()
    y *= w
    np.exp(y, out=y)
    return y, (x, w, y.copy())


def in_place_steps_back(dy, cache):
    x, w, y = cache
    g = dy.copy()
    g *= y
    return g * w, (g * x).sum(axis=0)


def read_only_result(x):
    return x.sum(axis=0), x.shape


def read_only_result_back(dy, shape):
    return np.broadcast_to(dy, shape)


def keyword_settings(x, *, eps=1e-3, power=2.0):
    return (np.abs(x) + eps) ** power, (x, eps, power)


def keyword_settings_back(dy, cache):
    x, eps, power = cache
    return dy * power * (np.abs(x) + eps) ** (power - 1) * np.sign(x)


def several_arrays(*xs):
    return sum(x * (i + 1) for i, x in enumerate(xs)), len(xs)


def several_arrays_back(dy, n):
    return [dy * (i + 1) for i in range(n)]


def far_from_zero(x):
    c = x - x.mean()
    return c**2, c


def far_from_zero_back(dy, c):
    g = 2 * c * dy
    return g - g.mean()


def tiny_values(x):
    return 1e-9 * np.sin(x * 1e6), x


def tiny_values_back(dy, x):
    return 1e-3 * dy * np.cos(x * 1e6)


def raises_outside_its_domain(p):
    if np.any(p <= 0) or np.any(p >= 1):
        raise ValueError("p is no probability")
    return -np.log(p), p


def raises_outside_its_domain_back(dy, p):
    return -dy / p


def one_row_is_another_case(x, b):
    return (x + b, None)


def one_row_is_another_case_back(dy, _):
    return dy, dy.sum(0) if dy.ndim == 2 else dy


CASES = (
    Case(python_float, python_float_back, normal((4, 3)), ("2.0 * d", "d")),
    Case(zero_dimensional, zero_dimensional_back, normal((4, 3)), ("np.cos", "-np.cos")),
    Case(of_two_numbers, of_two_numbers_back, lambda rng: (0.7, 1.3), ("* b), float", "), float")),
    Case(
        with_a_constant,
        with_a_constant_back,
        lambda rng: (rng.uniform(1, 2, 5), 3.0),
        ("d * p", "d"),
    ),
    Case(
        none_for_a_constant,
        none_for_a_constant_back,
        lambda rng: (rng.uniform(1, 2, 5), 3.0),
        ("p - 1", "p"),
    ),
    Case(
        none_for_indices,
        none_for_indices_back,
        lambda rng: (rng.standard_normal((5, 3)), np.array([0, 3, 3]), rng.standard_normal(3)),
        ("np.add.at(dt, idx, dy * w)", "dt[idx] += dy * w"),
    ),
    Case(none_for_an_unused, none_for_an_unused_back, normal((4, 3), (4, 3)), ("> 0)", "< 0)")),
    Case(
        zeros_for_indices,
        zeros_for_indices_back,
        lambda rng: (rng.standard_normal(5), np.array([0, 3, 3, 1])),
        ("idx, dy", "idx, -dy"),
    ),
    Case(in_float32, in_float32_back, normal((4, 3), (3, 2)), ("dy @ w.T", "-dy @ w.T")),
    Case(float32_inside, float32_inside_back, normal((4, 3), (3, 2)), ("1 - h * h", "1 - h")),
    Case(float64_accumulator, float64_accumulator_back, normal((4, 3)), ("2 * row", "row")),
    Case(list_of_rows, list_of_rows_back, normal((4, 3)), ("np.exp", "-np.exp")),
    Case(nested_lists, nested_lists_back, normal((4, 3)), ("** 2", "** 1")),
    Case(two_outputs, two_outputs_back, normal((4, 3), (3, 2)), ("dh + dsum", "dh")),
    Case(values_and_indices, values_and_indices_back, normal((4, 3)), ("] = d", "] = -d")),
    Case(
        loss_and_prediction,
        loss_and_prediction_back,
        lambda rng: (rng.standard_normal(6), rng.integers(0, 2, 6)),
        (" + dp", ""),
    ),
    Case(
        whole_numbers_weigh,
        whole_numbers_weigh_back,
        lambda rng: (rng.standard_normal((4, 3)), rng.integers(1, 4, (4, 3))),
        ("dy * k", "dy / k"),
    ),
    Case(in_place_steps, in_place_steps_back, normal((4, 3), 3), ("g * w", "g")),
    Case(
        read_only_result,
        read_only_result_back,
        normal((4, 3)),
        ("np.broadcast_to(dy,", "np.broadcast_to(-dy,"),
    ),
    Case(keyword_settings, keyword_settings_back, normal((4, 3)), ("power - 1", "power")),
    Case(several_arrays, several_arrays_back, normal((4, 3), (4, 3), (4, 3)), ("(i + 1)", "i")),
    Case(
        far_from_zero,
        far_from_zero_back,
        lambda rng: (rng.normal(1e4, 1.0, 9),),
        ("- g.mean()", ""),
    ),
    Case(
        tiny_values,
        tiny_values_back,
        lambda rng: (1e-6 * rng.standard_normal(7),),
        ("np.cos", "np.sin"),
    ),
    Case(
        raises_outside_its_domain,
        raises_outside_its_domain_back,
        lambda rng: (rng.uniform(1e-3, 1, 9),),
        ("-dy", "dy"),
    ),
    Case(
        one_row_is_another_case,
        one_row_is_another_case_back,
        normal((3, 3), 3),
        ("dy.sum(0)", "dy.sum(1)"),
    ),
)
