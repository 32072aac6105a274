"""Values of an image between its places: `grid_sample`, and the grids of affine maps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import torch_function, xp


@torch_function("grid_sample")
def grid_sample(
    x: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Any:
    """x (N, C, sizes) at the places of a grid (N, places, axes) between -1 and 1, the last axis of
    x first.
    """
    if mode not in ("bilinear", "nearest"):
        refuse(f"grid_sample as {mode!r} is not known; write mode='bilinear'")
    axes = x.ndim - 2
    sizes = x.shape[2:]
    places = [
        _place(grid[..., axes - 1 - k], size, padding_mode, bool(align_corners))
        for k, size in enumerate(sizes)
    ]
    taps = [
        list(_taps(place, size, mode, padding_mode))
        for place, size in zip(places, sizes, strict=True)
    ]
    batch = xp.reshape(xp.arange(x.shape[0]), (-1, *(1,) * (grid.ndim - 2)))
    values = xp.moveaxis(x, 1, -1)
    total: Any = 0
    for corner in itertools.product(*taps):
        weight: Any = None
        for _, each in corner:
            if each is not None:
                weight = each if weight is None else weight * each
        found = values[(batch, *(place for place, _ in corner))]
        total = total + (found if weight is None else found * weight[..., None])
    return xp.moveaxis(total, -1, 1)


def _place(at: Any, size: Any, padding: str, corners: bool) -> Any:
    """A coordinate between -1 and 1 as a place along an axis, put into it by the padding."""
    place = (at + 1) / 2 * (size - 1) if corners else ((at + 1) * size - 1) / 2
    if padding == "reflection":
        low = 0.0 if corners else -0.5
        span = size - 1 if corners else size
        away = xp.abs(place - low)
        turns = xp.floor(away / span)
        rest = away - turns * span
        place = xp.where(turns % 2 == 0, rest, span - rest) + low
    if padding != "zeros":
        place = xp.minimum(xp.maximum(place, 0), size - 1)
    return place


def _taps(place: Any, size: Any, mode: str, padding: str) -> Iterator[tuple[Any, Any]]:
    """Neighbours along an axis and their weights; None is 1. Outside of the axis it is 0."""
    if mode == "nearest":
        neighbours: list[tuple[Any, Any]] = [(xp.round(place), None)]
    else:
        first = xp.floor(place)
        beyond = place - first
        neighbours = [(first, 1 - beyond), (first + 1, beyond)]
    for at, weight in neighbours:
        index = xp.minimum(xp.maximum(at.astype(int), 0), size - 1)
        if padding == "zeros":
            inside = xp.logical_and(at >= 0, at <= size - 1)
            weight = xp.where(inside, 1.0 if weight is None else weight, 0.0)
        yield index, weight


@torch_function("affine_grid")
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    """The places that affine maps (N, axes, axes + 1) send a grid of a size (N, C, sizes) to."""
    sizes = tuple(size)[2:]
    lines = []
    for n in sizes:
        at = xp.arange(n)
        lines.append(2 * at / (n - 1) - 1 if align_corners else (2 * at + 1) / n - 1)
    parts = xp.meshgrid(*lines, indexing="ij")
    base = xp.stack([*parts[::-1], xp.ones(sizes)], axis=-1)
    return xp.einsum("...k,nak->n...a", base, theta)
