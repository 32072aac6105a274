"""lstm: two layers of 256 units over 100 steps of 64 numbers, 64 classes; batches of 64."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import Workload
from benchmarks.workloads.tagger import tagger


def step(weights: list[Any], state: Any, a: Any) -> tuple[Any, Any]:
    """The gates stand in the order i, f, g, o; a fifth array of weights is the projection."""
    from jax import numpy as jnp
    from jax.nn import sigmoid

    h, c = state
    i, f, g, o = jnp.split(a + h @ weights[1].T, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    if len(weights) == 5:
        h = h @ weights[4].T
    return (h, c), h


def workload(**sizes: int) -> Workload:
    return tagger("lstm", step, gates=4, arrays=4, layers=2, **sizes)
