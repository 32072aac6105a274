"""Shapes: views, axes, joining and cutting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from handgrad.program.integers import is_whole
from handgrad.program.node import world
from handgrad.program.primitives.table import refuse
from handgrad.program.tensors.table import (
    along,
    axis_from_0,
    enter,
    is_exactly,
    one_tuple,
    torch_function,
    torch_method,
    xp,
)

_SAME: Final = (
    *("moveaxis", "rot90", "fliplr", "flipud", "ravel", "hstack", "vstack", "dstack"),
    *("column_stack", "hsplit", "vsplit", "dsplit", "atleast_1d", "atleast_2d", "atleast_3d"),
    "diagflat",
)
for _name in _SAME:
    enter(_name, getattr(xp, _name))


@torch_function("reshape")
@torch_method("view", "reshape")
def reshape(x: Any, *shape: Any) -> Any:
    sizes = one_tuple(shape)
    if len(sizes) == 1 and not is_whole(sizes[0]):  # of another type, such as x.view(torch.long)
        return x.astype(sizes[0])
    return xp.reshape(x, sizes)


@torch_method("view_as", "reshape_as")
def reshape_as(x: Any, other: Any) -> Any:
    return xp.reshape(x, other.shape)


@torch_function("transpose", "swapdims")
def transpose(x: Any, dim0: int, dim1: int) -> Any:
    return xp.swapaxes(x, dim0, dim1)


@torch_function("swapaxes")
def swapaxes(x: Any, axis0: int, axis1: int) -> Any:
    return xp.swapaxes(x, axis0, axis1)


@torch_function("movedim")
def movedim(x: Any, source: Any, destination: Any) -> Any:
    return xp.moveaxis(x, source, destination)


@torch_function()
def permute(x: Any, *dims: Any) -> Any:
    return xp.transpose(x, one_tuple(dims))


@torch_function()
def t(x: Any) -> Any:
    return xp.transpose(x)


@torch_function("adjoint")
@torch_method("mH", "H")
def adjoint(x: Any) -> Any:
    return xp.conj(xp.swapaxes(x, -1, -2))


@torch_function()
def unsqueeze(x: Any, dim: int) -> Any:
    return xp.expand_dims(x, dim)


@torch_function()
def squeeze(x: Any, dim: Any = None) -> Any:
    """Without the axes of one among those named; others stay."""
    named = range(x.ndim) if dim is None else dim if isinstance(dim, tuple | list) else (dim,)
    lengths = x.node.shape
    # One in letters that is 1 on the example is asked for.
    ones = tuple(k for k in named if world().length(lengths[k]) == 1 and x.shape[k] == 1)
    return xp.squeeze(x, axis=ones) if ones else x


@torch_function()
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = axis_from_0(x, start_dim), axis_from_0(x, end_dim)
    whole: Any = 1
    for size in x.shape[first : last + 1]:
        whole = whole * size
    return xp.reshape(x, (*x.shape[:first], whole, *x.shape[last + 1 :]))


@torch_function()
def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    place = axis_from_0(x, dim)
    known: Any = 1
    for size in sizes:
        known = known * (1 if is_whole(size) and size == -1 else size)
    rest = x.shape[place] // known
    made = (rest if is_whole(size) and size == -1 else size for size in sizes)
    return xp.reshape(x, (*x.shape[:place], *made, *x.shape[place + 1 :]))


@torch_function("expand", "broadcast_to")
def expand(x: Any, *size: Any) -> Any:
    """A broadcast; −1 leaves an axis as it is."""
    wanted = one_tuple(size)
    own = (*(None,) * (len(wanted) - x.ndim), *x.shape)
    shape = (mine if is_exactly(n, -1) else n for n, mine in zip(wanted, own, strict=True))
    return xp.broadcast_to(x, tuple(shape))


@torch_method()
def expand_as(x: Any, other: Any) -> Any:
    return xp.broadcast_to(x, other.shape)


@torch_function()
def broadcast_tensors(*tensors: Any) -> Any:
    return xp.broadcast_arrays(*tensors)


@torch_function("tile")
@torch_method("repeat")
def repeat(x: Any, *dims: Any) -> Any:
    return xp.tile(x, one_tuple(dims))


@torch_function()
def repeat_interleave(x: Any, repeats: Any, dim: int | None = None, **_: Any) -> Any:
    return xp.repeat(x, repeats, axis=dim)


@torch_function("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    return xp.concatenate(tensors, axis=dim)


@torch_function()
def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    return xp.stack(tensors, axis=dim)


@torch_function("split", "split_with_sizes", "unsafe_split")
def split(x: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of a size, the last of what is left; or of the sizes given."""
    sizes = split_size_or_sections
    if isinstance(sizes, list | tuple):
        ends = list(accumulate(sizes))
        starts = [0, *ends[:-1]]
        return tuple(along(x, dim, slice(a, b)) for a, b in zip(starts, ends, strict=True))
    whole = x.shape[dim]
    count = whole // sizes
    if not bool(count * sizes == whole):
        count = (whole + sizes - 1) // sizes
    number = int(count)
    bounds = [k * sizes for k in range(number)]
    ends = [*bounds[1:], None]
    return tuple(along(x, dim, slice(a, b)) for a, b in zip(bounds, ends, strict=True))


