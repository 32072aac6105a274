# mypy: ignore-errors
"""Right on paper, wrong in the machine: cancellation, overflow, types, memory, buffers, chance."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# Standardised rows far from 0


def rows_forward(x):
    mu = x.mean(1, keepdims=True)
    istd = 1 / np.sqrt(((x - mu) ** 2).mean(1, keepdims=True))
    return (x - mu) * istd, (x, (x - mu) * istd, istd)


def rows_backward(dy, cache):
    _, y, istd = cache
    return istd * (dy - dy.mean(1, keepdims=True) - y * (dy * y).mean(1, keepdims=True))


def rows_variance_by_moments(dy, cache):
    x, _, _ = cache
    mu = x.mean(1, keepdims=True)
    istd = 1 / np.sqrt((x * x).mean(1, keepdims=True) - mu * mu)
    y = (x - mu) * istd
    return istd * (dy - dy.mean(1, keepdims=True) - y * (dy * y).mean(1, keepdims=True))


ROWS = Exercise(
    "standardised rows with a large mean",
    rows_forward,
    rows_backward,
    # At 50, rounding of the inputs themselves explains nearly as much.
    lambda rng: (rng.normal(300.0, 1.0, (4, 6)),),
    (
        Bug(
            rows_variance_by_moments,
            "E[x²] − E[x]² cancels in float32",
            kinds("inaccurate", "not finite"),
            ("x",),
        ),
    ),
)

# Softmax whose backward computes the exponentials again


def scores_forward(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True), x


def scores_backward(dy, x):
    p, _ = scores_forward(x)
    return p * (dy - (p * dy).sum(1, keepdims=True))


def scores_without_max(dy, x):
    e = np.exp(x)
    p = e / e.sum(1, keepdims=True)
    return p * (dy - (p * dy).sum(1, keepdims=True))


SCORES = Exercise(
    "softmax from x",
    scores_forward,
    scores_backward,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            scores_without_max,
            "exp without the largest taken off overflows",
            kinds("not finite"),
            ("x",),
        ),
    ),
    like="softmax",
)

# Squares, whose backward is as short as can be


def square_forward(x):
    return x * x, x


def square_backward(dy, x):
    return 2 * x * dy


def square_float64_constant(dy, x):
    return np.full(x.shape, 2.0) * x * dy


def square_rounded_to_half(dy, x):
    return (2 * x * dy).astype(np.float16).astype(x.dtype)


def square_raw_memory(dy, x):
    values = np.frombuffer(dy.base if dy.base is not None else dy, dtype=dy.dtype)
    return 2 * x * values[: dy.size].reshape(dy.shape)


def square_writes_into_cache(dy, x):
    x *= 2
    x *= dy
    return x


def square_with_noise(dy, x):
    return 2 * x * dy + np.random.default_rng().normal(size=x.shape)  # unseeded on purpose


SQUARE = Exercise(
    "square",
    square_forward,
    square_backward,
    lambda rng: (rng.normal(size=(4, 5)),),
    (
        Bug(
            square_float64_constant,
            "an array of float64 makes dx float64",
            kinds("wrong type"),
            ("x",),
        ),
        Bug(
            square_rounded_to_half,
            "dx passes through float16",
            kinds("inaccurate"),
            ("x",),
        ),
        Bug(
            square_raw_memory,
            "reads the memory behind dy, strides ignored",
            kinds("strided cotangent", "raises"),
            ("x",),
        ),
        Bug(
            square_writes_into_cache,
            "the cache, which is x itself, is overwritten",
            kinds("written to", "not repeatable"),
            (),
            ("x", "cache"),
        ),
        Bug(
            square_with_noise,
            "another result on every call",
            kinds("unknown", "not repeatable"),
            ("x",),
        ),
    ),
)

# A workspace kept from call to call


class Workspace:
    """The state that a layer keeps from call to call."""

    def __init__(self):
        self.dx = None


def gate_forward(x, g):
    return x * g, (x, g, Workspace())


def gate_backward(dy, cache):
    x, g, _ = cache
    return dy * g, dy * x


def gate_adds_to_workspace(dy, cache):
    x, g, work = cache
    if work.dx is None:
        work.dx = np.zeros_like(x)
    work.dx += dy * g
    return work.dx.copy(), dy * x


def gate_order(dy, cache):
    x, g, _ = cache
    return dy * x, dy * g


GATE = Exercise(
    "gate",
    gate_forward,
    gate_backward,
    lambda rng: (rng.normal(size=(4, 5)), rng.normal(size=(4, 5))),
    (
        Bug(
            gate_adds_to_workspace,
            "dx is added to what an earlier call left",
            kinds("not repeatable"),
            ("x",),
        ),
        Bug(
            gate_order,
            "the gradients are returned in the wrong order",
            kinds("gradients swapped"),
            ("x", "g"),
        ),
    ),
)

EXERCISES = (ROWS, SCORES, SQUARE, GATE)
