"""rnn: a tanh network of 256 units over 100 steps of 64 numbers, 64 classes; batches of 64."""

from __future__ import annotations

from typing import Any

from benchmarks.workloads import Workload
from benchmarks.workloads.tagger import tagger


def step(weights: list[Any], h: Any, a: Any) -> tuple[Any, Any]:
    from jax import numpy as jnp

    h = jnp.tanh(a + h @ weights[1].T)
    return h, h


def workload(**sizes: int) -> Workload:
    return tagger("rnn", step, gates=1, arrays=4, **sizes)
