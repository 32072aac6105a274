"""Hypotheses on a gradient that is right at some elements and wrong at others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from handgrad.checking.hypotheses import Array, Draw, Explanation

#: The part of the largest value below which a difference quotient counts as 0.
_ZERO: Final = 1e-4


def of_elements(name: str, draws: tuple[Draw, ...]) -> Iterator[Iterator[Explanation]]:
    """Every hypothesis on elements that is worth trying on this gradient, by its kind."""
    if np.shape(draws[0].found[name]) == draws[0].right[name].shape:
        yield _confined(name, draws)
        yield _other_mask(name, draws[0])


def _other_mask(name: str, draw: Draw) -> Iterator[Explanation]:
    """dy times a number where one mask is on, and the right gradient where another one is."""
    dy, found, right = draw.dy, np.asarray(draw.found[name]), draw.right[name]
    if not isinstance(dy, np.ndarray) or dy.shape != right.shape or not dy.all():
        return
    passed, kept = right / dy, found / dy
    size = float(np.nanmax(np.abs(passed), initial=0.0))
    on, expected = np.abs(kept) > _ZERO * size, np.abs(passed) > _ZERO * size
    if size == 0.0 or not on.any() or (on == expected).all():
        return
    factor = float(np.mean(passed[expected]))
    phrase = (
        "is the cotangent through another mask than forward's: it is 0 at other elements than the "
        "derivative"
    )

    def predict(d: Draw) -> Any:
        through_forward_s = d.agrees(name, factor * d.dy * expected, with_found=False)
        return factor * d.dy * on if through_forward_s else None

    yield Explanation("other mask", "", phrase, 2.3, predict)


def _confined(name: str, draws: tuple[Draw, ...]) -> Iterator[Explanation]:
    """Right but for some rows, for elements that a mask leaves out, or for one sign of an input."""
    wrong = np.zeros(np.shape(draws[0].right[name]), dtype=bool)
    for draw in draws:
        right = draw.right[name]
        allowed = max(4.0 * draw.tolerances[name], 1e-9 * np.nanmax(np.abs(right), initial=0.0))
        wrong |= ~(np.abs(draw.found[name] - right) <= allowed) & ~np.isnan(right)
    if not wrong.any() or wrong.all():
        return

    def same(d: Draw) -> Any:
        return d.found[name]

    for text, kind, mask in _masks(draws[0], wrong.shape):
        # Elements that the mask leaves right must be many, or it explains nothing.
        if wrong.sum() >= 0.5 * mask.sum() and (~mask).sum() >= 2 and not (wrong & ~mask).any():
            yield Explanation(kind, text, f"is right except {text}", 2.2, same)
    for axis in range(wrong.ndim):
        rows = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        if len(rows) <= wrong.shape[axis] // 2:
            what = "row" if axis == 0 and wrong.ndim > 1 else "index"
            listed = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
            rows_named = f"on {what} {listed} of axis {axis}"
            yield Explanation(
                "some rows", rows_named, f"is right except {rows_named}", 2.5 + 0.1 * axis, same
            )


def _masks(draw: Draw, shape: tuple[int, ...]) -> Iterator[tuple[str, str, Array]]:
    """Conditions on the inputs, as masks of this shape: in text, with the kind of fault."""
    for other, array in (*draw.arrays.items(), ("y", draw.y)):
        if not isinstance(array, np.ndarray) or array.ndim > len(shape):
            continue
        for turn in range(len(shape) - array.ndim + 1):
            stretched = array.reshape(array.shape + (1,) * turn)
            try:
                values = np.broadcast_to(stretched, shape)
            except ValueError:
                continue
            if array.dtype.kind == "b":
                yield f"where {other} is false", "masked rows", ~values
                yield f"where {other} is true", "masked rows", values
            elif array.dtype.kind == "f":
                yield f"where {other} ≤ 0", "mask forgotten", values <= 0
                yield f"where {other} > 0", "mask forgotten", values > 0
                yield f"where {other} is −∞", "masked rows", np.isneginf(values)
            elif array.dtype.kind in "iu":
                yield f"where {other} is negative", "masked rows", values < 0
            break
