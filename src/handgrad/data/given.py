"""Arrays as people have them: NumPy's, lists, and frames of pandas or its like.

A table has `to_numpy`; a list of arrays of different lengths is a set of sequences.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.dataset import Pixels
from handgrad.data.ragged import Ragged, Sequences
from handgrad.dispatch.values import shown
from handgrad.errors import DataError, HandgradWarning, ShapeError
from handgrad.escaping import listed, quoted

#: Values that are looked at together.
_PIECE: Final = 1 << 22


def as_examples(x: Any, what: str = "x") -> Array | Pixels | Sequences:
    """The examples of x, one a row: an array (N, ...) of numbers, `Pixels` or `Sequences`.

    Raises DataError for what holds no numbers, ShapeError for an array that has no rows.
    """
    if isinstance(x, Pixels | Sequences):
        return x
    if isinstance(x, Ragged):
        return Sequences.of([row[:length] for row, length in zip(*x, strict=True)])
    x = _listed(x)
    if _is_ragged(x):
        return Sequences.of([as_array(each, f"{what}[{i}]") for i, each in enumerate(x)])
    columns = getattr(x, "columns", None)
    array = as_array(x, what, () if columns is None else list(columns))
    if array.ndim < 2 and array.dtype.kind != "O":
        raise ShapeError(
            f"{what} has shape {array.shape}; allowed: (N, ...), one example a row, such as "
            f"{what}.reshape(-1, 1) for one feature"
        )
    return array


def as_array(value: Any, what: str, columns: Sequence[Any] = ()) -> Array:
    """An array of numbers. Raises DataError for anything else, naming the column of a table."""
    given = value.to_numpy() if hasattr(value, "to_numpy") else value
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.dtype.kind == "O" and array.size:
        array = _without_objects(array)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{what}{_culprit(array, columns)}; expected numbers{_way(array, columns)}")
    return array


def as_targets(y: Any, what: str = "y") -> tuple[Array, tuple[str, ...] | None]:
    """Targets as an array, (N,) for one each, and the names of the classes where y holds names.

    Names are numbered in their order; floats stay, other numbers become int64.
    Raises DataError for targets that are neither numbers nor names.
    """
    given = y.to_numpy() if hasattr(y, "to_numpy") else y
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        raise DataError(f"{what} is {shown(y)}; expected an array of targets") from None
    if array.dtype.kind == "O" and array.size:
        texts = all(isinstance(each, str) for each in array.ravel())
        array = array.astype(str) if texts else _without_objects(array)
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind != "f":
        array = array[:, 0]
    if array.dtype.kind in "US":
        names, numbers = np.unique(array, return_inverse=True)
        return numbers.reshape(array.shape).astype(np.int64), tuple(map(str, names.tolist()))
    if array.dtype.kind in "iub":
        return array.astype(np.int64), None
    if array.dtype.kind != "f" or array.ndim == 0:
        raise DataError(f"{what} has values of {array.dtype}; expected numbers or names of classes")
    return array, None


def encoded(y: Any, known: Sequence[str], what: str = "y") -> Array:
    """Targets as indices of the classes `known`; those that are indices stay.

    Raises DataError for a class that is not among them.
    """
    targets, names = as_targets(y, what)
    if names is None:
        return targets
    index = {name: i for i, name in enumerate(known)}
    for i, name in enumerate(names):
        if name not in index:
            row = int(np.argwhere(targets == i)[0][0])
            raise DataError(
                f"{what} has the class {quoted(name)} in row {row}; expected {listed(known)}"
            )
    return np.array([index[name] for name in names])[targets]


def as_tags(
    y: Any, known: Sequence[str] | None, padding: int
) -> tuple[Sequences, tuple[str, ...] | None]:
    """Tags of sequences of different lengths, one for each step, and the names of the classes.

    known: the classes, if they are known. Raises DataError as `as_targets` and `encoded` do.
    """
    if isinstance(y, Sequences):
        return Sequences(y.values, y.lengths, padding), None
    lengths = [len(each) for each in y]
    whole = np.concatenate([np.asarray(each) for each in y]) if len(lengths) else np.zeros(0, int)
    if known is not None:
        return Sequences(encoded(whole, known), lengths, padding), tuple(known)
    tags, names = as_targets(whole)
    if tags.dtype.kind == "f":
        raise DataError("y holds floats for the steps of sequences; expected classes")
    return Sequences(tags, lengths, padding), names


def check_finite(x: Any, what: str, columns: Sequence[str] = ()) -> None:
    """Raise DataError naming the row, and the column of a table, of a value that is not finite.

    columns: their names, where they have some.
    """
    values = x.values if isinstance(x, Pixels | Sequences) else np.asarray(x)
    if values.dtype.kind != "f":
        return
    rows = max(1, _PIECE // max(1, values[:1].size))
    for first in range(0, len(values), rows):
        finite = np.isfinite(values[first : first + rows])
        if not finite.all():
            at = tuple(int(i) for i in np.argwhere(~finite)[0])
            found = values[first : first + rows][at]
            row = at[0] + first
            if isinstance(x, Sequences):
                row = int(np.searchsorted(np.cumsum(x.lengths), row, side="right"))
            name = quoted(columns[at[1]]) if columns and len(at) == 2 else at[-1]
            column = f", column {name}" if len(at) == 2 else ""
            raise DataError(f"{what} has {found} in row {row}{column}; expected finite numbers")


def warn_of_channels_last(shape: Sequence[int], what: str) -> None:
    """Warn where images (C, H, W) seem to be (H, W, C)."""
    if len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) > 4:
        warnings.warn(
            f"{what} has examples of shape {tuple(shape)}, which is read as {shape[0]} channels; "
            f"of images with the channels last, write {what}.transpose(0, 3, 1, 2)",
            HandgradWarning,
            stacklevel=3,
        )


def _listed(x: Any) -> Any:
    """A list of arrays for an array of objects or a list that holds arrays or frames; else x."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "O" and x.ndim == 1:
        x = list(x)
    if isinstance(x, list | tuple) and any(hasattr(each, "to_numpy") for each in x):
        return [each.to_numpy() if hasattr(each, "to_numpy") else each for each in x]
    return x


