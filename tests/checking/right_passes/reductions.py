# mypy: ignore-errors
"""Sums, means, products, norms, scans, products of matrices, indexing."""

from __future__ import annotations

import numpy as np

from tests.checking.right_passes.case import Case, normal


def log_sum_exp(x):
    m = x.max(axis=-1, keepdims=True)
    e = np.exp(x - m)
    s = e.sum(axis=-1, keepdims=True)
    return (m + np.log(s))[..., 0], e / s


def log_sum_exp_back(dy, p):
    return dy[..., None] * p


def variance(x):
    c = x - x.mean()
    return (c * c).mean(), c


def variance_back(dv, c):
    return dv * 2 * c / c.size


def standard_deviation(x):
    c = x - x.mean(0)
    s = np.sqrt((c**2).sum(0) / (len(x) - 1))
    return s, (c, s)


def standard_deviation_back(ds, cache):
    c, s = cache
    return ds * c / (s * (len(c) - 1))


def product_of_rows(x):
    y = np.prod(x, axis=1)
    return y, (x, y)


def product_of_rows_back(dy, cache):
    x, y = cache
    return dy[:, None] * y[:, None] / x


def cosine_similarity(a, b):
    na = np.sqrt((a * a).sum(-1, keepdims=True))
    nb = np.sqrt((b * b).sum(-1, keepdims=True))
    cos = (a * b).sum(-1, keepdims=True) / (na * nb)
    return cos[..., 0], (a, b, na, nb, cos)


def cosine_similarity_back(dy, cache):
    a, b, na, nb, cos = cache
    d = dy[..., None]
    da = d * (b / (na * nb) - cos * a / na**2)
    db = d * (a / (na * nb) - cos * b / nb**2)
    return da, db


def cumulative_sum(x):
    return np.cumsum(x, axis=1), None


def cumulative_sum_back(dy, _):
    return np.cumsum(dy[:, ::-1], axis=1)[:, ::-1]


def cumulative_product(x):
    y = np.cumprod(x)
    return y, (x, y)


def cumulative_product_back(dy, cache):
    x, y = cache
    return np.cumsum((dy * y)[::-1])[::-1] / x


def linear_scan(a, x):
    h, hs = 0.0, []
    for t in range(len(x)):
        h = a[t] * h + x[t]
        hs.append(h)
    return np.array(hs), (a, hs)


def linear_scan_back(dh, cache):
    a, hs = cache
    da, dx, run = np.zeros_like(a), np.zeros_like(a), 0.0
    for t in reversed(range(len(a))):
        run = run + dh[t]
        dx[t] = run
        da[t] = run * (hs[t - 1] if t else 0.0)
        run = run * a[t]
    return da, dx


def einsum_bilinear(x, w, y):
    return np.einsum("ni,oij,nj->no", x, w, y), (x, w, y)


def einsum_bilinear_back(d, cache):
    x, w, y = cache
    dx = np.einsum("no,oij,nj->ni", d, w, y)
    dw = np.einsum("no,ni,nj->oij", d, x, y)
    dy = np.einsum("no,ni,oij->nj", d, x, w)
    return dx, dw, dy


def outer(a, b):
    return np.outer(a, b), (a, b)


def outer_back(d, cache):
    a, b = cache
    return d @ b, d.T @ a


def quadratic_form(x, a):
    return x @ a @ x, (x, a)


def quadratic_form_back(d, cache):
    x, a = cache
    return d * (a @ x + a.T @ x), d * np.outer(x, x)


def trace_of_inverse(a):
    inv = np.linalg.inv(a)
    return np.trace(inv), inv


def trace_of_inverse_back(d, inv):
    return -d * (inv @ inv).T


def log_determinant(a):
    return np.linalg.slogdet(a)[1], a


def log_determinant_back(d, a):
    return d * np.linalg.inv(a).T


def solve(a, b):
    x = np.linalg.solve(a, b)
    return x, (a, x)


def solve_back(dx, cache):
    a, x = cache
    db = np.linalg.solve(a.T, dx)
    return -db @ x.T, db


def symmetric(x):
    return x + x.T, None


def symmetric_back(dy, _):
    return dy + dy.T


def batched_matmul(a, b):
    return a @ b, (a, b)


def batched_matmul_back(dy, cache):
    a, b = cache
    return dy @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ dy


def broadcast_add(x, row, column):
    return x + row + column, (row.shape, column.shape)


def broadcast_add_back(dy, cache):
    return dy, dy.sum(axis=0), dy.sum(axis=1, keepdims=True)


def gather_repeated(x, idx):
    return x[idx], (x.shape, idx)


def gather_repeated_back(dy, cache):
    shape, idx = cache
    dx = np.zeros(shape)
    np.add.at(dx, idx, dy)
    return dx


def segment_mean(x, group):
    count = np.bincount(group, minlength=3).astype(float)
    y = np.zeros((3, x.shape[1]))
    np.add.at(y, group, x)
    return y / count[:, None], (group, count)


def segment_mean_back(dy, cache):
    group, count = cache
    return (dy / count[:, None])[group]


def moving_average(x):
    k = 3
    return np.stack([x[i : len(x) - k + 1 + i] for i in range(k)]).mean(0), (len(x), k)


def moving_average_back(dy, cache):
    n, k = cache
    dx = np.zeros(n)
    for i in range(k):
        dx[i : n - k + 1 + i] += dy / k
    return dx


def pairwise_distances(x):
    diff = x[:, None] - x[None]
    return (diff**2).sum(-1), diff


