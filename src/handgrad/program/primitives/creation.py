"""Arrays made from sizes and numbers; always traced, so that sizes keep their letters."""

from typing import Any

import numpy as np

from handgrad.program.node import DTYPES, Node, as_node, build, world
from handgrad.program.primitives.axes import product
from handgrad.program.primitives.fixed import constant, count
from handgrad.program.primitives.joining import stack
from handgrad.program.primitives.rearrange import sizes, spread
from handgrad.program.primitives.record import Sample, record
from handgrad.program.primitives.table import TORCH_TYPES, TYPES, creation, known, refuse
from handgrad.program.sizes import ONE, Size

ZERO = Size.of(0)
_M, _N = Size.of("M"), Size.of("N")


def type_text(e: Any, n: Node, library: str) -> str:
    """The type of made values as an argument."""
    kind = n.attrs.get("kind", "f")
    if kind == "f":
        return str(e.dtype())
    if kind == "c" and library == "torch" and e.like:
        return f", dtype={e.float}.to_complex()"
    return f", dtype={TORCH_TYPES[kind]}" if library == "torch" else f", {TYPES[kind]}"


def _made(name: str) -> None:
    function = getattr(np, name)
    record(
        name,
        lambda shape, kind="f": function(shape, DTYPES[kind]),
        lambda shape, kind="f": (shape, kind),
        text=lambda e, n: f"np.{name}({e.sizes(n.attrs['shape'])}{type_text(e, n, 'np')})",
        torch=lambda e, n: f"torch.{name}({e.sizes(n.attrs['shape'])}{type_text(e, n, 'torch')})",
        samples=(
            Sample((), {"shape": (_M, _N * 2)}),
            Sample((), {"shape": (_M,), "kind": "i"}),
        ),
    )


_made("zeros")
_made("ones")
record(
    "arange",
    lambda size: np.arange(size),
    lambda size: ((Size.of(size),), "i"),
    text=lambda e, n: f"np.arange({e.size(n.attrs['size'])})",
    torch=lambda e, n: f"torch.arange({e.size(n.attrs['size'])})",
    samples=(Sample((), {"size": _M - 1}),),
)
record(
    "eye",
    lambda rows, columns, k: np.eye(rows, columns, k),
    lambda rows, columns, k: ((Size.of(rows), Size.of(columns)), "f"),
    text=lambda e, n: f"np.eye({_eye_arguments(e, n)}{e.dtype() if e.floats_alike else ''})",
    torch=lambda e, n: (
        f"torch.ones({e.size(n.attrs['rows'])}, {e.size(n.attrs['columns'])}{e.dtype()})"
        f".triu({n.attrs['k']}).tril({n.attrs['k']})"
        if n.attrs["k"]
        else f"torch.eye({e.size(n.attrs['rows'])}, {e.size(n.attrs['columns'])}{e.dtype()})"
    ),
    jax=lambda e, n: f"np.eye({_eye_arguments(e, n)}{e.dtype()})",
    samples=(
        Sample((), {"rows": _M, "columns": _M, "k": 0}),
        Sample((), {"rows": _M, "columns": _N, "k": 1}),
    ),
)


def _eye_arguments(e: Any, n: Node) -> str:
    rows, columns, k = (n.attrs[key] for key in ("rows", "columns", "k"))
    text = str(e.size(rows))
    if rows != columns or k:
        text += f", {e.size(columns)}"
    return text + (f", {k}" if k else "")


def kind_of(dtype: Any) -> dict[str, str]:
    """A type as an attribute, floats left out: they follow the operands."""
    if dtype is None:
        return {}
    name = getattr(dtype, "__name__", None) or str(dtype)
    for part, kind in (("float", "f"), ("complex", "c"), ("bool", "b"), ("int", "i")):
        if part in name:
            return {} if kind == "f" else {"kind": kind}
    kind = np.dtype(dtype).kind.replace("u", "i")
    return {} if kind == "f" else {"kind": kind}


def made(name: str, shape: Any, dtype: Any) -> Node:
    return build(name, shape=sizes(shape), **kind_of(dtype))


@creation(np.zeros, np.empty)
def zeros(shape: Any, dtype: Any = None, order: str = "C", **_: Any) -> Node:
    return made("zeros", shape, dtype)


@creation(np.ones)
def ones(shape: Any, dtype: Any = None, order: str = "C", **_: Any) -> Node:
    return made("ones", shape, dtype)


@creation(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **_: Any) -> Node:
    if not isinstance(fill_value, Node) and np.ndim(fill_value) == 0:
        integral = isinstance(fill_value, int | np.integer) and not isinstance(fill_value, bool)
        kind = kind_of(dtype)
        if fill_value == 0:
            kind = kind if dtype is not None else {"kind": "i"} if integral else {}
            return build("zeros", shape=sizes(shape), **kind)
        if integral and dtype is not None and not kind:
            fill_value = float(fill_value)
    return spread(as_node(fill_value), sizes(shape))


@creation(np.eye, np.identity)
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, **_: Any) -> Node:
    (rows,) = sizes(N)
    (columns,) = sizes(N if M is None else M)
    out = build("eye", rows=rows, columns=columns, k=count(k))
    kind = kind_of(dtype)
    return build("astype", out, **kind) if kind else out


