"""NumPy's functions of arrays in forwards: derived, and right at sizes the proof has not seen."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

from handgrad import derive
from handgrad.deriving.refusals import UnreadableError
from tests.rows import rows

SIZES = {"N": 7, "M": 5, "D": 6, "K": 8, "T": 9, "B": 4}


def made(rng: np.random.Generator, shape: tuple[Any, ...]) -> Any:
    """An array of letters' own sizes; integers below 3 where the last says so."""
    whole = bool(shape) and shape[-1] is int
    letters = shape[:-1] if whole else shape
    lengths = [eval(s, {}, SIZES) if isinstance(s, str) else s for s in letters]
    return rng.integers(0, 3, lengths) if whole else rng.standard_normal(lengths)


def flat(y: Any) -> list[Any]:
    return [x for v in y for x in flat(v)] if isinstance(y, tuple | list) else [np.asarray(y)]


def holds(forward: Callable[..., Any], **shapes: Any) -> None:
    """The derived pair at other sizes: the forward's values, and gradients by differences."""
    d = derive(forward, **shapes)
    rng = np.random.default_rng(5)
    arrays = {name: made(rng, shape) for name, shape in shapes.items()}
    y, cache = d.forward(**arrays)
    for got, want in zip(flat(y), flat(forward(**arrays)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)
    dys = [rng.standard_normal(v.shape) for v in flat(y)]
    grads = flat(d.backward(tuple(dys) if len(dys) > 1 else dys[0], cache))
    floats = [k for k, v in arrays.items() if v.dtype.kind == "f"]
    us = {k: rng.standard_normal(arrays[k].shape) for k in floats}

    def along(h: float) -> float:
        moved = {k: v + h * us[k] if k in us else v for k, v in arrays.items()}
        return sum(float((c * v).sum()) for c, v in zip(dys, flat(forward(**moved)), strict=True))

    h = 1e-5
    want = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    got = sum(float((g * us[k]).sum()) for g, k in zip(grads, floats, strict=True))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def case(name: str, forward: Callable[..., Any], **shapes: Any) -> Any:
    return pytest.param(forward, shapes, id=name)


def power_spectrum(x):
    return np.abs(np.fft.fft(x)) ** 2


def long_convolution(x, h):
    n = x.shape[-1]
    return np.fft.irfft(np.fft.rfft(x, 2 * n) * np.fft.rfft(h, 2 * n), 2 * n)[..., :n]


def complex_arithmetic(x):
    return (np.exp(1j * x) * (2 + x)).real


def filtered(x):
    return np.fft.irfft2(np.fft.rfft2(x) * 2.0)


def of_positive(x, y):
    mask = x > 0
    return x[mask] * y[mask]


def mean_of_positive(x):
    return x[x > 0].mean()


def of_nonzero(x):
    i, j = np.nonzero(x > 0)
    return x[i, j]


def backwards(x):
    return x[::-1] * x[3:0:-1].sum()


def windows(x, k, width=3):
    return np.lib.stride_tricks.sliding_window_view(x, width).sum(-1) * k


def cut_in_two(x):
    a, b = np.split(x, 2, -1)
    return a * b


def orthogonal(x):
    q, r = np.linalg.qr(x)
    return q @ r, q


def log_determinant(x):
    return np.linalg.slogdet(x @ x.T + np.eye(len(x)))[1]


def triangular(x, b):
    return scipy.linalg.solve_triangular(np.tril(x) + 9 * np.eye(len(x)), b, lower=True)


def diagonal_cleared(x):
    y = x.copy()
    np.fill_diagonal(y, 0.0)
    return y * x


def eigenvalues_in_rounds(x, w):
    h = np.zeros((x.shape[1],))
    for t in range(x.shape[0]):
        values, _ = np.linalg.eigh(np.outer(h, h) + np.diag(x[t]) + w)
        h = h + values
    return h


def symmetric(x):
    values, vectors = np.linalg.eigh(x @ x.T + np.diag(np.arange(len(x)) * 5.0))
    return values, vectors * vectors


CASES = [
    case("fft", power_spectrum, x=("N", "T")),
    case("irfft", long_convolution, x=("N", "T"), h=("T",)),
    case("complex", complex_arithmetic, x=("N",)),
    case("rfft2", filtered, x=("N", 6)),
    case("fftshift", lambda x: np.fft.fftshift(x) * np.arange(len(x)), x=("N",)),
    case("mask", of_positive, x=("N",), y=("N",)),
    case("mask-mean", mean_of_positive, x=("N",)),
    case("nonzero", of_nonzero, x=("N", "D")),
    case("ix_", lambda x: x[np.ix_([0, 1], [1, 2])] * 2, x=("N", "D")),
    case("index", lambda x, i: x[i, :, None, ::2] ** 2, x=("N", "D", "T"), i=("B", int)),
    case("backwards", backwards, x=("N",)),
    case("windows", windows, x=("N",), k=()),
    case("convolve", lambda x, k: np.convolve(x, k), x=("N",), k=(3,)),
    case("convolve-same", lambda x, k: np.convolve(x, k, "same"), x=("N",), k=(4,)),
    case("correlate", lambda x, k: np.correlate(x, k), x=("N",), k=(3,)),
    case(
        "einsum-3",
        lambda a, b, c: np.einsum("ij,jk,kl", a, b, c),
        a=("N", "D"),
        b=("D", "K"),
        c=("K", "M"),
    ),
    case(
        "einsum-trace",
        lambda a, b: np.einsum("...ii,...i->...", a, b),
        a=("N", "D", "D"),
        b=("N", "D"),
    ),
    case(
        "einsum-lists",
        lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        a=("N", "D"),
        b=("D", "K"),
    ),
    case("kron", lambda a, b: np.kron(a, b), a=("N", "D"), b=("M",)),
    case("cross", lambda a, b: np.cross(a, b), a=("N", 3), b=("N", 3)),
    case("interp", lambda x, p, f: np.interp(x, np.sort(p), f), x=("N",), p=("K",), f=("K",)),
    case("polyval", lambda p, x: np.polyval(p, x), p=(4,), x=("N",)),
    case("select", lambda x: np.select([x > 1, x > 0], [x * 2, x * x], -x), x=("N",)),
    case("linspace", lambda a, b: np.linspace(a, b, 5) ** 2, a=(), b=()),
    case("fill_diagonal", diagonal_cleared, x=("N", "N")),
    case("delete", lambda x: np.delete(x, 0, axis=1) ** 2, x=("N", "D")),
    case("insert", lambda x, v: np.insert(x, 1, v, axis=0) ** 2, x=("N", "D"), v=("D",)),
    case("gradient", lambda x: np.gradient(x, axis=0) ** 2, x=("N", "D")),
    case("diff", lambda x: np.diff(x, n=2, axis=0) ** 2, x=("N", "D")),
    case("split", cut_in_two, x=("N", "2 * D")),
    case("r_", lambda x, y: np.r_[x, 1.0, y] ** 2, x=("N",), y=("M",)),
    case("c_", lambda x, y: np.c_[x, y] ** 2, x=("N",), y=("N",)),
    case("block", lambda a, b: np.block([[a, b], [b, a]]) ** 2, a=("N", "D"), b=("N", "D")),
    case("rot90", lambda x: np.rot90(x) ** 2, x=("N", "D")),
    case("diagonal", lambda x: np.diagonal(x, 1) ** 2, x=("N", "N")),
    case("vander", lambda x: np.vander(x, 4), x=("N",)),
    case("repeat", lambda x: np.repeat(x, 2, axis=0) ** 2, x=("N", "D")),
    case("bincount", lambda x, i: np.bincount(i, x, minlength=9) ** 2, x=("N",), i=("N", int)),
    case("qr", orthogonal, x=("N", 2)),
    case("eigh", symmetric, x=("M", "K")),
    case("eigh-rounds", eigenvalues_in_rounds, x=("T", "D"), w=("D", "D")),
    case("svdvals", lambda x: np.linalg.svd(x, full_matrices=False)[1], x=("M", "N")),
    case("pinv", lambda x: np.linalg.pinv(x), x=("N", "M")),
    case("slogdet", log_determinant, x=("M", "D")),
    case("nuclear", lambda x: np.linalg.norm(x, "nuc"), x=("M", "N")),
    case("expm", lambda x: scipy.linalg.expm(0.1 * x), x=("N", "N")),
    case("solve_triangular", triangular, x=("N", "N"), b=("N",)),
]


def chosen(x, y, i):
    return np.choose(i, [x, 2 * x, x * y, -x, x])


def by_pieces(x):
    return np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])


