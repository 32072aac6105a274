"""Embedding: the padding row, and the gradient that tokens do not have."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Embedding
from tests.tolerances import assert_close


def test_the_padding_row_starts_at_0_and_stays_there() -> None:
    embedding = Embedding(5, 3, rng=np.random.default_rng(0), padding_idx=1)
    np.testing.assert_array_equal(embedding.weight[1], np.zeros(3))
    y, cache = embedding.forward(np.array([[1, 2], [1, 4]]))
    dx, gradients = embedding.backward(np.ones_like(y), cache)
    assert dx is None
    np.testing.assert_array_equal(gradients["weight"].sum(axis=1), [0, 0, 3, 0, 3])


@pytest.mark.parametrize("padding_idx", [None, 1, -2])
@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("shape", [(3, 4), (7,), (2, 0)])
def test_a_gradient_can_be_added(
    shape: tuple[int, ...], engine: str, padding_idx: int | None
) -> None:
    rng = np.random.default_rng(4)
    embedding = Embedding(5, 3, rng=rng, padding_idx=padding_idx, dtype=np.float64)
    with hg.engine(engine):
        y, cache = embedding.forward(rng.integers(0, 5, shape))
        dy = rng.standard_normal(y.shape)
        _, gradients = embedding.backward(dy, cache)
    before = rng.standard_normal((5, 3))
    total = before.copy()
    embedding.add_gradient(dy, cache, total)
    assert_close(total, before + gradients["weight"], "float64")
