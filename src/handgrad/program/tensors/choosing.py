"""Elements chosen by masks and by places."""

from __future__ import annotations

from typing import Any

from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import along, axis_from_0, is_exactly, times, torch_function, xp
from handgrad.program.tracer import Tracer


@torch_function()
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    return xp.nonzero(condition) if x is None else xp.where(condition, x, y)


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
    if type(source) is Tracer and source.node.shape != index.node.shape:
        return source[tuple(slice(0, size) for size in index.shape)]
    return source


@torch_function()
def scatter(x: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, **o: Any) -> Any:
    if o:
        refuse("scatter with reduce= is not known; write scatter_add")
    made = x.copy()
    source = value if src is None else src
    made.assign_at("store", _places(index, dim), _of_places(source, index))
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


@torch_function("embedding")
def embedding(index: Any, weight: Any, padding_idx: Any = None, **options: Any) -> Any:
    if any(options.values()):
        refuse(f"embedding with {', '.join(options)} is not known")
    return weight[index]


@torch_function()
def one_hot(index: Any, num_classes: Any = -1) -> Any:
    if is_exactly(num_classes, -1):
        refuse("one_hot without num_classes has as many as its values say; give num_classes")
    return (index[..., None] == xp.arange(num_classes)).astype(int)
