# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Functions of one value, mostly as classes that keep what they need on themselves."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# tanh and sigmoid, with what forward was given and what it gave


def tanh_forward(x):
    y = np.tanh(x)
    return y, (x, y)


def tanh_backward(dy, cache):
    x, y = cache
    return dy * (1 - y**2)


def tanh_derivative_of_input(dy, cache):
    x, y = cache
    return dy * (1 - x**2)


TANH = Exercise(
    "tanh",
    tanh_forward,
    tanh_backward,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            tanh_derivative_of_input,
            "1 − x² where 1 − y² belongs",
            kinds("stale variable", "function missing"),
            ("x",),
            ("x",),
        ),
    ),
    like="tanh",
)


class Sigmoid:
    @staticmethod
    def forward(x):
        y = 0.5 * (1.0 + np.tanh(0.5 * x))
        return y, {"out": y}

    @staticmethod
    def backward(dy, cache):
        return dy * cache["out"] * (1.0 - cache["out"])


def sigmoid_without_one_minus(dy, cache):
    return dy * cache["out"]


def sigmoid_of_sigmoid(dy, cache):
    s = 1.0 / (1.0 + np.exp(-cache["out"]))
    return dy * s * (1.0 - s)


def sigmoid_forward_keeping_x(x):
    return 1.0 / (1.0 + np.exp(-x)), x


def sigmoid_by_exp(dy, x):
    e = np.exp(-x)
    return dy * e / (1.0 + e) ** 2


SIGMOID = Exercise(
    "sigmoid",
    Sigmoid.forward,
    Sigmoid.backward,
    lambda rng: (rng.normal(size=(3, 7)),),
    (
        Bug(
            sigmoid_without_one_minus,
            "the factor 1 − y is left out",
            kinds("factor missing", "term missing"),
            ("x",),
        ),
        Bug(
            sigmoid_of_sigmoid,
            "the sigmoid of what is already the sigmoid",
            kinds("extra factor", "stale variable", "function missing"),
            ("x",),
        ),
        Bug(
            sigmoid_by_exp,
            "e^(−x)/(1 + e^(−x))² is ∞/∞ for large negative x",
            kinds("not finite"),
            ("x",),
            forward=sigmoid_forward_keeping_x,
        ),
    ),
    like="sigmoid",
)

# ReLU and its kin


def relu_forward(x):
    out = np.maximum(0, x)
    return out, out


def relu_backward(dout, out):
    dx = dout.copy()
    dx[out <= 0] = 0
    return dx


def relu_mask_with_equality(dout, out):
    return np.where(out >= 0, dout, 0)


def relu_writes_into_dout(dout, out):
    dout[out <= 0] = 0
    return dout


def relu_mask_of_dout(dout, out):
    return np.maximum(0, dout)


RELU = Exercise(
    "ReLU",
    relu_forward,
    relu_backward,
    lambda rng: (rng.normal(size=(5, 6)),),
    (
        Bug(
            relu_mask_with_equality,
            "y ≥ 0 is true everywhere, so the mask lets all through",
            kinds("mask forgotten", "activation derivative forgotten", "wrong branch"),
            ("x",),
        ),
        Bug(
            relu_writes_into_dout,
            "right, but dy is overwritten",
            kinds("written to"),
            (),
            ("dy",),
        ),
        Bug(
            relu_mask_of_dout,
            "the sign of dy decides, not that of x",
            kinds("stale variable", "wrong branch", "mask forgotten"),
            ("x",),
        ),
    ),
    like="relu",
)


def leaky_forward(x, negative_slope=0.01):
    mask = x > 0
    return np.where(mask, x, negative_slope * x), (mask, negative_slope)


def leaky_backward(dy, cache):
    mask, slope = cache
    dx = np.array(dy)
    dx[~mask] *= slope
    return dx


def leaky_as_relu(dy, cache):
    mask, _ = cache
    return dy * mask


LEAKY_RELU = Exercise(
    "leaky ReLU",
    leaky_forward,
    leaky_backward,
    lambda rng: (rng.normal(size=(5, 6)),),
    (
        Bug(
            leaky_as_relu,
            "the slope below zero is forgotten: nothing flows there",
            kinds("mask forgotten", "term missing", "factor missing", "masked rows"),
            ("x",),
        ),
    ),
    like="leaky_relu",
)


