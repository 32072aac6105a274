"""mlp_tiny: a dense network 64-32-10 with ReLU, batches of 32; what a call costs shows here."""

from benchmarks.workloads import Workload
from benchmarks.workloads.mlp import dense_network


def workload() -> Workload:
    return dense_network((64, 32, 10), batch=32)