def spread_both(a, b):
    p, q = np.broadcast_arrays(a, b)
    return p * q


def least_squares(a, b):
    return np.linalg.lstsq(a, b)[:2]


def by_cholesky(a, b):
    factor = scipy.linalg.cho_factor(a @ a.T + 9 * np.eye(len(a)), lower=True)
    return scipy.linalg.cho_solve(factor, b)


def pairs_above(x):
    i, j = np.triu_indices(len(x), k=1)
    return np.tanh(x[i] - 2 * x[j]).sum()


def pairs_below(x):
    return x[np.tril_indices(x.shape[0], -1, x.shape[1])] ** 2


def unique_numbers(x, i):
    values, inverse = np.unique(i, return_inverse=True)
    return values[inverse] * x


def put_along(x, i, v):
    y = x * 1.0
    np.put_along_axis(y, i[:, None], v, 1)
    return y * x


def general_eigenvalues(x):
    values, vectors = np.linalg.eig(0.1 * x + np.diag(np.arange(len(x)) * 3.0))
    return values, vectors * vectors


def over_rows(x):
    a, b, c = np.unstack(x)
    return a * b + c


def counted(x, i):
    y = np.zeros((5, x.shape[1]))
    np.add.at(y, i, x)
    return y * y


def inverted(x):
    return np.linalg.tensorinv(x + 9 * np.eye(6).reshape(6, 2, 3), 1)


