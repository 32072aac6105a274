"""Contractions of several operands: einsum in all its forms and multi_dot, two at a time.

The order is the cheapest: first by the number of letters in the largest product of two operands,
so that it holds for all sizes, then by operations at the lengths of the example.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.contract import contract, summed_alone
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.table import known
from handgrad.program.sizes import ONE, Size

Indices = tuple[int, ...]
Order = list[tuple[int, int]]
Cost = tuple[int, int]
SEARCHED = 6  # operands up to which every order is compared


def cost(indices: set[int], sizes: dict[int, Size]) -> Cost:
    """The degree of a product of two operands in letters, and its operations on the example."""
    total = ONE
    for i in indices:
        total = total * sizes[i]
    degree = max((len(atoms) for atoms, _ in total.terms), default=0)
    return degree, world().length(total) or 0


def joined(a: Indices, b: Indices, rest: Sequence[Indices], out: Indices) -> Indices:
    """The indices of a product of two operands that anybody reads."""
    if not rest:
        return out
    wanted = {*out}.union(*rest)
    return tuple(i for i in dict.fromkeys((*a, *b)) if i in wanted)


def cheapest(operands: list[Indices], out: Indices, sizes: dict[int, Size]) -> Order:
    """Positions of the pairs to contract, in turn; a pair's product comes last in the list."""
    if len(operands) < 2:
        return []
    pairs = [(p, q) for q in range(len(operands)) for p in range(q)]
    if len(operands) > SEARCHED:
        pairs = [min(pairs, key=lambda pq: cost({*operands[pq[0]], *operands[pq[1]]}, sizes))]
    return _best(operands, out, sizes, pairs)[1]


def _best(
    operands: list[Indices], out: Indices, sizes: dict[int, Size], pairs: Order
) -> tuple[Cost, Order]:
    """The cheapest order among those that begin with one of the pairs."""
    found: tuple[Cost, Order] | None = None
    for p, q in pairs:
        rest = [x for k, x in enumerate(operands) if k not in (p, q)]
        degree, work = cost({*operands[p], *operands[q]}, sizes)
        left = [*rest, joined(operands[p], operands[q], rest, out)]
        after: tuple[Cost, Order] = ((0, 0), [])
        if len(left) > 1:
            following = [(i, j) for j in range(len(left)) for i in range(j)]
            if len(left) > SEARCHED:
                following = [
                    min(following, key=lambda ij: cost({*left[ij[0]], *left[ij[1]]}, sizes))
                ]
            after = _best(left, out, sizes, following)
        total = max(degree, after[0][0]), work + after[0][1]
        if found is None or total < found[0]:
            found = total, [(p, q), *after[1]]
    assert found is not None
    return found


def contracted(operands: list[tuple[Node, Indices]], out: Indices) -> Node:
    """The contraction of any number of operands."""
    if len(operands) == 1:
        node, indices = summed_alone(*operands[0], {*out})
        return build("transpose", node, axes=tuple(indices.index(i) for i in out))
    sizes: dict[int, Size] = {}
    for node, indices in operands:
        for i, s in zip(indices, node.shape, strict=True):
            if sizes.get(i, ONE) == ONE:
                sizes[i] = s
    for p, q in cheapest([i for _, i in operands], out, sizes):
        (a, left), (b, right) = operands[p], operands[q]
        rest = [x for k, x in enumerate(operands) if k not in (p, q)]
        to = joined(left, right, [i for _, i in rest], out)
        operands = [*rest, (contract(a, b, left, right, to), to)]
    return operands[0][0]


def spelled(operands: tuple[Any, ...]) -> tuple[list[Node], list[list[Any]], list[Any] | None]:
    """Operands, the indices of each with ellipses, and those of the result where they are given.

    Both forms: a string and arrays, or arrays each with its list.
    """
    if isinstance(operands[0], str):
        text = operands[0].replace(" ", "")
        left, arrow, right = text.partition("->")
        specs = [symbols(part) for part in left.split(",")]
        return list(map(as_node, operands[1:])), specs, symbols(right) if arrow else None
    listed = [each if isinstance(each, list) else list(each) for each in _lists(operands[1::2])]
    given = list(map(as_node, operands[: len(operands) // 2 * 2 : 2]))
    result = _lists(operands[-1:])[0] if len(operands) % 2 else None
    return given, listed, result


def _lists(operands: Sequence[Any]) -> list[list[Any]]:
    """Lists of indices, numbers of nodes taken as they are on the example."""
    return [[i if i is Ellipsis else int(constant(i)) for i in each] for each in operands]


def symbols(text: str) -> list[Any]:
    """The indices of a string, an ellipsis where it has three points."""
    before, dots, after = text.partition("...")
    return [*map(ord, before), *([Ellipsis] if dots else []), *map(ord, after)]


@known(np.einsum)
def einsum(*operands: Any, optimize: Any = None, dtype: Any = None, out: Any = None) -> Node:
    nodes, specs, result = spelled(operands)
    if len(nodes) != len(specs):
        raise ValueError(f"einsum has {len(specs)} lists of indices for {len(nodes)} arrays")
    longest = max(
        (n.ndim - len(s) + 1 for n, s in zip(nodes, specs, strict=True) if Ellipsis in s),
        default=0,
    )
    dots = list(range(10_000, 10_000 + longest))

    def full(spec: list[Any], rank: int | None) -> Indices:
        if Ellipsis not in spec:
            return tuple(spec)
        at = spec.index(Ellipsis)
        count = longest if rank is None else rank - len(spec) + 1
        return (*spec[:at], *dots[longest - count :], *spec[at + 1 :])

    indexed = [(n, full(s, n.ndim)) for n, s in zip(nodes, specs, strict=True)]
    for n, indices in indexed:
        if n.ndim != len(indices):
            raise ValueError(f"einsum has {len(indices)} indices for an array of {n.ndim} axes")
    if result is not None:
        return contracted(indexed, full(result, None))
    flat = [i for _, indices in indexed for i in indices]
    once = sorted(i for i in {*flat} if flat.count(i) == 1 and i < 10_000)
    return contracted(indexed, (*dots, *once))


@known(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Node:
    nodes = list(map(as_node, arrays))
    operands: list[tuple[Node, Indices]] = []
    for k, node in enumerate(nodes):
        first = k == 0 and node.ndim == 1
        operands.append((node, (k + 1,) if first else (k, k + 1) if node.ndim == 2 else (k,)))
    start = operands[0][1][:-1]
    end = operands[-1][1][1:]
    return contracted(operands, (*start, *end))
