"""A convolution over time: a kernel of K steps moves along the sequence.

y[n, o, t] = Σ_k Σ_c W[o, c, k] x[n, c, t + k] + b[o], without padding, so that
y is K − 1 steps shorter than x. The loop is over the kernel, whose steps are
few; each of its steps is a product of matrices.

Shapes: x, dx (N, C, T), weight, dweight (O, C, K), bias, dbias (O,), y, dy (N,
O, T − K + 1).
"""

import numpy as np


def forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return y, and what backward needs."""
    out_channels, _, kernel = weight.shape
    steps = x.shape[2] - kernel + 1
    y = np.zeros((len(x), out_channels, steps), x.dtype) + bias[:, None]
    for k in range(kernel):
        y = y + weight[:, :, k] @ x[:, :, k : k + steps]
    return y, (x, weight)


def backward(
    dy: np.ndarray, cache: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return dx, dweight, dbias."""
    x, weight = cache
    steps = dy.shape[2]
    dx = np.zeros_like(x)
    dweight = np.zeros_like(weight)
    for k in range(weight.shape[2]):
        dx[:, :, k : k + steps] += weight[:, :, k].T @ dy
        dweight[:, :, k] = (dy @ x[:, :, k : k + steps].transpose(0, 2, 1)).sum(axis=0)
    dbias = dy.sum(axis=(0, 2))
    return dx, dweight, dbias


def inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    x, weight = rng.standard_normal((2, 3, 7)), rng.standard_normal((5, 3, 4))
    return x, weight, rng.standard_normal(5)


HINTS = (
    "For one k, y is a linear map of the channels of x[:, :, k : k + steps]. You know its "
    "gradients from the exercise linear; go through the same loop.",
    "A value of x is read at several k, so dx[:, :, k : k + steps] is added to at each of them: "
    "+= weight[:, :, k] transposed times dy.",
    "dweight[:, :, k] is dy times that window of x, transposed, summed over the batch; bias is "
    "added at every step of every sequence.",
)
MISTAKES = (
    (
        "x[:, :, k : k + steps].transpose",
        "x[:, :, :steps].transpose",
        "stale variable",
        "dweight: every k takes the first window of x; the window of k begins at step k",
    ),
)
OP = "conv1d"
