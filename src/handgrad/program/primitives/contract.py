"""Contractions: matmul, dot, inner, outer, tensordot and einsum are binary `contract` nodes.

Every axis of an operand has an index, a small integer; those absent from the result are summed. An
index of one operand alone is summed before, a repeated one is a diagonal, and where nothing is
summed the product is that of elements.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build
from handgrad.program.primitives.axes import axes_of, equal, product
from handgrad.program.primitives.fixed import constant
from handgrad.program.primitives.record import Gradients, Sample, Shaped, record
from handgrad.program.primitives.table import FUNCTIONS, known
from handgrad.program.sizes import ONE, Size

Indices = Sequence[int]
LETTERS = "ijklmnopqrstuvwxyzabcdefghABCDEFGHIJKLMNOPQRSTUVWXYZ"


def contract(a: Any, b: Any, left: Indices, right: Indices, out: Indices) -> Node:
    """The contraction of two operands, as simple as it is."""
    a, left = summed_alone(as_node(a), left, {*right, *out})
    b, right = summed_alone(as_node(b), right, {*left, *out})
    a, left = without_spread(a, left, b, right)
    b, right = without_spread(b, right, a, left)
    a, left = summed_alone(a, left, {*right, *out})
    b, right = summed_alone(b, right, {*left, *out})
    sums = {*left} & {*right} - {*out}
    if not sums and (a.ndim, b.ndim) != (1, 1):
        return lined_up(a, left, out) * lined_up(b, right, out)
    if not sums and tuple(left) == tuple(right):
        return build("multiply", a, b)
    names = {i: k for k, i in enumerate(dict.fromkeys((*left, *right)))}
    return build(
        "contract",
        a,
        b,
        left=tuple(names[i] for i in left),
        right=tuple(names[i] for i in right),
        out=tuple(names[i] for i in out),
    )


def without_spread(a: Node, left: Indices, b: Node, right: Indices) -> tuple[Node, tuple[int, ...]]:
    """The first operand without axes of one that are spread along a longer axis of the second."""
    spread = {
        k
        for k, i in enumerate(left)
        if a.shape[k] == ONE and i in right and b.shape[list(right).index(i)] != ONE
    }
    if not spread:
        return a, tuple(left)
    kept = tuple(s for k, s in enumerate(a.shape) if k not in spread)
    return build("reshape", a, shape=kept), tuple(i for k, i in enumerate(left) if k not in spread)


def lined_up(node: Node, indices: Indices, out: Indices) -> Node:
    """An operand with its axes in the order of the result, ones where it has none."""
    order = [i for i in out if i in indices]
    node = build("transpose", node, axes=tuple(list(indices).index(i) for i in order))
    sizes = iter(node.shape)
    return build("reshape", node, shape=tuple(next(sizes) if i in order else ONE for i in out))


def summed_alone(node: Node, indices: Indices, wanted: set[int]) -> tuple[Node, tuple[int, ...]]:
    """An operand without repeated indices, and summed over those that nobody wants."""
    indices = tuple(indices)
    for i in indices:
        if indices.count(i) > 1:
            first, second = [k for k, j in enumerate(indices) if j == i][:2]
            rest = tuple(j for k, j in enumerate(indices) if k not in (first, second))
            node = build("diagonal", node, axis1=first, axis2=second, offset=0)
            return summed_alone(node, (*rest, i), wanted)
    alone = tuple(k for k, i in enumerate(indices) if i not in wanted)
    if alone:
        node = build("sum", node, axis=alone, keepdims=False)
        indices = tuple(i for k, i in enumerate(indices) if k not in alone)
    return node, indices


def contracted(a: Node, b: Node, *, left: Indices, right: Indices, out: Indices) -> Shaped:
    """Sizes of a contraction's result; operands that share an index have it equally long."""
    sizes: dict[int, Size] = {}
    for node, indices in ((a, left), (b, right)):
        for s, i in zip(node.shape, indices, strict=True):
            sizes[i] = equal(sizes[i], s) if i in sizes else s
    kinds = {a.kind, b.kind}
    kind = next((k for k in "cfi" if k in kinds), "b")
    return tuple(sizes[i] for i in out), kind


