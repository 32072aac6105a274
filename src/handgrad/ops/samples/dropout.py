"""Sample inputs of `ops.dropout`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import extreme, fixed, normal, pick, random_shape
from handgrad.ops.samples._table import NOTHING_TO_SUM, OpSamples, SampleRow, Seed, row

_ROWS: Final = (
    row("usual", "usual", {"x": normal(3, 5)}, p=0.3, rng=Seed(5)),
    row("four axes", "usual", {"x": normal(2, 3, 4, 5)}, p=0.5, rng=Seed(5)),
    row("one row", "one row", {"x": normal(1, 7)}, p=0.5, rng=Seed(5)),
    row("no axes", "one row", {"x": normal()}, p=0.2, rng=Seed(3)),
    row("prime sizes", "prime sizes", {"x": normal(7, 11)}, p=0.5, rng=Seed(5)),
    row("no rows", "empty", {"x": normal(0, 7)}, p=0.5, rng=Seed(5)),
    row("half", "option", {"x": normal(3, 5)}, p=0.5, rng=Seed(11)),
    row("none", "option", {"x": normal(3, 5)}, p=0.0, rng=Seed(5)),
    row("inference", "option", {"x": normal(3, 5)}, p=0.5, training=False),
    row("all", "masked rows", {"x": normal(3, 5)}, smooth=True, p=1.0, rng=Seed(5)),
    row("large and small values", "extreme values", {"x": extreme(5, 7)}, p=0.5, rng=Seed(5)),
)

_SMALL: Final = row("small", "usual", {"x": fixed([[1, 2, 3], [4, 5, 6]])}, p=0.5, rng=Seed(5))


def _random(rng: np.random.Generator) -> SampleRow:
    return row(
        "random",
        "usual",
        {"x": normal(*random_shape(rng, 0, 4))},
        p=pick(rng, 0.1, 0.3, 0.5, 0.9),
        rng=Seed(int(rng.integers(1000))),
        training=pick(rng, True, True, False),
    )


def dropped(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """PyTorch's formula on the mask that handgrad documents: kept where a float32 is at least p."""
    x, p = arrays["x"], options["p"]
    if not options.get("training", True) or p == 0.0:
        return x * 1.0
    draws = np.random.default_rng(options["rng"].number).random(tuple(x.shape), dtype=np.float32)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    kept = np.asarray((draws >= p) * scale)
    return x * F.torch.from_numpy(kept).to(x.dtype)


SAMPLES: Final = OpSamples(
    gradients=("x",),
    rows=_ROWS,
    awkward=(
        row("half of many", "usual", {"x": normal(5, 123)}, p=0.5, rng=Seed(7)),
        row("a third", "usual", {"x": normal(3, 5, 7)}, p=0.3, rng=Seed(11)),
        row("one value", "one row", {"x": normal(1)}, p=0.2, rng=Seed(3)),
        row(
            "no columns",
            "empty",
            {"x": normal(7, 0)},
            p=0.5,
            rng=Seed(7),
            not_in_torch=NOTHING_TO_SUM,
        ),
        row("large", "usual", {"x": normal(67, 1031)}, p=0.1, rng=Seed(7), large=True),
    ),
    small=_SMALL,
    small_cotangent=fixed([[1, -2, 3], [2, 4, -1]]),
    random=_random,
    torch=dropped,
)
