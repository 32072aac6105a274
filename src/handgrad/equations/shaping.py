"""Operations that say only where values stand, and what they do to the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from handgrad.documents.formulas.formula import Formula, Sign, separated
from handgrad.program import Node, arranging
from handgrad.program.arranging import turned
from handgrad.program.functions import is_array
from handgrad.program.sizes import ONE, Size

#: An index for each of the last axes of a value; None for an axis without one.
Subscripts = tuple[Formula | None, ...]

#: Arrays without values.
UNFILLED: Final = frozenset({"empty", "empty_like"})
#: Arrays that are written into.
EMPTY: Final = UNFILLED | {"zeros", "zeros_like"}
#: Operations that read the shape of an array, and not its values.
OF_SHAPES: Final = frozenset({"size", "zeros_like", "ones_like", "full_like", "empty_like"})
#: Operations whose result has the values of their operand, in order: also those of the ops' helpers
#: and of Python.
SHAPING: Final = arranging.SHAPING | {
    *("grouped", "ungrouped", "per_axis", "rows", "view", "float", "int", "tuple", "list"),
}


def shape(node: Any) -> tuple[Size, ...]:
    """The sizes of the axes of an array."""
    value = node.value if isinstance(node, Node) else node
    if not is_array(value):
        return ()
    known = node.sizes if isinstance(node, Node) else None
    return tuple(map(Size.of, value.shape)) if known is None else known


def len_of(node: Node, axis: int) -> int:
    """The length of an axis in the example."""
    return int(np.shape(node.value)[axis])


def whole_number(value: Any) -> Size:
    """A whole number, in letters where it is made of sizes."""
    if isinstance(value, Node) and value.sizes is not None:
        return value.sizes[0]
    return Size.of(int(number(value)))


def shaped(node: Node) -> Any:
    """The value that a node is only another shape of; None where it is more than that."""
    if not node.args:
        return None
    if node.op == "getitem":
        array, index = node.args
        return array if only_new_axes(index) else stored_at(array, index)
    if node.op in SHAPING and isinstance(node.args[0], Node):
        return node.args[0]
    if node.op == "element" and isinstance(node.args[0], Node) and node.args[0].op == "per_axis":
        return node.args[0]
    if node.op == "sum_to" and shape(node) == shape(node.args[0]):
        return node.args[0]
    return None


def stacked(node: Any) -> tuple[tuple[Node, ...], int] | None:
    """The arrays that stand along an axis, counted from the last, and that axis: what was stacked,
    or written into an array one by one."""
    if not isinstance(node, Node):
        return None
    if node.op == "stack":
        return (tuple(node.args[0]), axis_of(node)) if all(map(shape, node.args[0])) else None
    if node.op == "asarray" and isinstance(node.args[0], list) and all(map(shape, node.args[0])):
        return tuple(node.args[0]), -len(shape(node))
    items: dict[int, Node] = {}
    axes: set[int] = set()
    while node.op == "store" and isinstance(node.args[0], Node):
        array, index, value = node.args
        every = _places(index) or ()
        places = [(i, each) for i, each in enumerate(every) if isinstance(each, int)]
        if len(places) != 1 or any(each != slice(None) for each in every if each != places[0][1]):
            return None
        axis, place = places[0]
        axes.add(axis)
        if shape(value) != (*shape(node)[:axis], *shape(node)[axis + 1 :]):
            return None
        if items.setdefault(place % max(len_of(node, axis), 1), value) is not value:
            return None
        node = array
    if node.op not in EMPTY or len(axes) != 1 or len(items) != len_of(node, axis):
        return None
    return tuple(items[place] for place in range(len(items))), axis - len(shape(node))


def _places(index: Any) -> tuple[Any, ...] | None:
    """An index of numbers and slices, without what stands for all the rest behind; None for any
    other."""
    found = [
        slice(number(each.start), number(each.stop), number(each.step))
        if isinstance(each, slice)
        else number(each)
        for each in positions(index)
    ]
    if found and found[-1] is ...:
        found.pop()
    if not all(isinstance(each, int | slice) for each in found):
        return None
    while found and found[-1] == slice(None):
        found.pop()
    return tuple(int(each) if isinstance(each, int) else each for each in found)


def stored_at(array: Any, index: Any) -> Node | None:
    """The value that was written into an array at an index."""
    wanted = _places(index)
    while isinstance(array, Node) and array.op == "store":
        base, at, value = array.args
        there = _places(at)
        if there is None or wanted is None:
            return None
        if there == wanted:
            if not isinstance(value, Node):
                return None
            return value if np.shape(value.value) == np.shape(array.value[there]) else None
        apart = zip(there, wanted, strict=False)
        if not any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in apart):
            return None
        array = base
    return None


def bare(value: Any) -> Any:
    """The value without operations that only shape it."""
    while isinstance(value, Node) and (inner := shaped(value)) is not None:
        value = inner
    return value


def only_new_axes(index: Any) -> bool:
    return all(
        each is None or each is ... or (isinstance(each, slice) and each == slice(None))
        for each in positions(index)
    )


def positions(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def carried(node: Any, subscripts: Subscripts) -> Subscripts:
    """The subscripts of the axes that this value has itself, and not by being broadcast."""
    if not any(subscripts):
        return ()
    own_shape = shape(node)
    own = (
        subscripts[len(subscripts) - len(own_shape) :]
        if len(own_shape) < len(subscripts)
        else subscripts
    )
    return tuple(
        None if size == ONE else subscript
        for size, subscript in zip(own_shape[len(own_shape) - len(own) :], own, strict=True)
    )


def subscript_of(subscripts: Subscripts) -> Formula | None:
    """The index that the subscripts are together: `d`, or `n, :, h` with gaps between."""
    given = [i for i, subscript in enumerate(subscripts) if subscript is not None]
    if not given:
        return None
    between = subscripts[given[0] : given[-1] + 1]
    return separated(tuple(Sign(":") if subscript is None else subscript for subscript in between))


def through(node: Any, inner: Any, subscripts: Subscripts) -> Subscripts:
    """The subscripts of `inner`, of which `node` is another shape."""
    if not any(subscripts):
        return ()
    outside, inside = shape(node), shape(inner)
    if outside == inside:
        return subscripts
    every: Subscripts = (*(None for _ in range(len(outside) - len(subscripts))), *subscripts)
    if [size for size in outside if size != ONE] == [size for size in inside if size != ONE]:
        left = [subscript for size, subscript in zip(outside, every, strict=True) if size != ONE]
        return tuple(None if size == ONE else left.pop(0) for size in inside)
    joined = len(inside) - len(outside) + 1
    if joined > 1 and every[0] is not None and math.prod(inside[:joined]) == outside[0]:
        # The rows of several axes, counted as one.
        return (every[0], *(None for _ in range(joined - 1)), *every[1:])
    same = _same_last(outside, inside)
    by_size = {
        size: subscript
        for size, subscript in zip(outside, every, strict=True)
        if subscript is not None and outside.count(size) == 1
    }
    before = inside[: len(inside) - same]
    return (
        *(by_size.get(size) if inside.count(size) == 1 else None for size in before),
        *(every[len(every) - same :]),
    )


def _same_last(outside: tuple[Size, ...], inside: tuple[Size, ...]) -> int:
    """The number of the last axes that a reshape leaves as they are."""
    count = 0
    for one, other in zip(reversed(outside), reversed(inside), strict=False):
        if one != other:
            break
        count += 1
    return count


def of_rows(subscripts: Subscripts, right: int) -> Subscripts:
    """The subscripts of a product's left factor, where the right one has so many axes."""
    if not subscripts:
        return ()
    return (*subscripts, None) if right == 1 else (*subscripts[:-1], None)