def subscripts(*indices: Indices) -> str:
    """Indices as einsum has them, the result's last."""
    texts = ["".join(LETTERS[i] for i in each) for each in indices]
    return f"{','.join(texts[:-1])}->{texts[-1]}"


def contract_value(x: Any, y: Any, *, left: Indices, right: Indices, out: Indices) -> Any:
    made = np.einsum(subscripts(left, right, out), x, y, optimize=True)
    return np.asarray(made, order="C")  # as products have it, so that views of them are views


def contract_vjp(
    g: Node, y: Node, a: Node, b: Node, *, left: Indices, right: Indices, out: Indices
) -> Gradients:
    return contract(g, b, out, right, left), contract(g, a, out, left, right)


def as_matrices(e: Any, n: Node) -> str | None:
    """A contraction by @, with transposes, where that is all it is."""
    a, b, out = n.attrs["left"], n.attrs["right"], n.attrs["out"]
    x, y = n.args
    for (p, ip), (q, iq) in (((x, a), (y, b)), ((y, b), (x, a))):
        batch = tuple(i for i in out if i in ip and i in iq)
        sums = [i for i in ip if i in iq and i not in out]
        if len(sums) != 1 or out[: len(batch)] != batch:
            continue
        k, rest = sums[0], out[len(batch) :]
        left, right = tuple(i for i in rest if i in ip), tuple(i for i in rest if i in iq)
        if rest != left + right or len(right) > 1:
            continue
        if batch and (len(left), len(right)) != (1, 1):
            continue
        if ip == (*batch, *left, k):
            first = e.arg(p, 6)
        elif len(left) == 1 and ip == (*batch, k, *left):
            first = e.transposed(p)
        else:
            continue
        if iq == (*batch, k, *right):
            return f"{first} @ {e.arg(q, 7)}"
        if right and iq == (*batch, *right, k):
            return f"{first} @ {e.transposed(q)}"
    return None


def contract_text(library: str) -> Any:
    """As a person writes it: @, else outer, else tensordot where one product does, else einsum."""

    def text(e: Any, n: Node) -> str | tuple[str, int]:
        a, b, out = n.attrs["left"], n.attrs["right"], n.attrs["out"]
        x, y = n.args
        if library == "torch" and x.kind != y.kind and n.kind in "fc":
            # PyTorch multiplies matrices of one kind alone.
            first, second = (
                e.arg(z) if z.kind == n.kind else e.converted(z, n.kind) for z in n.args
            )
            return f"{library}.einsum({subscripts(a, b, out)!r}, {first}, {second})"
        if (matrices := as_matrices(e, n)) is not None:
            return matrices, 6
        if a == (0,) and b == (1,):
            first, second = (y, x) if out[0] else (x, y)
            return f"{library}.outer({e.arg(first)}, {e.arg(second)})"
        shared = [i for i in a if i in b]
        free = tuple(i for i in (*a, *b) if i not in shared)
        if shared and out == free:
            places = [a.index(i) for i in shared], [b.index(i) for i in shared]
            return f"{library}.tensordot({e.arg(x)}, {e.arg(y)}, {places})"
        best = ", optimize=True" if library == "np" else ""
        return f"{library}.einsum({subscripts(a, b, out)!r}, {e.arg(x)}, {e.arg(y)}{best})"

    return text


def _sample(left: str, right: str, out: str) -> Sample:
    names = {letter: k for k, letter in enumerate(dict.fromkeys(left + right))}
    attrs = {
        key: tuple(names[c] for c in letters)
        for key, letters in (("left", left), ("right", right), ("out", out))
    }
    return Sample((" ".join(left), " ".join(right)), attrs)


record(
    "contract",
    contract_value,
    contracted,
    contract_vjp,
    text=contract_text("np"),
    torch=contract_text("torch"),
    analytic=True,
    samples=(
        _sample("MN", "NK", "MK"),
        _sample("MN", "KN", "KM"),
        _sample("NM", "NK", "MK"),
        _sample("MN", "N", "M"),
        _sample("M", "N", "NM"),
        _sample("N", "N", ""),
        _sample("MNK", "MKL", "MNL"),
        _sample("MNK", "NKL", "ML"),
        _sample("MNK", "LKM", "NML"),
    ),
)


