"""What operations are as sums of products: one rule for each kind.

A rule gives the sum over the indices of the result's axes, or None where the operation is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from handgrad.deriving.arrays import free
from handgrad.deriving.forward import Reader, rule, shape_of
from handgrad.deriving.terms import (
    ONE,
    Factor,
    Index,
    Power,
    Sum,
    add,
    fresh_index,
    multiply,
    of,
    powered,
    renamed,
    scaled,
    summed,
    term,
)
from handgrad.program.functions import Attribute
from handgrad.program.nodes import Node

#: A product of two sums of more terms than this together stays a product of arrays.
_MOST_TERMS: Final = 4


def axes_of(node: Node, name: str = "axis", position: int = 1) -> tuple[int, ...] | None:
    """The axes that an operation is along, all for None; None where they are not integers."""
    given = node.kwargs.get(name, node.args[position] if len(node.args) > position else None)
    if name == "axis" and "dim" in node.kwargs:
        given = node.kwargs["dim"]
    dimensions = len(shape_of(node.operands[0]))
    if given is None:
        return tuple(range(dimensions))
    given = given if isinstance(given, tuple | list) else (given,)
    if not all(isinstance(each, int | np.integer) for each in given):
        return None
    return tuple(int(each) % max(dimensions, 1) for each in given)


def _arranged(reader: Reader, node: Node, order: Sequence[int | None]) -> Sum:
    """The operand where axis i of the result is its axis order[i]; None for a new one."""
    own, layout = free(reader.axes(node.operands[0])), free(reader.axes(node))
    names = {
        own[at]: index
        for at, index in zip(order, layout, strict=True)
        if at is not None and own[at] is not None and index is not None
    }
    return renamed(reader.sum_of(node.operands[0]), names)  # type: ignore[arg-type]


@rule("add", "subtract")
def _add(reader: Reader, node: Node) -> Sum | None:
    pair = reader.pair(node)
    if pair is None:
        return None
    return add(pair[0], scaled(pair[1], 1 if node.op == "add" else -1))


@rule("negative")
def _negative(reader: Reader, node: Node) -> Sum:
    return scaled(reader.sum_of(node.operands[0]), -1)


@rule("positive", "asarray", "astype", "copy", "real", "ascontiguousarray")
def _same(reader: Reader, node: Node) -> Sum | None:
    if len(node.operands) != 1 or shape_of(node) != shape_of(node.operands[0]):
        return None
    return reader.sum_of(node.operands[0])


@rule("zeros", "zeros_like")
def _zeros(reader: Reader, node: Node) -> Sum:
    return {}


@rule("ones", "ones_like")
def _ones(reader: Reader, node: Node) -> Sum:
    return ONE


@rule("multiply")
def _multiply(reader: Reader, node: Node) -> Sum | None:
    pair = reader.pair(node)
    if pair is None:
        return None
    if node.args[0] is node.args[1] and len(pair[0]) > 1:
        return powered(reader.single(node, node.args[0], reader.axes(node)), 2)
    return _product(reader, node, *pair)


def _product(reader: Reader, node: Node, first: Sum, second: Sum) -> Sum:
    """The product; a long sum in it is an array of its own."""
    axes = reader.axes(node)
    if len(first) * len(second) > 1 and len(first) + len(second) > 2:
        if len(first) > 1 and isinstance(node.args[0], Node) and _grows(first, second):
            first = reader.single(node, node.args[0], axes)
        if len(second) > 1 and isinstance(node.args[1], Node) and _grows(second, first):
            second = reader.single(node, node.args[1], axes)
    return multiply(first, second)


def _grows(sum_: Sum, other: Sum) -> bool:
    """Return whether multiplying out is worth no more than a name: more than a number's worth."""
    return any(f.indices for each in other for f in each.factors) or len(sum_) > _MOST_TERMS


