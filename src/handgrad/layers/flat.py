"""One buffer for all parameters (or all gradients, or one optimizer slot), seen as named arrays.

A sweep over `buffer` touches every value once, in one loop; the layers see only their own views.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.escaping import listed

#: Names with shapes, in the order of the buffer.
Layout: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]

#: Buffers start on a cache line, so that the fused sweeps load whole lines.
_ALIGNMENT: Final = 64


def _aligned_zeros(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    raw = np.zeros(size * dtype.itemsize + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size * dtype.itemsize].view(dtype)


class NamedArrays(dict[str, Array]):
    """Arrays of a layer by name. Names are fixed: setting an item writes into the array there.

    Raises ArgumentError or ShapeError as `Layer.update_parameters` does.
    """

    def __setitem__(self, name: str, values: Array) -> None:
        write_one(self, name, values)

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"{shown(name)} is unknown; allowed: {listed(self)}")

    def __call__(self) -> NoReturn:
        raise ArgumentError("parameters: a call is given; allowed: model.parameters, a dictionary")

    def update(self, *mappings: Any, **named: Array) -> None:
        """Write into several arrays, one after another."""
        for name, values in dict(*mappings, **named).items():
            self[name] = values

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FlatArrays(Mapping[str, NDArray[Any]]):
    """Named arrays that are views of one contiguous `buffer`, in the order of `layout`.

    The names are fixed: `flat["0.weight"] = w` writes into the array that is there.
    """

    __slots__ = ("_children", "_first", "_on_child", "_views", "buffer", "layout")

    def __init__(self, layout: Layout, buffer: NDArray[Any]) -> None:
        self.layout = layout
        self.buffer = buffer
        self._views: dict[str, NDArray[Any]] = {}
        self._children: dict[str, FlatArrays] = {}
        self._first = 0
        self._on_child: Callable[[int, int], None] | None = None
        start = 0
        for name, shape in layout:
            end = start + math.prod(shape)
            self._views[name] = buffer[start:end].reshape(shape)
            start = end

    @classmethod
    def zeros(
        cls, shapes: Mapping[str, tuple[int, ...]], dtype: DTypeLike = np.float32
    ) -> FlatArrays:
        """A new buffer of zeros for arrays of these names and shapes."""
        layout = tuple((name, tuple(shape)) for name, shape in shapes.items())
        size = sum(math.prod(shape) for _, shape in layout)
        return cls(layout, _aligned_zeros(size, np.dtype(dtype)))

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> FlatArrays:
        """A new buffer with a copy of these arrays. Raises ArgumentError for several dtypes."""
        arrays = {name: numbers("flat arrays", name, array) for name, array in arrays.items()}
        dtypes = sorted({str(array.dtype) for array in arrays.values()})
        if len(dtypes) > 1:
            raise ArgumentError(f"flat arrays: dtypes are {', '.join(dtypes)}; allowed: one dtype")
        shapes = {name: array.shape for name, array in arrays.items()}
        flat = cls.zeros(shapes, dtypes[0] if dtypes else np.float32)
        flat.copy_from(arrays)
        return flat

    def zeros_like(self) -> FlatArrays:
        """A new buffer of zeros with the same layout and dtype."""
        return FlatArrays(self.layout, _aligned_zeros(self.buffer.size, self.buffer.dtype))

    def filled_from(self, arrays: Mapping[str, Array]) -> FlatArrays:
        """A new buffer with the same layout and dtype that holds a copy of these arrays."""
        flat = self.zeros_like()
        flat.copy_from(arrays)
        return flat

    def copy_from(self, arrays: Mapping[str, Array]) -> None:
        """Write these arrays, of exactly the same names and shapes, into the buffer."""
        written_into(self, arrays, "flat arrays")

    def child(self, prefix: str) -> FlatArrays:
        """The arrays named `prefix.…`, without the prefix: a part of the same buffer, made once."""
        known = self._children.get(prefix)
        if known is None:
            known = self._children[prefix] = self._make_child(prefix)
        if self._on_child is not None:
            self._on_child(known._first, known._first + known.buffer.size)
        return known

    def watch(self, on_child: Callable[[int, int], None]) -> None:
        """Call `on_child(first, last)` whenever a child is asked for, and one of a child.

        The numbers are where its values begin in this buffer, and end. A container asks for what a
        layer is to write just before it calls the layer's backward, so that this tells how far a
        backward pass has come.
        """
        self._on_child = on_child
        for child in self._children.values():
            child.watch(on_child)

    def _make_child(self, prefix: str) -> FlatArrays:
        inside = [name.startswith(prefix + ".") for name, _ in self.layout]
        first = inside.index(True) if True in inside else 0
        count = sum(inside)
        if not all(inside[first : first + count]):
            raise ArgumentError(
                f"flat arrays: the arrays of {prefix!r} are apart; allowed: one after another"
            )
        start = sum(math.prod(shape) for _, shape in self.layout[:first])
        layout = tuple(
            (name.removeprefix(prefix + "."), shape)
            for name, shape in self.layout[first : first + count]
        )
        size = sum(math.prod(shape) for _, shape in layout)
        child = FlatArrays(layout, self.buffer[start : start + size])
        child._first, child._on_child = self._first + start, self._on_child
        return child

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._views[name]

    def __setitem__(self, name: str, values: Array) -> None:
        write_one(self, name, values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"FlatArrays({len(self)} arrays, {self.buffer.size} values, {self.buffer.dtype})"


def numbers(what: str, name: str, value: Any) -> NDArray[Any]:
    """A value as an array of real numbers. Raises ArgumentError for anything else."""
    masked = isinstance(value, np.ma.MaskedArray)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        array = None
    if array is None or masked or array.dtype.kind not in "fiu":
        of = "" if array is None or masked else f" of {array.dtype}"
        raise ArgumentError(
            f"{what}: {name!r} is a {type(value).__name__}{of}; "
            f"allowed: an array of floats or integers"
        )
    return array


def written_into(known: Mapping[str, Array], given: Mapping[str, Array], what: str) -> None:
    """Write arrays of exactly the same names and shapes into those that are there; all or none.

    Raises ArgumentError also for a finite number that is too large for the type it is put into.
    """
    converted: dict[str, NDArray[Any]] = {}
    check_same_arrays(what, known, given)
    for name, target in known.items():
        values = numbers(what, name, given[name])
        with np.errstate(over="ignore"):
            fitting = values.astype(target.dtype, copy=False)
        if fitting is not values and np.any(np.isinf(fitting) & np.isfinite(values)):
            raise ArgumentError(
                f"{what}: {name!r} has a value of {np.abs(values[np.isfinite(values)]).max():.3g}; "
                f"allowed: what {target.dtype} can hold"
            )
        shared = any(np.may_share_memory(fitting, other) for other in known.values())
        converted[name] = fitting.copy() if shared else fitting
    for name, target in known.items():
        target[...] = converted[name]


def write_one(known: Mapping[str, Array], name: str, values: Array) -> None:
    """Write into the array of this name. Raises ArgumentError where there is none."""
    if name not in known:
        raise ArgumentError(f"parameters: {shown(name)} is unknown; allowed: {listed(known)}")
    written_into({name: known[name]}, {name: values}, "parameters")


def check_same_arrays(what: str, known: Mapping[str, Array], given: Mapping[str, Array]) -> None:
    """Raise an error naming the first key of `given` that is missing, unknown or mis-shaped."""
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{what}: a {type(given).__name__} is given; allowed: a mapping of names to arrays"
        )
    for name in known:
        if name not in given:
            raise ArgumentError(
                f"{what}: {shown(name)} is missing; allowed: all of {listed(known)}"
            )
    for name, array in given.items():
        if name not in known:
            raise ArgumentError(f"{what}: {shown(name)} is unknown; allowed: {listed(known)}")
        shape = tuple(numbers(what, name, array).shape)
        if shape != tuple(known[name].shape):
            raise ShapeError(
                f"{what}: {shown(name)} has shape {shape}; allowed: {tuple(known[name].shape)}"
            )
