"""Embedding: the padding row, and the gradient that tokens do not have."""

from __future__ import annotations

import numpy as np

from handgrad.layers import Embedding


def test_the_padding_row_starts_at_0_and_stays_there() -> None:
    embedding = Embedding(5, 3, rng=np.random.default_rng(0), padding_idx=1)
    np.testing.assert_array_equal(embedding.weight[1], np.zeros(3))
    y, cache = embedding.forward(np.array([[1, 2], [1, 4]]))
    dx, gradients = embedding.backward(np.ones_like(y), cache)
    assert dx is None
    np.testing.assert_array_equal(gradients["weight"].sum(axis=1), [0, 0, 3, 0, 3])
