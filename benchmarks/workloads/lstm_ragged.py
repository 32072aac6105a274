"""lstm_ragged: one layer of lstm over sequences of 1 to 100 steps; PyTorch packs them."""

from __future__ import annotations

from benchmarks.workloads import Workload
from benchmarks.workloads.lstm import step
from benchmarks.workloads.tagger import tagger


def workload(**sizes: int) -> Workload:
    return tagger("lstm", step, gates=4, arrays=4, ragged=True, **sizes)
