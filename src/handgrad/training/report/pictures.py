"""Small pictures as PNG data URIs, written with zlib alone."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from handgrad.arrays import Array

#: Ends of the two-sided colour scale for weights: negative, zero, positive.
NEGATIVE, ZERO, POSITIVE = (33, 102, 172), (247, 247, 247), (178, 80, 24)


def png(pixels: Array) -> str:
    """A data URI of an 8-bit picture: (H, W) grey, (H, W, 3) colour, (H, W, 4) with opacity.

    Source: W3C, Portable Network Graphics (PNG) specification, second edition (2003), sections 5
    and 11.
    """
    height, width = pixels.shape[:2]
    colour_type = {1: 0, 3: 2, 4: 6}[pixels.shape[2] if pixels.ndim == 3 else 1]
    rows = np.ascontiguousarray(pixels, dtype=np.uint8).reshape(height, -1)
    unfiltered = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(unfiltered, 9)), (b"IEND", b"")]
    file = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(file).decode()


def image_pixels(image: Array) -> Array | None:
    """The bytes of one example (C, H, W) or (H, W): grey, or colour for three channels.

    Values from 0 to 1 are taken as they are, others are stretched to their range. None where the
    example is no picture.
    """
    if image.ndim == 2:
        image = image[None]
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        return None
    low, high = min(0.0, float(image.min())), max(1.0, float(image.max()))
    pixels = np.rint((image - low) * (255 / (high - low))).astype(np.uint8)
    return pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)


def first_filters(parameters: dict[str, Array], input_shape: tuple[int, ...]) -> list[Array]:
    """The weights of the first layer, one picture per output; empty where they are none.

    A convolution's kernels (out, in, kH, kW), or a dense layer's rows given the shape of an image.
    """
    weight = next((array for array in parameters.values() if array.ndim >= 2), None)
    if weight is None:
        return []
    if weight.ndim == 2 and len(input_shape) == 3 and weight.shape[1] == np.prod(input_shape):
        weight = weight.reshape(-1, *input_shape)
    if weight.ndim != 4 or weight.shape[1] not in (1, 3):
        return []
    scale = np.abs(weight).max(axis=(1, 2, 3), keepdims=True)
    signed = weight / np.where(scale > 0, scale, 1)
    if weight.shape[1] == 3:
        return [np.rint(127.5 + 127.5 * f.transpose(1, 2, 0)) for f in signed]
    return [_two_sided(f[0]) for f in signed]


def _two_sided(values: Array) -> Array:
    """Colours for values from -1 to 1."""
    strength = np.abs(values)[..., None]
    ends = np.where(values[..., None] < 0, NEGATIVE, POSITIVE)
    return np.rint(ends * strength + np.array(ZERO) * (1 - strength))
