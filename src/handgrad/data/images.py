"""Image files as arrays. Pillow reads them; it is the optional extra `handgrad[images]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import UInt8

#: What counts as an image file in a folder.
SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".webp"})

_GREY_MODES: Final = frozenset({"1", "L", "LA", "I", "I;16", "F"})


def _opened(path: Path) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise DataError(
            f"{path}: reading image files needs Pillow; expected `pip install 'handgrad[images]'`"
        ) from None
    try:
        # Opened here, because Pillow leaves a damaged file open.
        with path.open("rb") as file:
            image = Image.open(file)
            image.load()
    except FileNotFoundError:
        raise DataError(f"{path} is missing; expected an image file") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path} cannot be read ({error}); expected a whole image file") from None
    return image


def read_image(
    path: Path, *, channels: int | None = None, size: tuple[int, int] | None = None
) -> UInt8[Array, "C H W"]:
    """An image file as unsigned bytes (C, H, W): 1 channel for grey, 3 for colour.

    channels: 1 or 3 converts; None takes what the file has. size (H, W) resamples.
    Raises DataError where the file is missing or damaged, or Pillow is not installed.
    """
    image = _opened(path)
    if channels is None:
        channels = 1 if image.mode in _GREY_MODES else 3
    if channels == 1 and image.mode in {"I", "I;16"}:
        image = image.point(lambda value: value / 256)
    image = image.convert("L" if channels == 1 else "RGB")
    if size is not None and image.size != (size[1], size[0]):
        from PIL import Image

        image = image.resize((size[1], size[0]), Image.Resampling.LANCZOS)
    pixels = np.asarray(image, dtype=np.uint8)
    return pixels[None] if channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))
