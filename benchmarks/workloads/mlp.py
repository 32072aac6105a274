"""mlp: a dense network 784-1024-1024-10 with ReLU, batches of 128."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workloads import Workload, layered


def dense_network(sizes: tuple[int, ...], batch: int) -> Workload:
    """Dense layers of these sizes with ReLU between them."""
    last = len(sizes) - 2

    def handgrad(rng: np.random.Generator) -> Any:
        import handgrad as hg

        return hg.Sequential(
            *(
                hg.Dense(inputs, outputs, activation="relu" if i < last else "identity", rng=rng)
                for i, (inputs, outputs) in enumerate(pairwise(sizes))
            )
        )

    def torch() -> Any:
        from torch import nn

        layers: list[nn.Module] = []
        for i, (inputs, outputs) in enumerate(pairwise(sizes)):
            layers.append(nn.Linear(inputs, outputs))
            if i < last:
                layers.append(nn.ReLU())
        return nn.Sequential(*layers)

    def jax(parameters: list[Any], x: Any) -> tuple[Any, list[Any]]:
        from jax.nn import relu

        for i in range(last + 1):
            weight, bias = parameters[2 * i : 2 * i + 2]
            x = x @ weight.T + bias
            if i < last:
                x = relu(x)
        return x, []

    return layered(batch, (sizes[0],), handgrad, torch, jax, layers=sizes)


def workload(width: int = 1024, batch: int = 128) -> Workload:
    return dense_network((784, width, width, 10), batch)