@rule("divide")
def _divide(reader: Reader, node: Node) -> Sum | None:
    pair = reader.pair(node)
    if pair is None:
        return None
    first, second = pair
    below = powered(second, -1)
    if below is None:
        if not isinstance(node.args[1], Node):
            return None
        below = powered(reader.single(node, node.args[1], reader.axes(node)), -1)
        assert below is not None
    if len(first) > 1 and isinstance(node.args[0], Node) and _grows(first, below):
        first = reader.single(node, node.args[0], reader.axes(node))
    return multiply(first, below)


@rule("square", "sqrt", "reciprocal", "rsqrt")
def _fixed_power(reader: Reader, node: Node) -> Sum | None:
    power = {"square": "2", "sqrt": "1/2", "reciprocal": "-1", "rsqrt": "-1/2"}[node.op]
    return _power(reader, node, Fraction(power))


@rule("pow")
def _pow(reader: Reader, node: Node) -> Sum | None:
    exponent = node.args[1]
    if not isinstance(node.args[0], Node) or isinstance(exponent, Node):
        return None
    if not isinstance(exponent, int | float) or exponent != reader.twins[node].args[1]:
        return None
    power = Fraction(exponent).limit_denominator(4)
    return _power(reader, node, power) if power == exponent else None


def _power(reader: Reader, node: Node, power: Power) -> Sum | None:
    operand = node.operands[0]
    found = powered(reader.sum_of(operand), power)
    if found is None:
        found = powered(reader.single(node, operand, reader.axes(node)), power)
    return found


@rule("sum", "mean")
def _sum(reader: Reader, node: Node) -> Sum | None:
    axes = axes_of(node)
    if axes is None or len(node.operands) != 1:
        return None
    operand = node.operands[0]
    own, layout = free(reader.axes(operand)), list(free(reader.axes(node)))
    keeps = len(own) == len(layout)
    names: dict[Index, Index] = {}
    bound: list[Index] = []
    for at, index in enumerate(own):
        if at in axes:
            if keeps:
                layout.pop(0)
            if index is not None:
                names[index] = fresh_index(index.dimension)
                bound.append(names[index])
            continue
        its = layout.pop(0)
        if index is not None and its is not None:
            names[index] = its
    found = summed(renamed(reader.sum_of(operand), names), bound)
    if node.op == "mean":
        sizes = (Factor(f"#{index.dimension}", (), -1) for index in bound)
        found = multiply(found, {term(sizes, ()): Fraction(1)})
    return found


@rule("var", "std")
def _var(reader: Reader, node: Node) -> Sum | None:
    """The mean of the squared deviations, as arrays of their own."""
    axes, operand = axes_of(node), node.operands[0]
    given = [node.kwargs.get(name, 0) for name in ("ddof", "correction")]
    if axes is None or any(given) or len(node.operands) != 1 or "where" in node.kwargs:
        return None
    x, own = reader.array_of(operand), reader.axes(operand)
    along = axes[0] if len(axes) == 1 else axes
    kept = tuple(None if at in axes else axis for at, axis in enumerate(own))
    averaged = [index for at, index in enumerate(free(own)) if at in axes and index is not None]
    sizes = {term((Factor(f"#{i.dimension}", (), -1) for i in averaged), ()): Fraction(1)}

    def mean(of_: Sum, indices: tuple[Index | None, ...]) -> Sum:
        bound = {index: fresh_index(index.dimension) for index in averaged}
        left = [i for i in free(own) if i is not None and i not in bound]
        names = bound | dict(zip(left, [i for i in indices if i is not None], strict=True))
        return multiply(summed(renamed(of_, names), bound.values()), sizes)

    code = f"np.mean({x}, axis={along}, keepdims=True)"
    average = reader.step(f"mean_{x}", kept, mean(reader.sum_of(operand), free(kept)), code)
    deviation = add(reader.sum_of(operand), scaled(of(average.name, average.indices), -1))
    centred = reader.step(f"{x}_centred", own, deviation, f"{x} - {average.name}")
    square = of(centred.name, centred.indices, 2)
    layout = free(reader.axes(node))
    found = mean(square, layout)
    if node.op == "var":
        return found
    code = f"np.var({x}, axis={along}, keepdims={len(layout) == len(own)})"
    var = reader.step(f"var_{x}", reader.axes(node), found, code)
    return of(var.name, var.indices, Fraction(1, 2))


