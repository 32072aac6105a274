"""Elements chosen by masks and by places."""

from __future__ import annotations

import math
from typing import Any, Final

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import (
    along,
    axis_from_0,
    held,
    is_exactly,
    times,
    torch_function,
    torch_refused,
    xp,
)
from handgrad.program.tracer import Tracer


@torch_function()
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return xp.nonzero(condition) if x is None else xp.where(condition, x, y)


@torch_function()
def nonzero(x: Any, *, as_tuple: bool = False) -> Any:
    """The places, one in a row; as NumPy has them with as_tuple."""
    found = xp.nonzero(x)
    return found if as_tuple else xp.stack(found, axis=-1)


@torch_function()
def argwhere(x: Any) -> Any:
    return nonzero(x)


@torch_function()
def unique(
    x: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Any = None,
) -> Any:
    if dim is not None:
        refuse("unique along dim is not known; write it of one number for each row")
    return xp.unique(x, return_inverse=return_inverse, return_counts=return_counts)


@torch_function()
def equal(x: Any, other: Any) -> bool:
    return bool(xp.all(x == other))


@torch_function()
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return xp.where(mask, value, x)


@torch_function()
def masked_select(x: Any, mask: Any) -> Any:
    return x[mask]


@torch_function("gather", "take_along_dim")
def gather(x: Any, dim: int, index: Any, **_: Any) -> Any:
    """Elements at places along an axis; of the other axes the first ones, as many as places."""
    dim = axis_from_0(x, dim)
    for axis in range(x.ndim):
        if axis != dim and x.node.shape[axis] != index.node.shape[axis]:
            x = along(x, axis, slice(0, index.shape[axis]))
    return xp.take_along_axis(x, index, axis=dim)


@torch_function()
def index_select(x: Any, dim: int, index: Any) -> Any:
    return xp.take(x, index, axis=dim)


@torch_function()
def take(x: Any, index: Any) -> Any:
    return xp.take(x, index)


def _places(index: Any, dim: int) -> tuple[Any, ...]:
    """The key of the elements that `index` names along an axis."""
    dim = axis_from_0(index, dim)
    found = []
    for axis, size in enumerate(index.shape):
        counted = xp.reshape(
            xp.arange(size), tuple(size if k == axis else 1 for k in range(index.ndim))
        )
        found.append(index if axis == dim else counted)
    return tuple(found)


def _of_places(source: Any, index: Any) -> Any:
    """As much of a source as there are places."""
    if type(source) is Tracer and source.node.shape not in ((), index.node.shape):
        return source[tuple(slice(0, size) for size in index.shape)]
    return source


@torch_function()
def scatter(
    x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    source = value if src is None else src
    if reduce == "add":
        return scatter_add(x, dim, index, source)
    if reduce is not None:
        refuse(f"scatter with reduce={reduce!r} is not known; write scatter_reduce")
    made = x.copy()
    made.assign_at("store", _places(index, dim), _of_places(source, index))
    return made


#: What elements are before values are put to them.
_BEFORE: Final = {"sum": 0.0, "mean": 0.0, "amax": -math.inf, "amin": math.inf}
_PUT: Final = {"amax": "maximum_at", "amin": "minimum_at"}


@torch_function()
def scatter_reduce(
    x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Sums, means or extremes, which equal elements share, of the values at each place."""
    if reduce not in _BEFORE:
        refuse(f"scatter_reduce with {reduce!r} is not known; sum, mean, amax and amin are")
    key, values = _places(index, dim), _of_places(src, index)
    made = x.copy()
    if not include_self:
        made.assign_at("store", key, _BEFORE[reduce])
    made.assign_at(_PUT.get(reduce, "add_at"), key, values)
    if reduce == "mean":
        count = xp.ones_like(x) if include_self else xp.zeros_like(x)
        count.assign_at("add_at", key, 1.0)
        made = made / xp.maximum(held(count), 1.0)
    return made


@torch_function()
def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    made = x.copy()
    made.assign_at("add_at", _places(index, dim), _of_places(src, index))
    return made


@torch_function()
def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    made = x.copy()
    key = (*(slice(None),) * axis_from_0(x, dim), index)
    made.assign_at("add_at", key, times(alpha, source))
    return made


@torch_function()
def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    made = x.copy()
    made.assign_at("add_at" if accumulate else "store", tuple(indices), values)
    return made


@torch_function()
def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    made = x.copy()
    made.assign_at("store", (*(slice(None),) * axis_from_0(x, dim), index), source)
    return made


@torch_function()
def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    return index_copy(x, dim, index, value)


@torch_function()
def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """The elements of a source in their order, where a mask holds."""
    mask = xp.broadcast_to(mask, x.shape)
    order = xp.cumsum(xp.ravel(mask).astype(int), axis=0) - 1
    found = xp.ravel(source)[xp.maximum(order, 0)]
    return xp.where(mask, xp.reshape(found, x.shape), x)


@torch_function()
def select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    return index_copy(x, dim, index, src)


@torch_function()
def slice_scatter(
    x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return index_copy(x, dim, slice(start, end, step), src)


@torch_function()
def searchsorted(
    sorted_sequence: Any, x: Any, *, right: bool = False, side: Any = None, out_int32: bool = False
) -> Any:
    return xp.searchsorted(sorted_sequence, x, side=side or ("right" if right else "left"))


@torch_function()
def bucketize(x: Any, boundaries: Any, *, right: bool = False, out_int32: bool = False) -> Any:
    return searchsorted(boundaries, x, right=right)


@torch_function()
def isin(elements: Any, test_elements: Any) -> Any:
    return xp.any(elements[..., None] == xp.ravel(test_elements), axis=-1)


@torch_function("embedding")
def embedding(
    index: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Rows of a table; that of padding_idx has the gradient 0."""
    if max_norm is not None or scale_grad_by_freq:
        refuse("embedding with max_norm or scale_grad_by_freq is not known; write weight[index]")
    rows = weight[index]
    if padding_idx is None:
        return rows
    padding = padding_idx if padding_idx >= 0 else weight.shape[0] + padding_idx
    return xp.where((index == padding)[..., None], held(rows), rows)


@torch_function()
def embedding_bag(
    index: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    if offsets is not None or mode not in ("mean", "sum") or padding_idx is not None:
        refuse("embedding_bag is known as the mean or sum of rows of as many; write embedding")
    rows = embedding(index, weight, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    return xp.mean(rows, axis=-2) if mode == "mean" else xp.sum(rows, axis=-2)


@torch_function()
def one_hot(index: Any, num_classes: Any = -1) -> Any:
    if is_exactly(num_classes, -1):
        refuse("one_hot without num_classes has as many as its values say; give num_classes")
    return (index[..., None] == xp.arange(num_classes)).astype(int)


torch_refused(
    "{name} is not known to derive; write scatter_add or scatter_reduce", "index_reduce", "put"
)
