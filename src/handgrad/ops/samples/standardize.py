"""Sample inputs of `ops.standardize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._row_norm import one_row
from handgrad.ops.samples._table import NOTHING_TO_SUM, Maker, OpSamples, SampleRow, row


def _spread(*x_shape: int) -> dict[str, Maker]:
    return {"x": normal(*x_shape, scale=3.0, offset=2.0)}


_ROWS: Final = (
    row("usual", "usual", _spread(3, 4)),
    row("square", "usual", _spread(4, 4)),
    row("several matrices", "usual", _spread(2, 3, 5)),
    row("one row", "one row", _spread(1, 7)),
    row("prime sizes", "prime sizes", _spread(7, 11)),
    row("no matrices", "empty", _spread(0, 3, 5)),
    row("last axis", "option", _spread(3, 5), axes=-1),
    row("first axis", "option", _spread(5, 3), axes=0),
    row("two outer axes", "option", _spread(3, 4, 5), axes=(0, 2)),
    row("vectors, all but the first axis", "option", _spread(3, 5), axes=None),
    row("images, all but the first axis", "option", _spread(2, 3, 2, 2), axes=None),
    row("all axes", "option", _spread(2, 3, 4), axes=(0, 1, 2)),
    row("eps", "option", _spread(3, 4), eps=0.5),
    row("no eps", "option", _spread(3, 4), eps=0.0),
    row("one value", "option", _spread(2, 1, 1), eps=0.1),
    row("one constant row", "extreme values", {"x": one_row(7.0)}, axes=-1),
    row("large offset", "extreme values", {"x": normal(3, 5, offset=1e4)}),
    row("large and small values", "extreme values", {"x": extreme(3, 5)}),
)

_SMALL: Final = row("small", "usual", {"x": fixed([[0, 6], [6, 8]])}, eps=0.0)


def _random(rng: np.random.Generator) -> SampleRow:
    x_shape = random_shape(rng, 2, 3)
    last = len(x_shape) - 1
    axes = pick(rng, (-2, -1), None, -1, 0, (0, last), tuple(range(last + 1)))
    return row("random", "usual", _spread(*x_shape), axes=axes, eps=pick(rng, 1e-5, 1e-3, 0.5))


def _standardized(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    x, axes = arrays["x"], options.get("axes", (-2, -1))
    if axes is None:
        axes = tuple(range(1, x.ndim))
    centred = x - x.mean(dim=axes, keepdim=True)
    variance = (centred * centred).mean(dim=axes, keepdim=True)
    return centred / (variance + options.get("eps", 1e-5)).sqrt()


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("batch", "usual", _spread(3, 5, 123)),
        row(
            "nothing beside the axes",
            "empty",
            _spread(3, 0, 5),
            axes=(0, 2),
            not_in_torch=NOTHING_TO_SUM,
        ),
        row("no axes", "option", _spread(3, 4), axes=(), not_in_torch=NOTHING_TO_SUM),
        row("large", "usual", _spread(37, 31, 41), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, 2], [-1, 3]]),
    random=_random,
    torch=_standardized,
)
