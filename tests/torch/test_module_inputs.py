"""The inputs of PyTorch's own module tests."""

from __future__ import annotations

import pytest

from tests.threads.program import needs_kernels, run

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch.testing._internal needs expecttest")

pytestmark = [needs_kernels, pytest.mark.slow]

MODULES = ("LSTM", "GRU", "RNN")


def test_outputs_and_gradients_are_pytorchs() -> None:
    counts = dict(
        line.split() for line in run("-m", "tests.torch.module_inputs", *MODULES).splitlines()
    )
    assert counts.keys() == set(MODULES)
    assert all(int(count) > 20 for count in counts.values())