def _is_ragged(x: Any) -> bool:
    """Return whether x is a list of sequences that differ in length."""
    if not isinstance(x, list | tuple) or not x:
        return False
    if not all(isinstance(each, np.ndarray | list) for each in x):
        return False
    return len({len(each) for each in x}) > 1


def _without_objects(array: Array) -> Array:
    """Numbers that stood in an array of objects as an array of floats; else as it was."""
    if all(isinstance(each, int | float | np.number) for each in array.ravel()):
        return array.astype(np.float64)
    return array


def _culprit(array: Array, columns: Sequence[Any]) -> str:
    """The column, or the value, that holds no number."""
    for column, (row, each) in _others(array).items():
        name = quoted(columns[column]) if len(columns) else column
        return f": column {name} has {shown(each)} in row {row}"
    return f" has values of {array.dtype}" if array.size else " holds no numbers"


def _way(array: Array, columns: Sequence[Any]) -> str:
    """The end of a sentence on a frame, which says how to leave such columns out."""
    names = [quoted(columns[column]) for column in _others(array)] if len(columns) else []
    if not names:
        return ""
    several = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"; to leave out what holds others: frame.drop(columns=[{several}])"


def _others(array: Array) -> dict[int, tuple[int, Any]]:
    """The columns that hold more than numbers, each with the first such row and value."""
    found: dict[int, tuple[int, Any]] = {}
    if array.dtype.kind == "O" and array.ndim == 2:
        for column, values in enumerate(array.T):
            for row, each in enumerate(values):
                if not isinstance(each, int | float | np.number):
                    found[column] = (row, each)
                    break
    return found
