"""Features concatenated and sliced: the bits of NumPy's own copies, at any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.dispatch import engine
from handgrad.kernels.concatenate import concatenate, slice_features

#: Sequences, steps and features of two parts; the last ones are large enough for the kernel.
SIZES = ((0, 3, 4, 5), (2, 3, 1, 1), (3, 5, 7, 3), (13, 41, 67, 67), (31, 29, 33, 70))

each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)


def parts_of(sizes: tuple[int, ...], dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    batch, steps, *widths = sizes
    return [rng.standard_normal((batch, steps, width)).astype(dtype) for width in widths]


@each_size
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["auto", "reference"])
def test_they_come_apart_as_they_went_together(
    sizes: tuple[int, ...], dtype: str, name: str
) -> None:
    parts = parts_of(sizes, dtype)
    with engine(name):
        joined = concatenate(parts)
        np.testing.assert_array_equal(joined, np.concatenate(parts, axis=2))
        width = sizes[2]
        for part, some in zip(
            parts,
            (slice_features(joined, 0, width), slice_features(joined, width, sum(sizes[2:]))),
            strict=True,
        ):
            assert some.dtype == part.dtype
            np.testing.assert_array_equal(some, part)


def test_any_view_will_do() -> None:
    one, other = parts_of(SIZES[-1], np.float32)
    views = [one.transpose(1, 0, 2), other[:, ::-1, ::2].transpose(1, 0, 2)]
    np.testing.assert_array_equal(concatenate(views), np.concatenate(views, axis=2))
    np.testing.assert_array_equal(slice_features(views[0], 3, 30), views[0][:, :, 3:30])
