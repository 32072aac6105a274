"""Image files as arrays. Pillow reads them; it is the optional extra `handgrad[images]`.

Only the formats below are tried, whatever a file is called: Pillow knows others for which it starts
programs (Ghostscript for EPS). The size in a file's header is compared with the bound of its memory
before a pixel is unpacked. Of these formats PNG alone has checksums, and all of them are compared;
damage inside the others may go unnoticed where the decoder accepts it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.data.files import Bound, opened, shortened
from handgrad.errors import DataError
from handgrad.paths import StrPath, as_path

if TYPE_CHECKING:
    from jaxtyping import UInt8

#: Suffixes of image files in a folder.
SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".webp"})
#: The same to Pillow, whose names of these plugins begin otherwise than those of its formats.
_PLUGINS: Final = {
    "PNG": "Png",
    "JPEG": "Jpeg",
    "BMP": "Bmp",
    "GIF": "Gif",
    "PPM": "Ppm",
    "WEBP": "WebP",
}

_GREY_MODES: Final = frozenset({"1", "L", "LA", "I", "I;16", "I;16B", "F"})
_DEEP_MODES: Final = frozenset({"I", "I;16", "I;16B"})
#: Bytes for a pixel while it is unpacked, converted and made an array, and laid on white.
_WORKING: Final = 10
_LAYING: Final = 8


class ImageHeader(NamedTuple):
    """The header of an image: its size, and the bytes of its file."""

    channels: int
    height: int
    width: int
    file: int


def read_size(path: StrPath) -> ImageHeader:
    """The size of an image, from its header alone. Raises DataError as `read_image` does."""
    with _opened(path) as (image, _, bound):
        height, width = image.height, image.width
        if _orientation(image) >= 5:
            height, width = width, height
        return ImageHeader(_channels(image), height, width, bound.size)


def read_image(path: StrPath, *, channels: int | None = None) -> UInt8[Array, "C H W"]:
    """An image file as unsigned bytes (C, H, W): 1 channel for grey, 3 for colour.

    channels: 1 or 3 converts; None takes what the file has. A camera's note of how it was held is
    followed, and what is transparent is white.
    Raises DataError where the file is missing, damaged, too large for its bytes, or Pillow is not
    installed.
    """
    with _opened(path) as (image, Image, bound):
        transparent = "transparency" in image.info or image.mode in ("RGBA", "LA", "PA")
        working = _WORKING + (_LAYING if transparent else 0)
        bound.check(working * image.width * image.height, "make the image smaller, or ")
        image.load()
        if channels is None:
            channels = _channels(image)
        image = _upright(image, Image)
        if transparent:
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image.convert("RGBA"))
        if image.mode in _DEEP_MODES:
            image = image.point(lambda value: value / 256).convert("L")
        mode = "L" if channels == 1 else "RGB"
        if image.mode != mode:
            image = image.convert(mode)
        pixels = np.asarray(image, dtype=np.uint8)
        return pixels[None] if channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def cut(image: UInt8[Array, "C H W"], size: tuple[int, int]) -> UInt8[Array, "C h w"]:
    """The image resampled to size (h, w), after its longer side is cut, in the middle, to that
    proportion."""
    from PIL import Image

    height, width = size
    if image.shape[1:] == size:
        return image
    scale = min(image.shape[1] / height, image.shape[2] / width)
    down, across = scale * height, scale * width
    top, left = (image.shape[1] - down) / 2, (image.shape[2] - across) / 2
    box = (left, top, left + across, top + down)
    filter_ = Image.Resampling.LANCZOS
    channels = [Image.fromarray(each).resize((width, height), filter_, box) for each in image]
    return np.stack([np.asarray(each) for each in channels])


def check_together(folder: Path, sizes: Iterable[ImageHeader], channels: int) -> None:
    """Raise DataError where all these images need more memory than the bound of their files."""
    file = pixels = 0
    for size in sizes:
        file += size.file
        pixels += channels * size.height * size.width
    Bound(folder, file).check(pixels, "make the images smaller, or ")


def _orientation(image: Any) -> int:
    """The number from 1 to 8 that says how a camera was held; 1 without one."""
    found = image.getexif().get(0x0112, 1)
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def _upright(image: Any, Image: Any) -> Any:
    """The image as it was seen. From 5 on rows and columns are exchanged."""
    turn = Image.Transpose
    turns = {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_270,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_90,
    }
    orientation = _orientation(image)
    return image if orientation == 1 else image.transpose(turns[orientation])


def _channels(image: Any) -> int:
    return 1 if image.mode in _GREY_MODES else 3


@contextmanager
def _opened(given: StrPath) -> Iterator[tuple[Any, Any, Bound]]:
    """The image with only its header read, Pillow's module `Image`, and the bound of the file."""
    # A Path may be a name that a folder listed, which may begin with ~.
    path = given if isinstance(given, Path) else as_path("read_image", given)
    try:
        from PIL import Image, UnidentifiedImageError

        for plugin in _PLUGINS.values():
            import_module(f"PIL.{plugin}ImagePlugin")
    except ImportError:
        raise DataError(
            f"{path}: reading image files needs Pillow; expected `pip install 'handgrad[images]'`"
        ) from None
    what = "a whole image file (PNG, JPEG, BMP, GIF, PPM or WebP)"
    # Opened here, because Pillow leaves a damaged file open.
    with opened(path, what) as (file, bound), warnings.catch_warnings():
        # Pillow warns of large images and of odd metadata; the bound and the pixels decide here.
        warnings.simplefilter("ignore")
        try:
            if file.read(8) == b"\x89PNG\r\n\x1a\n":
                # `load` passes over the checksums of the pixels.
                Image.open(file, formats=("PNG",)).verify()
            yield Image.open(file, formats=tuple(_PLUGINS)), Image, bound
        except (DataError, MemoryError):
            raise
        except UnidentifiedImageError:
            raise DataError(f"{path} is no image of a known format; expected {what}") from None
        except Exception as error:  # Pillow raises a dozen kinds of errors for what is damaged
            raise DataError(
                f"{path} cannot be read ({shortened(error)}); expected {what}"
            ) from None
