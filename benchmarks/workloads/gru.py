"""gru: one layer of 256 units over 100 steps of 64 numbers, 64 classes; batches of 64."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import Workload
from benchmarks.workloads.tagger import tagger


def step(weights: list[Any], h: Any, a: Any) -> tuple[Any, Any]:
    """The gates stand in the order r, z, n; r acts on W_hn h + b_hn."""
    from jax import numpy as jnp
    from jax.nn import sigmoid

    a_r, a_z, a_n = jnp.split(a, 3, axis=-1)
    h_r, h_z, h_n = jnp.split(h @ weights[1].T + weights[3], 3, axis=-1)
    r, z = sigmoid(a_r + h_r), sigmoid(a_z + h_z)
    n = jnp.tanh(a_n + r * h_n)
    h = (1 - z) * n + z * h
    return h, h


def workload(**sizes: int) -> Workload:
    return tagger("gru", step, gates=3, arrays=4, **sizes)
