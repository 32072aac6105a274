"""A data set: arrays for training and testing, and the names of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from handgrad.arrays import Array, DType, Index
from handgrad.data.encoding import TableEncoding
from handgrad.data.ragged import Sequences
from handgrad.elsewhere import OF_DATASETS
from handgrad.errors import ArgumentError, DataError
from handgrad.printing import html
from handgrad.suggestions import NoAttributeError, raise_own_error

if TYPE_CHECKING:
    from jaxtyping import Int

#: The part of a data set that becomes its test part where it does not come divided.
TEST_FRACTION: Final = 0.2
#: The parts of a data set; the last one may be absent.
PARTS: Final = ("train", "test", "validation")

#: What Pixels have only as an array.
_OF_ARRAYS: Final = {
    name: f"x[:].{name}, because x[:] is an array"
    for name in dir(np.ndarray)
    if not name.startswith("_")
}


class Pixels:
    """Images, or other numbers, in the type they came in; indexing gives float32 batches.

    A float32 copy of a whole image set takes four times the memory and is never needed at once.
    `maximum` is the number that becomes 1.
    `pixels[index]` with any NumPy index returns `values[index] / maximum` as a new float32 array;
    `np.asarray(pixels)` is the whole set.
    """

    def __init__(self, values: Array, maximum: float = 255.0) -> None:
        self.values = values
        self.maximum = maximum

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        return len(self.values.shape)

    @property
    def dtype(self) -> DType:
        return np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Index) -> Array:
        values: Any = self.values
        return np.divide(values[index], np.float32(self.maximum), dtype=np.float32)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise_own_error(self, name)
            raise NoAttributeError(self, name, _OF_ARRAYS)

    def _refuse(self, other: Any) -> NoReturn:
        raise ArgumentError(
            f"data: arithmetic with {self!r}; allowed: indexing, which gives arrays; write x[:]"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse

    def __repr__(self) -> str:
        values = self.values
        return f"<Pixels {self.shape} of {values.dtype}, of which {self.maximum:g} becomes 1>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the float32 values of Pixels are always a copy")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)


@dataclass(frozen=True, repr=False)
class Dataset:
    """A data set divided into training and test part, and where wanted a validation part.

    x_*: float32 arrays or `Pixels`, (N, C, H, W) for images and (N, D) for tables, or `Sequences`
    (N, T, C), of which the parts may differ in T.
    y_*: int64 class indices (N,), or numbers to predict in float32. classes: the name of each
    class, by index; none where y holds numbers. columns: the names of a table's columns, if known;
    target: that of the column that became y; note: a remark on how they were read.
    drawn: the test part was drawn by a seed, and not given as one. encoding: the plan by which the
    cells of these columns became x, for a table that holds more than numbers. origins: for each
    part, if known, where its examples come from: the row of a table, its header being the first,
    or the name of a file.
    """

    name: str
    x_train: Array | Pixels | Sequences
    y_train: Int[Array, "N"]
    x_test: Array | Pixels | Sequences
    y_test: Int[Array, "M"]
    classes: tuple[str, ...]
    x_validation: Array | Pixels | Sequences | None = None
    y_validation: Int[Array, "K"] | None = None
    columns: tuple[str, ...] = ()
    target: str = ""
    note: str = ""
    drawn: bool = False
    encoding: TableEncoding | None = None
    origins: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in PARTS:
            x, y = getattr(self, f"x_{part}"), getattr(self, f"y_{part}")
            if x is None:
                continue
            if len(x) != len(y):
                raise DataError(
                    f"{self.name}: the {part} part has {len(x)} examples and {len(y)} labels; "
                    "expected one label for each example"
                )
            if len(x) == 0:
                raise DataError(f"{self.name}: the {part} part is empty; expected examples")
            # Sequences may have any number of steps.
            fixed = 2 if isinstance(x, Sequences) else 1
            if tuple(x.shape[fixed:]) != tuple(self.x_train.shape[fixed:]):
                raise DataError(
                    f"{self.name}: {part} examples have shape {tuple(x.shape[1:])}; "
                    f"expected {tuple(self.x_train.shape[1:])}, as in the training part"
                )
            if y.dtype.kind != "f" and (y.min() < 0 or y.max() >= len(self.classes)):
                wrong = int(y.min() if y.min() < 0 else y.max())
                raise DataError(
                    f"{self.name}: the {part} part has label {wrong}; "
                    f"expected 0 to {len(self.classes) - 1}"
                )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise_own_error(self, name)
            raise NoAttributeError(self, name, OF_DATASETS)

    def __getitem__(self, index: object) -> NoReturn:
        """Refuse what loops and unpacking ask for: a data set has parts."""
        raise ArgumentError(
            f"data: {self.name} is given an index or unpacked; allowed: x_train, y_train, x_test "
            "and y_test; write x, y = data.x_train[:], data.y_train"
        )

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {self._parts()}, {self._classes()}>"

    def _repr_html_(self) -> str:
        from rich.table import Table

        table = Table(title=f"{self.name}: {self._classes()}", title_justify="left")
        for column in ("part", "examples", "shape of one", "x"):
            table.add_column(column)
        for part in PARTS:
            x = getattr(self, f"x_{part}")
            if x is not None:
                table.add_row(part, f"{len(x):,}", str(tuple(x.shape[1:])), type(x).__name__)
        return html(table)

    def _parts(self) -> str:
        parts = ((part, getattr(self, f"x_{part}")) for part in PARTS)
        counts = ", ".join(f"{len(x):,} for {part}" for part, x in parts if x is not None)
        return f"{counts} of shape {self.input_shape}"

    def _classes(self) -> str:
        shown = ", ".join(self.classes[:10])
        return f"{len(self.classes)} classes ({shown}{', ...' if len(self.classes) > 10 else ''})"

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one example: (C, H, W), (D,), or (T, C) with the longest T for training."""
        return tuple(self.x_train.shape[1:])


