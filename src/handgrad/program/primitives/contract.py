"""Contractions: matmul, dot, inner, outer, tensordot and einsum are all binary `contract` nodes with an index for each axis.

Three operands and more become a chain of two at a time, cheapest first on the example's lengths, so that no node costs
more than a person would spend. An index of one operand alone is summed before, a repeated one is a diagonal."""

import numpy as np

from handgrad.program.node import PRIMITIVES, Primitive, as_node, build, world
from handgrad.program.primitives.axes import equal
from handgrad.program.sizes import ONE


def contract(a, b, ia, ib, out):
    """Indices are small integers; those absent from `out` are summed."""
    a, ia = _tidy(as_node(a), ia, set(ib) | set(out))
    b, ib = _tidy(as_node(b), ib, set(ia) | set(out))
    for this, that in (
        (0, 1),
        (1, 0),
    ):  # an axis of one beside a longer one is broadcast: leave it out
        nodes, indices = [a, b], [ia, ib]
        drop = [
            k
            for k, i in enumerate(indices[this])
            if nodes[this].shape[k] == ONE
            and i in indices[that]
            and nodes[that].shape[indices[that].index(i)] != ONE
        ]
        if drop:
            n = build(
                "reshape",
                nodes[this],
                shape=tuple(s for k, s in enumerate(nodes[this].shape) if k not in drop),
            )
            ix = tuple(i for k, i in enumerate(indices[this]) if k not in drop)
            a, ia, b, ib = (n, ix, b, ib) if this == 0 else (a, ia, n, ix)
    a, ia = _tidy(a, ia, set(ib) | set(out))
    b, ib = _tidy(b, ib, set(ia) | set(out))
    if not (set(ia) & set(ib)) - set(out) and (a.ndim, b.ndim) != (
        1,
        1,
    ):  # nothing is summed: a product of elements
        return _lined_up(a, ia, out) * _lined_up(b, ib, out)
    names = {i: k for k, i in enumerate(dict.fromkeys(ia + ib))}
    return build(
        "contract",
        a,
        b,
        left=tuple(names[i] for i in ia),
        right=tuple(names[i] for i in ib),
        out=tuple(names[i] for i in out),
    )


def _lined_up(node, indices, out):
    node = build("transpose", node, axes=tuple(indices.index(i) for i in out if i in indices))
    sizes = iter(node.shape)
    return build("reshape", node, shape=tuple(next(sizes) if i in indices else ONE for i in out))


def _tidy(node, indices, wanted):
    indices = tuple(indices)
    for i in indices:
        if indices.count(i) > 1:
            first, second = [k for k, j in enumerate(indices) if j == i][:2]
            node = build("diagonal", node, axis1=first, axis2=second)
            return _tidy(
                node,
                tuple(j for k, j in enumerate(indices) if k not in (first, second)) + (i,),
                wanted,
            )
    alone = tuple(k for k, i in enumerate(indices) if i not in wanted)
    if alone:
        node = build("sum", node, axis=alone, keepdims=False)
        indices = tuple(i for k, i in enumerate(indices) if k not in alone)
    return node, indices


def _shape(a, b, *, left, right, out):
    sizes = {}
    for node, indices in ((a, left), (b, right)):
        for s, i in zip(node.shape, indices):
            sizes[i] = equal(sizes[i], s) if i in sizes else s
    return tuple(sizes[i] for i in out), "f" if "f" in (a.kind, b.kind) else "i"


LETTERS = "ijklmnopqrstuvwxyzabcdefgh"


def subscripts(*indices):
    return (
        ",".join("".join(LETTERS[i] for i in ix) for ix in indices[:-1])
        + "->"
        + "".join(LETTERS[i] for i in indices[-1])
    )


def _evaluate(x, y, *, left, right, out):
    return np.einsum(subscripts(left, right, out), x, y, optimize=True)


def _vjp(g, y, x, z, *, left, right, out):
    return contract(g, z, out, right, left), contract(g, x, out, left, right)


def _text(e, n):
    """As a person writes it: @ with transposes where that is all, tensordot where one product of matrices does, else einsum."""
    a, b, out = n.attrs["left"], n.attrs["right"], n.attrs["out"]
    x, y = n.args
    for (p, ip), (q, iq) in (((x, a), (y, b)), ((y, b), (x, a))):
        batch = tuple(i for i in out if i in ip and i in iq)
        summed = [i for i in ip if i in iq and i not in out]
        if len(summed) != 1 or out[: len(batch)] != batch:
            continue
        k, rest = summed[0], out[len(batch) :]
        left, right = tuple(i for i in rest if i in ip), tuple(i for i in rest if i in iq)
        if (
            rest != left + right
            or len(right) > 1
            or (batch and (len(left) != 1 or len(right) != 1))
        ):
            continue
        if ip == batch + left + (k,):
            first = e.arg(p, 6)
        elif len(left) == 1 and ip == batch + (k,) + left:
            first = e.transposed(p)
        else:
            continue
        if not right and iq == (k,) and not batch:
            return f"{first} @ {e.arg(q, 7)}", 6
        if iq == batch + (k,) + right and right:
            return f"{first} @ {e.arg(q, 7)}", 6
        if iq == batch + right + (k,) and right:
            return f"{first} @ {e.transposed(q)}", 6
    if a == (0,) and b == (1,) and out in ((0, 1), (1, 0)):
        return f"np.outer({e.arg(y if out[0] else x)}, {e.arg(x if out[0] else y)})", 9
    shared = [i for i in a if i in b]
    if (
        shared
        and not set(shared) & set(out)
        and out == tuple(i for i in a if i not in shared) + tuple(i for i in b if i not in shared)
    ):
        return (
            f"np.tensordot({e.arg(x)}, {e.arg(y)}, ({[a.index(i) for i in shared]}, {[b.index(i) for i in shared]}))",
            9,
        )
    return f"np.einsum({subscripts(a, b, out)!r}, {e.arg(x)}, {e.arg(y)}, optimize=True)", 9


