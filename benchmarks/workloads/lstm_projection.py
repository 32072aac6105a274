"""lstm_projection: one layer of lstm with 256 units, of which 128 numbers go on."""

from __future__ import annotations

from benchmarks.workloads import Workload
from benchmarks.workloads.lstm import step
from benchmarks.workloads.tagger import tagger


def workload(projection: int = 128, **sizes: int) -> Workload:
    return tagger("lstm", step, gates=4, arrays=5, projection=projection, **sizes)
