"""lstm_ragged: one layer of lstm over sequences of 1 to 100 steps; PyTorch packs them."""

from __future__ import annotations

from benchmarks.works import Work
from benchmarks.works.lstm import step
from benchmarks.works.tagger import tagger


def work(**sizes: int) -> Work:
    return tagger("lstm", step, gates=4, arrays=4, ragged=True, **sizes)
