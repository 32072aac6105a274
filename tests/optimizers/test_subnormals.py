"""Moments that decay without gradients become 0 instead of subnormal numbers."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.optimizers import Adam, AdamW, Momentum, Nesterov, Optimizer, RMSProp

KINDS = [Adam, AdamW, Momentum, Nesterov, RMSProp]


@pytest.mark.parametrize("engine", ["kernels", "reference"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_state_stays_subnormal_without_gradients(kind: type[Optimizer], engine: str) -> None:
    rng = np.random.default_rng(3)
    parameters = {"w": rng.standard_normal(100).astype(np.float32)}
    gradients = {"w": rng.standard_normal(100).astype(np.float32) * np.float32(1e-30)}
    optimizer = kind(lr=0.01)
    smallest = np.finfo(np.float32).smallest_normal
    with hg.engine(engine):
        for _ in range(1500):
            optimizer.step(parameters, gradients)
            gradients = {"w": np.zeros(100, np.float32)}
            for name, array in optimizer.state.items():
                assert not np.any((array != 0) & (np.abs(array) < smallest)), name


def test_parameters_that_decay_become_zero() -> None:
    parameters = {"w": np.full(100, 1e-37, np.float32)}
    optimizer = AdamW(lr=0.5, weight_decay=0.5)
    for _ in range(20):
        optimizer.step(parameters, {"w": np.zeros(100, np.float32)})
    assert not np.any(parameters["w"])