@creation(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Node:
    (rows,) = sizes(N)
    (columns,) = sizes(N if M is None else M)
    return build("tril", made("ones", (rows, columns), dtype), k=count(k))


def whole(x: Any) -> bool:
    """An integer, traced or not."""
    if isinstance(x, Node):
        return x.kind == "i" and x.ndim == 0
    return isinstance(x, int | np.integer | Size) and not isinstance(x, bool)


@creation(np.arange)
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, **_: Any) -> Node:
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if all(map(whole, (start, stop, step))):
        (first,), (last,), (by,) = map(sizes, (start, stop, step))
        back = world().length(by) < 0
        span = (first - last, -by) if back else (last - first, by)
        size = span[0] if span[1] == ONE else (span[0] + span[1] - 1) // span[1]
        if world().length(size) < 0:
            size = Size.of(0)
        out = build("arange", size=size)
    else:
        begin, each = (float(constant(x)) for x in (start, step))
        out = build("arange", size=Size.of(len(np.arange(begin, constant(stop), each))))
        out = out if each == 1 else out * each
        return out + begin
    if by not in (1, ONE):
        out = out * by
    if first not in (0, ZERO):
        out = out + first
    if dtype is not None and not kind_of(dtype) and out.kind == "i":
        out = build("astype", out, kind="f")
    return out


@creation(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    """Evenly spaced numbers; start and stop can be traced."""
    (size,) = sizes(num)
    places = build("arange", size=size)
    first, last = as_node(start), as_node(stop)
    steps = size - 1 if constant(endpoint) else size
    rank = max(first.ndim, last.ndim)
    if rank:
        places = build("reshape", places, shape=(size, *(ONE,) * rank))
    step = (last - first) / (as_node(steps) if world().length(steps) else 1.0)
    out = first + places * step
    if rank and constant(axis) != 0:
        from handgrad.program.primitives.rearrange import moveaxis

        out = moveaxis(out, 0, axis)
    return (out, step) if constant(retstep) else out


@creation(np.indices)
def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    shape = sizes(dimensions)
    grids = [
        build(
            "reshape",
            build("arange", size=s),
            shape=tuple(s if i == k else ONE for i in range(len(shape))),
        )
        for k, s in enumerate(shape)
    ]
    return tuple(grids) if sparse else stack([spread(g, shape) for g in grids])


@creation(np.meshgrid)
def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> Any:
    nodes = [build("reshape", n, shape=(product(n.shape),)) for n in map(as_node, arrays)]
    rank = len(nodes)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    shape = tuple(nodes[order.index(k)].shape[0] for k in range(rank))
    out = []
    for k, n in enumerate(nodes):
        alone = tuple(n.shape[0] if i == order[k] else ONE for i in range(rank))
        n = build("reshape", n, shape=alone)
        out.append(n if sparse else spread(n, shape))
    return tuple(out)


@creation(np.fromfunction)
def fromfunction(*_: Any, **__: Any) -> Node:
    refuse("np.fromfunction is not read", "the function called on np.indices(shape)")


def like(name: str) -> Any:
    def signature(x: Any, dtype: Any = None, order: Any = "K", shape: Any = None, **_: Any) -> Node:
        x = as_node(x)
        kind = kind_of(dtype) if dtype is not None else {} if x.kind == "f" else {"kind": x.kind}
        return build(name, shape=x.shape if shape is None else sizes(shape), **kind)

    return signature


known(np.zeros_like, np.empty_like)(like("zeros"))
known(np.ones_like)(like("ones"))


@known(np.full_like)
def full_like(x: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Node:
    x = as_node(x)
    return full(x.shape, float(fill_value) if _floats(x, fill_value) else fill_value, dtype)


def _floats(x: Node, value: Any) -> bool:
    return x.kind == "f" and not isinstance(value, Node) and np.ndim(value) == 0


@known(np.array, np.asarray, np.ascontiguousarray, np.asanyarray, np.copy, np.require)
def array(x: Any, dtype: Any = None, copy: Any = None, ndmin: int = 0, **_: Any) -> Node:
    """An array of traced numbers and arrays, nested as they are."""
    if isinstance(x, Size | Node):
        out = as_node(x)
    elif isinstance(x, list | tuple) and _traced(x):
        out = stack([array(v) for v in x])
    else:
        out = as_node(np.asarray(x))
    if dtype is not None:
        out = build("astype", out, kind=kind_of(dtype).get("kind", "f"))
    while out.ndim < ndmin:
        out = build("reshape", out, shape=(ONE, *out.shape))
    return out


def _traced(x: Any) -> bool:
    return any(map(_traced, x)) if isinstance(x, list | tuple) else isinstance(x, Node | Size)


@known(np.shape)
def shape(a: Any) -> tuple[Size, ...]:
    return as_node(a).shape


@known(np.size)
def size(a: Any, axis: Any = None) -> Size:
    a = as_node(a)
    return product(a.shape) if axis is None else a.shape[axis]


@known(np.ndim)
def ndim(a: Any) -> int:
    return as_node(a).ndim
