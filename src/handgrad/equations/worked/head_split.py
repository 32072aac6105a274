"""Q split into two heads: contiguous blocks of columns, and back together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array

if TYPE_CHECKING:
    from jaxtyping import Float

TEXTS: Final = {
    "en": (
        "Splitting Q into heads",
        "Every head takes a block of neighbouring columns of Q. Going backward the blocks of the "
        "gradient are put side by side again.",
        "Nothing: the gradient does not need the values.",
    ),
    "ro": (
        "Splitarea lui Q în head-uri",
        "Fiecare head ia un bloc de coloane vecine din Q. La pasul înapoi blocurile gradientului "
        "se pun din nou alături.",
        "Nimic: gradientul nu are nevoie de valori.",
    ),
}
INPUTS: Final = {
    "Q": [[1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 0, 1, 3, 3, 2, 2], [0, 1, 1, 0, 9, 8, 7, 6]]
}
COTANGENT: Final = (
    [[1, 0, -1, 2], [0, 3, 1, 0], [2, 1, 0, -2]],
    [[4, 1, 0, 1], [-1, 0, 2, 5], [0, 0, 1, 3]],
)


class Cache(NamedTuple):
    """Nothing: the gradient does not need the values."""


def forward(Q: Float[Array, "N D"]) -> tuple[tuple[Array, Array], Cache]:
    """The first half of the columns for head 1, the second for head 2.

    Shapes: Q (N, D) with D even; each head (N, D/2).
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), section 2.
    """
    d = Q.shape[1] // 2
    Q_head1 = Q[:, :d]
    Q_head2 = Q[:, d:]
    return (Q_head1, Q_head2), Cache()


def backward(dheads: tuple[Array, Array], cache: Cache) -> Array:
    """dQ = [dQ⁽¹⁾ ∣ dQ⁽²⁾]."""
    dQ_head1, dQ_head2 = dheads
    xp = array_namespace(dQ_head1)
    dQ = xp.concat((dQ_head1, dQ_head2), axis=-1)
    return dQ
