"""Pad: values around every example, zeros or those of the example itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from array_api_compat import array_namespace, device

from handgrad.arrays import Array
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import Layer, Shape
from handgrad.layers.inputs import in_own_type
from handgrad.ops.arguments import check_size

MODES: Final = ("constant", "reflect", "replicate", "circular")


class Pad(Layer):
    """x with `padding` values before and after its last axes, by PyTorch's names and in its order.

    padding: before and after the last axis, then the one in front of it, and so on, as in
    (left, right, top, bottom).
    mode: "constant" adds `value`; "reflect" x in a mirror at its first and last value, which stay
    alone; "replicate" these values; "circular" those of the other end.

    Every axis is padded by itself, the last one first, and the cache is the shape of x. A gradient
    comes back to the place from which its value was copied.

    Raises ArgumentError for another mode, and for paddings that are no pairs of ints from 0;
    ShapeError for an x with fewer axes or too short for its mirror or copy, and a y larger than any
    memory.
    """

    def __init__(
        self, padding: Sequence[int], *, mode: str = "constant", value: float = 0.0
    ) -> None:
        if mode not in MODES:
            raise ArgumentError(f"Pad: mode is {shown(mode)}; allowed: {', '.join(MODES)}")
        pairs = isinstance(padding, tuple | list) and padding and len(padding) % 2 == 0
        if not pairs or not all(type(width) is int and width >= 0 for width in padding):
            raise ArgumentError(
                f"Pad: padding is {shown(padding)}; allowed: two ints from 0 for every axis, the "
                "last axis first"
            )
        self.padding = tuple(padding)
        self.mode = mode
        self.value = value

    @in_own_type
    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Shape]:
        self.output_shape(tuple(x.shape[1:]))
        y = x
        for axis, before, after in self._widths(x.ndim):
            y = self._padded(y, axis, before, after)
        return y, tuple(x.shape)

    def backward(
        self,
        dy: Array,
        cache: Shape,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Array | None, Mapping[str, Array]]:
        dx = dy if input_gradient else None
        if dx is not None:
            for axis, before, after in reversed(self._widths(len(cache))):
                dx = self._padded_backward(dx, axis, before, after)
        return dx, {} if gradients is None else gradients

    def _widths(self, dimensions: int) -> list[tuple[int, int, int]]:
        """The axes that are padded, with the numbers of values before and after."""
        pairs = zip(self.padding[::2], self.padding[1::2], strict=True)
        return [(dimensions - 1 - i, *pair) for i, pair in enumerate(pairs)]

    def _padded(self, x: Array, axis: int, before: int, after: int) -> Array:
        xp = array_namespace(x)
        if self.mode == "constant":
            ends = [
                xp.full(_resized(x, axis, width), self.value, dtype=x.dtype, device=device(x))
                for width in (before, after)
            ]
        else:
            ends = [self._copied(x, axis, before, True), self._copied(x, axis, after, False)]
        return xp.concat((ends[0], x, ends[1]), axis=axis)

    def _copied(self, x: Array, axis: int, width: int, is_first: bool) -> Array:
        """The values of x that stand before it, or after it."""
        xp, n = array_namespace(x), x.shape[axis]
        if self.mode == "replicate":
            end = _part(x, axis, 0 if is_first else n - 1, 1 if is_first else n)
            return xp.broadcast_to(end, _resized(x, axis, width))
        if self.mode == "circular":
            return _part(x, axis, n - width, n) if is_first else _part(x, axis, 0, width)
        start = 1 if is_first else n - 1 - width
        return xp.flip(_part(x, axis, start, start + width), axis=axis)

    def _padded_backward(self, dy: Array, axis: int, before: int, after: int) -> Array:
        n = dy.shape[axis] - before - after
        dx = _part(dy, axis, before, before + n)
        if self.mode == "constant":
            return dx
        left = _part(dy, axis, 0, before)
        right = _part(dy, axis, before + n, before + n + after)
        return (
            dx
            + self._copied_backward(left, axis, n, True)
            + self._copied_backward(right, axis, n, False)
        )

    def _copied_backward(self, dend: Array, axis: int, n: int, is_first: bool) -> Array:
        """dx of n values that `_copied` went through."""
        xp, width = array_namespace(dend), dend.shape[axis]
        if self.mode == "replicate":
            found, start = xp.sum(dend, axis=axis, keepdims=True), 0 if is_first else n - 1
        elif self.mode == "circular":
            found, start = dend, n - width if is_first else 0
        else:
            found, start = xp.flip(dend, axis=axis), 1 if is_first else n - 1 - width
        rest = n - start - found.shape[axis]
        zeros = [
            xp.zeros(_resized(dend, axis, size), dtype=dend.dtype, device=device(dend))
            for size in (start, rest)
        ]
        return xp.concat((zeros[0], found, zeros[1]), axis=axis)

    def output_shape(self, input_shape: Shape) -> Shape:
        if 2 * len(input_shape) < len(self.padding):
            raise ShapeError(
                f"Pad: an example has shape {input_shape}; allowed: {len(self.padding) // 2} axes "
                f"or more, because padding is {self.padding}"
            )
        sizes = list(input_shape)
        least = {"constant": 0, "replicate": 1}.get(self.mode)
        for axis, before, after in self._widths(len(sizes)):
            most = max(before, after)
            allowed = least if least is not None else most + (self.mode == "reflect")
            if sizes[axis] < allowed:
                raise ShapeError(
                    f"Pad: an example has shape {input_shape}; allowed: {allowed} values or more "
                    f"along axis {axis}, because mode is {self.mode!r} and padding {self.padding}"
                )
            sizes[axis] += before + after
        check_size("Pad", "an example of y", sizes)
        return tuple(sizes)

    def flops(self, input_shape: Shape) -> int:
        return 0


def _part(x: Array, axis: int, start: int, stop: int) -> Any:
    """The values from start to stop along an axis."""
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _resized(x: Array, axis: int, size: int) -> Shape:
    """The shape of x with another size along an axis."""
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])
