"""The worked numbers of the Transformer Layer notes, sections 2 to 5, come out of the ops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from handgrad.ops import dense, linear, matmul, relu, squared_error

Q = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 0, 1, 3, 3, 2, 2], [0, 1, 1, 0, 9, 8, 7, 6]], float)

X = np.array([[1, 0, 2, 1], [0, 1, 1, 0]], float)
W1 = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]], float)
B1 = np.array([0, 1, 0], float)
#: W2 and b2 are not printed in the notes; with these Y is as printed.
W2 = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], float)
B2 = np.array([0, 0, 1, 0], float)
TARGET = np.array([[1, 0, 0, 1], [0, 0, 1, 1]], float)

V = [[3, 2, 1], [1, 2, 1]]
Y = [[4, 2, 5, 2], [2, 2, 3, 2]]
DY = [[3, 2, 5, 1], [2, 2, 2, 1]]
DW2 = [[11, 8, 17, 4], [10, 8, 14, 4], [5, 4, 7, 2]]
DB2 = [5, 4, 7, 2]
DV = [[8, 3, 8], [4, 3, 4]]


@pytest.fixture(params=("reference", "kernels"), autouse=True)
def on_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """`auto` stands for the kernels here, so that ops whose kernel is pending still run."""
    if request.param == "kernels" and kernels.native is None:
        pytest.skip(kernels.reason)
    with engine("auto" if request.param == "kernels" else "reference"):
        yield


def test_heads_are_blocks_of_columns() -> None:
    """Section 2: d_model = 8 and h = 2; head i is rows 4i to 4i + 3 of a weight (out, in)."""
    every_column = np.eye(8)
    first, _ = linear.forward(Q, every_column[:4])
    second, _ = linear.forward(Q, every_column[4:])
    np.testing.assert_array_equal(first, [[1, 2, 3, 4], [2, 1, 0, 1], [0, 1, 1, 0]])
    np.testing.assert_array_equal(second, [[5, 6, 7, 8], [3, 3, 2, 2], [9, 8, 7, 6]])


def test_feed_forward_network_forward_and_backward() -> None:
    """Sections 3 and 4, with the step through ReLU to W1, b1 and X that the notes leave out."""
    product, _ = linear.forward(X, W1.T)
    np.testing.assert_array_equal(product, [[3, 1, 1], [1, 1, 1]])
    a, first = linear.forward(X, W1.T, B1)
    v, middle = relu.forward(a)
    np.testing.assert_array_equal(v, V)
    y, last = linear.forward(v, W2.T, B2)
    np.testing.assert_array_equal(y, Y)

    loss, loss_cache = squared_error.forward(y, TARGET, reduction="half_sum")
    assert loss == 26
    dy = squared_error.backward(np.asarray(1.0), loss_cache)
    np.testing.assert_array_equal(dy, DY)

    dv, dweight2, dbias2 = linear.backward(dy, last)
    np.testing.assert_array_equal(dweight2.T, DW2)
    np.testing.assert_array_equal(dbias2, DB2)
    np.testing.assert_array_equal(dv, DV)

    da = relu.backward(dv, middle)
    np.testing.assert_array_equal(da, DV)
    dx, dweight1, dbias1 = linear.backward(da, first)
    np.testing.assert_array_equal(dweight1.T, X.T @ np.array(DV))
    np.testing.assert_array_equal(dbias1, [12, 6, 12])
    np.testing.assert_array_equal(dx, [[16, 11, 8, 3], [8, 7, 4, 3]])


def test_feed_forward_network_with_its_activation_fused() -> None:
    v, first = dense.forward(X, W1.T, B1, activation="relu")
    np.testing.assert_array_equal(v, V)
    _, dweight1, dbias1 = dense.backward(np.array(DV, float), first)
    np.testing.assert_array_equal(dweight1.T, X.T @ np.array(DV))
    np.testing.assert_array_equal(dbias1, [12, 6, 12])


# Section 5: rows of A are 1 to 4, 5 to 8, ...; every column of B is 1 to 4.
A = np.arange(1.0, 17.0).reshape(4, 4)
B = np.repeat(np.arange(1.0, 5.0)[:, np.newaxis], 4, axis=1)


def test_tiles_and_their_partial_products() -> None:
    terms = {(i, j, t): product for i, j, t, _, _, product in matmul.partial_products(A, B, (2, 2))}
    assert len(terms) == 8
    np.testing.assert_array_equal(terms[0, 0, 0], [[5, 5], [17, 17]])
    np.testing.assert_array_equal(terms[0, 0, 1], [[25, 25], [53, 53]])
    np.testing.assert_array_equal(terms[0, 0, 0] + terms[0, 0, 1], [[30, 30], [70, 70]])


@pytest.mark.parametrize("tile", [None, (2, 2), (3, 2), (1, 4)])
def test_tiled_product(tile: tuple[int, int] | None) -> None:
    c, _ = matmul.forward(A, B, tile=tile)
    np.testing.assert_array_equal(c, np.repeat([[30.0], [70.0], [110.0], [150.0]], 4, axis=1))
