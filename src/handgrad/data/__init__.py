"""Real data sets: one carried in the package, the others read from the user's own files.

    data = hg.data.load("digits")                   # 1,797 scans, needs nothing else
    data = hg.data.load("mnist", "~/data/mnist")    # a folder of IDX files
    data = hg.data.load("houses", "houses.csv", target="price")
    data = hg.data.load("mine", "photos/")          # a folder of images per class
    data = hg.data.load("vowels", "JapaneseVowels/")  # series of different lengths

`hg.data.stream` has sources for data larger than memory.

Every set is a `Dataset` with class indices y, and x from 0 to 1 where it holds images. Text to
continue comes from `load_text`, pairs to translate from `load_pairs`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np

from handgrad.data import (
    arrays,
    cifar,
    dates,
    digits,
    files,
    folder,
    idx,
    pairs,
    pronounce,
    series,
    stream,
    table,
    uea,
)
from handgrad.data.dataset import (
    Dataset,
    Pixels,
    split_dataset,
    stratified_split,
    with_validation,
)
from handgrad.data.images import read_image
from handgrad.data.pairs import PairBatch, PairData, Pairs
from handgrad.data.ragged import Ragged, Sequences, batch_order
from handgrad.data.sources import Labelled, Source
from handgrad.data.table import TableSettings
from handgrad.data.text import Blocks, TokenizedText
from handgrad.data.text import load as load_text
from handgrad.data.tokenizers import load_tokenizer
from handgrad.data.tokens import Bytes, Symbols, TextCodec
from handgrad.errors import ArgumentError, DataError
from handgrad.suggestions import did_you_mean, suggesting

__all__ = [
    "EXPECTED",
    "Blocks",
    "Bytes",
    "Dataset",
    "Labelled",
    "PairBatch",
    "PairData",
    "Pairs",
    "Pixels",
    "Ragged",
    "Sequences",
    "Source",
    "Symbols",
    "TextCodec",
    "TokenizedText",
    "batch_order",
    "is_here",
    "load",
    "load_pairs",
    "load_text",
    "load_tokenizer",
    "read_image",
    "split_dataset",
    "stratified_split",
    "stream",
    "with_validation",
]

if not TYPE_CHECKING:
    __getattr__ = suggesting(__name__)

#: The sets known by name, and the files each is made of.
EXPECTED: Final = {
    "digits": "nothing, because it comes with handgrad",
    "mnist": "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, "
    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it is or as .gz",
    "fashion-mnist": "a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, "
    "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each as it is or as .gz",
    "cifar10": "a folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin, "
    "or the same as .png sheets with train_labels.json and test_labels.json",
    "vowels": "a folder with JapaneseVowels_TRAIN.ts and JapaneseVowels_TEST.ts",
    "series": "nothing, because it is generated",
    "vectors": "nothing, because it is generated",
    "dates": "nothing, because it is generated, by Babel (handgrad[dates])",
    "pronounce": pronounce.EXPECTED,
    "table": "a .csv file with numbers and one target in each row",
    "pictures": "a folder with a folder of images for each class",
    "text": "any text in UTF-8, or nothing: the text that Python carries about itself",
    "translate": pairs.EXPECTED,
}
#: Sets that need no files.
_OWN: Final = {"digits": digits.load, "series": series.series, "vectors": series.vectors}
_FORMS: Final = {
    "mnist": "idx",
    "fashion-mnist": "idx",
    "cifar10": "cifar",
    "vowels": "ts",
    **dict.fromkeys(_OWN, "own"),
}
#: Other names of a set's folder besides the name of the set.
_FOLDERS: Final = {"vowels": ("JapaneseVowels",)}
_ANY: Final = (
    "a folder of IDX files, of CIFAR-10 batches or of images per class, a .npz or .csv file, or "
    "the .ts files of a set of series"
)


def load(
    name: str,
    path: str | os.PathLike[str] | None = None,
    seed: int = 0,
    *,
    maximum: float | None = None,
    resize: tuple[int, int] | None = None,
    **columns: Unpack[TableSettings],
) -> Dataset:
    """The data set `name`, read from `path`, or else from where HANDGRAD_DATA points.

    `path` is a file or folder in any of the forms of this package; what it holds decides how it is
    read. It may also be the folder above, with one folder for each set, named as the set.
    `digits` is carried in the package, `series` and `vectors` are generated; they look at `path`
    alone. `seed` draws the test part of sets that do not come divided; `maximum` is what becomes 1
    in .npz and .csv files, where the number of bits does not say it as it does in images. `resize`
    (H, W) makes images in a folder of one size. Of a CSV file `target` is the column to predict;
    `numbers` says that it holds numbers, and not classes; `use` names the columns to learn from,
    `drop` those to leave out, one name or several, and `kinds` says what columns are read as:
    "number", "category" or "date", or are the plan by which a model's own table was read (see
    `data.table` and `data.encoding`); with `vectors` the texts of a column with more than 30
    different ones are numbered, for a network that begins with `layers.ColumnEmbeddings`.
    Raises DataError where files are missing, truncated, of another kind, or need more memory than
    4 × their bytes and 150 MB (HANDGRAD_DATA_MB), ArgumentError for a setting that is not allowed.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"data: name is {name!r}; allowed: a string")
    _check_seed(name, seed)
    if maximum is not None and not (
        isinstance(maximum, int | float | np.number) and 0 < maximum < math.inf
    ):
        raise ArgumentError(f"{name}: maximum is {maximum!r}; allowed: a number above 0")
    said = {key: value for key, value in table.completed(name, columns).items() if value}
    said = {key: said[key] for key in ("target", "use", "drop", "kinds") if key in said}
    if name in _OWN and path is None:
        _refuse_columns(name, said)
        return _OWN[name](seed)
    expected = _ANY
    if path is None:
        expected = EXPECTED.get(name) or _ANY + did_you_mean(name, EXPECTED)
    folders = _FOLDERS.get(name, ())
    location = files.find(name, path, expected, folders)
    form = form_of(location)
    if form != "csv":
        _refuse_columns(name, said)
    own = _FORMS.get(name, form)
    if form is None or (path is None and form != own):
        raise DataError(f"{location} holds no {'data set' if path else name}; expected {expected}")
    if resize is not None and form != "folder":
        raise ArgumentError(f"{name}: resize is {resize!r}; allowed: with a folder of images")
    # The user's own data in the place of a set known by name goes by its own name.
    title = name if form == own else location.stem
    match form:
        case "idx":
            return idx.load(title, location)
        case "cifar":
            return cifar.load(title, location)
        case "folder":
            return folder.load(title, location, seed, resize)
        case "ts":
            return uea.load(location, next(iter(folders), None))
        case "npz":
            return arrays.load_npz(title, location, seed, maximum)
        case _:
            return table.load_csv(title, location, seed, maximum, **columns)


