"""Sample inputs that poolings share."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import between, fixed, pick

SMALL_COTANGENT: Final = fixed([[[[4, -8], [12, 16]]]])
SMALL_COTANGENT_1D: Final = fixed([[[4, -8], [12, 16]]])


def random_windows(
    rng: np.random.Generator, dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The shape of x, and windows that fit into it without the padding: none holds padding only."""
    kernel = tuple(between(rng, 1, 3) for _ in dilation)
    size = (d * (k - 1) + 1 + between(rng, 0, 4) for k, d in zip(kernel, dilation, strict=True))
    windows = {
        "kernel_size": kernel,
        "stride": pick(rng, None, tuple(between(rng, 1, 3) for _ in dilation)),
        "padding": tuple(between(rng, 0, k // 2) for k in kernel),
    }
    return (between(rng, 1, 3), between(rng, 1, 3), *size), windows
