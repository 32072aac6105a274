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


def test_modules_that_are_read_have_the_values_and_gradients_of_pytorchs() -> None:
    lines = run("-m", "tests.torch.module_reading").splitlines()
    counts = {name: (int(same), int(read)) for name, same, read in map(str.split, lines)}
    assert len(counts) >= 62
    # All but those with masks, by keyword alone, and where PyTorch has 0/0.
    assert sum(same for same, _ in counts.values()) >= 711
    assert all(4 * same >= read for same, read in counts.values())
    losses = {"MSELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "CTCLoss"}
    assert losses | {"RNNCell", "GRUCell", "LSTMCell", "Softmax2d"} <= counts.keys()
