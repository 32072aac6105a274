"""cnn: convolutions 3×3 1→32→64, max pooling 2, dense 9216-128-10; 28×28, batches of 64."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads import Workload, layered


def handgrad(rng: np.random.Generator) -> Any:
    import handgrad as hg

    return hg.Sequential(
        hg.Conv2d(1, 32, 3, activation="relu", rng=rng),
        hg.Conv2d(32, 64, 3, activation="relu", rng=rng),
        hg.MaxPool2d(2),
        hg.Flatten(),
        hg.Dense(9216, 128, activation="relu", rng=rng),
        hg.Dense(128, 10, rng=rng),
    )


def torch() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def jax(parameters: list[Any], x: Any) -> tuple[Any, list[Any]]:
    from jax import lax
    from jax.nn import relu

    weight1, bias1, weight2, bias2, weight3, bias3, weight4, bias4 = parameters
    x = relu(lax.conv(x, weight1, (1, 1), "VALID") + bias1[:, None, None])
    x = relu(lax.conv(x, weight2, (1, 1), "VALID") + bias2[:, None, None])
    x = lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = x.reshape(x.shape[0], -1)
    x = relu(x @ weight3.T + bias3)
    return x @ weight4.T + bias4, []


def workload(batch: int = 64) -> Workload:
    return layered(batch, (1, 28, 28), handgrad, torch, jax)
