"""A 4 × 4 product in tiles of 2 × 2: every block of C is a sum of products of blocks."""

from __future__ import annotations

from typing import Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array

TEXTS: Final = {
    "en": (
        "Matrix product in tiles",
        "A and B are cut into tiles of 2 × 2. The block C_ij is the sum over t of A_it B_tj; while "
        "two tiles are multiplied, nothing else of A and B is needed.",
        "Both operands: each is in the gradient of the other.",
    ),
    "ro": (
        "Înmulțirea matricelor pe blocuri",
        "A și B sunt împărțite în blocuri de 2 × 2. Blocul C_ij este suma după t a produselor "
        "A_it B_tj; cât timp se înmulțesc două blocuri, nu este nevoie de nimic altceva din A "
        "și B.",
        "Ambii operanzi: fiecare apare în gradientul celuilalt.",
    ),
}
INPUTS: Final = {
    "A": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]],
    "B": [[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4]],
}
COTANGENT: Final = [[1, 0, 2, 0], [0, 1, 0, -1], [1, 1, 0, 0], [0, 0, 1, 2]]


class Cache(NamedTuple):
    """Both operands: each is in the gradient of the other."""

    A: Array
    B: Array


def forward(A: Array, B: Array) -> tuple[Array, Cache]:
    """C = A B, one pair of tiles after the other.

    Shapes: A, B, C (4, 4).
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 5.
    """
    xp = array_namespace(A)
    A00, A01, A10, A11 = A[:2, :2], A[:2, 2:], A[2:, :2], A[2:, 2:]
    B00, B01, B10, B11 = B[:2, :2], B[:2, 2:], B[2:, :2], B[2:, 2:]
    A00_B00 = A00 @ B00
    A01_B10 = A01 @ B10
    C00 = A00_B00 + A01_B10
    A00_B01 = A00 @ B01
    A01_B11 = A01 @ B11
    C01 = A00_B01 + A01_B11
    A10_B00 = A10 @ B00
    A11_B10 = A11 @ B10
    C10 = A10_B00 + A11_B10
    A10_B01 = A10 @ B01
    A11_B11 = A11 @ B11
    C11 = A10_B01 + A11_B11
    C = xp.concat((xp.concat((C00, C01), axis=1), xp.concat((C10, C11), axis=1)), axis=0)
    return C, Cache(A, B)


def backward(dC: Array, cache: Cache) -> tuple[Array, Array]:
    """dA = dC Bᵀ, dB = Aᵀ dC."""
    A, B = cache
    dA = dC @ B.T
    dB = A.T @ dC
    return dA, dB
