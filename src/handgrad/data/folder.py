"""A folder of images per class: `<folder>/<class>/*.png`, or the same below `train` and `test`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels, split_dataset
from handgrad.data.images import SUFFIXES, read_image
from handgrad.errors import DataError


def is_image_folder(folder: Path) -> bool:
    """Whether a class folder with an image in it is there, perhaps below `train`."""
    return bool(_class_names(folder / "train") or _class_names(folder))


def load(name: str, folder: Path, seed: int = 0) -> Dataset:
    """x (N, C, H, W) from 0 to 1, y (N,); a class is named as its folder.

    Without folders `train` and `test`, a stratified fifth drawn from `seed` is the test part.
    Raises DataError where a class is missing, a file is damaged or sizes differ.
    """
    if not (folder / "train").is_dir():
        classes = _class_names(folder)
        if not classes:
            raise DataError(f"{folder} has no images; expected one folder of images per class")
        x, y = _read(folder, classes)
        return split_dataset(name, x, y, classes, seed)
    classes = _class_names(folder / "train")
    for part in ("train", "test"):
        found = _class_names(folder / part)
        if not found or found != classes:
            raise DataError(
                f"{folder / part} has the classes {', '.join(found) or '(none)'}; expected "
                f"{', '.join(classes) or 'one folder of images per class'}"
            )
    x_train, y_train = _read(folder / "train", classes)
    x_test, y_test = _read(folder / "test", classes)
    return Dataset(name, x_train, y_train, x_test, y_test, tuple(classes))


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def _class_names(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and _images(path))


def _read(folder: Path, classes: list[str]) -> tuple[Pixels, Array]:
    paths = [(path, label) for label, name in enumerate(classes) for path in _images(folder / name)]
    images = [read_image(path) for path, _ in paths]
    channels = max(image.shape[0] for image in images)
    first = images[0].shape[1:]
    for (path, _), image in zip(paths, images, strict=True):
        if image.shape[1:] != first:
            raise DataError(
                f"{path} is {image.shape[1]} × {image.shape[2]} pixels; expected "
                f"{first[0]} × {first[1]}, as {paths[0][0]} has"
            )
    # A grey file among colour ones has three equal channels.
    x = np.stack([np.broadcast_to(image, (channels, *first)) for image in images])
    return Pixels(x), np.array([label for _, label in paths], dtype=np.int64)
