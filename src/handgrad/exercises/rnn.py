"""A recurrent network: each state comes from an input and from the state before.

h_t = tanh(W_ih x_t + W_hh h_{t−1}), from h_0 = 0; y holds every state. The
same weights serve every step. A state reaches the loss on two ways: in y at
its own step, and through the state after it.

Shapes: x, dx (N, T, D), weight_ih (H, D), weight_hh (H, H), y, dy (N, T, H);
the gradients of the weights have the weights' shapes.
"""

import numpy as np


def forward(
    x: np.ndarray, weight_ih: np.ndarray, weight_hh: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    h = np.zeros((len(x), len(weight_hh)), x.dtype)
    states = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ weight_ih.T + h @ weight_hh.T)
        states.append(h)
    y = np.stack(states, axis=1)
    return y, (x, weight_ih, weight_hh, y)


def backward(
    dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dweight_ih, dweight_hh."""
    x, weight_ih, weight_hh, y = cache
    dx = np.zeros_like(x)
    dweight_ih = np.zeros_like(weight_ih)
    dweight_hh = np.zeros_like(weight_hh)
    dh = np.zeros_like(y[:, 0])
    for t in reversed(range(x.shape[1])):
        dh = dh + dy[:, t]
        da = dh * (1 - y[:, t] ** 2)
        dx[:, t] = da @ weight_ih
        dweight_ih += da.T @ x[:, t]
        if t > 0:
            dweight_hh += da.T @ y[:, t - 1]
        dh = da @ weight_hh
    return dx, dweight_ih, dweight_hh


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    x, weight_ih = rng.standard_normal((2, 5, 3)), 0.5 * rng.standard_normal((4, 3))
    return x, weight_ih, 0.5 * rng.standard_normal((4, 4))


HINTS = (
    "Go through the steps from the last to the first, and carry dh, the gradient that comes "
    "from the state after. At step t the whole gradient of h_t is dy[:, t] plus that.",
    "Through tanh: da = dh (1 − h_t²). Then each step is the linear map that you know, with x_t "
    "and with h_{t−1}; what goes on to the step before is da times weight_hh.",
    "The gradients of the weights are added up over all steps. At t = 0 the state before is 0, "
    "so weight_hh gets nothing.",
)
MISTAKES = (
    (
        "da = dh * (1 - y[:, t] ** 2)",
        "da = dh",
        "activation derivative forgotten",
        "da: dh is not multiplied by the derivative of tanh, 1 − h_t²",
    ),
    (
        "da = dh * (1 - y[:, t] ** 2)",
        "da = dh * y[:, t]",
        "activation derivative forgotten",
        "da: the derivative of tanh is 1 − h_t², and not h_t",
    ),
    (
        "y[:, t - 1]",
        "y[:, t]",
        "stale variable",
        "dweight_hh: the state of the same step stands where the one before belongs, h_{t−1}",
    ),
    (
        "dh = da @ weight_hh",
        "dh = np.zeros_like(dh)",
        "term missing",
        "dh: what comes from the state after is left out, so that each step is taken by itself",
    ),
    (
        "reversed(range(x.shape[1]))",
        "range(x.shape[1])",
        "stale variable",
        "dh: the steps run from the first to the last; a gradient comes from the state after",
    ),
)
OP = "rnn"