def prelu_forward(x, a):
    return np.where(x > 0, x, a * x), (x, a)


def prelu_backward(dy, cache):
    x, a = cache
    da = (dy * np.minimum(x, 0)).sum(axis=0)
    return dy * np.where(x > 0, np.ones_like(x), a), da


def prelu_slope_not_summed(dy, cache):
    x, a = cache
    da = dy * np.minimum(x, 0)
    return dy * np.where(x > 0, np.ones_like(x), a), da


PRELU = Exercise(
    "PReLU",
    prelu_forward,
    prelu_backward,
    lambda rng: (rng.normal(size=(6, 3)), rng.uniform(0.1, 0.5, 3)),
    (
        Bug(
            prelu_slope_not_summed,
            "da is not summed over the batch",
            kinds("not reduced"),
            ("a",),
            ("0",),
        ),
    ),
)

# Smooth ones that multiply x


class SiLU:
    @staticmethod
    def forward(x):
        s = 0.5 * (1 + np.tanh(x / 2))
        return x * s, (x, s)

    @staticmethod
    def backward(dy, cache):
        x, s = cache
        return dy * (s + x * s * (1 - s))


def silu_without_product_rule(dy, cache):
    x, s = cache
    return dy * s


def silu_plus(dy, cache):
    x, s = cache
    return dy * (s + x * s * (1 + s))


SILU = Exercise(
    "SiLU",
    SiLU.forward,
    SiLU.backward,
    lambda rng: (rng.normal(size=(4, 6)),),
    (
        Bug(
            silu_without_product_rule,
            "the second term of the product rule, x σ′, is left out",
            kinds("term missing"),
            ("x",),
        ),
        Bug(silu_plus, "1 + σ where 1 − σ belongs", kinds("wrong sign"), ("x",)),
    ),
    like="silu",
)

C = np.sqrt(2 / np.pi)


def gelu_forward(x):
    inner = C * (x + 0.044715 * x**3)
    t = np.tanh(inner).astype(x.dtype)
    return 0.5 * x * (1 + t), (x, t)


def gelu_backward(dy, cache):
    x, t = cache
    dinner = float(C) * (1 + 3 * 0.044715 * x**2)
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * dinner)


def gelu_cubic_without_3(dy, cache):
    x, t = cache
    dinner = float(C) * (1 + 0.044715 * x**2)
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * dinner)


def gelu_without_inner_derivative(dy, cache):
    x, t = cache
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**2))


GELU = Exercise(
    "GELU, tanh form",
    gelu_forward,
    gelu_backward,
    lambda rng: (rng.normal(size=(4, 6)),),
    (
        Bug(
            gelu_cubic_without_3,
            "the derivative of x³ without its 3",
            kinds("scale missing", "term scaled"),
            ("x",),
        ),
        Bug(
            gelu_without_inner_derivative,
            "the chain rule stops at tanh: the derivative of its argument is left out",
            kinds("factor missing"),
            ("x",),
        ),
    ),
)


def elu_forward(x, alpha=1.5):
    e = np.exp(np.minimum(x, 0))
    return np.where(x > 0, x, alpha * (e - 1)), (x, e, alpha)


def elu_backward(dy, cache):
    x, e, alpha = cache
    return dy * np.where(x > 0, 1, alpha * e).astype(dy.dtype)


def elu_without_alpha(dy, cache):
    x, e, alpha = cache
    return dy * np.where(x > 0, 1, e).astype(dy.dtype)


ELU = Exercise(
    "ELU",
    elu_forward,
    elu_backward,
    lambda rng: (rng.normal(size=(5, 4)),),
    (
        Bug(
            elu_without_alpha,
            "α is forgotten below zero",
            kinds("scale missing", "factor missing", "mask forgotten"),
            ("x",),
            ("α", "alpha", "x ≤ 0"),
        ),
    ),
)

EXERCISES = (TANH, SIGMOID, RELU, LEAKY_RELU, PRELU, SILU, GELU, ELU)
