"""What brings rows, channels or matrices to one scale: norms, standardize, softmax."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.checking.samples.makers import (
    between,
    extreme,
    fixed,
    normal,
    pick,
    random_shape,
    uniform,
    with_minus_infinity,
)
from handgrad.checking.samples.table import Maker, OpSamples, Row, row
from handgrad.ops.activation import ACTIVATIONS

# In the small examples eps is 0 and every standard deviation or root mean square a whole number, so
# that all that follows are fractions.


def _row_norm(x: Maker, features: int, beta: bool) -> dict[str, Maker]:
    makers = {"x": x, "gamma": normal(features)}
    return makers | ({"beta": normal(features)} if beta else {})


def _row_norm_rows(beta: bool) -> tuple[Row, ...]:
    def of(*x_shape: int) -> dict[str, Maker]:
        return _row_norm(normal(*x_shape, scale=2.0, offset=1.0), x_shape[-1], beta)

    return (
        row("usual", "usual", of(3, 5)),
        row("square", "usual", of(4, 4)),
        row("one row", "one row", of(1, 7)),
        row("one vector", "one row", of(7)),
        row("prime sizes", "prime sizes", of(7, 11)),
        row("no rows", "empty", of(0, 5)),
        row("sequences", "broadcast", of(2, 3, 5)),
        row("eps", "option", of(3, 5), eps=0.5),
        row("no eps", "option", of(3, 5), eps=0.0),
        row("one feature", "option", of(5, 1), eps=0.1),
        row("one row of zeros", "extreme values", _row_norm(_one_row(0.0), 4, beta)),
        row("one constant row", "extreme values", _row_norm(_one_row(7.0), 4, beta)),
        row("large offset", "extreme values", _row_norm(normal(3, 5, offset=1e4), 5, beta)),
        row("large and small values", "extreme values", _row_norm(extreme(3, 5), 5, beta)),
    )


def _one_row(value: float) -> Maker:
    """Three rows, the one in the middle with this value everywhere."""
    return fixed([[1, -2, 3, 5], [value, value, value, value], [2, 2, -1, 0]])


def _random_row_norm(rng: np.random.Generator, beta: bool) -> Row:
    x_shape = random_shape(rng, 1, 3)
    x = normal(*x_shape, scale=pick(rng, 0.3, 1.0, 3.0), offset=pick(rng, 0.0, 1.0, -5.0))
    eps = pick(rng, 1e-5, 1e-3, 0.5)
    return row("random", "usual", _row_norm(x, x_shape[-1], beta), eps=eps)


def _random_layer_norm(rng: np.random.Generator) -> Row:
    return _random_row_norm(rng, beta=True)


def _random_rms_norm(rng: np.random.Generator) -> Row:
    return _random_row_norm(rng, beta=False)


_LAYER_NORM_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[0, 6, 6, 8], [1, 3, 1, 3]]),
        "gamma": fixed([1, 2, 3, 1]),
        "beta": fixed([0, 1, 0, -1]),
    },
    eps=0.0,
)
_RMS_NORM_SMALL: Final = row(
    "small", "usual", {"x": fixed([[1, 5, 7], [1, -1, 5]]), "gamma": fixed([1, 2, 3])}, eps=0.0
)


def _batch_norm(x: Maker, channels: int) -> dict[str, Maker]:
    return {
        "x": x,
        "gamma": normal(channels),
        "beta": normal(channels),
        "running_mean": normal(channels),
        "running_var": uniform(channels, low=0.5, high=2.0),
    }


def _batch(*x_shape: int) -> dict[str, Maker]:
    return _batch_norm(normal(*x_shape, scale=2.0, offset=1.0), x_shape[1])


_BATCH_NORM: Final = (
    row("usual", "usual", _batch(5, 3), training=True),
    row("square", "usual", _batch(4, 4), training=True),
    row("one sequence", "one row", _batch(1, 3, 5), training=True),
    row("prime sizes", "prime sizes", _batch(11, 7), training=True),
    row("no rows", "empty", _batch(0, 3), training=True),
    row("sequences", "broadcast", _batch(3, 4, 5), training=True),
    row("images", "broadcast", _batch(2, 3, 4, 5), training=True),
    row("inference", "option", _batch(5, 3), training=False),
    row("inference, one row", "one row", _batch(1, 5), training=False),
    row("inference, no rows", "empty", _batch(0, 3), training=False),
    row("inference, images", "broadcast", _batch(2, 3, 4, 5), training=False),
    row("momentum", "option", _batch(5, 3), training=True, momentum=0.3),
    row("eps", "option", _batch(5, 3), training=True, eps=0.5),
    row("inference, eps", "option", _batch(5, 3), training=False, eps=0.5),
    *(
        row(activation, "option", _batch(5, 3), training=True, activation=activation)
        for activation in ACTIVATIONS[1:]
    ),
    row("inference, relu", "option", _batch(2, 3, 4), training=False, activation="relu"),
    row(
        "one constant channel",
        "extreme values",
        _batch_norm(fixed([[1, 7], [-2, 7], [3, 7], [5, 7]]), 2),
        training=True,
    ),
    row("large offset", "extreme values", _batch_norm(normal(5, 3, offset=1e4), 3), training=True),
    row("large and small values", "extreme values", _batch_norm(extreme(5, 3), 3), training=True),
    row("inference, large", "extreme values", _batch_norm(extreme(5, 3), 3), training=False),
)

_BATCH_NORM_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[0, 1], [6, 3], [6, 1], [8, 3]]),
        "gamma": fixed([2, 3]),
        "beta": fixed([1, 0]),
        "running_mean": fixed([1, 0]),
        "running_var": fixed([4, 2]),
    },
    training=True,
    momentum=0.5,
    eps=0.0,
)


def _random_batch_norm(rng: np.random.Generator) -> Row:
    training = pick(rng, True, False)
    batch, *others = random_shape(rng, 2, 4)
    x_shape = (max(batch, 2) if training else batch, *others)
    x = normal(*x_shape, scale=pick(rng, 0.3, 1.0, 3.0), offset=pick(rng, 0.0, 1.0, -5.0))
    return row(
        "random",
        "usual",
        _batch_norm(x, x_shape[1]),
        training=training,
        momentum=pick(rng, 0.1, 0.3),
        eps=pick(rng, 1e-5, 1e-3, 0.5),
        activation=pick(rng, *ACTIVATIONS),
    )


def _spread(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape, scale=3.0, offset=2.0)}


_STANDARDIZE: Final = (
    row("usual", "usual", _spread(3, 4)),
    row("square", "usual", _spread(4, 4)),
    row("several matrices", "usual", _spread(2, 3, 5)),
    row("one row", "one row", _spread(1, 7)),
    row("prime sizes", "prime sizes", _spread(7, 11)),
    row("no matrices", "empty", _spread(0, 3, 5)),
    row("last axis", "option", _spread(3, 5), axes=-1),
    row("first axis", "option", _spread(5, 3), axes=0),
    row("two outer axes", "option", _spread(3, 4, 5), axes=(0, 2)),
    row("all axes", "option", _spread(2, 3, 4), axes=(0, 1, 2)),
    row("eps", "option", _spread(3, 4), eps=0.5),
    row("no eps", "option", _spread(3, 4), eps=0.0),
    row("one value", "option", _spread(2, 1, 1), eps=0.1),
    row("one constant row", "extreme values", {"x": _one_row(7.0)}, axes=-1),
    row("large offset", "extreme values", {"x": normal(3, 5, offset=1e4)}),
    row("large and small values", "extreme values", {"x": extreme(3, 5)}),
)

_STANDARDIZE_SMALL: Final = row("small", "usual", {"x": fixed([[0, 6], [6, 8]])}, eps=0.0)


def _random_standardize(rng: np.random.Generator) -> Row:
    x_shape = random_shape(rng, 2, 3)
    last = len(x_shape) - 1
    axes = pick(rng, (-2, -1), -1, 0, (0, last), tuple(range(last + 1)))
    return row("random", "usual", _spread(*x_shape), axes=axes, eps=pick(rng, 1e-5, 1e-3, 0.5))


_SOFTMAX: Final = (
    row("usual", "usual", {"x": normal(3, 5)}),
    row("square", "usual", {"x": normal(4, 4)}),
    row("one row", "one row", {"x": normal(1, 7)}),
    row("one vector", "one row", {"x": normal(7)}),
    row("one class", "one row", {"x": normal(3, 1)}),
    row("prime sizes", "prime sizes", {"x": normal(7, 11)}),
    row("no rows", "empty", {"x": normal(0, 5)}),
    row("several matrices", "usual", {"x": normal(2, 3, 4)}),
    row("first axis", "option", {"x": normal(5, 3)}, axis=0),
    row("middle axis", "option", {"x": normal(2, 3, 4)}, axis=1),
    row("axis from the end", "option", {"x": normal(2, 3, 4)}, axis=-2),
    row(
        "some scores masked",
        "masked rows",
        {"x": with_minus_infinity([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])},
    ),
    row(
        "a row masked everywhere",
        "masked rows",
        {"x": with_minus_infinity([[0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])},
    ),
    row(
        "a column masked everywhere",
        "masked rows",
        {"x": with_minus_infinity([[0, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]])},
        axis=0,
    ),
    row("large and small values", "extreme values", {"x": extreme(3, 5)}),
)

_SOFTMAX_SMALL: Final = row("small", "usual", {"x": fixed([[1, 2, 3], [0, 0, 0]])})


def _random_softmax(rng: np.random.Generator) -> Row:
    x_shape = random_shape(rng, 1, 3)
    axis = between(rng, -len(x_shape), len(x_shape) - 1)
    return row("random", "usual", {"x": normal(*x_shape, scale=2.0)}, axis=axis)


TABLE: Final = {
    "layer_norm": OpSamples(
        ("x", "gamma", "beta"),
        _row_norm_rows(beta=True),
        _LAYER_NORM_SMALL,
        fixed([[1, 2, -1, 3], [2, 0, 1, -2]]),
        _random_layer_norm,
    ),
    "rms_norm": OpSamples(
        ("x", "gamma"),
        _row_norm_rows(beta=False),
        _RMS_NORM_SMALL,
        fixed([[1, 2, -1], [3, 0, 1]]),
        _random_rms_norm,
    ),
    "batch_norm": OpSamples(
        ("x", "gamma", "beta"),
        _BATCH_NORM,
        _BATCH_NORM_SMALL,
        fixed([[1, 2], [2, 0], [-1, 1], [3, -2]]),
        _random_batch_norm,
    ),
    "standardize": OpSamples(
        ("x",), _STANDARDIZE, _STANDARDIZE_SMALL, fixed([[1, 2], [-1, 3]]), _random_standardize
    ),
    "softmax": OpSamples(
        ("x",), _SOFTMAX, _SOFTMAX_SMALL, fixed([[1, 2, -1], [3, 0, 6]]), _random_softmax
    ),
}