MORE = [
    case("choose", chosen, x=("N",), y=("N",), i=("N", int)),
    case("piecewise", by_pieces, x=("N",)),
    case(
        "multi_dot",
        lambda a, b, c: np.linalg.multi_dot([a, b, c]),
        a=("N",),
        b=("N", "D"),
        c=("D", "K"),
    ),
    case(
        "tensordot",
        lambda a, b: np.tensordot(a, b, ([2, 0], [0, 1])),
        a=("N", "D", "K"),
        b=("K", "N", "M"),
    ),
    case("tensordot-0", lambda a, b: np.tensordot(a, b, 0), a=("N",), b=("D", "K")),
    case("vecdot", lambda a, b: np.vecdot(a, b), a=("N", "D"), b=("D",)),
    case("vdot", lambda a, b: np.vdot(a, b), a=("N", "D"), b=("N", "D")),
    case("inner", lambda a, b: np.inner(a, b), a=("N", "D"), b=("K", "D")),
    case("dot", lambda a, b: np.dot(a, b), a=("N", "D", "K"), b=("M", "K", "B")),
    case("trace", lambda x: np.trace(x, 1) ** 2, x=("N", "N")),
    case(
        "tensorinv",
        lambda x: np.linalg.tensorinv(x + 9 * np.eye(6).reshape(6, 2, 3), 1),
        x=(6, 2, 3),
    ),
    case("lstsq", least_squares, a=(9, 3), b=(9,)),
    case("cond", lambda x: np.linalg.cond(x), x=("M", "N")),
    case("power", lambda x: np.linalg.matrix_power(x + 9 * np.eye(len(x)), -2), x=("N", "N")),
    case("cho_solve", by_cholesky, a=("N", "N"), b=("N", "D")),
    case("eig", general_eigenvalues, x=(5, 5)),
    case("roll", lambda x: np.roll(x, (1, -2), (0, 1)) * x, x=("N", "D")),
    case("tile", lambda x: np.tile(x, (2, 1, 3)) ** 2, x=("N", "D")),
    case("repeat-each", lambda x: np.repeat(x, [1, 2, 3], axis=1) ** 2, x=("N", 3)),
    case("rollaxis", lambda x: np.rollaxis(x, 2) ** 2, x=("N", "D", "K")),
    case("moveaxis", lambda x: np.moveaxis(x, (0, 1), (-1, 0)) ** 2, x=("N", "D", "K")),
    case("broadcast_arrays", spread_both, a=("N", 1), b=("D",)),
    case("append", lambda x, y: np.append(x, y, axis=0) ** 2, x=("N", "D"), y=("M", "D")),
    case("dstack", lambda x, y: np.dstack((x, y)) ** 2, x=("N", "D"), y=("N", "D")),
    case("hsplit", lambda x: np.hsplit(x, [2, 3])[2] ** 2, x=("N", "D")),
    case("array_split", lambda x: np.array_split(x, 3)[1] ** 2, x=(8, "D")),
    case("unstack", over_rows, x=(3, "D")),
    case("ediff1d", lambda x, y: np.ediff1d(x, to_end=y) ** 2, x=("N", "D"), y=("K",)),
    case("take-wrap", lambda x: np.take(x, [5, -7], mode="wrap", axis=1) ** 2, x=("N", "D")),
    case(
        "take_along_axis",
        lambda x, i: np.take_along_axis(x, i[:, None], 1) ** 2,
        x=("N", "D"),
        i=("N", int),
    ),
    case("put_along_axis", put_along, x=("N", "D"), i=("N", int), v=("N", 1)),
    case("compress", lambda x: np.compress([True, False, True], x, axis=0) ** 2, x=("N", "D")),
    case("extract", lambda x: np.extract(x > 0, x) ** 2, x=("N", "D")),
    case("where-1", lambda x: x[np.where(x > 0)] ** 2, x=("N", "D")),
    case("triu_indices", pairs_above, x=("N",)),
    case("tril_indices", pairs_below, x=("N", "M")),
    case("diag_indices", lambda x: x[np.diag_indices(len(x))] ** 2, x=("N", "N")),
    case("unique", unique_numbers, x=("N",), i=("N", int)),
    case("add.at", counted, x=("N", "D"), i=("N", int)),
    case("triu", lambda x: np.triu(x, 1) ** 2, x=("N", "D")),
    case("diag", lambda x: np.diag(x, -1) ** 2, x=("N",)),
    case("tri", lambda x: np.tri(len(x)) @ x, x=("N", "D")),
    case("eye", lambda x: np.eye(len(x), k=1) @ x, x=("N", "D")),
    case("indices", lambda x: np.indices(x.shape)[0] * x, x=("N", "D")),
    case("meshgrid", lambda x, y: np.multiply(*np.meshgrid(x, y)), x=("N",), y=("M",)),
    case(
        "meshgrid-ij",
        lambda x, y: np.multiply(*np.meshgrid(x, y, indexing="ij")),
        x=("N",),
        y=("M",),
    ),
    case("array", lambda x: np.array([[x[0], 1.0], [x[1], x[0]]]) ** 2, x=("N",)),
    case("arange", lambda x: x * np.arange(2, 2 + 3 * len(x), 3), x=("N",)),
    case("ortho", lambda x: np.abs(np.fft.fft(x, norm="ortho")), x=("N",)),
    case("fftn", lambda x: np.fft.ifftn(np.fft.fftn(x) * 2.0).real, x=("N", "D")),
    case("irfftn", lambda x: np.fft.irfftn(np.fft.rfftn(x) ** 2), x=("N", 6)),
    case("imag", lambda x: np.fft.fft(x).imag * np.fft.fft(x).real, x=("N",)),
]


