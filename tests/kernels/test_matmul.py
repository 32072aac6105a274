"""Large products: operands packed once for all blocks, sums too long to be packed as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import kernels
from handgrad.errors import HandgradError
from handgrad.ops import matmul
from tests.tolerances import assert_close

pytestmark = pytest.mark.skipif(kernels.native is None, reason="there are no kernels here")

#: (M, K, N): cut across, down and both ways, with sums of up to ten steps.
SIZES = [
    (256, 9001, 96),
    (500, 1100, 130),
    (1500, 4100, 40),
    (40, 9000, 700),
    (123, 600, 777),
    (900, 7, 3004),
]


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = hg.get_threads()
    yield
    hg.set_threads(before)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_large_products_of_whole_numbers_are_exact(
    sizes: tuple[int, int, int], turned: bool
) -> None:
    """Sums stay below 2²⁴, so float32 has every digit, whatever the order."""
    m, k, n = sizes
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (k, m) if turned else (m, k)).astype(np.float32)
    b = rng.integers(-4, 5, (n, k) if turned else (k, n)).astype(np.float32)
    a, b = (a.T, b.T) if turned else (a, b)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for threads in (1, 2, 4):
        hg.set_threads(threads)
        np.testing.assert_array_equal(hg.matmul(a, b), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_their_bits_do_not_depend_on_the_threads(dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(1)
    for m, k, n in SIZES:
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        found = []
        for threads in (1, 2, 4):
            hg.set_threads(threads)
            found.append(hg.matmul(a, b))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        assert_close(found[0] / np.sqrt(k), a @ b / np.sqrt(k), np.dtype(dtype).name)


A, B = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
NOT_FLOATS = (None, "a", [[1.0]], 1.0, 1j, object(), A.astype(int), A.astype(object))
NO_MATRICES = (*NOT_FLOATS, A.view(np.matrix), np.ma.masked_array(A), np.ones((2, 2, 2, 2)))


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("wrong", NO_MATRICES, ids=lambda value: type(value).__name__)
def test_whatever_is_wrong_is_one_sentence(wrong: Any, engine: str) -> None:
    read_only = np.zeros((3, 2), np.float32)
    read_only.flags.writeable = False
    with hg.engine(engine):
        calls = [(wrong, B, None), (A, wrong, None), (A, B, read_only)]
        if wrong is not None:
            calls.append((A, B, wrong))
        for arguments in calls:
            with pytest.raises(HandgradError, match="; allowed"):
                hg.matmul(*arguments)


def test_any_number_of_empty_products_takes_no_time() -> None:
    a = np.broadcast_to(np.ones((3, 2), np.float32), (2**40, 3, 2))
    assert hg.matmul(a, np.ones((2, 0), np.float32)).shape == (2**40, 3, 0)


@pytest.mark.skipif(
    getattr(kernels.native, "bf16_unit", "none") == "none", reason="there is no unit for bf16"
)
@pytest.mark.parametrize("sizes", [*SIZES, (1500, 300, 1030), (1030, 300, 1500), (40, 0, 50)])
def test_products_in_bf16_of_whole_numbers_are_exact(sizes: tuple[int, int, int]) -> None:
    """bfloat16 holds whole numbers up to 256; results larger than a cache are stored late."""
    m, k, n = sizes
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for threads in (1, 2, 4):
        hg.set_threads(threads)
        np.testing.assert_array_equal(hg.matmul(a, b, precision="bf16"), expected)


def _views(rng: np.random.Generator, rows: int, columns: int, dtype: type) -> list[np.ndarray]:
    """Matrices of this shape that lie in memory in every way that a view can."""
    most = max(rows, columns, 1)
    base = rng.standard_normal((2 * most + 1, 3 * most + 2)).astype(dtype)
    return [
        base[:rows, :columns],
        base[:columns, :rows].T,
        base[1 : 2 * rows + 1 : 2, 2 : 3 * columns + 2 : 3],
        base[:rows, :columns][::-1, ::-1],
        np.broadcast_to(base[0, :columns], (rows, columns)),
        np.broadcast_to(base[:rows, :1], (rows, columns)),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 7), (40, 33, 70), (1, 50, 30), (50, 30, 1)])
def test_views_are_read_where_they_lie(dtype: type, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    rng, kind = np.random.default_rng(2), np.dtype(dtype).name
    dc = rng.standard_normal((n, m)).astype(dtype).T
    for a in _views(rng, m, k, dtype):
        for b in _views(rng, k, n, dtype):
            c, cache = matmul.forward(a, b)
            if min(sizes) > 1:
                assert np.shares_memory(cache.kept.a, a)
                assert np.shares_memory(cache.kept.b, b)
            assert_close(c, a.astype(np.float64) @ b, kind)
            da, db = matmul.backward(dc, cache)
            assert_close(da, dc.astype(np.float64) @ b.T, kind)
            assert_close(db, a.T.astype(np.float64) @ dc, kind)
            copied, cache = matmul.forward(a.copy("C"), b.copy("C"))
            found = [copied, *matmul.backward(dc.copy("C"), cache)]
            assert [x.tobytes() for x in found] == [x.tobytes() for x in (c, da, db)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [2, 6, 13, 17, 31, 33, 70])
@pytest.mark.parametrize("sizes", [(1, 90), (37, 200), (384, 101), (1024, 300), (2500, 90)])
def test_weights_along_k_leave_no_trace_in_the_bits(
    dtype: type, rows: int, sizes: tuple[int, int]
) -> None:
    """Few rows times weights that lie along k are computed transposed."""
    k, n = sizes
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((rows, k)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
    columns = np.ascontiguousarray(w.T)
    found = []
    for threads in (1, 2, 3):
        hg.set_threads(threads)
        found += [hg.matmul(x, w.T), hg.matmul(x, columns)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    assert_close(found[0] / np.sqrt(k), x @ w.T / np.sqrt(k), np.dtype(dtype).name)
