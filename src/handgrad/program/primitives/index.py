"""Selections by index: `getitem`, and the changes `store` and `add_at`.

An index is a template: slices of sizes, sizes, None for a new axis, and `Slot(i)` for the array of
integers or booleans that is the operand i of those after the array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from handgrad.program.node import Node, Selection, build, world
from handgrad.program.primitives.axes import broadcast, unbroadcast
from handgrad.program.primitives.record import (
    Gradients,
    Sample,
    Shaped,
    mask,
    normal,
    record,
    whole,
)
from handgrad.program.primitives.writers import last_writers
from handgrad.program.sizes import ONE, Size


@dataclass(frozen=True)
class Slot:
    """Stands in an index for an operand, an array of integers or booleans."""

    at: int


Index = tuple[Any, ...]
ALL = slice(None)
ZERO = Size.of(0)


def filled(index: Index, arrays: Sequence[Any]) -> Index:
    """An index with its arrays in their places."""
    return tuple(arrays[i.at] if isinstance(i, Slot) else i for i in index)


def along(axis: int, part: Any) -> Index:
    """The index that selects along one axis."""
    return (*(ALL,) * axis, part)


def section(x: Node, axis: int, start: Any, stop: Any) -> Node:
    """The elements from one place to another along an axis."""
    if Size.of(start) == ZERO and Size.of(stop) == x.shape[axis]:
        return x
    first = None if Size.of(start) == ZERO else Size.of(start)
    last = None if Size.of(stop) == x.shape[axis] else Size.of(stop)
    return build("getitem", x, index=along(axis, slice(first, last, None)))


def slice_size(part: slice, size: Size) -> Size:
    """Return how many elements a slice takes from an axis, in letters.

    On which side of the axis' ends a bound lies is that of the example; where letters leave it
    open, a guard is made.
    """
    w = world()
    step = ONE if part.step is None else Size.of(part.step)
    back = w.length(step) < 0

    def place(bound: Any, default: Size) -> Size:
        if bound is None:
            return default
        inside = from_start(bound, size)
        if w.length(inside) < 0:
            return Size.of(-1) if back else ZERO
        end = size - 1 if back else size
        beyond = w.length(inside) > w.length(end)
        if (end - inside).constant is None and (beyond or inside.letters):
            rule = ("<=", *((end, inside) if beyond else (inside, end)), True)
            if rule not in w.guards:
                w.guards.append(rule)
        return end if beyond else inside

    start = place(part.start, size - 1 if back else ZERO)
    stop = place(part.stop, Size.of(-1) if back else size)
    span, step = (start - stop, -step) if back else (stop - start, step)
    if w.length(span) < 0 or span.constant == 0:
        return ZERO
    return span if step == ONE else (span + step - 1) // step


def mask_size(node: Node, *, once: bool = False) -> Size:
    """The letter of how many elements a mask selects, or of how many differ, counted once.

    Masks that are computed alike share it. One that is built again may be another computation:
    it is known by its values, if these tell.
    """
    w = world()
    if not w.has_numbers:
        w.refuse("a mask selects as many elements as its values say")
    values = np.asarray(node.value) if once else np.asarray(node.value) != 0
    key = (once, w.signatures.of(node))
    if key not in w.masks and w.events is None:
        same = [each for each in w.masks.values() if each.is_of(values, once)]
        if len({each.letter for each in same}) > 1:
            w.refuse("masks that are alike on the example alone; give one where they differ")
        if same:
            w.masks[key] = same[0]
    if key not in w.masks:
        count = len({each.letter for each in w.masks.values()})
        letter = f"count_{count + 1}" if count else "count"
        w.masks[key] = Selection(letter, node, once)
        w.lengths[letter] = w.masks[key].number(values)
    return Size.of(w.masks[key].letter)


def indexed(x: Node, *arrays: Node, index: Index) -> Shaped:
    """Sizes of x[index]."""
    sizes: list[Size] = []
    axis = 0
    spot: int | None = None
    joint: list[Node] = []
    slots = any(isinstance(i, Slot) for i in index)
    advanced = [
        k for k, i in enumerate(index) if isinstance(i, Slot) or (slots and isinstance(i, Size))
    ]
    for k, i in enumerate(index):
        if i is None:
            sizes.append(ONE)
        elif isinstance(i, slice):
            sizes.append(slice_size(i, x.shape[axis]))
            axis += 1
        else:
            if k in advanced and spot is None:
                spot = len(sizes)
            if isinstance(i, Slot):
                joint.append(arrays[i.at])
            axis += arrays[i.at].ndim if isinstance(i, Slot) and arrays[i.at].kind == "b" else 1
    sizes += x.shape[axis:]
    if joint:
        if advanced != list(range(advanced[0], advanced[-1] + 1)):
            spot = 0
        sizes[spot:spot] = joint_shape(joint)
    return tuple(sizes), x.kind


def joint_shape(arrays: list[Node]) -> tuple[Size, ...]:
    """The sizes that index arrays have together; a mask is as long as it has elements."""
    flat = [
        Node("input", (), {}, (mask_size(a),), "i", None) if a.kind == "b" else a for a in arrays
    ]
    return broadcast(*flat)[0]


def index_text(e: Any, n: Node, arrays: Sequence[Node]) -> str:
    """An index as it is written between brackets."""

    def part(i: Any) -> str:
        if isinstance(i, Slot):
            return str(e.arg(arrays[i.at]))
        if isinstance(i, slice):
            bounds = (i.start, i.stop) if i.step is None else (i.start, i.stop, i.step)
            return ":".join("" if p is None else e.size(p) for p in bounds)
        return "None" if i is None else str(e.size(i))

    index = list(n.attrs["index"])
    while index and isinstance(index[-1], slice) and index[-1] == ALL:
        index.pop()
    return ", ".join(map(part, index)) or "..."


def getitem_rule(x: Node, *arrays: Node, index: Index) -> Node | None:
    """New axes and elements of axes of length one are a reshape; a step backwards is a flip, then
    a step forwards.
    """
    if not arrays and all(i in (None, ALL, ZERO) for i in index):
        axes = iter(x.shape)
        sizes = [ONE if i is None else next(axes) for i in index]
        if all(size == ONE for i, size in zip(index, sizes, strict=True) if i == ZERO):
            kept = [size for i, size in zip(index, sizes, strict=True) if i != ZERO]
            return build("reshape", x, shape=(*kept, *axes))
    return turned(x, *arrays, index=index)


def turned(x: Node, *arrays: Node, index: Index) -> Node | None:
    """A selection with steps backwards as one of the flipped array, with steps forwards."""
    w = world()
    axis, axes, new = 0, [], []
    for i in index:
        if isinstance(i, slice) and i.step is not None and w.length(i.step) < 0:
            count = slice_size(i, x.shape[axis])
            size, step = x.shape[axis], -Size.of(i.step)
            start = ZERO if i.start is None else size - 1 - from_start(i.start, size)
            if w.length(start) < 0:
                start = ZERO
            stop = None if i.stop is None else start + (count - 1) * step + 1
            axes.append(axis)
            new.append(slice(None if start == ZERO else start, stop, None if step == ONE else step))
        else:
            new.append(i)
        if i is not None:
            axis += arrays[i.at].ndim if isinstance(i, Slot) and arrays[i.at].kind == "b" else 1
    if not axes:
        return None
    return build("getitem", build("flip", x, axis=tuple(axes)), *arrays, index=tuple(new))


def from_start(bound: Any, size: Size) -> Size:
    """A place counted from the start; on the example it tells which end it was counted from."""
    place = Size.of(bound)
    return place if world().length(place) >= 0 else size + place


def zeros_for(g: Node, like: Node) -> Node:
    """Zeros in the shape of an operand that can hold its gradient."""
    return build("zeros", shape=like.shape, **({"kind": "c"} if g.kind == "c" else {}))


def getitem_vjp(g: Node, y: Node, x: Node, *arrays: Node, index: Index) -> Gradients:
    placed = build("add_at", zeros_for(g, x), g, *arrays, index=index)
    return (placed, *(None,) * len(arrays))


def change(add: bool) -> Any:
    """The evaluation of a change: the array with a value put or added at an index."""

    def evaluate(base: Any, value: Any, *arrays: Any, index: Index) -> Any:
        arrayed = np.ndim(value) or isinstance(value, np.generic)
        out = np.array(base, dtype=np.result_type(base, value) if arrayed else None)
        where = filled(index, arrays)
        if not add:
            out[where] = value
        elif arrays:
            np.add.at(out, where, value)
        else:
            out[where] += value
        return out

    return evaluate


def changed(base: Node, value: Node, *arrays: Node, index: Index) -> Shaped:
    """Sizes of an array after a change."""
    kinds = {base.kind, value.kind}
    return base.shape, next((k for k in "cf" if k in kinds), base.kind)


def add_at_vjp(g: Node, y: Node, b: Node, v: Node, *arrays: Node, index: Index) -> Gradients:
    read = unbroadcast(build("getitem", g, *arrays, index=index), v)
    return (g, read, *(None,) * len(arrays))


def store_vjp(g: Node, y: Node, b: Node, v: Node, *arrays: Node, index: Index) -> Gradients:
    kept = build("store", g, 0.0, *arrays, index=index)
    read = last_writers(build("getitem", g, *arrays, index=index), b, arrays, index)
    return (kept, unbroadcast(read, v), *(None,) * len(arrays))


def complex_base(node: Node) -> Node:
    """An array that can take complex values, from where it is made."""
    if node.op == "zeros":
        return build("zeros", shape=node.shape, kind="c")
    if node.op in ("add_at", "store"):
        return build(node.op, complex_base(node.args[0]), *node.args[1:], **node.attrs)
    return build("astype", node, kind="c")


def add_at_rule(base: Node, value: Node, *arrays: Node, index: Index) -> Node | None:
    """An array in which complex values are put is complex before."""
    if value.kind == "c" and base.kind != "c":
        return build("add_at", complex_base(base), value, *arrays, index=index)
    return None


def store_rule(base: Node, value: Node, *arrays: Node, index: Index) -> Node | None:
    """x[i] = x[i] + v adds at i."""
    if value.kind == "c" and base.kind != "c":
        return build("store", complex_base(base), value, *arrays, index=index)
    if value.op != "add" or arrays:
        return None
    for old, v in (value.args, value.args[::-1]):
        if old.op == "getitem" and old.args[0] is base and old.attrs["index"] == index:
            return build("add_at", base, v, index=index)
    return None


_M, _N, _L = Size.of("M"), Size.of("N"), Size.of("L")
_SAMPLES = (
    Sample(("M N",), {"index": (ZERO,)}),
    Sample(("M N",), {"index": (ALL, slice(ONE, _N - 1, None))}),
    Sample(("M N",), {"index": (slice(None, None, Size.of(2)),)}),
    Sample(("M N",), {"index": (slice(None, None, Size.of(-1)), ALL)}),
    Sample(("M N",), {"index": (ALL, slice(Size.of(-2), None, Size.of(-2)))}),
    Sample(("M N",), {"index": (slice(_M - 1, ZERO, Size.of(-2)), ALL)}),
    Sample(("M N", "L"), {"index": (Slot(0),)}, (normal, whole)),
    Sample(("M N L", "K", "K"), {"index": (Slot(0), ALL, Slot(1))}, (normal, whole, whole)),
    Sample(("M N L", "K 1", "M"), {"index": (ALL, Slot(0), Slot(1))}, (normal, whole, whole)),
    Sample(("M N", "M N"), {"index": (Slot(0),)}, (normal, mask)),
    Sample(("M N", "M"), {"index": (Slot(0),)}, (normal, mask)),
)
_CHANGED = (
    Sample(("M N", "N"), {"index": (ZERO,)}),
    Sample(("M N", ""), {"index": (ALL, slice(ONE, _N - 1, None))}),
    Sample(("M N", "M N"), {"index": (slice(None, None, Size.of(-1)), ALL)}),
    Sample(("M N", "M N", "M"), {"index": (Slot(0),)}, (normal, normal, whole)),
)

record(
    "getitem",
    lambda x, *arrays, index: x[filled(index, arrays)],
    indexed,
    getitem_vjp,
    text=lambda e, n: f"{e.arg(n.args[0], 9)}[{index_text(e, n, n.args[1:])}]",
    rewrite=getitem_rule,
    samples=_SAMPLES,
)
record(
    "add_at",
    change(True),
    changed,
    add_at_vjp,
    text=lambda e, n: e.call("added", n.args[:2], at=e.index(n)),
    rewrite=add_at_rule,
    samples=_CHANGED,
)
record(
    "store",
    change(False),
    changed,
    store_vjp,
    text=lambda e, n: e.call("stored", n.args[:2], at=e.index(n)),
    rewrite=store_rule,
    samples=_CHANGED,
)
