"""convnet: five convolutions 3×3 with batch norm and ReLU, global pooling; 32×32, batches of 32."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np

from benchmarks.workloads import Workload, layered

CHANNELS: Final = (3, 64, 64, 64, 128, 128)
STRIDES: Final = (1, 1, 1, 2, 1)


def handgrad(rng: np.random.Generator) -> Any:
    import handgrad as hg

    layers: list[Any] = []
    for (inputs, outputs), stride in zip(pairwise(CHANNELS), STRIDES, strict=True):
        layers += [
            hg.Conv2d(inputs, outputs, 3, padding=1, stride=stride, bias=False, rng=rng),
            hg.BatchNorm(outputs, activation="relu"),
        ]
    return hg.Sequential(
        *layers, hg.AvgPool2d("global"), hg.Flatten(), hg.Dense(CHANNELS[-1], 10, rng=rng)
    )


def torch() -> Any:
    from torch import nn

    layers: list[Any] = []
    for (inputs, outputs), stride in zip(pairwise(CHANNELS), STRIDES, strict=True):
        layers += [
            nn.Conv2d(inputs, outputs, 3, padding=1, stride=stride, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS[-1], 10)
    )


def jax(parameters: list[Any], x: Any) -> tuple[Any, list[Any]]:
    from jax import lax
    from jax.nn import relu

    statistics = []
    for i, stride in enumerate(STRIDES):
        weight, gamma, beta = parameters[3 * i : 3 * i + 3]
        x = lax.conv_general_dilated(x, weight, (stride, stride), ((1, 1), (1, 1)))
        mean = x.mean((0, 2, 3), keepdims=True)
        # E x² − (E x)², as Flax computes it: one pass.
        variance = (x * x).mean((0, 2, 3), keepdims=True) - mean * mean
        scale = lax.rsqrt(variance + 1e-5) * gamma[:, None, None]
        x = relu((x - mean) * scale + beta[:, None, None])
        statistics += [mean, variance]
    weight, bias = parameters[-2:]
    return x.mean((2, 3)) @ weight.T + bias, statistics


def workload(batch: int = 32, size: int = 32) -> Workload:
    return layered(batch, (CHANNELS[0], size, size), handgrad, torch, jax)