@rule("norm")
def _norm(reader: Reader, node: Node) -> Sum | None:
    """The root of the sum of squares."""
    axes, operand = axes_of(node, position=2), node.operands[0]
    if axes is None or len(node.args) > 1 or node.kwargs.get("ord") not in (None, 2):
        return None
    if len(axes) != 1 and node.kwargs.get("ord") is not None:
        return None
    x, own, layout = reader.array_of(operand), reader.axes(operand), free(reader.axes(node))
    inner = {i: fresh_index(i.dimension) for at, i in enumerate(free(own)) if at in axes and i}
    left = [i for at, i in enumerate(free(own)) if at not in axes and i]
    names = inner | dict(zip(left, [i for i in layout if i], strict=True))
    square = multiply(reader.sum_of(operand), reader.sum_of(operand))
    along = axes[0] if len(axes) == 1 else axes
    code = f"np.sum({x} * {x}, axis={along}, keepdims={len(layout) == len(own)})"
    total = reader.step(
        f"squares_{x}", reader.axes(node), summed(renamed(square, names), inner.values()), code
    )
    return of(total.name, total.indices, Fraction(1, 2))


@rule("matmul", "dot", "vecdot", "inner")
def _matmul(reader: Reader, node: Node) -> Sum | None:
    if len(node.args) != 2 or not all(isinstance(each, Node) for each in node.args):
        return None
    left, right = node.args
    one, two = reader.axes(left), reader.axes(right)
    if node.op == "dot" and (len(one) > 2 or len(two) > 2):
        return None
    along = -1 if node.op in ("vecdot", "inner") or len(two) == 1 else -2
    if node.op == "inner" and max(len(one), len(two)) > 1:
        return None
    layout = list(free(reader.axes(node)))
    contracted = fresh_index(one[-1]) if one[-1] is not None else None
    pair_of_vectors = node.op in ("vecdot", "inner")
    columns = [layout.pop()] if len(two) > 1 and not pair_of_vectors else []
    rows = [layout.pop()] if len(one) > 1 and not pair_of_vectors else []

    def over(axes: tuple[str | None, ...], value: Node, own: list[Any], at: int) -> Sum:
        batch = len(axes) - 1 - len(own)
        places = [*layout[len(layout) - batch :], *own] if batch else [*own]
        places.insert(len(places) + 1 + at, contracted)
        pairs = zip(free(axes), places, strict=True)
        return renamed(reader.sum_of(value), {i: j for i, j in pairs if i and j})

    first, second = over(one, left, rows, -1), over(two, right, columns, along)
    if len(first) > 1:
        reader.array_of(left)
        first = over(one, left, rows, -1)
    if len(second) > 1:
        reader.array_of(right)
        second = over(two, right, columns, along)
    return multiply(first, second, [contracted] if contracted else [])


@rule("einsum")
def _einsum(reader: Reader, node: Node) -> Sum | None:
    subscripts, *operands = node.args
    if not isinstance(subscripts, str) or "." in subscripts:
        return None
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    groups = inputs.split(",")
    if not arrow:
        letters = "".join(groups)
        output = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    if any(len(set(each)) < len(each) for each in groups) or len(operands) != len(groups):
        return None
    names = dict(zip(output, free(reader.axes(node)), strict=True))
    bound: list[Index] = []
    found = ONE
    for letters, operand in zip(groups, operands, strict=True):
        for letter, dimension in zip(letters, reader.axes(operand), strict=True):
            if letter not in names:
                names[letter] = None if dimension is None else fresh_index(dimension)
                if (index := names[letter]) is not None:
                    bound.append(index)
        if len(reader.sum_of(operand)) > 1:
            reader.array_of(operand)
        pairs = zip(free(reader.axes(operand)), letters, strict=True)
        its = {i: names[letter] for i, letter in pairs if i and names[letter]}
        found = multiply(found, renamed(reader.sum_of(operand), its))  # type: ignore[arg-type]
    return summed(found, bound)