def pairwise_distances_back(dd, diff):
    g = 2 * dd[..., None] * diff
    return g.sum(1) - g.sum(0)


def frobenius(w):
    n = np.linalg.norm(w)
    return n, (w, n)


def frobenius_back(d, cache):
    w, n = cache
    return d * w / n


def softmax_temperature(x, t):
    e = np.exp((x - x.max(-1, keepdims=True)) / t)
    p = e / e.sum(-1, keepdims=True)
    return p, (x, t, p)


def softmax_temperature_back(dp, cache):
    x, t, p = cache
    dz = p * (dp - (dp * p).sum(-1, keepdims=True))
    return dz / t, -(dz * x).sum() / t**2


def log_softmax(x):
    z = x - x.max(axis=1, keepdims=True)
    out = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return out, out


def log_softmax_back(dy, out):
    return dy - np.exp(out) * dy.sum(axis=1, keepdims=True)


def flip_and_roll(x):
    return np.roll(np.flip(x, 0), 2, axis=1), None


def flip_and_roll_back(dy, _):
    return np.flip(np.roll(dy, -2, axis=1), 0)


def pad_and_stride(x):
    return np.pad(x, ((0, 0), (1, 1)))[:, ::2], x.shape


def pad_and_stride_back(dy, shape):
    padded = np.zeros((shape[0], shape[1] + 2))
    padded[:, ::2] = dy
    return padded[:, 1:-1]


CASES = (
    Case(log_sum_exp, log_sum_exp_back, normal((4, 5)), ("* p", "* p * p")),
    Case(variance, variance_back, normal((4, 5)), ("dv * 2", "dv")),
    Case(standard_deviation, standard_deviation_back, normal((6, 3)), ("len(c) - 1", "len(c)")),
    Case(
        product_of_rows,
        product_of_rows_back,
        lambda rng: (rng.uniform(0.5, 1.5, (4, 3)),),
        ("dy[:, None] *", "-dy[:, None] *"),
    ),
    Case(cosine_similarity, cosine_similarity_back, normal((4, 5), (4, 5)), ("nb**2", "nb")),
    Case(cumulative_sum, cumulative_sum_back, normal((3, 5)), ("dy[:, ::-1]", "dy")),
    Case(
        cumulative_product,
        cumulative_product_back,
        lambda rng: (rng.uniform(0.5, 1.5, 6),),
        (" / x", ""),
    ),
    Case(linear_scan, linear_scan_back, normal(7, 7), ("run = run * a[t]", "run = run + a[t]")),
    Case(
        einsum_bilinear,
        einsum_bilinear_back,
        normal((4, 3), (2, 3, 5), (4, 5)),
        ("d, x, w", "-d, x, w"),
    ),
    Case(outer, outer_back, normal(4, 3), ("d.T @ a", "2 * d.T @ a")),
    Case(quadratic_form, quadratic_form_back, normal(4, (4, 4)), (" + a.T @ x", "")),
    Case(
        trace_of_inverse,
        trace_of_inverse_back,
        lambda rng: (np.eye(4) * 4 + rng.standard_normal((4, 4)),),
        (".T", ""),
    ),
    Case(
        log_determinant,
        log_determinant_back,
        lambda rng: (np.eye(4) * 4 + rng.standard_normal((4, 4)),),
        (".T", ""),
    ),
    Case(
        solve,
        solve_back,
        lambda rng: (np.eye(4) * 4 + rng.standard_normal((4, 4)), rng.standard_normal((4, 2))),
        ("-db @", "db @"),
    ),
    Case(symmetric, symmetric_back, normal((4, 4)), (" + dy.T", "")),
    Case(batched_matmul, batched_matmul_back, normal((2, 3, 4), (2, 4, 5)), ("dy @ b", "-dy @ b")),
    Case(
        broadcast_add,
        broadcast_add_back,
        normal((4, 5), 5, (4, 1)),
        ("dy.sum(axis=0)", "dy.mean(axis=0)"),
    ),
    Case(
        broadcast_add,
        broadcast_add_back,
        normal((4, 4), 4, (4, 1)),
        ("dy.sum(axis=0)", "dy.sum(axis=1)"),
        label="broadcast_add_square",
    ),
    Case(
        gather_repeated,
        gather_repeated_back,
        lambda rng: (rng.standard_normal((5, 3)), np.array([0, 2, 2, 4, 0])),
        ("np.add.at(dx, idx, dy)", "dx[idx] += dy"),
    ),
    Case(
        segment_mean,
        segment_mean_back,
        lambda rng: (rng.standard_normal((5, 2)), np.array([0, 2, 1, 2, 0])),
        (" / count[:, None]", ""),
    ),
    Case(moving_average, moving_average_back, normal(9), ("+= dy / k", "= dy / k")),
    Case(pairwise_distances, pairwise_distances_back, normal((4, 3)), (" - g.sum(0)", "")),
    Case(frobenius, frobenius_back, normal((4, 3)), ("w / n", "w")),
    Case(softmax_temperature, softmax_temperature_back, normal((4, 5), ()), ("-(dz", "(dz")),
    Case(log_softmax, log_softmax_back, normal((4, 5)), ("np.exp(out)", "out")),
    Case(flip_and_roll, flip_and_roll_back, normal((4, 5)), ("-2", "2")),
    Case(pad_and_stride, pad_and_stride_back, normal((3, 6)), ("1:-1", ":-2")),
)
