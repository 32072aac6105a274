"""A folder of images per class: `<folder>/<class>/*.png`, or the same below `train` and `test`.

Names that begin with a dot are passed over, as file managers leave them behind.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import TEST_FRACTION, Dataset, Pixels, stratified_split
from handgrad.data.files import entries
from handgrad.data.images import SUFFIXES, check_together, cut, read_image, read_size
from handgrad.errors import DataError
from handgrad.escaping import listed, quoted


def is_image_folder(folder: Path) -> bool:
    """Return whether a class folder with an image in it is there, perhaps below `train`."""
    return bool(_class_names(folder / "train") or _class_names(folder))


def load(name: str, folder: Path, seed: int = 0, resize: tuple[int, int] | None = None) -> Dataset:
    """x (N, C, H, W) from 0 to 1, y (N,); a class is named as its folder.

    resize: (H, W) of all images, which are cut to that proportion in the middle and resampled;
    without it they have one size. Without folders `train` and `test`, a stratified fifth drawn
    from `seed` is the test part.
    A folder without images is no class, which `note` of the data set says.
    Raises DataError where a class is missing, there is one alone, a file is damaged, sizes differ,
    or the images take more memory than the bound of their files.
    """
    drawn = not os.path.isdir(folder / "train")
    if drawn:
        classes = _class_names(folder)
        if not classes:
            raise DataError(f"{folder} has no images; expected one folder of images per class")
        paths, y = _listed(folder, classes)
        # Divided before anything is read, so that no part of it is copied.
        train, test = stratified_split(y, TEST_FRACTION, seed)
        parts = [[paths[i] for i in index] for index in (train, test)]
        labels = [y[train], y[test]]
    else:
        classes = _class_names(folder / "train")
        for part in ("train", "test"):
            found = _class_names(folder / part)
            if not found or found != classes:
                raise DataError(
                    f"{folder / part} has the classes {listed(found)}; expected "
                    f"{listed(classes) if classes else 'one folder of images per class'}"
                )
        parts, labels = map(
            list, zip(*(_listed(folder / part, classes) for part in ("train", "test")), strict=True)
        )
    if len(classes) == 1:
        raise DataError(
            f"{folder} has images of one class, {quoted(classes[0])}; expected a folder of them "
            "for each of two classes or more"
        )
    x_train, x_test = _read(folder, parts, resize)
    named = (np.array([path.relative_to(folder).as_posix() for path in each]) for each in parts)
    return Dataset(
        name,
        *(x_train, labels[0]),
        *(x_test, labels[1]),
        tuple(classes),
        note=_note(folder if drawn else folder / "train", classes),
        drawn=drawn,
        origins=dict(zip(("train", "test"), named, strict=True)),
    )


def _images(folder: Path) -> list[Path]:
    return [
        path
        for path in entries(folder)
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    ]


def _note(folder: Path, classes: list[str]) -> str:
    """A remark on folders that are no classes."""
    others = [
        path.name
        for path in entries(folder)
        if os.path.isdir(path) and not path.name.startswith(".") and path.name not in classes
    ]
    return (
        f"no images of a known format are in {listed(others)}, which is no class" if others else ""
    )


def _class_names(folder: Path) -> list[str]:
    if not os.path.isdir(folder):
        return []
    return [
        path.name
        for path in entries(folder)
        if os.path.isdir(path) and not path.name.startswith(".") and _images(path)
    ]


def _listed(folder: Path, classes: list[str]) -> tuple[list[Path], Array]:
    """The images of these classes, and the class of each."""
    found = [(path, label) for label, name in enumerate(classes) for path in _images(folder / name)]
    return [path for path, _ in found], np.array([label for _, label in found], dtype=np.int64)


def _read(folder: Path, parts: list[list[Path]], resize: tuple[int, int] | None) -> list[Pixels]:
    """The images of each part, in one size; grey ones have three channels beside coloured ones."""
    sizes = {path: read_size(path) for paths in parts for path in paths}
    first = next(iter(sizes))
    height, width = resize or (sizes[first].height, sizes[first].width)
    for path, size in sizes.items():
        if resize is None and (size.height, size.width) != (height, width):
            raise DataError(
                f"{path} is {size.height} × {size.width} pixels; expected {height} × {width}, as "
                f"{first} has, or resize = [{height}, {width}], which makes all images so"
            )
    channels = max(size.channels for size in sizes.values())
    made = (size._replace(height=height, width=width) for size in sizes.values())
    check_together(folder, made, channels)
    found = []
    for paths in parts:
        x = np.empty((len(paths), channels, height, width), np.uint8)
        for i, path in enumerate(paths):
            image = read_image(path, channels=sizes[path].channels)
            if image.shape[1:] != (sizes[path].height, sizes[path].width):
                raise DataError(f"{path} was changed while it was read; expected the same size")
            x[i] = cut(image, (height, width))
        found.append(Pixels(x))
    return found