def strided_windows(x, w, stride=2):
    x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    n, height, width = x.shape
    k = w.shape[0]
    rows, columns = (height - k) // stride + 1, (width - k) // stride + 1
    s0, s1, s2 = x.strides
    shape, strides = (n, rows, columns, k, k), (s0, s1 * stride, s2 * stride, s1, s2)
    windows = np.lib.stride_tricks.as_strided(x, shape, strides)
    return np.einsum("nhwij,ij->nhw", windows, w)


def repeated_rows(x):
    return np.lib.stride_tricks.as_strided(x, (3, len(x)), (0, x.strides[0])) * x


def segment_softmax(h, e, i):
    largest = np.full(h.shape, -np.inf)
    np.maximum.at(largest, i, e)
    w = np.exp(e - largest[i])
    total = np.zeros(h.shape)
    np.add.at(total, i, w)
    return w / total[i] * h[i]


def segment_smallest(x, e, i):
    out = np.tanh(x)
    np.minimum.at(out, (slice(None), i), e)
    return out * x


STRIDED = [
    case("strided windows", strided_windows, x=("B", "N", "D"), w=(3, 3)),
    case("a stride of 0", repeated_rows, x=("N",)),
    case("maximum.at", segment_softmax, h=("N", "D"), e=("K", "D"), i=("K", int)),
    case("minimum.at", segment_smallest, x=("D", "N"), e=("D", "K"), i=("K", int)),
    case("diagonal beside", lambda x: np.trace(x, offset=2), x=("N", "D")),
]


