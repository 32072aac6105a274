"""One buffer for all parameters (or all gradients, or one optimizer slot), seen as named arrays.

A sweep over `buffer` touches every value once, in one loop; the layers see only their own views.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import Array
from handgrad.dispatch.signature import as_array, shown
from handgrad.errors import ArgumentError, ShapeError

#: Names with shapes, in the order of the buffer.
Layout: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]

#: Buffers start on a cache line, so that the fused sweeps load whole lines.
_ALIGNMENT: Final = 64


def _aligned_zeros(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    raw = np.zeros(size * dtype.itemsize + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size * dtype.itemsize].view(dtype)


class FlatArrays(Mapping[str, NDArray[Any]]):
    """Named arrays that are views of one contiguous `buffer`, in the order of `layout`.

    The mapping itself is fixed: write into an array, `flat["0.weight"][...] = w`.
    """

    __slots__ = ("_children", "_views", "buffer", "layout")

    def __init__(self, layout: Layout, buffer: NDArray[Any]) -> None:
        self.layout = layout
        self.buffer = buffer
        self._views: dict[str, NDArray[Any]] = {}
        self._children: dict[str, FlatArrays] = {}
        start = 0
        for name, shape in layout:
            end = start + math.prod(shape)
            self._views[name] = buffer[start:end].reshape(shape)
            start = end

    @classmethod
    def zeros(cls, shapes: Mapping[str, tuple[int, ...]], dtype: Any = np.float32) -> FlatArrays:
        """A new buffer of zeros for arrays of these names and shapes."""
        layout = tuple((name, tuple(shape)) for name, shape in shapes.items())
        size = sum(math.prod(shape) for _, shape in layout)
        return cls(layout, _aligned_zeros(size, np.dtype(dtype)))

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> FlatArrays:
        """A new buffer with a copy of these arrays. Raises ArgumentError for several dtypes."""
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
        check_same_arrays("flat arrays", self, arrays)
        for name, view in self._views.items():
            view[...] = arrays[name]

    def child(self, prefix: str) -> FlatArrays:
        """The arrays named `prefix.…`, without the prefix: a part of the same buffer, made once."""
        known = self._children.get(prefix)
        if known is None:
            known = self._children[prefix] = self._make_child(prefix)
        return known

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
        return FlatArrays(layout, self.buffer[start : start + size])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"FlatArrays({len(self)} arrays, {self.buffer.size} values, {self.buffer.dtype})"


def check_numbers(what: str, array: Any) -> None:
    """Raise ArgumentError unless it is an array of real numbers."""
    found = as_array(array)
    if found is None or (isinstance(found, np.ndarray) and found.dtype.kind not in "fiub"):
        raise ArgumentError(f"{what} is {shown(array)}; allowed: an array of numbers")


def check_same_arrays(what: str, known: Mapping[str, Array], given: Mapping[str, Array]) -> None:
    """Raise an error naming the first key of `given` that is missing, unknown or mis-shaped."""
    for name in known:
        if name not in given:
            raise ArgumentError(f"{what}: {name!r} is missing; allowed: all of {', '.join(known)}")
    for name, array in given.items():
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise ArgumentError(f"{what}: {name!r} is unknown; allowed: {allowed}")
        check_numbers(f"{what}: {name!r}", array)
        if tuple(array.shape) != tuple(known[name].shape):
            raise ShapeError(
                f"{what}: {name!r} has shape {tuple(array.shape)}; "
                f"allowed: {tuple(known[name].shape)}"
            )
