"""lstm_projection: one layer of lstm with 256 units, of which 128 numbers go on."""

from __future__ import annotations

from benchmarks.works import Work
from benchmarks.works.lstm import step
from benchmarks.works.tagger import tagger


def work(projection: int = 128, **sizes: int) -> Work:
    return tagger("lstm", step, gates=4, arrays=5, projection=projection, **sizes)
