"""Modules in processes that DataLoader forks after the parent's threads have computed."""

from __future__ import annotations

import pytest

from tests.threads.program import needs_kernels, needs_linux, run

pytest.importorskip("torch")

pytestmark = [needs_kernels, needs_linux, pytest.mark.slow]

IN_WORKERS = """
import torch
from handgrad.torch import LSTM

torch.manual_seed(0)
module = LSTM(16, 64, bidirectional=True)
x, cotangent = torch.randn(8, 9, 5, 16), torch.randn(9, 5, 128)

def gradient(k):
    y, _ = module(x[k])
    return torch.autograd.grad(y, module.weight_hh_l0, cotangent)[0]

class Gradients(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, k):
        return gradient(k)

expected = torch.stack([gradient(k) for k in range(8)])
for epoch in range(2):
    loader = torch.utils.data.DataLoader(
        Gradients(), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    found = torch.cat([(gradient(0), batch)[1] for batch in loader])
    assert torch.equal(found, expected)
"""


def test_workers_of_a_data_loader_compute_the_same_bits() -> None:
    run("-W", "error", "-c", IN_WORKERS)