def _refuse_columns(name: str, said: Mapping[str, object]) -> None:
    for key, value in said.items():
        raise ArgumentError(f"{name}: {key} is {value!r}; allowed: with a .csv file")


def load_pairs(
    name: str, path: str | os.PathLike[str] | None = None, seed: int = 0, **settings: object
) -> PairData:
    """The pairs called `dates` (generated) or `pronounce`, or else those of a tab-separated file.

    settings: those of `dates.load`, `pronounce.load` or `pairs.load` in this package.
    Raises DataError where files are missing or wrong, ArgumentError for a setting that is.
    """
    _check_seed(name, seed)
    chosen: dict[str, Any] = settings
    match name:
        case "dates" if path is not None:
            raise ArgumentError(f"dates: data is {path}; allowed: none, because it is generated")
        case "dates":
            return dates.load(seed, **chosen)
        case "pronounce":
            return pronounce.load(path, seed, **chosen)
        case _:
            return pairs.load(name, path, seed, **chosen)


def is_here(name: str) -> bool:
    """Return whether the set of this name loads without a path, being one of `EXPECTED`.

    That is so where it needs no files, and where HANDGRAD_DATA points to them; they are not read.
    """
    try:
        if name == "pronounce":
            pronounce.find()
        elif name in _FORMS and name not in _OWN:
            location = files.find(name, None, EXPECTED[name], _FOLDERS.get(name, ()))
            return form_of(location) == _FORMS[name]
        elif name == "translate":
            pairs.find(name)
    except DataError:
        return False
    return True


def _check_seed(name: str, seed: Any) -> None:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ArgumentError(f"{name}: seed is {seed!r}; allowed: an integer from 0")


def form_of(location: Path) -> str | None:
    """The format of a file or folder, by the names in it; None where it is unknown."""
    if os.path.isdir(location):
        if idx.is_idx_folder(location):
            return "idx"
        if cifar.is_cifar_folder(location):
            return "cifar"
        if uea.is_ts(location):
            return "ts"
        return "folder" if folder.is_image_folder(location) else None
    if location.suffix == ".npz":
        return "npz"
    if uea.is_ts(location):
        return "ts"
    return "csv" if table.is_table(location.name) else None
