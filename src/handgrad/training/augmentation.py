"""Random changes of image batches, drawn from the generator the trainer hands in.

An augmentation is called as `augment(x, rng)` with x (N, C, H, W) and returns an array of the same
shape; x is never written to. Every number is drawn from `rng`, so that the trainer can save and
restore the sequence. All of it is arithmetic on whole batches: a batch of 64 MNIST digits takes
well under a millisecond through `Shift` and about one through `Affine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from jaxtyping import Float


class Augmentation(Protocol):
    """The function that the trainer calls on every training batch."""

    def __call__(self, x: Array, rng: np.random.Generator) -> Array: ...


def _image_batch(x: Array, name: str) -> tuple[int, int, int, int]:
    if x.ndim != 4:
        raise ShapeError(f"{name}: x has shape {tuple(x.shape)}; allowed: (N, C, H, W)")
    count, channels, height, width = x.shape
    return count, channels, height, width


def _at_least_zero(name: str, **values: float) -> None:
    for key, value in values.items():
        if not value >= 0:
            raise ArgumentError(f"{name}: {key} is {value}; allowed: a number of at least 0")


class Compose:
    """One augmentation after the other."""

    def __init__(self, steps: Sequence[Augmentation]) -> None:
        self.steps = tuple(steps)

    def __call__(self, x: Array, rng: np.random.Generator) -> Array:
        for step in self.steps:
            x = step(x, rng)
        return x


class Shift:
    """Move each image by whole pixels, up to `pixels` each way; what comes in is `fill`.

    The same as padding by `pixels` and cropping at a random position.
    """

    def __init__(self, pixels: int, *, fill: float = 0.0) -> None:
        _at_least_zero("Shift", pixels=pixels)
        self.pixels = pixels
        self.fill = fill

    def __call__(self, x: Float[Array, "N C H W"], rng: np.random.Generator) -> Array:
        count, channels, height, width = _image_batch(x, "Shift")
        pad = self.pixels
        padded = np.full(
            (count, channels, height + 2 * pad, width + 2 * pad), self.fill, dtype=x.dtype
        )
        padded[:, :, pad : pad + height, pad : pad + width] = x
        corners = rng.integers(0, 2 * pad + 1, size=(count, 2)).tolist()
        shifted = np.empty_like(x)
        for image, (top, left) in enumerate(corners):
            shifted[image] = padded[image, :, top : top + height, left : left + width]
        return shifted


class Flip:
    """Mirror each image left to right with the given probability."""

    def __init__(self, probability: float = 0.5) -> None:
        if not 0 <= probability <= 1:
            raise ArgumentError(f"Flip: probability is {probability}; allowed: from 0 to 1")
        self.probability = probability

    def __call__(self, x: Float[Array, "N C H W"], rng: np.random.Generator) -> Array:
        count = _image_batch(x, "Flip")[0]
        chosen = np.flatnonzero(rng.random(count) < self.probability)
        flipped = np.array(x)
        flipped[chosen] = x[chosen, :, :, ::-1]
        return flipped


class Affine:
    """Turn, scale, shear and move each image, and bend it elastically; bilinear interpolation.

    For the pixel at p (measured from the image's centre) of the result, the source is read at

        q = A p + t + u(p),     A = R(angle) · S(scale) · H(shear)

    with angle uniform in ±`rotation` degrees, each axis' scale uniform in 1 ± `scale`, shear
    uniform in ± `shear`, t uniform in ± `shift` pixels on each axis (fractions included), and u a
    smooth field: normal deviates of `elastic` pixels on a `grid` × `grid` lattice, interpolated
    linearly to every pixel. Outside the image the source is `fill`.

    Source: Simard, Steinkraus, Platt, Best practices for convolutional neural networks applied to
    visual document analysis (2003), for the elastic part, with a coarse lattice in place of their
    Gaussian filter.
    """

    def __init__(
        self,
        *,
        rotation: float = 0.0,
        scale: float = 0.0,
        shear: float = 0.0,
        shift: float = 0.0,
        elastic: float = 0.0,
        grid: int = 5,
        fill: float = 0.0,
    ) -> None:
        _at_least_zero(
            "Affine", rotation=rotation, scale=scale, shear=shear, shift=shift, elastic=elastic
        )
        if grid < 2:
            raise ArgumentError(f"Affine: grid is {grid}; allowed: an integer of at least 2")
        self.rotation = rotation
        self.scale = scale
        self.shear = shear
        self.shift = shift
        self.elastic = elastic
        self.grid = grid
        self.fill = fill
        self._fixed: dict[tuple[int, int, np.dtype[Any]], tuple[Array, Array]] = {}

    def __call__(self, x: Float[Array, "N C H W"], rng: np.random.Generator) -> Array:
        count, channels, height, width = _image_batch(x, "Affine")
        coordinates = self._coordinates(count, height, width, x.dtype, rng)
        row, column = coordinates[:, 0], coordinates[:, 1]

        # One ring of `fill` around every image: whatever lies outside is read from the ring.
        ringed = np.full((count, channels, height + 2, width + 2), self.fill, dtype=x.dtype)
        ringed[:, :, 1:-1, 1:-1] = x
        stride = width + 2
        top = row.astype(np.intp)
        left = column.astype(np.intp)
        row -= top
        column -= left
        first = top * stride + left
        first += (np.arange(count) * (channels * (height + 2) * stride))[:, None]

        pixels = ringed.reshape(-1)
        result = np.empty((count, channels, height * width), dtype=x.dtype)
        for channel in range(channels):
            plane = pixels[channel * (height + 2) * stride :]
            above = _between(plane, first, column)
            below = _between(plane[stride:], first, column)
            below -= above
            below *= row
            np.add(above, below, out=result[:, channel])
        return result.reshape(x.shape)

    def _coordinates(
        self, count: int, height: int, width: int, dtype: np.dtype[Any], rng: np.random.Generator
    ) -> Array:
        """The coordinates of each pixel's source (N, 2, H·W), within the ringed image."""
        angle = np.deg2rad(rng.uniform(-self.rotation, self.rotation, count))
        scale = 1 + rng.uniform(-self.scale, self.scale, (count, 2))
        shear = rng.uniform(-self.shear, self.shear, count)
        shift = rng.uniform(-self.shift, self.shift, (count, 2))
        cos, sin = np.cos(angle), np.sin(angle)
        matrix = np.empty((count, 2, 3))
        matrix[:, 0, 0] = cos * scale[:, 0]
        matrix[:, 0, 1] = (cos * shear - sin) * scale[:, 1]
        matrix[:, 1, 0] = sin * scale[:, 0]
        matrix[:, 1, 1] = (sin * shear + cos) * scale[:, 1]
        matrix[:, :, 2] = shift + np.array([(height + 1) / 2, (width + 1) / 2])

        positions, lattice = self._fixed_tables(height, width, dtype)
        coordinates = matrix.astype(dtype) @ positions
        if self.elastic:
            deviates = rng.normal(0.0, self.elastic, (count, 2, self.grid**2))
            coordinates += deviates.astype(dtype) @ lattice
        # The upper edge stays below the last pixel, so that its right and lower neighbours exist.
        below_edge = dtype.type(1 - 1e-3)
        np.clip(coordinates[:, 0], 0, height + below_edge, out=coordinates[:, 0])
        np.clip(coordinates[:, 1], 0, width + below_edge, out=coordinates[:, 1])
        return coordinates

    def _fixed_tables(self, height: int, width: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Tables of the size alone: centred positions (3, H·W), lattice weights (g², H·W)."""
        key = (height, width, dtype)
        if key not in self._fixed:
            rows = np.arange(height) - (height - 1) / 2
            columns = np.arange(width) - (width - 1) / 2
            grids = np.meshgrid(rows, columns, indexing="ij")
            positions = np.stack([*grids, np.ones((height, width))]).reshape(3, -1)
            weights = np.einsum(
                "ah,bw->abhw", _hats(self.grid, height), _hats(self.grid, width)
            ).reshape(self.grid**2, -1)
            self._fixed[key] = positions.astype(dtype), weights.astype(dtype)
        return self._fixed[key]


def _hats(knots: int, size: int) -> Array:
    """Weights (knots, size) of linear interpolation from `knots` even knots to `size` pixels."""
    at = np.linspace(0, knots - 1, size)
    return np.maximum(0, 1 - np.abs(at - np.arange(knots)[:, None]))


def _between(pixels: Array, index: Array, fraction: Array) -> Array:
    """Linear interpolation between the pixel at `index` and the one to its right."""
    left = np.take(pixels, index, mode="clip")
    right = np.take(pixels[1:], index, mode="clip")
    right -= left
    right *= fraction
    right += left
    return right
