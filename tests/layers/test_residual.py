"""Residual: shapes that do not add are named."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ShapeError
from handgrad.layers import Dense, Residual


def test_a_branch_of_another_shape_is_refused() -> None:
    residual = Residual(Dense(4, 1, rng=np.random.default_rng(0)))
    with pytest.raises(ShapeError, match=r"Residual: .* \(3, 1\); allowed: \(3, 4\)"):
        residual.forward(np.ones((3, 4), np.float32))
    with pytest.raises(ShapeError, match=r"Residual: .* \(1,\); allowed: \(4,\)"):
        residual.output_shape((4,))


def test_the_table_has_a_row_for_the_sum() -> None:
    residual = Residual(Dense(4, 4, rng=np.random.default_rng(0)))
    rows = residual.rows((4,), "2")
    assert [(row.name, row.layer) for row in rows] == [("2.inner", "Dense"), ("2", "Residual")]
