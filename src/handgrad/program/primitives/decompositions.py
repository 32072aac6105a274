"""Decompositions of matrices: Cholesky, eigenvectors, singular values, QR, pseudo-inverses.

Values and vectors have a derivative where the values are distinct. NumPy reads one triangle of a
symmetric matrix, so the gradient stands in that triangle; on a matrix that is made symmetric by the
program it is the same.
"""

from typing import Any

import numpy as np

from handgrad.program.node import Node, as_node, build, world
from handgrad.program.primitives.axes import equal
from handgrad.program.primitives.contract import conjugated, matmul
from handgrad.program.primitives.fixed import smaller
from handgrad.program.primitives.linalg import mH, mm, mT, of_squares, square
from handgrad.program.primitives.record import (
    Gradients,
    Sample,
    Shaped,
    distinct,
    invertible,
    normal,
    positive_definite,
    record,
)
from handgrad.program.primitives.table import known, refuse
from handgrad.program.sizes import ONE, Size

EighResult: Any = type(np.linalg.eigh(np.eye(1)))
EigResult: Any = type(np.linalg.eig(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))


def eye(size: Size) -> Node:
    return build("eye", rows=size, columns=size, k=0)


def along_columns(v: Node) -> Node:
    """A number for each column of matrices."""
    return build("reshape", v, shape=(*v.shape[:-1], ONE, v.shape[-1]))


def along_rows(v: Node) -> Node:
    """A number for each row of matrices."""
    return build("reshape", v, shape=(*v.shape, ONE))


def triangular(s: Node, triangle: str) -> Node:
    """The gradient of a symmetric matrix of which one triangle is read."""
    return build(triangle, s + mT(s), k=0) - s * eye(s.shape[-1])


def inverse_gaps(w: Node) -> Node:
    """1 / (w_j - w_i) off the diagonal, 0 on it."""
    one = eye(w.shape[-1])
    return (1.0 - one) / (along_columns(w) - along_rows(w) + one)


def parts_of(node: Node, number: int) -> list[Node]:
    return [build("part", node, index=i) for i in range(number)]


def cholesky_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """L⁻ᵀ Φ(Lᵀ dL) L⁻¹, where Φ takes the lower triangle and halves the diagonal (Murray 2016)."""
    p = build("tril", mm(mT(y), g), k=0)
    p = p - 0.5 * (p * eye(x.shape[-1]))
    left = build("solve", mT(y), p)
    s = build("solve", mT(y), mT(left))
    return (triangular(0.5 * (s + mT(s)), "tril"),)


record(
    "cholesky",
    np.linalg.cholesky,
    of_squares,
    cholesky_vjp,
    text="np.linalg.cholesky",
    torch="torch.linalg.cholesky",
    samples=(
        Sample(("M M",), draws=(positive_definite,)),
        Sample(("L M M",), draws=(positive_definite,)),
    ),
)


def eigh_parts(x: Node, uplo: str) -> tuple[Shaped, ...]:
    square(x)
    return (x.shape[:-1], "f"), (x.shape, x.kind)


def eigh_vjp(gs: Gradients, y: Node, x: Node, uplo: str) -> Gradients:
    """V (diag(dw) + (Vᵀ dV) / (w_j - w_i)) Vᵀ."""
    w, v = parts_of(y, 2)
    dw, dv = gs
    inner = None if dv is None else inverse_gaps(w) * matmul(mT(v), dv)
    if inner is None:
        assert dw is not None
        s = matmul(v * along_columns(dw), mT(v))
    else:
        if dw is not None:
            inner = inner + along_columns(dw) * eye(x.shape[-1])
        s = mm(v, inner, mT(v))
    return (triangular(s, "tril" if uplo == "L" else "triu"),)


def eigh_text(library: str) -> Any:
    def text(e: Any, n: Node) -> str:
        other = "" if n.attrs["uplo"] == "L" else ", UPLO='U'"
        return f"{library}.linalg.eigh({e.arg(n.args[0])}{other})"

    return text


record(
    "eigh",
    lambda x, uplo: tuple(np.linalg.eigh(x, uplo)),
    lambda x, uplo: ((), "f"),
    eigh_vjp,
    parts=eigh_parts,
    text=eigh_text("np"),
    torch=eigh_text("torch"),
    samples=(
        Sample(("M M",), {"uplo": "L"}, (distinct,)),
        Sample(("L M M",), {"uplo": "U"}, (distinct,)),
    ),
)


