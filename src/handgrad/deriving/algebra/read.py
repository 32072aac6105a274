"""Nodes as sums of products: what each primitive of the algebra means over named indices.

A product is written out down to arrays that are no products: inputs, functions, and sums of several
terms. Such a sum is an array of its own in what reads it, so nothing is multiplied out before
somebody asks for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from handgrad.deriving.algebra.terms import (
    BOUND,
    BaseTable,
    GuardedSum,
    Mask,
    Power,
    Sum,
    add,
    axes_of,
    scaled,
)
from handgrad.program.node import Node
from handgrad.program.primitives.rules import guarded_sum
from handgrad.program.sizes import ONE, Size

#: Longer products and sums are arrays of their own.
_MOST_FACTORS: Final = 12
MOST_TERMS: Final = 24

Rule = Callable[["Reader", Node], "Sum | None"]
_RULES: dict[str, Rule] = {}


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    def keep(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return keep


@dataclass
class Reader:
    """Sums over the axes of nodes, each found once."""

    table: BaseTable
    #: How often a node is read, by its id: a sum that is read once is no array of its own.
    uses: dict[int, int] = field(default_factory=dict)
    #: Exponentials that were read, which others are products of.
    exponentials: list[Node] = field(default_factory=list)
    _forms: dict[int, Sum] = field(default_factory=dict)
    _nodes: list[Node] = field(default_factory=list)

    def read(self, nodes: Iterable[Node]) -> None:
        """Reads nodes in the order of a program, each after its operands, so that nothing
        recurses.
        """
        for node in nodes:
            self.form(node)

    def form(self, node: Node) -> Sum:
        """A node as a sum over the places of its axes."""
        if id(node) not in self._forms:
            rule = _RULES.get(node.op)
            readable = node.kind == "f" or node.op in ("const", "size")
            found = rule(self, node) if rule and readable else None
            if found is None or len(found) > MOST_TERMS or _longest(found) > _MOST_FACTORS:
                found = self.table.atom(node)
            self._forms[id(node)] = found
            self._nodes.append(node)  # an id is one node's as long as it lives
        return self._forms[id(node)]

    def read_again(self, node: Node) -> Sum:
        """A node under the facts of now, which are not those that it was read under."""
        found = self._forms.pop(id(node))
        again = self.form(node)
        self._forms[id(node)] = found
        return again

    def unit(self, node: Node) -> Sum:
        """A node as one product, or as itself."""
        found = self.form(node)
        return found if len(found) <= 1 else self.table.atom(node)

    def placed(self, node: Node, rank: int, sum_: Sum | None = None) -> Sum:
        """An operand's sum over the axes of a result of this rank."""
        found = self.unit(node) if sum_ is None else sum_
        shift = rank - node.ndim
        if not shift:
            return found
        return self.table.renamed(found, {axis: axis + shift for axis in range(node.ndim)})


def _longest(sum_: Sum) -> int:
    return max(map(len, sum_), default=0)


