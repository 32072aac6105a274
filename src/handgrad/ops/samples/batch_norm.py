"""Sample inputs of `ops.batch_norm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.activation import ACTIVATIONS
from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape, uniform
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, OpSamples, SampleRow, row
from handgrad.ops.samples._torch import activated


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


_ROWS: Final = (
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

_SMALL: Final = row(
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


def _random(rng: np.random.Generator) -> SampleRow:
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


def _awkward(mode: str, training: bool) -> tuple[SampleRow, ...]:
    """Rows in training or inference."""
    refused = "PyTorch refuses an empty batch in training"
    return (
        row(f"{mode} one channel", "one row", _batch(1, 1, 3, 5), training=training),
        row(
            f"{mode} eps and momentum",
            "option",
            _batch(5, 3),
            training=training,
            momentum=0.3,
            eps=0.1,
        ),
        row(
            f"{mode} empty batch", "empty", _batch(0, 3, 5), training=training, not_in_torch=refused
        ),
        *(
            row(
                f"{mode} no {axis}",
                "empty",
                _batch(*x_shape),
                training=training,
                not_in_torch=NOTHING_TO_SUM,
            )
            for axis, x_shape in (
                ("channels", (3, 0, 5)),
                ("positions", (3, 5, 0)),
                ("columns", (3, 0)),
            )
        ),
        row(f"{mode} large", "usual", _batch(7, 13, 17, 19), training=training, large=True),
    )


def _batch_normed(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x, gamma, beta, mean, var = arrays.values()
    settings = {name: value for name, value in options.items() if name != "activation"}
    a = F.batch_norm(x, mean.clone(), var.clone(), gamma, beta, **settings)
    return activated(F, a, options)


SAMPLES: Final = OpSamples(
    gradients=("x", "gamma", "beta"),
    rows=_ROWS,
    awkward=(
        *_awkward("training", training=True),
        *_awkward("inference", training=False),
        row("inference, sequences", "broadcast", _batch(5, 3, 7), training=False),
        *(
            row(
                f"{activation} of images",
                "option",
                _batch(3, 5, 4, 7),
                training=True,
                activation=activation,
            )
            for activation in ACTIVATIONS[1:]
        ),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, 2], [2, 0], [-1, 1], [3, -2]]),
    random=_random,
    torch=_batch_normed,
    open_nonfinite=("gamma",),
)