@rule("permute_dims", "matrix_transpose", "swapaxes", "moveaxis")
def _permute(reader: Reader, node: Node) -> Sum | None:
    count = len(shape_of(node))
    order = np.arange(count)
    if node.op == "matrix_transpose":
        is_all = isinstance(node.function, Attribute) and node.function.name == "T"
        order = order[::-1] if is_all else np.array([*range(count - 2), count - 1, count - 2])
    elif node.op == "permute_dims":
        given = node.kwargs.get("axes", node.args[1:])
        given = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
        order = np.array([int(each) % count for each in given] if given else order[::-1])
    else:
        moved = np.swapaxes if node.op == "swapaxes" else np.moveaxis
        order = np.array(moved(np.empty(tuple(range(2, 2 + count))), *node.args[1:]).shape) - 2
    return _arranged(reader, node, [int(each) for each in order])


@rule("expand_dims", "squeeze", "reshape", "broadcast_to")
def _ones_inshape_of(reader: Reader, node: Node) -> Sum | None:
    """Axes of length one come and go."""
    if len(node.operands) != 1:
        return None
    own, layout = reader.axes(node.operands[0]), reader.axes(node)
    if node.op == "broadcast_to":
        return reader.operand(node, node.operands[0], None, layout)
    if [each for each in own if each] != [each for each in layout if each]:
        return None
    kept = iter([at for at, each in enumerate(own) if each])
    return _arranged(reader, node, [next(kept) if each else None for each in layout])


@rule("getitem")
def _new_axes(reader: Reader, node: Node) -> Sum | None:
    """An index of whole axes, new ones, and the only element of an axis: x[:, None], m[:, 0]."""
    index = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    own = reader.axes(node.operands[0])
    taken = sum(1 for each in index if isinstance(each, slice | int) and each is not None)
    order: list[int | None] = []
    at = 0
    for each in index:
        if each is None:
            order.append(None)
        elif each is Ellipsis:
            order += range(at, at + len(own) - taken)
            at += len(own) - taken
        elif isinstance(each, slice) and each == slice(None):
            order.append(at)
            at += 1
        elif each in (0, -1) and isinstance(each, int) and own[at] is None:
            at += 1
        else:
            return None
    return _arranged(reader, node, [*order, *range(at, len(own))])


@rule("where")
def _where(reader: Reader, node: Node) -> Sum | None:
    """M a + (1 − M) b for the mask M."""
    if len(node.args) != 3 or not isinstance(node.args[0], Node):
        return None
    axes, twin = reader.axes(node), reader.twins[node]
    if is_guard(node.args[0]) and not any(np.any(n.value) for n in (node.args[0], twin.args[0])):
        return reader.operand(node, node.args[2], twin.args[2], axes)
    mask = reader.single(node, node.args[0], axes)
    ((factors, _), _) = next(iter(mask.items()))
    inverse = of(f"[~{factors[0].name[1:]}", factors[0].indices)
    parts = []
    for which, at in ((mask, 1), (inverse, 2)):
        value = node.args[at]
        found = reader.operand(node, value, twin.args[at], axes)
        if found is None:
            return None
        if len(found) > 1 and isinstance(value, Node):
            found = reader.single(node, value, axes)
        parts.append(multiply(which, found))
    return add(*parts)


def is_guard(condition: Node) -> bool:
    """Return whether a condition holds at single points only, as x == 0 and isinf(x) do.

    The gradient there is that of the points around them.
    """
    if condition.op in ("bitwise_and", "bitwise_or", "logical_and", "logical_or"):
        return any(is_guard(each) for each in condition.operands)
    return condition.op in ("equal", "isinf", "isnan")