def number_of(value: object) -> Fraction | None:
    """An exact number; a float is the decimal that it is written as."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int):
        return Fraction(int(value))
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 1e12:
        return Fraction(repr(value))
    return None


@_rule("const")
def _const(reader: Reader, node: Node) -> Sum | None:
    found = number_of(node.attrs["value"])
    return None if found is None else ({(): found} if found else {})


@_rule("size")
def _size(reader: Reader, node: Node) -> Sum:
    return reader.table.size(Size.of(node.attrs["size"]))


@_rule("zeros")
def _zeros(reader: Reader, node: Node) -> Sum:
    return {}


@_rule("ones")
def _ones(reader: Reader, node: Node) -> Sum:
    return {(): Fraction(1)}


@_rule("add", "subtract")
def _add(reader: Reader, node: Node) -> Sum:
    """A sum that is read here alone is a part of this one."""
    parts = []
    for operand in node.args:
        alone = reader.uses.get(id(operand), 0) == 1 and not operand.name
        form = reader.form(operand) if alone else reader.unit(operand)
        parts.append(reader.placed(operand, node.ndim, form))
    return add(parts[0], scaled(parts[1], 1 if node.op == "add" else -1))


@_rule("negative")
def _negative(reader: Reader, node: Node) -> Sum:
    return scaled(reader.unit(node.args[0]), -1)


@_rule("multiply")
def _multiply(reader: Reader, node: Node) -> Sum:
    first, second = (reader.placed(operand, node.ndim) for operand in node.args)
    return reader.table.multiply(first, second)


@_rule("divide")
def _divide(reader: Reader, node: Node) -> Sum | None:
    first, second = (reader.placed(operand, node.ndim) for operand in node.args)
    below = reader.table.powered(second, -1)
    return None if below is None else reader.table.multiply(first, below)


@_rule("sqrt", "square", "reciprocal")
def _fixed_power(reader: Reader, node: Node) -> Sum | None:
    powers: dict[str, Power] = {"square": 2, "sqrt": Fraction(1, 2), "reciprocal": -1}
    power = powers[node.op]
    return _raised(reader, node.args[0], power)


@_rule("power")
def _power(reader: Reader, node: Node) -> Sum | None:
    exponent = number_of(node.args[1].attrs.get("value")) if node.args[1].op == "const" else None
    if exponent is None or exponent.denominator > 4 or abs(exponent) > 8 or not exponent:
        return None
    return _raised(reader, node.args[0], exponent)


def _raised(reader: Reader, node: Node, power: Power) -> Sum | None:
    found = reader.table.powered(reader.unit(node), power)
    if found is None and reader.unit(node):
        found = reader.table.powered(reader.table.atom(node), power)
    return found


@_rule("sum", "mean")
def _sum(reader: Reader, node: Node) -> Sum | None:
    operand, over, keeps = node.args[0], node.attrs["axis"], node.attrs["keepdims"]
    names, bound, sizes, at = {}, {}, ONE, 0
    for axis, size in enumerate(operand.shape):
        if axis in over:
            names[axis] = reader.table.fresh()
            if size != ONE:
                bound[names[axis]] = size
            sizes = sizes * size
            at += keeps
        else:
            names[axis] = at
            at += 1
    inner = reader.table.renamed(reader.unit(operand), names)
    found = reader.table.multiply(inner, {(): Fraction(1)}, bound)
    if node.op == "mean":
        below = reader.table.powered(reader.table.size(sizes), -1)
        if below is None:
            return None
        found = reader.table.multiply(found, below)
    return found


@_rule("contract")
def _contract(reader: Reader, node: Node) -> Sum | None:
    """A contraction that costs no more than its larger operand has elements is a product and its
    sum.
    """
    left, right, out = (node.attrs[name] for name in ("left", "right", "out"))
    if not light(node):
        return None
    bound, names = {}, {index: at for at, index in enumerate(out)}
    for operand, indices in zip(node.args, (left, right), strict=True):
        for size, index in zip(operand.shape, indices, strict=True):
            if index not in names:
                names[index] = reader.table.fresh()
                bound[names[index]] = size
            elif names[index] in bound and bound[names[index]] == ONE:
                bound[names[index]] = size
    bound = {index: size for index, size in bound.items() if size != ONE}
    parts = [
        reader.table.renamed(
            _apart(reader.unit(n)), {BOUND // 2 + k: names[i] for k, i in enumerate(ix)}
        )
        for n, ix in zip(node.args, (left, right), strict=True)
    ]
    return reader.table.multiply(parts[0], parts[1], bound)


def light(node: Node) -> bool:
    """Return whether one operand of a contraction has every index of the other."""
    left, right = set(node.attrs["left"]), set(node.attrs["right"])
    return left <= right or right <= left


def _apart(sum_: Sum) -> Sum:
    """Axes under numbers that no axis has, so that a renaming that permutes them is unambiguous."""
    return {
        tuple(f._replace(indices=tuple(i + BOUND // 2 for i in f.indices)) for f in term): c
        for term, c in sum_.items()
    }


@_rule("broadcast_to")
def _broadcast(reader: Reader, node: Node) -> Sum:
    return reader.placed(node.args[0], node.ndim)


@_rule("transpose")
def _transpose(reader: Reader, node: Node) -> Sum:
    names = {old: new for new, old in enumerate(node.attrs["axes"])}
    return reader.table.renamed(reader.unit(node.args[0]), names)


@_rule("reshape")
def _reshape(reader: Reader, node: Node) -> Sum | None:
    """Axes of length one come and go."""
    old, new = axes_of(node.args[0]), axes_of(node)
    if [node.args[0].shape[a] for a in old] != [node.shape[a] for a in new]:
        return None
    return reader.table.renamed(reader.unit(node.args[0]), dict(zip(old, new, strict=True)))


@_rule("where")
def _where(reader: Reader, node: Node) -> Sum | None:
    """A choice between a value and zero is a product with a mask."""
    condition, yes, no = node.args
    if (total := guarded_sum(condition, yes, no)) is not None:
        _guard(reader, node, total)
    zero = [value.op in ("const", "zeros") and not np.any(value.value) for value in (yes, no)]
    if zero[0] == zero[1] or condition.op == "const":
        return None
    mask = reader.table.number(Mask(condition, inverted=zero[0]))
    found = reader.placed(no if zero[0] else yes, node.ndim)
    shift = node.ndim - condition.ndim
    ((factor,),) = reader.table.atom(condition)
    held = factor._replace(base=mask, indices=tuple(i + shift for i in factor.indices))
    return reader.table.multiply(found, {(held,): Fraction(1)})


def _guard(reader: Reader, divisor: Node, total: Node) -> None:
    """Notes that an array is the sum of exponentials `total`, or 1 where that is 0."""
    form, part = reader.form(total), total.args[0]
    factors = [f for term in form for f in term]
    if len(factors) == 1 and form == {(factors[0],): 1} and factors[0].indices == axes_of(divisor):
        kept = [k for k, axis in enumerate(axes_of(part)) if axis not in total.attrs["axis"]]
        own = GuardedSum(factors[0].base, reader.table.number(part), tuple(kept))
        reader.table.guarded[reader.table.number(divisor)] = own


@_rule("stop")
def _stop(reader: Reader, node: Node) -> Sum:
    return reader.unit(node.args[0])


@_rule("exp")
def _exp(reader: Reader, node: Node) -> Sum | None:
    """exp(a − log b) is exp(a) / b where exp(a) is there: a softmax that subtracts its log-sum-exp
    is one that divides.
    """
    rank, operand = node.ndim, node.args[0]
    if any(other.args[0] is operand for other in reader.exponentials):
        return None
    rest, divisors = _without_logarithms(reader, operand)
    for log, sign, indices in divisors:
        target = next(
            (o for o in reader.exponentials if o.ndim == rank and _exponent(reader, o) == rest),
            None,
        )
        if target is None or len(divisors) > 1:
            break
        below = reader.table.powered(reader.unit(log.args[0]), sign)
        if below is not None:
            names = dict(zip(axes_of(log), indices, strict=True))
            factor = reader.table.renamed(below, names)
            return reader.table.multiply(reader.unit(target), factor)
    reader.exponentials.append(node)
    return None


def written_out(reader: Reader, sum_: Sum, depth: int = 4) -> Sum:
    """A sum with the sums that it is made of written out, down to what is none."""
    found = sum_
    for _ in range(depth):
        for base in sorted({f.base for term in found for f in term}):
            inner = reader.table.bases[base]
            if isinstance(inner, Node) and len(form := reader.form(inner)) > 1:
                opened = reader.table.replaced(found, base, form)
                if opened is None or len(opened) > MOST_TERMS:
                    return found
                found = opened
                break
        else:
            break
    return found


def _exponent(reader: Reader, node: Node) -> Sum:
    return written_out(reader, reader.unit(node.args[0]))


def _without_logarithms(
    reader: Reader, node: Node
) -> tuple[Sum, list[tuple[Node, int, tuple[int, ...]]]]:
    """An exponent without its logarithms, and these with their signs and indices."""
    rest, found = {}, []
    for term, coefficient in written_out(reader, reader.unit(node)).items():
        base = reader.table.bases[term[0].base] if len(term) == 1 else None
        one = len(term) == 1 and term[0].power == 1 and abs(coefficient) == 1
        if one and isinstance(base, Node) and base.op == "log":
            found.append((base, int(coefficient), term[0].indices))
        else:
            rest[term] = coefficient
    return rest, found
