# mypy: ignore-errors
"""Functions of one value at a time, away from their kinks."""

from __future__ import annotations

import math

import numpy as np

from tests.checking.right_passes.case import Case, normal


def sigmoid(x):
    y = 1 / (1 + np.exp(-x))
    return y, y


def sigmoid_back(dy, y):
    return dy * y * (1 - y)


def tanh_from_exp(x):
    e = np.exp(2 * x)
    y = (e - 1) / (e + 1)
    return y, {"y": y}


def tanh_from_exp_back(dy, cache):
    return dy * (1 - cache["y"] ** 2)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), x


def softplus_back(dy, x):
    return dy / (1 + np.exp(-x))


def swish(x, beta):
    s = 1 / (1 + np.exp(-beta * x))
    return x * s, (x, beta, s)


def swish_back(dy, cache):
    x, beta, s = cache
    ds = dy * x * s * (1 - s)
    return dy * s + ds * beta, np.sum(ds * x)


def gelu_tanh(x):
    c = math.sqrt(2 / math.pi)
    u = c * (x + 0.044715 * x**3)
    t = np.tanh(u)
    return 0.5 * x * (1 + t), (x, t, c)


def gelu_tanh_back(dy, cache):
    x, t, c = cache
    du = c * (1 + 3 * 0.044715 * x**2)
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * du)


def elu(x, alpha=1.0):
    y = np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))
    return y, (x, y, alpha)


def elu_back(dy, cache):
    x, y, alpha = cache
    return dy * np.where(x > 0, 1.0, y + alpha)


def selu_with_constants(x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * np.where(x > 0, x, alpha * np.expm1(x)), x


def selu_with_constants_back(dy, x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return dy * scale * np.where(x > 0, 1, alpha * np.exp(x))


def mish(x):
    sp = np.logaddexp(0, x)
    t = np.tanh(sp)
    return x * t, (x, t)


def mish_back(dy, cache):
    x, t = cache
    sig = 1 / (1 + np.exp(-x))
    return dy * (t + x * (1 - t * t) * sig)


def hard_swish(x):
    return x * np.clip(x + 3, 0, 6) / 6, x


def hard_swish_back(dy, x):
    inner = (x > -3) & (x < 3)
    return dy * (np.clip(x + 3, 0, 6) / 6 + x * inner / 6)


def softsign(x):
    d = 1 + np.abs(x)
    return x / d, d


def softsign_back(dy, d):
    return dy / d**2


def power(x):
    return x**3 - 2 * x**2 + 5, x


def power_back(dy, x):
    return dy * (3 * x**2 - 4 * x)


def log_of_positive(x):
    return np.log(x), x


def log_of_positive_back(dy, x):
    return dy / x


def sqrt_eps(x):
    y = np.sqrt(x * x + 1e-8)
    return y, (x, y)


def sqrt_eps_back(dy, cache):
    x, y = cache
    return dy * x / y


def arctan2(a, b):
    return np.arctan2(a, b), (a, b)


def arctan2_back(dy, cache):
    a, b = cache
    r = a**2 + b**2
    return dy * b / r, -dy * a / r


def sin_loop(x):
    y = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = math.sin(x[i, j])
    return y, x


def sin_loop_back(dy, x):
    dx = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            dx[i, j] += dy[i, j] * math.cos(x[i, j])
    return dx


def divide(a, b):
    return a / b, (a, b)


def divide_back(dy, cache):
    a, b = cache
    return dy / b, -dy * a / b**2


def glu(x):
    a, b = np.split(x, 2, axis=-1)
    s = 1 / (1 + np.exp(-b))
    return a * s, (a, s)


def glu_back(dy, cache):
    a, s = cache
    return np.concatenate([dy * s, dy * a * s * (1 - s)], axis=-1)


def logit(p):
    return np.log(p / (1 - p)), p


def logit_back(dy, p):
    return dy / (p * (1 - p))


def clipped_exp(x):
    return np.exp(np.clip(x, -1.0, 1.0)), x


def clipped_exp_back(dy, x):
    return dy * np.exp(x) * ((x > -1.0) & (x < 1.0))


def positive(rng):
    return (rng.uniform(0.5, 2.0, (4, 5)),)


CASES = (
    Case(sigmoid, sigmoid_back, normal((4, 5)), ("(1 - y)", "(1 + y)")),
    Case(tanh_from_exp, tanh_from_exp_back, normal((4, 5)), ("1 - ", "1 + ")),
    Case(softplus, softplus_back, normal((4, 5)), ("np.exp(-x)", "np.exp(x)")),
    Case(swish, swish_back, normal((4, 5), ()), ("dy * s + ds * beta", "dy * s + ds")),
    Case(gelu_tanh, gelu_tanh_back, normal((4, 5)), ("3 * 0.044715", "0.044715")),
    Case(elu, elu_back, normal((4, 5)), ("y + alpha", "y")),
    Case(selu_with_constants, selu_with_constants_back, normal((4, 5)), ("dy * scale", "dy")),
    Case(mish, mish_back, normal((4, 5)), (" * sig", "")),
    Case(hard_swish, hard_swish_back, normal((4, 5)), ("x * inner / 6", "x * inner / 3")),
    Case(softsign, softsign_back, normal((4, 5)), ("d**2", "d")),
    Case(power, power_back, normal((4, 5)), ("- 4 * x", "+ 4 * x")),
    Case(log_of_positive, log_of_positive_back, positive, ("dy / x", "dy * x")),
    Case(sqrt_eps, sqrt_eps_back, normal((4, 5)), ("x / y", "x / (2 * y)")),
    Case(arctan2, arctan2_back, normal((4, 5), (4, 5)), ("-dy * a", "dy * a")),
    Case(sin_loop, sin_loop_back, normal((3, 4)), ("math.cos", "-math.cos")),
    Case(
        divide,
        divide_back,
        lambda rng: (rng.standard_normal((3, 4)), rng.uniform(0.5, 2, (3, 4))),
        ("b**2", "b"),
    ),
    Case(glu, glu_back, normal((3, 8)), ("a * s * (1 - s)", "a * s")),
    Case(logit, logit_back, lambda rng: (rng.uniform(0.1, 0.9, (3, 4)),), ("(1 - p)", "(1 + p)")),
    Case(clipped_exp, clipped_exp_back, normal((5, 6)), (" & (x < 1.0)", "")),
)
