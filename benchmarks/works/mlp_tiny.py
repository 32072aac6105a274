"""mlp_tiny: a dense network 64-32-10 with ReLU, batches of 32; what a call costs shows here."""

from benchmarks.works import Work
from benchmarks.works.mlp import dense_network


def work() -> Work:
    return dense_network((64, 32, 10), batch=32)