def hashed(x, t, i):
    j = i.copy()
    j ^= 3
    n = t.shape[0]
    return t[((i ^ (j + 1) * 31) & 255) % n] * x + t[(n ^ (i << 1 | 1)) % n] * ~(i >> 1)


def of_truths(x, i):
    return np.where(~(i > 1) & (x > 0) | (i == 0) ^ (x < -1), x, x * x)


def far_diagonals(x, y):
    z = np.concatenate([x, y])
    n, scores = len(x), z @ z.T
    return np.diag(scores, n) - np.diag(scores, -n) * np.diagonal(scores, n - 1)[1:]


def filled(x):
    np.fill_diagonal(x, 0.0)
    return x * x


BITS = [
    case("bits", hashed, x=("N",), t=("T",), i=("N", int)),
    case("bits of truths", of_truths, x=("N",), i=("N", int)),
    case("diagonals of a length", far_diagonals, x=("N", "D"), y=("N", "D")),
    case("diag of a length", lambda x, y: np.diag(x, len(y)) ** 2, x=("N",), y=("M",)),
    case("diag below", lambda x, y: np.diag(x, -len(y)) ** 2, x=("N",), y=("M",)),
    case("convolve-full", lambda x, k: np.convolve(x, k) ** 2, x=("N",), k=("K",)),
]


@rows(("forward", "shapes"), [*CASES, *MORE, *STRIDED, *BITS])
def test_function(forward: Callable[..., Any], shapes: Any) -> None:
    holds(forward, **shapes)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pad(mode: str) -> None:
    holds(lambda x: np.pad(x, ((1, 2), (0, 1)), mode=mode) ** 2, x=("N", "D"))  # type: ignore[call-overload]


def unique_floats(x):
    values, inverse = np.unique(x, return_inverse=True)
    return values[inverse] * x


@pytest.mark.parametrize(
    ("forward", "shapes", "sizes"),
    [
        (lambda x, k: np.convolve(x, k, "same"), {"x": ("N",), "k": (3,)}, (2, 3)),
        (filled, {"x": ("N", "M")}, (4, 3)),
        (lambda x, y: np.diag(x, len(y) - 2), {"x": ("N",), "y": ("M",)}, (4, 1)),
    ],
)
def test_order_of_lengths_is_checked(
    forward: Callable[..., Any], shapes: Any, sizes: tuple[int, int]
) -> None:
    d = derive(forward, **shapes)
    given = [np.ones(n) for n in sizes] if len(shapes) > 1 else [np.ones(sizes)]
    with pytest.raises(ValueError, match="; allowed: "):
        d.forward(*given)


REFUSED = [
    case("strides", lambda x: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)), x=("N",)),
    case("pad", lambda x: np.pad(x, 1, mode="linear_ramp"), x=("N",)),
    case("bincount", lambda x, i: np.bincount(i, x), x=("N",), i=("N", int)),
    case("svd", lambda x: np.linalg.svd(x)[0], x=("N", "D")),
    case("logm", lambda x: scipy.linalg.logm(x), x=("N", "N")),
]


def test_unique_of_floats_has_no_gradient_where_two_are_equal() -> None:
    with pytest.raises(UnreadableError, match="where x is the same everywhere"):
        derive(unique_floats, x=("N",))


@pytest.mark.parametrize(("forward", "shapes"), REFUSED)
def test_refusal_says_line_and_what_to_write(forward: Callable[..., Any], shapes: Any) -> None:
    with pytest.raises(UnreadableError, match=r"^derive: line \d+: .*; allowed: (?!a forward)"):
        derive(forward, **shapes)


def test_cheapest_order_of_a_chain() -> None:
    d = derive(
        lambda x, a, b: np.einsum("nd,dk,km->nm", x, a, b), x=("N", 50), a=(50, 2), b=(2, 50)
    )
    assert "np.einsum" not in d.forward_source
    assert d.forward_source.count("@") == 2
    assert "x @ a" in d.forward_source
