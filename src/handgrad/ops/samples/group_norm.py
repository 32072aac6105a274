"""Sample inputs of `ops.group_norm`."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.ops.samples._makers import between, extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._table import Maker, OpSamples, SampleRow, row


def _group_norm(x: Maker, channels: int) -> dict[str, Maker]:
    return {"x": x, "gamma": normal(channels), "beta": normal(channels)}


def _batch(*x_shape: int) -> dict[str, Maker]:
    return _group_norm(normal(*x_shape, scale=2.0, offset=1.0), x_shape[1])


_ROWS: Final = (
    row("usual", "usual", _batch(2, 6, 5), num_groups=3),
    row("square", "usual", _batch(4, 4), num_groups=1),
    row("one example", "one row", _batch(1, 4, 5), num_groups=2),
    row("one vector per channel", "one row", _batch(3, 6), num_groups=2),
    row("prime sizes", "prime sizes", _batch(3, 7, 5), num_groups=1),
    row("no examples", "empty", _batch(0, 4, 3), num_groups=2),
    row("images", "broadcast", _batch(2, 4, 3, 5), num_groups=2),
    row("one group", "option", _batch(2, 4, 5), num_groups=1),
    row("each channel alone", "option", _batch(2, 4, 5), num_groups=4),
    row("each channel of images alone", "option", _batch(2, 3, 2, 5), num_groups=3),
    row("eps", "option", _batch(2, 6, 3), num_groups=3, eps=0.5),
    row("no eps", "option", _batch(2, 6, 3), num_groups=3, eps=0.0),
    row(
        "one constant group",
        "extreme values",
        _group_norm(fixed([[[1, 3], [7, 7], [-2, 4]], [[0, 1], [2, -5], [5, 5]]]), 3),
        num_groups=3,
    ),
    row(
        "large offset",
        "extreme values",
        _group_norm(normal(2, 4, 5, offset=1e4), 4),
        num_groups=2,
    ),
    row("large and small values", "extreme values", _group_norm(extreme(2, 4, 5), 4), num_groups=2),
)

_SMALL: Final = row(
    "small",
    "usual",
    {
        "x": fixed([[[0, 6], [6, 8], [1, 3], [1, 3]]]),
        "gamma": fixed([1, 2, 3, 1]),
        "beta": fixed([0, 1, 0, -1]),
    },
    num_groups=2,
    eps=0.0,
)


def _random(rng: np.random.Generator) -> SampleRow:
    batch, _, *positions = random_shape(rng, 2, 4)
    num_groups, channels = between(rng, 1, 3), between(rng, 1, 3)
    x_shape = batch, num_groups * channels, *positions
    x = normal(*x_shape, scale=pick(rng, 0.3, 1.0, 3.0), offset=pick(rng, 0.0, 1.0, -5.0))
    eps = pick(rng, 1e-5, 1e-3, 0.5)
    return row("random", "usual", _group_norm(x, x_shape[1]), num_groups=num_groups, eps=eps)


SAMPLES: Final = OpSamples(
    gradients=("x", "gamma", "beta"),
    rows=_ROWS,
    awkward=(
        row("awkward", "prime sizes", _batch(5, 123), num_groups=3),
        row("primes", "prime sizes", _batch(3, 34, 17), num_groups=17),
        row("around vectors", "usual", _batch(2, 6, 33), num_groups=2),
        row("volumes", "broadcast", _batch(2, 4, 2, 3, 5), num_groups=2),
        row("no images", "empty", _batch(0, 4, 3, 5), num_groups=4),
        row("large", "usual", _batch(3, 26, 17, 67), num_groups=13, large=True),
        row("large, no positions beside", "usual", _batch(211, 258), num_groups=2, large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[[1, 2], [-1, 3], [2, 0], [1, -2]]]),
    random=_random,
    torch=lambda F, arrays, options: F.group_norm(
        arrays["x"],
        options["num_groups"],
        arrays["gamma"],
        arrays["beta"],
        options.get("eps", 1e-5),
    ),
)