def stratified_split(
    labels: Int[Array, "N"], fraction: float, seed: int
) -> tuple[Int[Array, "A"], Int[Array, "B"]]:
    """Indices of the larger and of the smaller part, each class divided in the same proportion.

    The smaller part gets round(fraction · n) of a class of n examples, drawn by `seed`, and at
    least one where the class has two. Both index arrays are in the order of the data.
    Raises ArgumentError unless 0 < fraction < 1.
    """
    if not 0 < fraction < 1:
        raise ArgumentError(f"stratified_split: fraction is {fraction}; allowed: between 0 and 1")
    rng = np.random.default_rng(seed)
    taken = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        count = round(fraction * len(members))
        taken[members[: min(max(count, 1), len(members) - 1)]] = True
    return np.flatnonzero(~taken), np.flatnonzero(taken)


def split_indices(
    targets: Any, fraction: float, seed: int
) -> tuple[Int[Array, "A"], Int[Array, "B"]]:
    """The same for targets of any kind: stratified where they are classes (N,), else by chance."""
    if isinstance(targets, np.ndarray) and targets.ndim == 1 and targets.dtype.kind in "iu":
        return stratified_split(targets, fraction, seed)
    order = np.random.default_rng(seed).permutation(len(targets))
    held = round(fraction * len(targets))
    return np.sort(order[held:]), np.sort(order[:held])


def split_dataset(
    name: str, x: Array | Pixels, y: Int[Array, "N"], classes: Sequence[str], seed: int
) -> Dataset:
    """A data set that does not come divided: stratified, `TEST_FRACTION` of it for testing.

    Raises DataError unless each example has one label.
    """
    if len(x) != len(y):
        raise DataError(
            f"{name}: there are {len(x)} examples and {len(y)} labels; "
            "expected one label for each example"
        )
    train, test = stratified_split(y, TEST_FRACTION, seed)
    return Dataset(
        name, take(x, train), y[train], take(x, test), y[test], tuple(classes), drawn=True
    )


def whole(data: Dataset) -> Dataset:
    """The data set with all examples in its test part, for a model that learned none of them."""
    parts = [part for part in PARTS if getattr(data, f"x_{part}") is not None]
    x = [getattr(data, f"x_{part}") for part in parts]
    y = np.concatenate([getattr(data, f"y_{part}") for part in parts])
    origins = {}
    if data.origins:
        origins["test"] = np.concatenate([data.origins[part] for part in parts])
    return replace(data, x_test=_joined(x), y_test=y, origins=origins)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], Pixels):
        return Pixels(np.concatenate([part.values for part in parts]), parts[0].maximum)
    return np.concatenate(parts)


def take(
    x: Array | Pixels | Sequences, index: Int[Array, "A"] | list[int]
) -> Array | Pixels | Sequences:
    """The examples at `index`, kept in the form they are in."""
    if isinstance(x, Pixels):
        return Pixels(x.values[index], x.maximum)
    if isinstance(x, Sequences):
        return x.take(index)
    return x[index]


def with_validation(data: Dataset, fraction: float, seed: int) -> Dataset:
    """The data set with a stratified `fraction` of its training part set aside for validation.

    Nothing is set aside of so few examples that it would be none of them, or all.
    """
    train, validation = split_indices(data.y_train, fraction, seed)
    if not len(train) or not len(validation):
        return data
    origins = dict(data.origins)
    if origins:
        own = origins["train"]
        origins |= {"train": own[train], "validation": own[validation]}
    return replace(
        data,
        origins=origins,
        x_train=take(data.x_train, train),
        y_train=data.y_train[train],
        x_validation=take(data.x_train, validation),
        y_validation=data.y_train[validation],
    )