@torch_function("chunk", "unsafe_chunk")
def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return split(x, (x.shape[dim] + chunks - 1) // chunks, dim)


@torch_function()
def tensor_split(x: Any, indices_or_sections: Any, dim: int = 0) -> Any:
    return xp.array_split(x, indices_or_sections, axis=dim)


@torch_function()
def unbind(x: Any, dim: int = 0) -> Any:
    """The array with that axis in front, which loops, indices and unpacking take as a sequence."""
    return xp.moveaxis(x, dim, 0)


@torch_function()
def narrow(x: Any, dim: int, start: Any, length: Any) -> Any:
    return along(x, dim, slice(start, start + length))


@torch_function()
def select(x: Any, dim: int, index: Any) -> Any:
    return along(x, dim, index)


@torch_function()
def flip(x: Any, *dims: Any) -> Any:
    return xp.flip(x, one_tuple(dims))


@torch_function()
def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    return xp.roll(x, shifts, axis=dims)


@torch_function()
def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return xp.diagonal(x, offset, dim1, dim2)


@torch_function()
def diag(x: Any, diagonal: int = 0) -> Any:
    return xp.diag(x, diagonal)


@torch_function()
def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    size = x.shape[-1] + abs(offset)
    rows = xp.pad(x, [*((0, 0) for _ in range(x.ndim - 1)), (max(-offset, 0), max(offset, 0))])
    return xp.moveaxis(rows[..., None] * xp.eye(size, size, offset), (-2, -1), (dim1, dim2))


@torch_function()
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal, zeros elsewhere."""
    blocks = [xp.reshape(x, (1,) * (2 - x.ndim) + tuple(x.shape)) for x in tensors]
    rows = []
    for k, block in enumerate(blocks):
        beside = [xp.zeros((block.shape[0], other.shape[1])) for other in blocks]
        rows.append(xp.concatenate([*beside[:k], block, *beside[k + 1 :]], axis=1))
    return xp.concatenate(rows, axis=0)


@torch_function()
def cartesian_prod(*tensors: Any) -> Any:
    grid = xp.meshgrid(*tensors, indexing="ij")
    return xp.stack([xp.ravel(each) for each in grid], axis=-1) if len(grid) > 1 else tensors[0]


@torch_function()
def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    if r != 2:
        refuse("combinations of other than two are not known; write x[indices]")
    first, second = xp.triu_indices(x.shape[0], int(not with_replacement))
    return xp.stack((x[first], x[second]), axis=-1)


@torch_function("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(x: Any, groups: int) -> Any:
    n, c, *rest = x.shape
    parts = xp.reshape(x, (n, groups, c // groups, *rest))
    return xp.reshape(xp.swapaxes(parts, 1, 2), x.shape)


@torch_function()
def view_as_real(x: Any) -> Any:
    return xp.stack((xp.real(x), xp.imag(x)), axis=-1)


@torch_function()
def view_as_complex(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


@torch_function("complex")
def as_complex(real: Any, imag: Any) -> Any:
    return real + 1j * imag


@torch_function()
def polar(abs: Any, angle: Any) -> Any:
    return abs * xp.cos(angle) + 1j * (abs * xp.sin(angle))


@torch_function()
def tril(x: Any, diagonal: int = 0) -> Any:
    return xp.tril(x, diagonal)


@torch_function()
def triu(x: Any, diagonal: int = 0) -> Any:
    return xp.triu(x, diagonal)


@torch_function()
def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    return xp.meshgrid(*given, indexing=indexing)