PRIMITIVES["contract"] = Primitive("contract", _evaluate, _shape, _vjp, _text)


def matmul(a, b):
    a, b = as_node(a), as_node(b)
    A = list(range(100, 100 + a.ndim))
    B = list(range(200, 200 + b.ndim))
    B[-2 if b.ndim > 1 else -1] = A[-1]
    for k in range(1, min(a.ndim, b.ndim) - 1):
        B[-2 - k] = A[-2 - k]
    batch = (A[:-2] if a.ndim >= b.ndim else B[:-2]) if max(a.ndim, b.ndim) > 2 else []
    return contract(
        a,
        b,
        A,
        B,
        tuple(batch) + ((A[-2],) if a.ndim > 1 else ()) + ((B[-1],) if b.ndim > 1 else ()),
    )


def dot(a, b):
    a, b = as_node(a), as_node(b)
    if not a.ndim or not b.ndim:
        return a * b
    A = list(range(a.ndim))
    B = list(range(50, 50 + b.ndim))
    B[-2 if b.ndim > 1 else -1] = A[-1]
    return contract(a, b, A, B, [i for i in A + B if i != A[-1]])


def inner(a, b):
    a, b = as_node(a), as_node(b)
    if not a.ndim or not b.ndim:
        return a * b
    A, B = list(range(a.ndim)), list(range(50, 49 + b.ndim)) + [a.ndim - 1]
    return contract(a, b, A, B, A[:-1] + B[:-1])


def outer(a, b):
    a, b = (build("reshape", n, shape=(_count(n),)) for n in map(as_node, (a, b)))
    return contract(a, b, (0,), (1,), (0, 1))


def _count(n):
    total = ONE
    for s in n.shape:
        total = total * s
    return total


def tensordot(a, b, axes=2):
    a, b = as_node(a), as_node(b)
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = ([int(i) for i in np.atleast_1d(k)] for k in axes)
    A, B = list(range(a.ndim)), list(range(50, 50 + b.ndim))
    for i, j in zip(left, right):
        B[j] = A[i]
    return contract(
        a,
        b,
        A,
        B,
        [i for i in A if A.index(i) not in [k % a.ndim for k in left]] + [j for j in B if j >= 50],
    )


def einsum(text, *operands, optimize=None):
    operands = [as_node(o) for o in operands]
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    specs = left.split(",")
    ranks = [n.ndim - len(s.replace("...", "")) for n, s in zip(operands, specs) if "..." in s]
    dots = list(range(1000, 1000 + max(ranks, default=0)))

    def indices(s, n):
        if "..." not in s:
            return list(map(ord, s))
        before, after = s.split("...")
        k = n.ndim - len(before + after)
        return list(map(ord, before)) + dots[len(dots) - k :] + list(map(ord, after))

    indexed = [(n, indices(s, n)) for n, s in zip(operands, specs)]
    if arrow:
        out = [
            j
            for part in [right.split("...")]
            for j in (
                list(map(ord, part[0])) + (dots + list(map(ord, part[1])) if len(part) > 1 else [])
            )
        ]
    else:
        flat = [i for _, ix in indexed for i in ix]
        out = dots + sorted(i for i in set(flat) if flat.count(i) == 1 and i < 1000)
    if len(indexed) == 1:
        node, ix = _tidy(*indexed[0], set(out))
        return build("transpose", node, axes=tuple(ix.index(i) for i in out))
    w = world()
    lengths = {
        i: max(w.length(n.shape[k]) for n, ix in indexed for k, j in enumerate(ix) if j == i)
        for n, ix in indexed
        for i in ix
    }
    while len(indexed) > 1:  # the cheapest pair first, as a person would

        def cost(p, q):
            return np.prod([lengths[i] for i in {*indexed[p][1], *indexed[q][1]}])

        p, q = min(
            ((p, q) for q in range(len(indexed)) for p in range(q)), key=lambda pair: cost(*pair)
        )
        (a, ia), (b, ib) = indexed[p], indexed[q]
        rest = [t for k, t in enumerate(indexed) if k not in (p, q)]
        wanted = set(out).union(*(ix for _, ix in rest))
        to = out if not rest else [i for i in dict.fromkeys([*ia, *ib]) if i in wanted]
        indexed = [*rest, (contract(a, b, ia, ib, to), list(to))]
    return indexed[0][0]


FUNCTIONS = {
    np.matmul: matmul,
    np.dot: dot,
    np.vdot: lambda a, b: dot(
        build("reshape", as_node(a), shape=(_count(as_node(a)),)),
        build("reshape", as_node(b), shape=(_count(as_node(b)),)),
    ),
    np.inner: inner,
    np.outer: outer,
    np.tensordot: tensordot,
    np.einsum: einsum,
}
