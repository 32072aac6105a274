"""Real data sets: one carried in the package, the others read from the user's own files.

    data = hg.data.load("digits")                   # 1,797 scans, needs nothing else
    data = hg.data.load("mnist", "~/data/mnist")    # a folder of IDX files
    data = hg.data.load("mine", "photos/")          # a folder of images per class

Every set is a `Dataset` with x from 0 to 1 and class indices y.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from handgrad.data import arrays, cifar, digits, folder, idx
from handgrad.data.dataset import (
    Dataset,
    Pixels,
    split_dataset,
    stratified_split,
    with_validation,
)
from handgrad.data.images import read_image
from handgrad.errors import DataError

__all__ = [
    "EXPECTED",
    "Dataset",
    "Pixels",
    "load",
    "read_image",
    "split_dataset",
    "stratified_split",
    "with_validation",
]

#: The sets known by name, and the files each is made of.
EXPECTED: Final = {
    "digits": "nothing, because it comes with handgrad",
    "mnist": "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, "
    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it is or as .gz",
    "fashion-mnist": "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, "
    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it is or as .gz",
    "cifar10": "a folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin, "
    "or the same as .png sheets with train_labels.json and test_labels.json",
}
_FORMS: Final = {"digits": "bundled", "mnist": "idx", "fashion-mnist": "idx", "cifar10": "cifar"}
_ANY: Final = (
    "a folder of IDX files, of CIFAR-10 batches or of images per class, a .npz file or a .csv file"
)


def load(
    name: str,
    path: str | os.PathLike[str] | None = None,
    seed: int = 0,
    *,
    maximum: float | None = None,
) -> Dataset:
    """The data set `name`, read from `path`, or else from where HANDGRAD_DATA points.

    `path` is a file or folder in any of the forms of this package; what it holds decides how it is
    read. It may also be the folder above, with one folder for each set, named as the set.
    `digits` is carried in the package and looks at `path` alone. `seed` draws the test part of
    sets that do not come divided; `maximum` is what becomes 1 in .npz and .csv files, where the
    number of bits does not say it as it does in images.
    Raises DataError where files are missing, truncated or of another kind.
    """
    if name == "digits" and path is None:
        return digits.load(seed)
    given = path if path is not None else os.environ.get("HANDGRAD_DATA")
    expected = EXPECTED.get(name, _ANY) if path is None else _ANY
    if not given:
        raise DataError(
            f"{name}: no data given; expected --data PATH or HANDGRAD_DATA=PATH, where PATH is "
            f"{expected}"
        )
    place = Path(given).expanduser()
    if (place / name).is_dir():
        place = place / name
    if not place.exists():
        raise DataError(f"{place} does not exist; expected {expected}")
    form = _form(place)
    own = _FORMS.get(name, form)
    if form is None or (path is None and form != own):
        raise DataError(f"{place} holds no {'data set' if path else name}; expected {expected}")
    # The user's own data in the place of a set known by name goes by its own name.
    title = name if form == own else place.stem
    match form:
        case "idx":
            return idx.load(title, place)
        case "cifar":
            return cifar.load(title, place)
        case "folder":
            return folder.load(title, place, seed)
        case "npz":
            return arrays.load_npz(title, place, seed, maximum)
        case _:
            return arrays.load_csv(title, place, seed, maximum)


def _form(place: Path) -> str | None:
    """What a file or folder holds, by the names in it; None where that is nothing known."""
    if place.is_dir():
        if idx.is_idx_folder(place):
            return "idx"
        if cifar.is_cifar_folder(place):
            return "cifar"
        return "folder" if folder.is_image_folder(place) else None
    if place.suffix == ".npz":
        return "npz"
    return "csv" if place.name.endswith((".csv", ".csv.gz")) else None
