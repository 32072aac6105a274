"""Pieces of a product: nodes with the index of each of their axes, and terms taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from handgrad.deriving.algebra.terms import Factor, Power, Sum, Term, axes_of, magnitude, whole
from handgrad.program.node import Node, build
from handgrad.program.sizes import ONE, Size


class Piece(NamedTuple):
    """A node whose axes longer than one are these indices; `below` where it divides."""

    node: Node
    indices: tuple[int, ...]
    below: bool = False
    #: The base that it is, where it is one as it stands.
    base: int = -1


def order(indices: Iterable[int], layout: tuple[int, ...]) -> tuple[int, ...]:
    """Indices in the order of a layout, those that it does not have first."""
    places = {index: at for at, index in enumerate(layout)}
    return tuple(sorted(indices, key=lambda index: (places.get(index, -1), index)))


def bare(piece: Piece) -> Node:
    node = piece.node
    return build("reshape", node, shape=tuple(node.shape[a] for a in axes_of(node)))


def aligned(piece: Piece, indices: tuple[int, ...], shape: tuple[Size, ...] | None = None) -> Node:
    """A piece with its axes where these indices stand, of length one for those that it has
    not.
    """
    rank = len(indices) if shape is None else len(shape)
    places = {index: index if shape is not None else at for at, index in enumerate(indices)}
    at = {
        places[index]: axis for index, axis in zip(piece.indices, axes_of(piece.node), strict=True)
    }
    node = piece.node
    sizes = tuple(node.shape[at[k]] if k in at else ONE for k in range(rank))
    order = [axis for _, axis in sorted(at.items())]
    if node.ndim == rank and node.shape == sizes and order == sorted(order):
        return node
    while sizes and sizes[0] == ONE and node.ndim < rank:
        sizes = sizes[1:]
        rank -= 1
    if order != sorted(order):
        bare = build("reshape", node, shape=tuple(node.shape[a] for a in axes_of(node)))
        ranks = sorted(order)
        node = build("transpose", bare, axes=tuple(ranks.index(a) for a in order))
    return build("reshape", node, shape=sizes)


def powers(piece: Piece, power: Power) -> list[Piece]:
    size = magnitude(power)
    if isinstance(size, int):
        if size > 4:
            return [Piece(build("power", piece.node, size), piece.indices, power < 0)]
        return [piece._replace(below=power < 0)] * size
    if size.denominator == 2:
        root = Piece(build("sqrt", piece.node), piece.indices, power < 0)
        return [root, *[piece._replace(below=power < 0)] * int(size)]
    return [Piece(build("power", piece.node, float(size)), piece.indices, power < 0)]


def divided(term: Term, factors: Term) -> Term | None:
    """A term without factors; None where it does not have them to these powers."""
    found = list(term)
    for factor in factors:
        for at, each in enumerate(found):
            if each.base == factor.base and each.indices == factor.indices:
                left = whole(each.power - factor.power)
                if each.power * factor.power <= 0 or magnitude(left) >= magnitude(each.power):
                    return None
                found[at : at + 1] = [each._replace(power=left)] if left else []
                break
        else:
            return None
    return tuple(sorted(found))


def greatest(first: Term, second: Term) -> Term:
    """The factors that two terms have in common, with the power that they share."""
    powers = {f[:2]: f.power for f in second}
    found = []
    for each in first:
        other = powers.get(each[:2], 0)
        if each.power * other > 0:
            found.append(each._replace(power=min(each.power, other, key=magnitude)))
    return tuple(found)


def without_factor(term: Term, factor: Factor) -> Term:
    return tuple(f for f in term if f != factor)


def common_number(sum_: Sum) -> Fraction:
    """The number that all coefficients have in common, so that the first is one."""
    numbers = {abs(c) for c in sum_.values()}
    return min(numbers) if len(numbers) == 1 else Fraction(1)