def of_columns(subscripts: Subscripts, left: int, right: int) -> Subscripts:
    """The subscripts of a product's right factor, where the factors have so many axes."""
    if not subscripts or right == 1:
        return ()
    return (*subscripts[: -1 if left == 1 else -2], None, subscripts[-1])


def argument(node: Node, position: int, *names: str) -> Any:
    """An argument by its position or by one of its names; None where it is not given."""
    for name in names:
        if name in node.kwargs:
            return node.kwargs[name]
    return node.args[position] if len(node.args) > position else None


def number(value: Any) -> Any:
    return value.value if isinstance(value, Node) else value


def axis_of(node: Node, position: int = 1) -> int:
    """The axis of a stack or a flip, counted from the last of the result."""
    axis = number(argument(node, position, "axis", "dim"))
    count = len(shape(node))
    return int(axis or 0) % max(count, 1) - count


# The origin of an axis

_ELEMENTWISE: Final = frozenset(
    {
        *("abs", "activate", "clip", "cos", "erf", "exp", "expm1", "flip", "log", "log1p", "sqrt"),
        *("logistic", "maximum", "minimum", "negative", "sigmoid", "sign", "sin", "square", "tanh"),
        *("add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal"),
        *("greater", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_invert", "where"),
        *("logical_and", "logical_or", "logical_not", "isinf", "isnan", "activation_gradient"),
    }
)
_WITHOUT: Final = frozenset({"arange", "full_like", "ones_like", "zeros_like", "zeros", "ones"})


def sources(node: Any, axis: int) -> Iterator[tuple[Node, int] | None]:
    """The operands that have this axis of a value, counted from the last, and which of theirs it
    is; None where it comes from something else."""
    own = shape(node)
    if not isinstance(node, Node) or len(own) < -axis or own[axis] == ONE:
        return
    inner = shaped(node)
    if inner is not None:
        found = same_axis(own, shape(inner), axis)
        yield None if found is None else (inner, found)
        return
    match node.op, node.args:
        case op, args if op in _ELEMENTWISE:
            for part in args:
                if isinstance(part, Node) and part.op in _WITHOUT:
                    continue
                there = shape(part)
                if isinstance(part, Node) and len(there) >= -axis and there[axis] != ONE:
                    yield part, axis
        case "pow", (base, *_):
            yield base, axis
        case "matmul" | "dot", (left, right):
            if len(shape(right)) == 1:
                yield left, axis - 1
                return
            if axis != -1 and len(shape(left)) >= -axis:
                yield left, axis
            if axis != -2 and len(shape(right)) >= -axis:
                yield right, axis
        case _, (value, *_) if (order := turned(node)) is not None:
            yield value, order[axis] - len(order)
        case op, _ if op in _WITHOUT:
            return
        case "getitem", (value, index) if (kept := kept_axes(value, index)) is not None:
            yield value, kept[axis]
        case "element", (Node(op="blocks") as whole, _):
            yield whole.args[0], axis
        case _:
            yield None


def kept_axes(value: Any, index: Any) -> list[int] | None:
    """The axes that slices leave of an array, counted from the last; None for other indices."""
    every = positions(index)
    axes = len(shape(value))
    if ... in [each for each in every if not isinstance(each, Node)]:
        return None
    kept: list[int] = []
    for i, each in enumerate(every):
        if isinstance(each, slice):
            kept.append(i - axes)
        elif not (isinstance(each, Node) and each.op in ("counter", "add", "subtract")):
            return None
    return [*kept, *range(len(every) - axes, 0)]


def same_axis(outside: tuple[Size, ...], inside: tuple[Size, ...], axis: int) -> int | None:
    """The axis of another shape of the same array; None where axes are joined or parted."""
    common = min(len(outside), len(inside), -axis)
    if outside[len(outside) - common :] == inside[len(inside) - common :] and common == -axis:
        return axis
    if [size for size in outside if size != ONE] != [size for size in inside if size != ONE]:
        return None
    later = sum(size != ONE for size in outside[axis:])
    places = [i - len(inside) for i, size in enumerate(inside) if size != ONE]
    return places[-later]
