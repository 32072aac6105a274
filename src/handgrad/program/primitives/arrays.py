"""Reductions, rearrangements, selections, creation: a record each, then NumPy's functions in terms of them."""

from dataclasses import dataclass

import numpy as np

from handgrad.program.node import PRIMITIVES, Primitive, as_node, build, world
from handgrad.program.primitives.elementwise import equal, unbroadcast
from handgrad.program.sizes import ONE, Size


@dataclass(frozen=True)
class Slot:
    """Stands in an index for an operand, an array of integers or booleans."""

    at: int


def primitive(name, evaluate, shape, vjp=None, text="", torch="", rewrite=None, precedence=9):
    PRIMITIVES[name] = Primitive(
        name, evaluate, shape, vjp, text or f"np.{name}", torch, precedence, None, rewrite
    )


def axes_of(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    return tuple(
        sorted(int(a) % ndim for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    )


def product(sizes):
    total = ONE
    for s in sizes:
        total = total * s
    return total


# Reductions: axis is a tuple, keepdims a boolean.
def reduced(x, axis, keepdims):
    return tuple(
        ONE if i in axis else s for i, s in enumerate(x.shape) if keepdims or i not in axis
    ), x.kind if x.kind != "b" else "i"


def spread(g, x, axis):
    """A reduction's gradient along the axes it went over."""
    kept = tuple(ONE if i in axis else s for i, s in enumerate(x.shape))
    return build("broadcast_to", build("reshape", g, shape=kept), shape=x.shape)


def reduction(name, function, vjp, floating=False):
    def text(e, n):
        axis = n.attrs["axis"]
        every = axis == tuple(range(n.args[0].ndim))
        inside = [
            "" if every else str(axis[0] - n.args[0].ndim if len(axis) == 1 else axis),
            "keepdims=True" if n.attrs["keepdims"] else "",
        ]
        return f"{e.arg(n.args[0], 9)}.{name}({', '.join(t for t in inside if t)})"

    primitive(
        name,
        function,
        lambda x, axis, keepdims: (
            reduced(x, axis, keepdims)[0],
            "f" if floating else reduced(x, axis, keepdims)[1],
        ),
        vjp,
        text,
        rewrite=lambda x, axis, keepdims: x if not axis else None,
    )


def extreme_vjp(g, y, x, axis, keepdims):
    """Equal extremes share the gradient."""
    kept = build("reshape", y, shape=tuple(ONE if i in axis else s for i, s in enumerate(x.shape)))
    chosen = build("where", build("equal", x, kept), 1.0, 0.0)
    return (spread(g, x, axis) * chosen / build("sum", chosen, axis=axis, keepdims=True),)


reduction("sum", np.sum, lambda g, y, x, axis, keepdims: (spread(g, x, axis),))
reduction(
    "mean",
    np.mean,
    lambda g, y, x, axis, keepdims: (
        spread(g / as_node(product(x.shape[a] for a in axis)), x, axis),
    ),
    floating=True,
)
reduction("max", np.max, extreme_vjp)
reduction("min", np.min, extreme_vjp)
reduction("any", np.any, lambda g, y, x, **_: (None,))
reduction("all", np.all, lambda g, y, x, **_: (None,))
reduction(
    "prod",
    np.prod,
    lambda g, y, x, axis, keepdims: (spread(g, x, axis) * build("others", x, axis=axis),),
)


def others(x, axis):
    """The product of all other elements along the axes; right at zeros too."""
    rest = [i for i in range(x.ndim) if i not in axis]
    order = rest + list(axis)
    flat = x.transpose(order).reshape([x.shape[i] for i in rest] + [-1])
    one = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([one, flat[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([one, flat[..., :0:-1]], -1), -1)[..., ::-1]
    return (before * after).reshape([x.shape[i] for i in order]).transpose(np.argsort(order))


same = lambda x, **_: (x.shape, x.kind)
primitive("others", others, same, text=lambda e, n: e.call("others", n.args, axis=n.attrs["axis"]))
primitive(
    "cumsum",
    np.cumsum,
    same,
    lambda g, y, x, axis: (
        build("flip", build("cumsum", build("flip", g, axis=axis), axis=axis), axis=axis),
    ),
    text=lambda e, n: f"np.cumsum({e.arg(n.args[0])}, {n.attrs['axis']})",
)
primitive(
    "flip",
    lambda x, axis: np.flip(x, axis),
    same,
    lambda g, y, x, axis: (build("flip", g, axis=axis),),
    text=lambda e, n: f"np.flip({e.arg(n.args[0])}, {n.attrs['axis']})",
)
primitive(
    "roll",
    lambda x, shift, axis: np.roll(x, shift, axis),
    same,
    lambda g, y, x, shift, axis: (build("roll", g, shift=tuple(-s for s in shift), axis=axis),),
    text=lambda e, n: (
        f"np.roll({e.arg(n.args[0])}, {e.sizes(n.attrs['shift'])}, {n.attrs['axis']})"
    ),
)
primitive(
    "tril",
    np.tril,
    same,
    lambda g, y, x, k: (build("tril", g, k=k),),
    text=lambda e, n: f"np.tril({e.arg(n.args[0])}, {n.attrs['k']})",
)
primitive(
    "triu",
    np.triu,
    same,
    lambda g, y, x, k: (build("triu", g, k=k),),
    text=lambda e, n: f"np.triu({e.arg(n.args[0])}, {n.attrs['k']})",
)
primitive(
    "stop", lambda x: x, same, lambda g, y, x: (None,), text=lambda e, n: e.expression(n.args[0])
)
primitive(
    "astype",
    lambda x, kind: np.asarray(x).astype({"f": float, "i": int, "b": bool}[kind]),
    lambda x, kind: (x.shape, kind),
    lambda g, y, x, kind: (g if x.kind == "f" else None,),
    text=lambda e, n: (
        f"{e.arg(n.args[0], 9)}.astype({dict(f='float', i='int', b='bool')[n.attrs['kind']]})"
    ),
    rewrite=lambda x, kind: x if x.kind == kind else None,
)
primitive(
    "argsort",
    lambda x, axis: np.argsort(x, axis, kind="stable"),
    lambda x, axis: (x.shape, "i"),
    lambda g, y, x, axis: (None,),
    text=lambda e, n: f"np.argsort({e.arg(n.args[0])}, {n.attrs['axis']}, kind='stable')",
)
for name in ("argmax", "argmin"):
    primitive(
        name,
        getattr(np, name),
        lambda x, axis: (reduced(x, (axis % x.ndim,), False)[0], "i"),
        lambda g, y, x, axis: (None,),
        text=lambda e, n: f"np.{n.op}({e.arg(n.args[0])}, {n.attrs['axis']})",
    )


# Rearrangements.
def reshape_text(e, n):
    x, new = n.args[0], n.attrs["shape"]
    old = x.shape
    if tuple(s for s in new if s != ONE) == tuple(s for s in old if s != ONE) and not any(
        s == ONE for s in old
    ):
        return f"{e.arg(x, 9)}[{', '.join('None' if s == ONE else ':' for s in new)}]"
    return f"{e.arg(x, 9)}.reshape({', '.join(map(e.size, new)) if new else '()'})"


primitive(
    "reshape",
    lambda x, shape: np.reshape(x, shape),
    lambda x, shape: (shape, x.kind),
    lambda g, y, x, shape: (build("reshape", g, shape=x.shape),),
    reshape_text,
    rewrite=lambda x, shape: (
        x
        if tuple(shape) == x.shape
        else build("reshape", x.args[0], shape=shape)
        if x.op == "reshape"
        else None
    ),
)
primitive(
    "transpose",
    lambda x, axes: np.transpose(x, axes),
    lambda x, axes: (tuple(x.shape[a] for a in axes), x.kind),
    lambda g, y, x, axes: (build("transpose", g, axes=tuple(map(int, np.argsort(axes)))),),
    lambda e, n: (
        f"{e.arg(n.args[0], 9)}.T"
        if n.attrs["axes"] == (1, 0)
        else f"{e.arg(n.args[0], 9)}.transpose{n.attrs['axes']}"
    ),
    rewrite=lambda x, axes: (
        x
        if tuple(axes) == tuple(range(x.ndim))
        else build("transpose", x.args[0], axes=tuple(x.attrs["axes"][a] for a in axes))
        if x.op == "transpose"
        else build(
            "contract", *x.args, **{**x.attrs, "out": tuple(x.attrs["out"][a] for a in axes)}
        )
        if x.op == "contract"
        else None
    ),
)
primitive(
    "broadcast_to",
    lambda x, shape: np.broadcast_to(x, shape),
    lambda x, shape: (shape, x.kind),
    lambda g, y, x, shape: (unbroadcast(g, x),),
    lambda e, n: f"np.broadcast_to({e.arg(n.args[0])}, {e.sizes(n.attrs['shape'])})",
    rewrite=lambda x, shape: x if tuple(shape) == x.shape else None,
)


def concatenated(*xs, axis):
    total = Size.of(0)
    for x in xs:
        total = total + x.shape[axis]
    sizes = [xs[0].shape[i] if i != axis else total for i in range(xs[0].ndim)]
    for x in xs[1:]:
        for i in range(x.ndim):
            if i != axis:
                sizes[i] = equal(sizes[i], x.shape[i])
    return tuple(sizes), "f" if any(x.kind == "f" for x in xs) else xs[0].kind


def concatenate_vjp(g, y, *xs, axis):
    start, out = Size.of(0), []
    for x in xs:
        out.append(
            build(
                "getitem",
                g,
                index=(slice(None),) * axis + (slice(start, start + x.shape[axis], None),),
            )
        )
        start = start + x.shape[axis]
    return tuple(out)


primitive(
    "concatenate",
    lambda *xs, axis: np.concatenate(xs, axis),
    concatenated,
    concatenate_vjp,
    lambda e, n: f"np.concatenate(({', '.join(map(e.arg, n.args))},), {n.attrs['axis']})",
    rewrite=lambda *xs, axis: xs[0] if len(xs) == 1 else None,
)


def diagonal_vjp(g, y, x, axis1, axis2):
    n = x.shape[axis1]
    i = build("arange", size=n)
    index = tuple(Slot(0) if a in (axis1, axis2) else slice(None) for a in range(x.ndim))
    back = (
        build("transpose", g, axes=tuple([g.ndim - 1] + list(range(g.ndim - 1))))
        if abs(axis1 - axis2) > 1 or axis1 == 0
        else g
    )
    if abs(axis1 - axis2) == 1 and axis1 != 0:
        back = build(
            "transpose",
            g,
            axes=tuple(
                list(range(min(axis1, axis2)))
                + [g.ndim - 1]
                + list(range(min(axis1, axis2), g.ndim - 1))
            ),
        )
    return (build("add_at", build("zeros", shape=x.shape), back, i, index=index),)


primitive(
    "diagonal",
    lambda x, axis1, axis2: np.diagonal(x, 0, axis1, axis2),
    lambda x, axis1, axis2: (
        tuple(s for i, s in enumerate(x.shape) if i not in (axis1, axis2))
        + (equal(x.shape[axis1], x.shape[axis2]),),
        x.kind,
    ),
    diagonal_vjp,
    lambda e, n: f"np.diagonal({e.arg(n.args[0])}, 0, {n.attrs['axis1']}, {n.attrs['axis2']})",
)


# Selection. An index is a template: slices of sizes, sizes, None, Slot(i) for operands after the array.
def filled(index, arrays):
    return tuple(arrays[i.at] if isinstance(i, Slot) else i for i in index)


def slice_size(part, size):
    w = world()
    start, stop, step = (
        None if p is None else Size.of(p) for p in (part.start, part.stop, part.step)
    )
    length = len(
        range(
            *slice(*(None if p is None else w.length(p) for p in (start, stop, step))).indices(
                w.length(size)
            )
        )
    )
    step = ONE if step is None else step
    if start is None and stop is None and step in (ONE, Size.of(-1)):
        return size

    def place(p, default):
        return default if p is None else p if w.length(p) >= 0 else size + p

    candidates = [
        place(stop, size) - place(start, Size.of(0)),
        size - place(start, Size.of(0)),
        size,
    ]
    candidates = [c if step == ONE else (c + step - 1) // step for c in candidates]
    chosen = next((c for c in candidates if w.length(c) == length), Size.of(length))
    if (
        stop is not None
        and chosen is candidates[0]
        and (place(stop, size) - size).constant is None
        and (rule := ("<=", place(stop, size), size, True)) not in w.guards
    ):
        w.guards.append(rule)
    return chosen


def indexed(x, *arrays, index):
    sizes, axis, spot, joint = [], 0, None, []
    advanced = [
        k
        for k, i in enumerate(index)
        if isinstance(i, Slot) or (isinstance(i, Size) and any(isinstance(j, Slot) for j in index))
    ]
    for k, i in enumerate(index):
        if i is None:
            sizes.append(ONE)
        elif isinstance(i, slice):
            sizes.append(slice_size(i, x.shape[axis]))
            axis += 1
        elif isinstance(i, Slot):
            spot = len(sizes) if spot is None else spot
            joint.append(arrays[i.at])
            axis += arrays[i.at].ndim if arrays[i.at].kind == "b" else 1
        else:
            if k in advanced and spot is None:
                spot = len(sizes)
            axis += 1
    sizes += x.shape[axis:]
    if joint:
        if any(a.kind == "b" for a in joint):
            shape = (Size.of("count"),)
            world().lengths["count"] = int(np.count_nonzero(joint[0].value))
        else:
            shape = broadcasted(joint)
        if advanced != list(range(advanced[0], advanced[-1] + 1)):
            spot = 0
        sizes[spot:spot] = shape
    return tuple(sizes), x.kind


def broadcasted(nodes):
    from handgrad.program.primitives.elementwise import broadcast

    return broadcast(*nodes)[0]


def index_text(e, n, arrays):
    def part(i):
        if isinstance(i, Slot):
            return e.arg(arrays[i.at])
        if isinstance(i, slice):
            return ":".join(
                "" if p is None else e.size(p)
                for p in ((i.start, i.stop) if i.step is None else (i.start, i.stop, i.step))
            )
        return "None" if i is None else e.size(i)

    index = list(n.attrs["index"])
    while index and isinstance(index[-1], slice) and index[-1] == slice(None):
        index.pop()
    return ", ".join(map(part, index)) or "..."


def change(add):
    def evaluate(base, value, *arrays, index):
        out = np.array(
            base,
            dtype=np.result_type(base, value)
            if np.ndim(value) or isinstance(value, np.generic)
            else None,
        )
        where = filled(index, arrays)
        if not add:
            out[where] = value
        elif arrays:
            np.add.at(out, where, value)
        else:
            out[where] += value
        return out

    return evaluate


def getitem_rule(x, *arrays, index):
    """New axes alone are a reshape, as is the one element of an axis of length one."""
    if not arrays and all(
        i == Size.of(0) if isinstance(i, Size) else i is None or i == slice(None) for i in index
    ):
        axes = iter(x.shape)
        sizes = [None if i is None else next(axes) for i in index]
        if all(s == ONE for i, s in zip(index, sizes) if isinstance(i, Size)):
            kept = [s or ONE for i, s in zip(index, sizes) if not isinstance(i, Size)]
            return build("reshape", x, shape=(*kept, *axes))
    if all(i is None or (isinstance(i, slice) and i == slice(None)) for i in index):
        sizes = iter(x.shape)
        shape = tuple(ONE if i is None else next(sizes) for i in index)
        return build("reshape", x, shape=shape + tuple(sizes))


primitive(
    "getitem",
    lambda x, *arrays, index: x[filled(index, arrays)],
    indexed,
    lambda g, y, x, *arrays, index: (
        (build("add_at", build("zeros", shape=x.shape), g, *arrays, index=index),)
        + (None,) * len(arrays)
    ),
    lambda e, n: f"{e.arg(n.args[0], 9)}[{index_text(e, n, n.args[1:])}]",
    rewrite=getitem_rule,
)
primitive(
    "add_at",
    change(True),
    lambda b, v, *arrays, index: (b.shape, b.kind),
    lambda g, y, b, v, *arrays, index: (
        (g, unbroadcast(build("getitem", g, *arrays, index=index), v)) + (None,) * len(arrays)
    ),
    lambda e, n: e.call("added", n.args[:2], at=e.index(n)),
)


def store_rule(base, value, *arrays, index):
    """x[i] = x[i] + v adds at i."""
    if value.op == "add":
        for old, v in (value.args, value.args[::-1]):
            if (
                old.op == "getitem"
                and old.args[0] is base
                and old.attrs["index"] == index
                and all(a is b for a, b in zip(old.args[1:], arrays))
                and not arrays
            ):
                return build("add_at", base, v, index=index)


primitive(
    "store",
    change(False),
    lambda b, v, *arrays, index: (b.shape, "f" if "f" in (b.kind, v.kind) else b.kind),
    lambda g, y, b, v, *arrays, index: (
        (
            build("store", g, 0.0, *arrays, index=index),
            unbroadcast(build("getitem", g, *arrays, index=index), v),
        )
        + (None,) * len(arrays)
    ),
    lambda e, n: e.call("stored", n.args[:2], at=e.index(n)),
    rewrite=store_rule,
)


# Creation.
primitive(
    "zeros",
    lambda shape, kind="f": np.zeros(shape, {"f": float, "i": int, "b": bool}[kind]),
    lambda shape, kind="f": (shape, kind),
    text=lambda e, n: (
        f"np.zeros({e.sizes(n.attrs['shape'])}{dict(i=', int', b=', bool').get(n.kind) or e.dtype()})"
    ),
)
primitive(
    "ones",
    lambda shape: np.ones(shape),
    lambda shape: (shape, "f"),
    text=lambda e, n: f"np.ones({e.sizes(n.attrs['shape'])}{e.dtype()})",
)
primitive(
    "arange",
    lambda size: np.arange(size),
    lambda size: ((Size.of(size),), "i"),
    text=lambda e, n: f"np.arange({e.size(n.attrs['size'])})",
)
primitive(
    "eye",
    lambda rows, columns, k: np.eye(rows, columns, k),
    lambda rows, columns, k: ((Size.of(rows), Size.of(columns)), "f"),
    text=lambda e, n: (
        f"np.eye({e.size(n.attrs['rows'])}, {e.size(n.attrs['columns'])}, {n.attrs['k']})"
    ),
)


# Linear algebra, on the last two axes.
def T(x):
    return build("transpose", x, axes=tuple(range(x.ndim - 2)) + (x.ndim - 1, x.ndim - 2))


def mm(a, b):
    from handgrad.program.primitives.contract import matmul

    return matmul(a, b)


primitive(
    "inv", np.linalg.inv, same, lambda g, y, x: (-mm(mm(T(y), g), T(y)),), text="np.linalg.inv"
)
primitive(
    "solve",
    np.linalg.solve,
    lambda a, b: (b.shape, "f"),
    lambda g, y, a, b: _solve_vjp(g, y, a, b),
    text="np.linalg.solve",
)
primitive(
    "det",
    np.linalg.det,
    lambda x: (x.shape[:-2], "f"),
    lambda g, y, x: (
        build("reshape", g * y, shape=x.shape[:-2] + (ONE, ONE)) * T(build("inv", x)),
    ),
    text="np.linalg.det",
)
primitive(
    "logdet",
    lambda x: np.linalg.slogdet(x)[1],
    lambda x: (x.shape[:-2], "f"),
    lambda g, y, x: (build("reshape", g, shape=x.shape[:-2] + (ONE, ONE)) * T(build("inv", x)),),
    text=lambda e, n: f"np.linalg.slogdet({e.arg(n.args[0])})[1]",
)
primitive(
    "cholesky",
    np.linalg.cholesky,
    same,
    lambda g, y, x: _cholesky_vjp(g, y, x),
    text="np.linalg.cholesky",
)


def _solve_vjp(g, y, a, b):
    db = build("solve", T(a), g)
    from handgrad.program.primitives.contract import outer

    return -(mm(db, T(y)) if b.ndim == a.ndim else outer(db, y)), db


def _cholesky_vjp(g, y, x):
    """Murray (2016): A's gradient is L⁻ᵀ Φ(Lᵀ dL) L⁻¹, made symmetric; Φ takes the lower triangle and halves the diagonal."""
    p = build("tril", mm(T(y), g), k=0)
    n = x.shape[-1]
    p = p - 0.5 * (p * build("eye", rows=n, columns=n, k=0))
    inv = build("inv", y)
    s = mm(mm(T(inv), p), inv)
    return (0.5 * (s + T(s)),)
