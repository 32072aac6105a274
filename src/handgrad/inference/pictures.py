"""Image files brought into the form that a model's training images had.

A set of drawings (digits, letters, clothes) has one object on plain ground, of one size, in the
middle, light on dark. A photograph of such an object has any size, place and polarity: `Framing`
keeps what the training images had in common and finds it in the photograph. Images of any other
kind are cut to the proportion of the training images and resampled, by `Cut`. Both leave arrays as
they are, because these are in the model's form already.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.images import cut, read_image
from handgrad.errors import ArgumentError, DataError
from handgrad.inference.likeness import Likeness
from handgrad.inference.preprocessing import Preprocessor, are_numbers, step

if TYPE_CHECKING:
    from jaxtyping import Float

#: Images of the training part that decide.
_EXAMPLES: Final = 2000
#: So many of them must have plain ground: at half of the edge's pixels or more, one brightness.
_PLAIN_IMAGES: Final = 0.95
_PLAIN_EDGE: Final = 0.5
#: Photographs are reduced to at most so many pixels a side, which bounds what reading them takes.
_LARGEST: Final = 512
#: A pixel that differs by less from the ground is ground.
_TOLERANCE: Final = 0.15
#: A drawing is read in so many views: enlarged, narrowed, moved sidewards, with thicker strokes.
#: Their probabilities are averaged, because pens and fonts differ from the training part in these.
_SCALES: Final = (0.8, 0.9, 1.0, 1.1, 1.2)
_NARROWED: Final = (1.0, 1.15)
_MOVED: Final = (0.0, -0.09, 0.09)
_STROKES: Final = (1.0, 0.7)
#: The usual share of ink is that of all training images but one in a thousand on either side.
_USUAL: Final = (0.001, 0.999)


@dataclass(frozen=True)
class Reading:
    """A picture as a model takes it: x (V, C, H, W), several views of it, from 0 to 1.

    `done` says what was done to it, `doubts` why it may be no picture of the kind.
    """

    x: Float[Array, "V C H W"]
    done: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@step
@dataclass(frozen=True)
class Cut:
    """Images of any kind: the longer side is cut, in the middle, to the proportion of `shape`.

    shape: (C, H, W). means, limit: see `Likeness`. Raises ArgumentError for other settings.
    """

    name: ClassVar[str] = "cut"
    shape: tuple[int, int, int]
    means: tuple[tuple[float, ...], ...]
    limit: float

    def __post_init__(self) -> None:
        _check(self.name, self.shape, self.limit)
        Likeness(self.means, self.limit)

    def __call__(self, x: Array) -> Array:
        return x

    def read(self, path: Path) -> Reading:
        """The picture in a file. Raises DataError as `read_image` does."""
        channels, height, width = self.shape
        image = read_image(path, channels=channels)
        done = [f"{image.shape[2]} × {image.shape[1]} pixels"]
        if image.shape[1:] != (height, width):
            done.append(f"cut in the middle and resampled to {width} × {height}")
        x = (cut(image, (height, width)) / np.float32(255))[None]
        return Reading(x, tuple(done), _unlike(self.means, self.limit, x))


@step
@dataclass(frozen=True)
class Framing:
    """Drawings: an object on plain ground, lengths as shares of the image's height or width.

    shape: (1, H, W). ground: the brightness around the object. centre: its centre of mass (y, x).
    height: that of the box around it; spread: its standard deviation along y; ink: the least and
    the largest usual share that it covers. means, limit: see `Likeness`.
    Raises ArgumentError for other settings.
    """

    name: ClassVar[str] = "frame"
    shape: tuple[int, int, int]
    ground: float
    centre: tuple[float, float]
    height: float
    spread: float
    ink: tuple[float, float]
    means: tuple[tuple[float, ...], ...]
    limit: float

    def __post_init__(self) -> None:
        _check(self.name, self.shape, self.limit)
        for pair in (self.centre, self.ink):
            if not (isinstance(pair, tuple) and len(pair) == 2 and are_numbers(*pair)):
                raise ArgumentError("frame: centre and ink are pairs of numbers")
        if not (are_numbers(self.ground, self.height, self.spread) and self.spread > 0):
            raise ArgumentError("frame: ground, height and spread are numbers, the last above 0")
        if not (self.shape[0] == 1 and 0 < self.height <= 1):
            raise ArgumentError("frame: allowed are a shape (1, H, W) and a height above 0, to 1")
        Likeness(self.means, self.limit)

    def __call__(self, x: Array) -> Array:
        return x

    def read(self, path: Path) -> Reading:
        """The views of the object in an image file. Raises DataError where it shows nothing."""
        image = read_image(path, channels=1)[0]
        reduced = math.ceil(max(image.shape) / _LARGEST)
        picture = _reduced(image, reduced) / 255
        edge = _edge(picture)
        ground = float(np.median(edge))
        ink = np.abs(picture - ground)
        if not ink.max() > _TOLERANCE:
            raise DataError(f"{path} is the same everywhere; expected something on plain ground")
        done, doubts = [f"{image.shape[1]} × {image.shape[0]} pixels"], []
        plain = float((np.abs(edge - ground) < _TOLERANCE).mean())
        if plain < _PLAIN_EDGE:
            doubts.append(f"only {plain:.0%} of its edge is plain ground")
        if (picture.flat[ink.argmax()] > ground) != (self.ground < 0.5):
            done.append("dark and light swapped")
        ink /= ink.max()
        ink[ink < 0.8 * _otsu(ink)] = 0
        top, bottom, left, right = (reduced * place for place in _box(ink > 0))
        done.append(f"cut to {right - left} × {bottom - top} pixels at ({left}, {top})")
        views = self._views(ink)
        share, (low, high) = float(views[0].mean()), self.ink
        if not 0.5 * low <= share <= 1.5 * high:
            doubts.append(
                f"it covers {share:.0%} of the image, where those in training cover {low:.0%} to "
                f"{high:.0%}"
            )
        lit = self.ground + (1 - self.ground) * views if self.ground < 0.5 else 1 - views
        x = lit[:, None].astype(np.float32)
        doubts += _unlike(self.means, self.limit, _contrast(x, self.ground))
        return Reading(x, tuple(done), tuple(doubts))

    def _views(self, ink: Array) -> Array:
        """The object (V, H, W) at the place and in the size of the training's, the plainest first.

        Its size is taken from its deviation along y and, for other views, from its box.
        """
        from PIL import Image

        (_, height, width), (rows, columns) = self.shape, ink.shape
        top, bottom, *sides = _box(ink > 0)
        (y, x), spread = _centre(ink), _spread(ink)
        sizes = (
            spread * rows / (self.spread * height),
            max((bottom - top) / (self.height * height), (sides[1] - sides[0]) / width),
        )
        pad = int(2 * max(sizes) * max(height, width)) + 1
        padded = Image.fromarray(np.pad(ink, pad).astype(np.float32))
        views = []
        for size, scale, narrowed, moved in product(sizes, _SCALES, _NARROWED, _MOVED):
            down, across = size * scale, size * scale * narrowed
            first = max(0.0, pad + y * rows - self.centre[0] * height * down)
            left = max(0.0, pad + x * columns - (self.centre[1] + moved) * width * across)
            right = min(left + width * across, padded.width)
            box = (left, first, right, min(first + height * down, padded.height))
            view = np.asarray(padded.resize((width, height), Image.Resampling.BOX, box))
            brightest = max(float(view.max()), 1e-9)
            views += [np.clip(view / brightest, 0, 1) ** stroke for stroke in _STROKES]
        # The plainest is that of the first size at scale 1, with the strokes as they are.
        plainest = _SCALES.index(1.0) * len(_NARROWED) * len(_MOVED) * len(_STROKES)
        return np.array([views[plainest], *views[:plainest], *views[plainest + 1 :]])


def step_for(x: Any) -> tuple[Preprocessor, ...]:
    """The step that makes pictures like the images x, (N, C, H, W) from 0 to 1; none for others."""
    if not (getattr(x, "ndim", 0) == 4 and x.shape[1] in (1, 3) and min(x.shape) > 0):
        return ()
    chosen = np.linspace(0, len(x) - 1, min(len(x), _EXAMPLES)).astype(np.intp)
    images = np.asarray(x[chosen], np.float64)
    if not isinstance(x, Pixels) and not (images.min() >= 0 and images.max() <= 1):
        return ()
    shape = (int(x.shape[1]), int(x.shape[2]), int(x.shape[3]))
    frame = _frame(images[:, 0]) if shape[0] == 1 else None
    likeness = Likeness.of(images if frame is None else _contrast(images, frame["ground"]))
    means = tuple(map(tuple, likeness.means.tolist()))
    if frame is None:
        return (Cut(shape, means, likeness.limit),)
    return (Framing(shape, means=means, limit=likeness.limit, **frame),)


def _frame(images: Array) -> dict[str, Any] | None:
    """The settings of `Framing` for images (N, H, W), where they are drawings."""
    edges = np.stack([_edge(image) for image in images])
    ground = float(np.median(edges))
    plain = (np.abs(edges - ground) < _TOLERANCE).mean(axis=1) >= _PLAIN_EDGE
    inks = [np.abs(image - ground) for image in images if np.ptp(image) > 0]
    if plain.mean() < _PLAIN_IMAGES or not inks:
        return None
    boxes = [_box(ink > 0.25 * ink.max()) for ink in inks]
    centre = np.mean([_centre(ink) for ink in inks], axis=0)
    heights = [
        (bottom - top) / len(ink) for (top, bottom, *_), ink in zip(boxes, inks, strict=True)
    ]
    return {
        "ground": round(ground, 4),
        "centre": tuple(centre.round(4).tolist()),
        "height": round(float(np.mean(heights)), 4),
        "spread": round(float(np.mean([_spread(ink) for ink in inks])), 4),
        "ink": tuple(np.quantile([ink.mean() for ink in inks], _USUAL).round(4).tolist()),
    }


def _check(name: str, shape: Any, limit: Any) -> None:
    if not (
        isinstance(shape, tuple)
        and len(shape) == 3
        and all(type(n) is int and 0 < n < 1 << 16 for n in shape)
        and shape[0] in (1, 3)
        and are_numbers(limit)
    ):
        raise ArgumentError(f"{name}: allowed are a shape (C, H, W) with 1 or 3 channels, a limit")


def _unlike(means: Any, limit: float, x: Array) -> tuple[str, ...]:
    distance = Likeness(means, limit).distance(x)
    if distance <= limit:
        return ()
    return (
        f"it is unlike the images in training: {distance:.2g} away, where those are {limit:.2g}",
    )


def _contrast(x: Array, ground: float) -> Array:
    """The ink of drawings, of whichever polarity."""
    ink: Array = np.abs(x - ground)
    return ink


def _reduced(image: Array, factor: int) -> Array:
    """Means over blocks of factor × factor pixels."""
    from PIL import Image

    return image if factor == 1 else np.asarray(Image.fromarray(image).reduce(factor))


def _edge(image: Array) -> Array:
    return np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])


def _box(mask: Array) -> tuple[int, int, int, int]:
    """The first row and the one after the last, and the columns likewise."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1


def _centre(ink: Array) -> tuple[float, float]:
    """The centre of mass (y, x), as shares of height and width."""
    mass = ink / ink.sum()
    y, x = ((np.arange(n) + 0.5) / n for n in ink.shape)
    return float(mass.sum(axis=1) @ y), float(mass.sum(axis=0) @ x)


def _spread(ink: Array) -> float:
    """The standard deviation along y, as a share of the height."""
    y = (np.arange(len(ink)) + 0.5) / len(ink)
    along = ink.sum(axis=1) / ink.sum()
    return math.sqrt(float(along @ (y - along @ y) ** 2))


def _otsu(values: Array) -> float:
    """The threshold that divides values from 0 to 1 best into two kinds.

    Source: Otsu, A threshold selection method from gray-level histograms (1979).
    """
    counts, edges = np.histogram(values, 64, (0, 1))
    below = np.cumsum(counts)[:-1]
    sums = np.cumsum(counts * (edges[:-1] + edges[1:]) / 2)
    between = (sums[-1] * below / values.size - sums[:-1]) ** 2
    between /= np.maximum(below * (values.size - below), 1)
    return float(edges[1:-1][between == between.max()].mean())
