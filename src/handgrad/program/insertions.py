"""Insertions into a wrong backward: one factor, term, mean or transpose more, at any part of it.

Brackets elsewhere, the derivative of another activation and a factor from one pass of a loop to the
next count among them. With these a backward that is short of something can be put right, and what
puts it right is what was missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from handgrad.program.arranging import is_transpose
from handgrad.program.edits import (
    Edit,
    Variant,
    by_site,
    is_floats,
    merged,
    recomputed,
)
from handgrad.program.functions import added_at, average, chosen, flipped, total
from handgrad.program.nodes import Node, Program
from handgrad.program.running import Change
from handgrad.program.text import SHAPING, definition, symbol, text

#: Operations that a factor passes through.
_SCALES: Final = frozenset({"multiply", "negative"})


def insertions(program: Program) -> list[Edit]:
    """Every insertion behind an operation that the program made, or before one of its operands."""
    return [edit for source in sources(program) for edit in source]


def sources(program: Program) -> Iterator[Iterator[Edit]]:
    """The insertions in parts, each made when it is read."""
    groups = by_site(program)
    for group in groups:
        yield merged(program, group, _variants)
    for group in groups:
        if len(group) > 1:
            yield _carried(program, group)


def _carried(program: Program, group: list[Node]) -> Iterator[Edit]:
    """A factor that what all passes of a loop read should get from each pass to the next."""
    read = set.intersection(*(set(node.operands) for node in group))
    known = program.named_before(group[0])
    for operand in (each for each in group[0].operands if each in read and is_floats(each.value)):
        for name, other in known.items():
            if not is_floats(other.value) or other is operand:
                continue
            if broadcasts(np.shape(other.value), np.shape(operand.value)):
                changes = {
                    node: _before(node, operand, _power(other, passes))
                    for passes, node in enumerate(group)
                }
                part = f"{symbol(name)} of {text(operand)}"
                yield Edit("carry inserted", part, group[0].line, changes)


def _power(other: Node, exponent: int) -> Change:
    return lambda own, of: own * of(other) ** exponent


def _variants(program: Program, node: Node) -> Iterator[Variant]:
    # An array that has several names goes by the last.
    known = {other: name for name, other in program.named_before(node).items()}
    yield from _behind(node, known)
    if node.op == "store":
        yield from _of_store(node)
    if node.op == "getitem":
        yield from _of_getitem(node)
    if node.op in ("multiply", "matmul"):
        yield from _other_brackets(node)
    if node.op in ("multiply", "subtract"):
        yield from _other_derivative(node)
    if node.op == "cumulative_sum":
        yield Variant("flip inserted", definition(node), _from_the_end(node))
    if node.op in _SCALES or node.op in SHAPING:
        return  # the same as behind it
    for operand in dict.fromkeys(node.operands):
        if operand.name or operand.function is None:
            for kind, part, change in _behind(operand, known):
                if kind != "transpose inserted" or not is_transpose(node):
                    yield Variant(kind, part, _before(node, operand, change))


def _of_store(node: Node) -> Iterator[Variant]:
    """`=` on elements as `+=`, and `+=` with an index that has some elements more than once."""
    array, index, value = node.args
    label = text(array)

    def added(own: Any, of: Any) -> Any:
        return added_at(of(array), of(index), of(value))

    def added_again(own: Any, of: Any) -> Any:
        at = of(index)
        return added_at(of(array), at, of(value) - of(array)[at])

    yield Variant("sum inserted", label, added)
    yield Variant("sum inserted", label, added_again)


def _of_getitem(node: Node) -> Iterator[Variant]:
    """The same elements, one further along one axis, or along all that are cut."""
    array, index = node.args
    parts = index if isinstance(index, tuple) else (index,)
    cut = [i for i, part in enumerate(parts) if isinstance(part, slice) and _bounds(part)]
    for axes in dict.fromkeys([*((axis,) for axis in cut), tuple(cut)]):
        for by in (1, -1) if axes else ():
            moved = [_moved(each, by) if i in axes else each for i, each in enumerate(parts)]
            yield Variant("shift inserted", definition(node), _with_index(array, tuple(moved)))


def _bounds(part: slice) -> list[int]:
    return [each for each in (part.start, part.stop) if type(each) is int]


def _moved(part: slice, by: int) -> slice:
    stop = None if part.stop is None else part.stop + by
    return slice((part.start or 0) + by, stop, part.step)


def _with_index(array: Any, index: Any) -> Change:
    return lambda own, of: of(array)[of(index)]


def _other_brackets(node: Node) -> Iterator[Variant]:
    """a (b @ c) as (a b) @ c, and the other way round; so for (a @ b) c."""
    outer, inner = node.op, "matmul" if node.op == "multiply" else "multiply"
    left, right = node.args
    label = definition(node)
    if isinstance(right, Node) and right.op == inner and not right.name:
        b, c = right.args
        yield Variant(
            "brackets moved",
            label,
            lambda own, of: _product(inner, _product(outer, of(left), of(b)), of(c)),
        )
    if isinstance(left, Node) and left.op == inner and not left.name:
        a, b = left.args
        yield Variant(
            "brackets moved",
            label,
            lambda own, of: _product(inner, of(a), _product(outer, of(b), of(right))),
        )


def _product(op: str, left: Any, right: Any) -> Any:
    return left @ right if op == "matmul" else left * right


def _other_derivative(node: Node) -> Iterator[Variant]:
    """1 − a², the derivative of tanh, as a (1 − a), that of sigmoid, and the other way round.

    a (1 − a) is also the diagonal of the Jacobian of softmax, for which the whole stands.
    """
    if node.op == "subtract":
        a = _root(node.args[1]) if _is_one(node.args[0]) else None
        if a is not None:
            label = f"1 − {text(a)}²"
            yield Variant("derivative of sigmoid", label, lambda own, of: of(a) * (1.0 - of(a)))
        return
    factors = _factors(node)
    for i, factor in enumerate(factors):
        a = _complement(factor)
        others = [each for j, each in enumerate(factors) if j != i]
        if a is not None and a in others:
            others.remove(a)
            label = f"{text(a)} (1 − {text(a)})"
            yield Variant("derivative of tanh", label, _with_tanh(a, others))
            for axis in range(np.ndim(node.value)):
                yield Variant("whole softmax", label, _with_softmax(a, others, axis))


def _with_tanh(a: Node, others: list[Any]) -> Change:
    return lambda own, of: (1.0 - of(a) * of(a)) * math.prod(of(each) for each in others)


def _with_softmax(p: Node, others: list[Any], axis: int) -> Change:
    def change(own: Any, of: Any) -> Any:
        d = math.prod(of(each) for each in others)
        return of(p) * (d - total(of(p) * d, axis))

    return change


def _factors(value: Any) -> list[Any]:
    """The factors of nested products."""
    if isinstance(value, Node) and value.op == "multiply":
        return [each for arg in value.args for each in _factors(arg)]
    return [value]


def _is_one(value: Any) -> bool:
    value = value.value if isinstance(value, Node) else value
    return np.ndim(value) == 0 and not isinstance(value, str) and bool(value == 1)


def _complement(value: Any) -> Node | None:
    """The a of 1 − a."""
    if isinstance(value, Node) and value.op == "subtract" and _is_one(value.args[0]):
        a = value.args[1]
        return a if isinstance(a, Node) else None
    return None


def _root(value: Any) -> Node | None:
    """The a of a² or a·a."""
    if not isinstance(value, Node) or len(value.args) != 2:
        return None
    a, b = value.args
    squared = (value.op == "multiply" and a is b) or (value.op == "pow" and b == 2)
    return a if squared and isinstance(a, Node) else None


def _before(node: Node, operand: Node, change: Change) -> Change:
    def changed(own: Any, of: Any) -> Any:
        new = change(of(operand), of)
        return recomputed(node, lambda each: new if each is operand else of(each))

    return changed


def _behind(node: Node, known: dict[Node, str]) -> Iterator[Variant]:
    if not is_floats(node.value) or np.ndim(node.value) == 0:
        return
    for other, name in known.items():
        if is_array_or_mask(other.value) and broadcasts(
            np.shape(other.value), np.shape(node.value)
        ):
            yield from _with_array(node, other, name)
    for axis in range(np.ndim(node.value)):
        yield from _without_mean(node, axis)
    if np.ndim(node.value) >= 2 and not is_transpose(node):
        yield Variant("transpose inserted", text(node), lambda own, of: own.mT)
    for axes in ((-1,), (-2, -1)):
        if -axes[0] <= np.ndim(node.value):
            yield Variant("flip inserted", text(node), _turned(axes))


def _from_the_end(node: Node) -> Change:
    """A sum that is cumulated from the other end."""
    first = node.args[0]
    axes = tuple(axis for axis, size in enumerate(np.shape(first.value)) if size > 1)

    def change(own: Any, of: Any) -> Any:
        x = flipped(of(first), axes)
        return flipped(recomputed(node, lambda each: x if each is first else of(each)), axes)

    return change


def _turned(axes: tuple[int, ...]) -> Change:
    return lambda own, of: flipped(own, axes)


def _with_array(node: Node, other: Node, called: str) -> Iterator[Variant]:
    name = text(other) if other.op in ("sum", "mean") else symbol(called)
    yield Variant("factor inserted", name, lambda own, of: own * of(other))
    if not is_floats(other.value):
        yield Variant("mask inserted", name, lambda own, of: chosen(of(other), own, -np.inf))
        yield Variant("mask inserted", name, lambda own, of: chosen(of(other), -np.inf, own))
        return
    yield Variant("factor inserted", "1/" + name, lambda own, of: own / of(other))
    yield Variant(
        "derivative inserted", f"1 − {name}²", lambda own, of: own * (1.0 - of(other) * of(other))
    )
    yield Variant("factor inserted", f"1 − {name}", lambda own, of: own * (1.0 - of(other)))
    yield Variant(
        "derivative inserted",
        f"{name} (1 − {name})",
        lambda own, of: own * (of(other) * (1.0 - of(other))),
    )
    yield Variant("derivative inserted", f"{name} > 0", lambda own, of: own * (of(other) > 0))
    if np.shape(other.value) == np.shape(node.value):
        yield Variant("term inserted", name, lambda own, of: own + of(other))
        yield Variant("term inserted", "−" + name, lambda own, of: own - of(other))
        for axis in range(np.ndim(node.value)):
            yield Variant(
                "term inserted", f"−{name} mean({definition(node)} {name})", _projected(other, axis)
            )


def _projected(other: Node, axis: int) -> Any:
    return lambda own, of: own - of(other) * average(own * of(other), axis)


def _without_mean(node: Node, axis: int) -> Iterator[Variant]:
    """x − mean x; and for p d, where p is a softmax, p (d − Σ p d)."""

    def centred(own: Any, of: Any) -> Any:
        return own - average(own, axis)

    yield Variant("term inserted", f"−mean({definition(node)})", centred)
    if node.op == "multiply":
        for p, d in (node.args, node.args[::-1]):
            yield Variant(
                "term inserted", f"−{text(p)} sum({definition(node)})", _softmax(p, d, axis)
            )


def _softmax(p: Any, d: Any, axis: int) -> Any:
    return lambda own, of: of(p) * (of(d) - total(own, axis))


def is_array_or_mask(value: Any) -> bool:
    """True for an array of floats or of bools that has axes."""
    is_mask = "bool" in str(getattr(value, "dtype", ""))
    return (is_floats(value) or is_mask) and np.ndim(value) > 0


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """True where an array of this shape broadcasts to the other one."""
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)
