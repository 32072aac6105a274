"""Examples to predict: files of arrays, in the form a trained model takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from handgrad.arrays import Array
from handgrad.data.npy import Header, read_npy, read_npz
from handgrad.errors import DataError
from handgrad.escaping import listed

Shape = tuple[int, ...]


def read_examples(
    path: Path, shape: Shape, maximum: float | None = None, *, any_length: bool = False
) -> Array:
    """The examples in a file as float32 (N, *shape).

    A .npy or .npz file (array `x`, or its only one) holds one example or many. `maximum` is what
    the model's own data counts as 1: integers are divided by it, and floats have to lie between 0
    and 1 already. Where it is None, numbers are taken as they are. any_length: an example is a
    sequence (T, ...) with any T.
    Raises DataError where a file is missing, damaged or of another shape.
    """
    if path.suffix not in (".npy", ".npz"):
        raise DataError(
            f"{path} is of no known kind; expected an image, a folder of images, a .csv, a .npy or "
            "a .npz file"
        )
    array = _array(path)
    if any_length and array.ndim >= len(shape):
        shape = (array.shape[array.ndim - len(shape)], *shape[1:])
    return _scaled(path, _shaped(path, array, shape), maximum)


def _array(path: Path) -> Array:
    if path.suffix == ".npy":
        return read_npy(path)

    def needs(name: str, header: Header) -> float:
        return header.nbytes + 4 * header.count

    arrays, names = read_npz(path, ("x",), needs)
    if not arrays and len(names) == 1:
        arrays, names = read_npz(path, names, needs)
    if not arrays:
        raise DataError(f"{path} has the arrays {listed(names)}; expected x, or only one")
    return arrays.popitem()[1]


def _shaped(path: Path, x: Array, shape: Shape) -> Array:
    """One example gets an axis in front; the one channel of grey images may be left out."""
    forms = [shape, shape[1:]] if len(shape) > 1 and shape[0] == 1 else [shape]
    if x.dtype.kind not in "fiub" or not any(form in (x.shape, x.shape[1:]) for form in forms):
        raise DataError(
            f"{path} has shape {x.shape} and type {x.dtype}; expected numbers of shape "
            f"{(*shape,)} or (N, {', '.join(map(str, shape))})"
        )
    return x.reshape(-1, *shape)


def _scaled(path: Path, x: Array, maximum: float | None) -> Array:
    with np.errstate(over="ignore"):
        values = x.astype(np.float32)
    if not np.isfinite(values).all():
        raise DataError(f"{path} has numbers that are not finite in float32; expected finite ones")
    if maximum is None:
        return values
    if x.dtype.kind in "iub":
        values /= np.float32(maximum)
        return values
    if values.size and not (values.min() >= 0 and values.max() <= 1):
        raise DataError(
            f"{path} has values from {values.min():g} to {values.max():g}; expected 0 to 1, or "
            f"integers from 0 to {maximum:g}"
        )
    return values
