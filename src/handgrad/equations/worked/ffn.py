"""A position-wise feed-forward network with ½ the squared error, forward and backward.

The value before ReLU is A and the one after it V. The source calls both V, and stops at ∂L/∂V;
going on to W₁, b₁ and X takes the input of ReLU, so it needs a name of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array

if TYPE_CHECKING:
    from jaxtyping import Float

TEXTS: Final = {
    "en": (
        "Feed-forward network, step by step",
        "Linear, ReLU, linear, and ½ the squared error. The value before ReLU is A and the one "
        "after it V. The source calls both V and stops at ∂L/∂V; to go on to W₁, b₁ and X, "
        "backward needs the input of ReLU, and so a name for it. The third row of X is not in the "
        "source: there ReLU clips two values, and their gradients. The derivative of ReLU at 0 is "
        "taken as 0.",
        "The operands of both products, A for the slope of ReLU, and Y and T for the loss.",
    ),
    "ro": (
        "Rețea feed-forward, pas cu pas",
        "Liniar, ReLU, liniar, și ½ din suma pătratelor erorilor. Valoarea dinainte de ReLU este "
        "A, cea de după este V. Sursa le numește pe amândouă V și se oprește la ∂L/∂V; ca să "
        "mergem mai departe la W₁, b₁ și X, pasul înapoi are nevoie de intrarea lui ReLU, deci de "
        "un nume pentru ea. Al treilea rând al lui X nu este în sursă: acolo ReLU taie două "
        "valori, și gradienții lor. Derivata lui ReLU în 0 se ia 0.",
        "Operanzii ambelor produse, A pentru panta lui ReLU, și Y și T pentru pierdere.",
    ),
}
INPUTS: Final = {
    "X": [[1, 0, 2, 1], [0, 1, 1, 0], [1, -2, 0, 0]],
    "W1": [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]],
    "b1": [0, 1, 0],
    "W2": [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]],
    "b2": [0, 0, 1, 0],
    "T": [[1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0]],
}
COTANGENT: Final = None


class Cache(NamedTuple):
    """The operands of both products, A for the slope of ReLU, and Y and T for the loss."""

    X: Array
    W1: Array
    A: Array
    V: Array
    W2: Array
    Y: Array
    T: Array


def forward(
    X: Float[Array, "N D"],
    W1: Float[Array, "D H"],
    b1: Float[Array, "H"],
    W2: Float[Array, "H O"],
    b2: Float[Array, "O"],
    T: Float[Array, "N O"],
) -> tuple[Float[Array, ""], Cache]:
    """½ Σ (Y − T)² of Y = ReLU(X W₁ + b₁) W₂ + b₂; weights are (in, out), as in the source.

    The derivative of ReLU at 0 is taken as 0.

    Shapes: X (N, D), W1 (D, H), b1 (H,), W2 (H, O), b2 (O,), T (N, O), loss ().
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), sections 3 and 4, with a
    third row of X, and on to W1, b1 and X.
    """
    xp = array_namespace(X)
    X_W1 = X @ W1
    A = X_W1 + b1
    V = xp.where(A > 0, A, xp.zeros_like(A))
    Y = V @ W2 + b2
    difference = Y - T
    loss = 0.5 * xp.sum(difference * difference)
    return loss, Cache(X, W1, A, V, W2, Y, T)


def backward(dloss: Float[Array, ""], cache: Cache) -> tuple[Array, Array, Array, Array, Array]:
    """dY = Y − T, then back through each product: the other operand, transposed."""
    X, W1, A, V, W2, Y, T = cache
    xp = array_namespace(X)
    dY = dloss * (Y - T)
    dW2 = V.T @ dY
    db2 = xp.sum(dY, axis=0)
    dV = dY @ W2.T
    dA = xp.where(A > 0, dV, xp.zeros_like(dV))
    dW1 = X.T @ dA
    db1 = xp.sum(dA, axis=0)
    dX = dA @ W1.T
    return dX, dW1, db1, dW2, db2
