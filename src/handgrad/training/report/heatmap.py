"""Numbers as shades: pictures that let the page through where a value is 0, so both themes fit."""

from __future__ import annotations

from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.documents import svg
from handgrad.training.report.pictures import png

#: Pixels along a side of a picture; where there are more values, neighbours are averaged.
MOST: Final = 160

#: Middle tones: they stand out from a light page and from a dark one.
BLUE: Final = (62, 128, 206)
ORANGE: Final = (216, 118, 36)
GREY: Final = (122, 126, 134)


def shades(
    values: Array,
    *,
    above: tuple[int, int, int] = ORANGE,
    below: tuple[int, int, int] = BLUE,
) -> str:
    """A PNG of values (rows, columns) from −1 to 1, a pixel each, in colours of opacity |value|."""
    values = condensed(condensed(values, 0), 1)
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = np.where(values[..., None] < 0, below, above)
    pixels[..., 3] = np.rint(255 * np.minimum(np.abs(values), 1))
    return png(pixels)


def condensed(values: Array, axis: int, most: int = MOST) -> Array:
    """At most so many values along an axis, means of as many neighbours each as are needed."""
    size = values.shape[axis]
    if size <= most:
        return values
    starts = np.unique(np.linspace(0, size, most, endpoint=False).astype(int))
    counts = np.diff([*starts, size])
    sums = np.add.reduceat(values, starts, axis=axis)
    return sums / (counts[:, None] if axis == 0 else counts)


def placed(picture: str, x: float, y: float, width: float, height: float) -> svg.Markup:
    """A picture inside of a drawing, stretched to this box and with an edge around it."""
    box: dict[str, svg.Attribute] = {"x": x, "y": y, "width": width, "height": height}
    image = svg.element("image", **box, preserveAspectRatio="none", href=picture)
    return svg.element("g", image, svg.element("rect", **box, class_="edge"))
