"""Data sets in one .npz file of NumPy's.

Its arrays are x_train, y_train, x_test, y_test; or x and y, of which a stratified fifth becomes the
test part. Unsigned bytes are read as pixels (255 becomes 1), others as they are. Types narrower
than float32 stay in memory as they are until a batch is gathered. Images are (N, H, W) or
(N, C, H, W), tables (N, D). `classes` (strings) is optional. `maximum` is the number that becomes
1, when it is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Dataset, Pixels, split_dataset
from handgrad.data.npy import Header, read_npz
from handgrad.errors import DataError
from handgrad.escaping import listed

_DIVIDED: Final = ("x_train", "y_train", "x_test", "y_test")
_WHOLE: Final = ("x", "y")


def load_npz(name: str, path: Path, seed: int = 0, maximum: float | None = None) -> Dataset:
    """The data set in a .npz file. Raises DataError for missing arrays, pickles and damage."""

    def needs(key: str, header: Header) -> float:
        if not key.startswith("x"):
            return 3 * header.nbytes + 100 * header.count
        narrow = header.dtype.itemsize < 4 or maximum is not None
        kept = header.nbytes if narrow else 4 * header.count
        return header.nbytes + kept * (2 if key == "x" else 1)

    arrays, names = read_npz(path, (*_DIVIDED, *_WHOLE, "classes"), needs)
    divided = "x_train" in arrays
    for key in _DIVIDED if divided else _WHOLE:
        if key not in arrays:
            raise DataError(
                f"{path} has the arrays {listed(names)}; "
                "expected x_train, y_train, x_test and y_test, or x and y"
            )
    parts = ("_train", "_test") if divided else ("",)
    labels, classes = class_indices(
        path, [arrays[f"y{part}"] for part in parts], arrays.get("classes")
    )
    examples = [_examples(path, f"x{part}", arrays.pop(f"x{part}"), maximum) for part in parts]
    if not divided:
        return split_dataset(name, examples.pop(), labels[0], classes, seed)
    if len({getattr(x, "maximum", 1.0) for x in examples}) > 1:
        raise DataError(
            f"{path}: of x_train and x_test one has unsigned bytes, which are divided by 255, and "
            "the other has not; expected the same type in both"
        )
    return Dataset(name, examples[0], labels[0], examples[1], labels[1], tuple(classes))


def _examples(path: Path, key: str, x: Array, maximum: float | None) -> Array | Pixels:
    if x.dtype.kind not in "fiub" or x.ndim not in (2, 3, 4) or 0 in x.shape[1:]:
        raise DataError(
            f"{path}: {key} has shape {x.shape} and type {x.dtype}; "
            "expected numbers of shape (N, D), (N, H, W) or (N, C, H, W)"
        )
    if x.ndim == 3:
        x = x[:, None]
    lazily = maximum is not None or x.dtype.itemsize < 4
    if not lazily:
        with np.errstate(over="ignore"):
            x = np.asarray(x, dtype=np.float32)
    if x.dtype.kind == "f":
        for i, example in enumerate(x):
            if not np.isfinite(example).all():
                raise DataError(
                    f"{path}: {key} has a number in example {i} that is not finite in float32; "
                    "expected finite numbers"
                )
    if maximum is None:
        maximum = 255.0 if x.dtype == np.uint8 else 1.0
    return Pixels(x, maximum) if lazily else x


def class_indices(
    path: Path, found: list[Array], names: Array | None
) -> tuple[list[Array], list[str]]:
    """Class indices of each part, and the classes' names: given, or the labels themselves."""
    for labels in found:
        kinds = {array.dtype.kind.replace("u", "i") for array in found}
        if labels.ndim != 1 or labels.dtype.kind not in "iuU" or len(kinds) > 1:
            raise DataError(
                f"{path}: labels have shape {labels.shape} and type {labels.dtype}; "
                "expected class indices or names of shape (N,), in both parts the same"
            )
        if labels.dtype.kind == "u" and labels.max(initial=0) > np.iinfo(np.int64).max:
            raise DataError(f"{path}: a label is {labels.max()}; expected class indices below 2⁶³")
    if names is not None and (names.ndim != 1 or names.dtype.kind not in "iuU"):
        raise DataError(
            f"{path}: classes have shape {names.shape} and type {names.dtype}; "
            "expected the name of each class, of shape (C,)"
        )
    if names is not None and found[0].dtype.kind in "iu":
        return [labels.astype(np.int64) for labels in found], [str(name) for name in names]
    values = np.unique(np.concatenate(found))
    if values.dtype.kind in "iu" and len(values) and values[0] >= 0 and values[-1] < 10_000:
        # A class without an example keeps its index.
        values = np.arange(values[-1] + 1)
    return [np.searchsorted(values, labels) for labels in found], [str(value) for value in values]
