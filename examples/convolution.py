"""A convolution, element by element
=================================

A convolution with a stride and its two gradients, element by element.

Forward puts a window of V under the kernel for every Z. Backward sends the gradient G of Z two
ways: to the kernel, each of whose elements has met V at every window, and to V, whose elements lie
under one window, under several, or under none. The marks are read off `hg.ops.conv2d` itself: they
stand where a single 1 that goes in comes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import Picture, output

import handgrad as hg

path = output(__doc__)

STRIDE = 2
rng = np.random.default_rng(3)
v = rng.integers(-4, 5, (2, 7, 7)).astype(float)  # channel, j, k
kernel = rng.integers(-2, 3, (2, 2, 2, 3)).astype(float)  # i, channel, m, n


def convolved(weight: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Z (i, j, k) and the cache."""
    z, cache = hg.ops.conv2d.forward(v[None], weight, stride=STRIDE)
    return z[0], cache


def backward(gradient: NDArray[Any], cache: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """h, the gradient of V, and g, that of the kernel."""
    dv, dkernel, _ = hg.ops.conv2d.backward(gradient[None], cache)
    return dv[0], dkernel


def one(shape: tuple[int, ...], *index: int) -> NDArray[Any]:
    """Zeros with a single 1."""
    array = np.zeros(shape)
    array[index] = 1.0
    return array


z, cache = convolved(kernel)
gradient = rng.integers(-2, 3, z.shape).astype(float)
dv, dkernel = backward(gradient, cache)

# The equations, sum by sum.
dv_written, dkernel_written = np.zeros_like(dv), np.zeros_like(dkernel)
for i, c, m, n in np.ndindex(kernel.shape):
    for j, k in np.ndindex(z.shape[1:]):
        dkernel_written[i, c, m, n] += gradient[i, j, k] * v[c, j * STRIDE + m, k * STRIDE + n]
        dv_written[c, j * STRIDE + m, k * STRIDE + n] += kernel[i, c, m, n] * gradient[i, j, k]

# The positions that a single 1 reaches: of Z in V, of the kernel in V, and of V in Z.
_, of_ones = convolved(np.ones_like(kernel))
under_z = backward(one(z.shape, 0, 1, 1), of_ones)[0][0] > 0
_, of_one = convolved(one(kernel.shape, 0, 0, 1, 2))
met = backward(np.ones_like(z), of_one)[0][0] > 0
windows = backward(one((2, 1, 1), 0) * np.ones_like(z), of_ones)[0][0]
over_v = np.array(
    [backward(one(z.shape, 0, j, k), of_ones)[0][0, 3, 4] for j, k in np.ndindex(z.shape[1:])]
).reshape(z.shape[1:])

print(f"V {v.shape}, K {kernel.shape}, stride {STRIDE} give Z {z.shape}")
differences = abs(dkernel - dkernel_written).max(), abs(dv - dv_written).max()
print(f"largest differences of g and h from the sums: {differences[0]:.0f} {differences[1]:.0f}")
print(f"elements of V under Z[0, 1, 1]: {under_z.sum()} in each channel")
print(f"elements of V that K[0, 0, 1, 2] meets: {met.sum()}, one for every Z")
counts = [int((windows == count).sum()) for count in range(3)]
print(f"elements of V under 0, 1 and 2 windows: {counts[0]} {counts[1]} {counts[2]}")
print(f"largest gradient of those under none: {abs(dv[:, windows == 0]).max():.0f}")

SIZE = 26.0


def grid(
    left: float, top: float, name: str, values: NDArray[Any], marked: NDArray[Any], colour: str
) -> None:
    """A matrix with its numbers; elements that are marked are filled, the more the stronger."""
    picture.text(left, top - 8, name, "ink", bold=True)
    for (row, column), value in np.ndenumerate(values):
        x, y = left + column * SIZE, top + row * SIZE
        if marked[row, column]:
            strength = 0.3 if marked[row, column] == 1 else 0.6
            picture.rectangle(x, y, SIZE - 2, SIZE - 2, colour, opacity=strength)
        else:
            picture.rectangle(x, y, SIZE - 2, SIZE - 2, "rule")
        number = f"{value + 0.0:.0f}".replace("-", "−")
        picture.text(x + SIZE / 2 - 1, y + 17, number, "ink", size=12, anchor="middle")


picture = Picture(900, 420, "A convolution and its gradients, with the elements that meet marked")
left, middle, right = 40.0, 335.0, 630.0
everywhere, small = np.ones((3, 3)), one((2, 3), 1, 2)

picture.text(left, 34, "Forward: Z = c(K, V, s)", "ink", size=15, bold=True)
grid(left, 80, "V, channel 0", v[0], under_z, "blue")
grid(left, 300, "K[0, 0]", kernel[0, 0], np.ones((2, 3)), "blue")
grid(left + 120, 300, "Z[0]", z[0], one((3, 3), 1, 1), "blue")

picture.text(middle, 34, "To the kernel: g(G, V, s)", "ink", size=15, bold=True)
grid(middle, 80, "V, channel 0", v[0], met, "orange")
grid(middle, 300, "g[0, 0]", dkernel[0, 0], small, "orange")
grid(middle + 120, 300, "G[0]", gradient[0], everywhere, "orange")

picture.text(right, 34, "To the input: h(K, G, s)", "ink", size=15, bold=True)
grid(right, 80, "h, channel 0; darker: two windows", dv[0], windows, "green")
grid(right, 300, "K[0, 0]", kernel[0, 0], np.ones((2, 3)), "green")
grid(right + 120, 300, "G[0] over h[0, 3, 4]", gradient[0], over_v, "green")
picture.save(path)