def eig_parts(x: Node) -> tuple[Shaped, ...]:
    square(x)
    kind = "c" if np.iscomplexobj(np.linalg.eigvals(x.value)) else "f"
    return (x.shape[:-1], kind), (x.shape, kind)


def eig_vjp(gs: Gradients, y: Node, x: Node) -> Gradients:
    """V⁻ᴴ (diag(dw) + (Vᴴ dV - Vᴴ V diag(Vᴴ dV)) / (w_j - w_i)*) Vᴴ; columns have length one."""
    w, v = parts_of(y, 2)
    dw, dv = gs
    one = eye(x.shape[-1])
    inner = None if dw is None else along_columns(dw) * one
    if dv is not None:
        a = matmul(mH(v), dv)
        along = matmul(mH(v), v * along_columns(_diag(a)))
        turned = conjugated(inverse_gaps(w)) * (a - along)
        inner = turned if inner is None else inner + turned
    assert inner is not None
    s = build("solve", mH(v), matmul(inner, mH(v)))
    return (build("real", s) if x.kind != "c" else s,)


def _diag(a: Node) -> Node:
    d = build("diagonal", a, axis1=a.ndim - 2, axis2=a.ndim - 1, offset=0)
    return build("real", d)


record(
    "eig",
    lambda x: tuple(np.linalg.eig(x)),
    lambda x: ((), "f"),
    eig_vjp,
    parts=eig_parts,
    text="np.linalg.eig",
    torch="torch.linalg.eig",
    samples=(Sample(("M M",), draws=(distinct,)),),
)


def svd_parts(x: Node) -> tuple[Shaped, ...]:
    if x.kind == "c":
        refuse("singular values of complex matrices are not known")
    m, n = x.shape[-2:]
    k = smaller(m, n)
    batch = x.shape[:-2]
    return ((*batch, m, k), "f"), ((*batch, k), "f"), ((*batch, k, n), "f")


def svd_vjp(gs: Gradients, y: Node, x: Node) -> Gradients:
    """Townsend (2016): within the spans of U and V by the gaps of s², across them by 1/s."""
    u, s, vh = parts_of(y, 3)
    du, ds, dvh = gs
    one = eye(s.shape[-1])
    inner = None if ds is None else along_columns(ds) * one
    if du is not None or dvh is not None:
        gaps = inverse_gaps(s * s)
        if du is not None:
            a = matmul(mT(u), du)
            turned = (gaps * (a - mT(a))) * along_columns(s)
            inner = turned if inner is None else inner + turned
        if dvh is not None:
            b = matmul(vh, mT(dvh))
            turned = along_rows(s) * (gaps * (b - mT(b)))
            inner = turned if inner is None else inner + turned
    if du is None and dvh is None and ds is not None:
        return (matmul(u * along_columns(ds), vh),)
    assert inner is not None
    out = mm(u, inner, vh)
    m, n = x.shape[-2:]
    if du is not None and m != s.shape[-1]:
        scaled = du / along_columns(s)
        out = out + matmul(scaled - mm(u, mT(u), scaled), vh)
    if dvh is not None and n != s.shape[-1]:
        scaled = dvh / along_rows(s)
        out = out + matmul(u, scaled - mm(scaled, mT(vh), vh))
    return (out,)


record(
    "svd",
    lambda x: tuple(np.linalg.svd(x, full_matrices=False)),
    lambda x: ((), "f"),
    svd_vjp,
    parts=svd_parts,
    text=lambda e, n: f"np.linalg.svd({e.arg(n.args[0])}, full_matrices=False)",
    torch=lambda e, n: f"torch.linalg.svd({e.arg(n.args[0])}, full_matrices=False)",
    samples=(
        Sample(("M M",), draws=(distinct,)),
        Sample(("N 2",), draws=(normal,)),
        Sample(("L 2 N",), draws=(normal,)),
    ),
)


def qr_parts(x: Node) -> tuple[Shaped, ...]:
    m, n = x.shape[-2:]
    if world().length(m) < world().length(n):
        refuse("QR of matrices wider than high is not known", "the QR of the first columns")
    smaller(n, m)
    return (x.shape, "f"), ((*x.shape[:-2], n, n), "f")


