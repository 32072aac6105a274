"""The table of sines and cosines: its values, its rotation from step to step, its offset."""

from __future__ import annotations

import numpy as np

from handgrad.ops import positional_encoding
from tests.tolerances import assert_close


def test_first_rows_by_hand() -> None:
    found = positional_encoding.table(2, 4, base=100.0)
    expected = [[0, 1, 0, 1], [np.sin(1), np.cos(1), np.sin(0.1), np.cos(0.1)]]
    assert_close(found, np.array(expected), "float64")


def test_a_step_further_is_a_rotation_that_does_not_depend_on_the_position() -> None:
    table = positional_encoding.table(9, 6)
    sines, cosines = table[:, 0::2], table[:, 1::2]
    angle = 10000.0 ** (-np.arange(0, 6, 2) / 6)
    assert_close(sines[1:], sines[:-1] * np.cos(angle) + cosines[:-1] * np.sin(angle), "float64")


def test_an_offset_goes_on_where_another_call_ended() -> None:
    x = np.random.default_rng(0).standard_normal((2, 7, 5))
    whole, _ = positional_encoding.forward(x)
    rest, _ = positional_encoding.forward(x[:, 4:], offset=4)
    np.testing.assert_array_equal(rest, whole[:, 4:])


def test_float32_has_the_rounded_table() -> None:
    """Positions in the thousands, where sines of float32 angles would be off in the third digit."""
    x = np.zeros((1, 3, 8), dtype=np.float32)
    y, _ = positional_encoding.forward(x, offset=50_000)
    table = positional_encoding.table(3, 8, offset=50_000)
    np.testing.assert_array_equal(y[0], table.astype(np.float32))