@known(np.matmul)
def matmul(a: Any, b: Any) -> Node:
    a, b = as_node(a), as_node(b)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul of a scalar")
    left, right = list(range(100, 100 + a.ndim)), list(range(200, 200 + b.ndim))
    right[-2 if b.ndim > 1 else -1] = left[-1]
    for k in range(3, min(a.ndim, b.ndim) + 1):
        right[-k] = left[-k]
    batch = (left if a.ndim >= b.ndim else right)[:-2]
    rows, columns = left[-2:-1], right[-1:] if b.ndim > 1 else []
    return contract(a, b, left, right, (*batch, *rows, *columns))


@known(np.dot)
def dot(a: Any, b: Any) -> Node:
    a, b = as_node(a), as_node(b)
    if not a.ndim or not b.ndim:
        return build("multiply", a, b)
    left, right = list(range(a.ndim)), list(range(100, 100 + b.ndim))
    right[-2 if b.ndim > 1 else -1] = left[-1]
    return contract(a, b, left, right, [i for i in left + right if i != left[-1]])


@known(np.inner)
def inner(a: Any, b: Any) -> Node:
    a, b = as_node(a), as_node(b)
    if not a.ndim or not b.ndim:
        return build("multiply", a, b)
    left, right = list(range(a.ndim)), [*range(100, 99 + b.ndim), a.ndim - 1]
    return contract(a, b, left, right, left[:-1] + right[:-1])


def flattened(x: Any) -> Node:
    """An operand as one axis."""
    x = as_node(x)
    return build("reshape", x, shape=(product(x.shape),))


@known(np.vdot)
def vdot(a: Any, b: Any) -> Node:
    return dot(conjugated(flattened(a)), flattened(b))


def conjugated(x: Node) -> Node:
    """The conjugate; of real operands themselves."""
    return build("conj", x) if x.kind == "c" else x


@known(np.outer)
def outer(a: Any, b: Any) -> Node:
    return contract(flattened(a), flattened(b), (0,), (1,), (0, 1))


@known(np.vecdot, getattr(np.linalg, "vecdot", np.vecdot))
def vecdot(a: Any, b: Any, axis: int = -1) -> Node:
    """The product of vectors along an axis, spread over the others; the first is conjugated."""
    a, b = (FUNCTIONS[np.moveaxis](as_node(x), axis, -1) for x in (a, b))
    rank = max(a.ndim, b.ndim)
    places = list(range(rank))
    return contract(conjugated(a), b, places[rank - a.ndim :], places[rank - b.ndim :], places[:-1])


@known(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    a, b = as_node(a), as_node(b)
    if isinstance(axes, Node):
        axes = constant(axes)
    if np.ndim(axes) == 0 and not isinstance(axes, tuple | list):
        count = int(axes)
        firsts, seconds = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        firsts, seconds = ([int(i) for i in np.atleast_1d(each)] for each in axes)
    firsts = [k % a.ndim for k in firsts]
    seconds = [k % b.ndim for k in seconds]
    left, right = list(range(a.ndim)), list(range(100, 100 + b.ndim))
    for i, j in zip(firsts, seconds, strict=True):
        right[j] = left[i]
    out = [i for i in left if i not in firsts] + [j for j in right if j >= 100]
    return contract(a, b, left, right, out)


@known(np.kron)
def kron(a: Any, b: Any) -> Node:
    """Every element of the first times the whole second."""
    a, b = as_node(a), as_node(b)
    rank = max(a.ndim, b.ndim)
    first, second = ((ONE,) * (rank - x.ndim) + x.shape for x in (a, b))
    tall = build("reshape", a, shape=tuple(s for size in first for s in (size, ONE)))
    wide = build("reshape", b, shape=tuple(s for size in second for s in (ONE, size)))
    return build(
        "reshape", tall * wide, shape=tuple(p * q for p, q in zip(first, second, strict=True))
    )


@known(np.trace, getattr(np.linalg, "trace", np.trace))
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Node:
    d = FUNCTIONS[np.diagonal](x, offset, axis1, axis2)
    return build("sum", d, axis=axes_of(-1, d.ndim), keepdims=False)