def qr_vjp(gs: Gradients, y: Node, x: Node) -> Gradients:
    """(dQ + Q sym(M)) R⁻ᵀ with M = R dRᵀ - dQᵀ Q, of which the lower triangle is mirrored."""
    q, r = parts_of(y, 2)
    dq, dr = gs
    m = None if dr is None else matmul(r, mT(dr))
    if dq is not None:
        m = -matmul(mT(dq), q) if m is None else m - matmul(mT(dq), q)
    assert m is not None
    low = build("tril", m, k=-1)
    inside = matmul(q, build("tril", m, k=0) + mT(low))
    total = inside if dq is None else dq + inside
    return (mT(build("solve", r, mT(total))),)


record(
    "qr",
    lambda x: tuple(np.linalg.qr(x)),
    lambda x: ((), "f"),
    qr_vjp,
    parts=qr_parts,
    text="np.linalg.qr",
    torch="torch.linalg.qr",
    samples=(
        Sample(("M M",), draws=(invertible,)),
        Sample(("L N 2",), draws=(normal,)),
    ),
)


def pinv_shape(x: Node) -> Shaped:
    return (*x.shape[:-2], x.shape[-1], x.shape[-2]), x.kind


def pinv_vjp(g: Node, y: Node, x: Node) -> Gradients:
    """The inverse's, and what the spaces left out turn into (Golub and Pereyra 1973)."""
    is_tall = world().length(x.shape[-2]) > world().length(x.shape[-1])

    def product(a: Node, b: Node, c: Node) -> Node:
        # Each first product is square in the shorter of the two sides.
        return matmul(a, matmul(b, c)) if is_tall else matmul(matmul(a, b), c)

    yt, gt = mT(y), mT(g)
    first, second = product(gt, y, yt), product(yt, y, gt)
    left_out = (first - product(x, y, first)) + (second - product(second, y, x))
    return (left_out - product(yt, g, yt),)


record(
    "pinv",
    np.linalg.pinv,
    pinv_shape,
    pinv_vjp,
    text="np.linalg.pinv",
    torch="torch.linalg.pinv",
    samples=(
        Sample(("M M",), draws=(invertible,)),
        Sample(("N 2",), draws=(normal,)),
        Sample(("L 2 N",), draws=(normal,)),
    ),
)


@known(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Node:
    return mT(build("cholesky", mT(as_node(a)))) if upper else build("cholesky", a)


@known(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    return EighResult(*parts_of(build("eigh", a, uplo=UPLO.upper()), 2))


@known(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Node:
    return parts_of(build("eigh", a, uplo=UPLO.upper()), 1)[0]


@known(np.linalg.eig)
def eig(a: Any) -> Any:
    return EigResult(*parts_of(build("eig", a), 2))


@known(np.linalg.eigvals)
def eigvals(a: Any) -> Node:
    return parts_of(build("eig", a), 1)[0]


@known(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    x = as_node(a)
    if not compute_uv:
        return svdvals(x)
    m, n = x.shape[-2:]
    if full_matrices:
        if world().length(m) != world().length(n):
            refuse(
                "the vectors beyond the rank have no derivative",
                "np.linalg.svd(x, full_matrices=False)",
            )
        equal(m, n)
    return SVDResult(*parts_of(build("svd", x), 3))


@known(np.linalg.svdvals)
def svdvals(x: Any, /) -> Node:
    return build("part", build("svd", x), index=1)


@known(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    x = as_node(a)
    parts = parts_of(build("qr", x), 2)
    if mode == "r":
        return parts[1]
    if mode != "reduced" and world().length(x.shape[-2]) != world().length(x.shape[-1]):
        refuse(f"QR with mode {mode!r} is not known", "mode 'reduced'")
    return QRResult(*parts)


@known(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, **_: Any) -> Node:
    return build("pinv", a)


@known(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, ...]:
    """Of full rank: by the pseudo-inverse; residuals where there are more rows than columns."""
    x, y = as_node(a), as_node(b)
    solution = matmul(build("pinv", x), y)
    off = matmul(x, solution) - y
    squares = build("sum", off * off, axis=(0,), keepdims=False)
    if y.ndim == 1:
        squares = build("reshape", squares, shape=(ONE,))
    return solution, squares, as_node(smaller(*x.shape)), svdvals(x)
