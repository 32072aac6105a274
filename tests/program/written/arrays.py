"""Views, changes in place, selections and shapes."""

import math

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


W = np.linspace(0, 1, 3)


@case(x=(N, D))
def views(x):
    y = x.copy()
    v = y[0]
    v += 1
    v *= 2
    return y ** 2


@case(x=(N, D))
def view_t(x):
    y = x.copy()
    v = y.T
    v[0] = 3.0
    y[1] = 2 * y[1]
    return v * y.T


@case(x=(N, D))
def view_rows(x):
    y = x * 1.0
    for row in y:
        row /= np.sqrt((row ** 2).sum())
    return y


@case(x=(N, D), y=(N, D))
def out_args(x, y):
    z = np.empty_like(x)
    np.multiply(x, y, out=z)
    np.exp(z, out=z)
    np.add(z, x, out=z[:])
    return z


@case(x=(N, D))
def masks(x):
    y = x.copy()
    y[y < 0] = 0.0
    y[x > 1] *= 2
    np.copyto(y, x ** 2, where=x > 0.5)
    return y


@case(x=(N, D), i=(N, int))
def puts(x, i):
    y, z = x * 1, x[:, :3] + 0
    np.put(y, [1, 3], x[2, :2] ** 2)
    np.putmask(y, x > 0.9, 2.0)
    np.place(y, mask=x < 0.2, vals=x[0, 0])
    np.put_along_axis(z, i[:, None], x[:, 3:4] ** 2, 1)
    return y, z


@case(x=(N, D), v=('M', D), i=('M', int), j=('M', int))
def repeated_indices(x, v, i, j):
    y, z, u = x * 1, x * 1, x * 1
    y[i] += v
    z[i, j] = v[:, 0] ** 2
    u[[0, 2, 0]] *= v[:3]
    u[1:, j] -= 1.0
    return y, z, u


@case(x=(N, D))
def inplace_all(x):
    y = x + 0
    y += x
    y -= 0.5
    y *= x
    y /= 2 + x ** 2
    y **= 2
    return y


@case(x=(3, D))
def unpack(x):
    a, b, c = x
    return np.array([a, b * c, a + c]).sum(0) + sum([a, b]) + sum((r for r in x))


@case(x=(3,))
def numbers(x):
    a, *rest = x
    return np.array([a, rest[0] * rest[1]]) * math.exp(a)


@case(x=(N, 3))
def module_array(x):
    return x * W + W[0]


@case(x=(N, D))
def rc(x):
    return np.r_[x[0], x[1] * 2] if x.shape[1] > 0 else x


@case(x=(N, D))
def fill_diag(x):
    y = x @ x.T
    np.fill_diagonal(y, 0.0)
    return y


@case(x=(N, D))
def masked_mean(x, m=None):
    m = x > 0 if m is None else m
    return (x * m).sum(0) / np.maximum(m.sum(0), 1)


@case(x=(N, D))
def nested_views(x):
    y = x.copy()
    a = y[1:]
    b = a[:, 0]
    b *= 3
    a[0] += 1
    z = y.reshape(-1)
    z[0] = 5.0
    y.T[1] -= 2
    return y * x


@case(x=(N, D))
def swap_rows(x):
    y = x.copy()
    y[0], y[1] = (y[1].copy(), y[0].copy())
    y[[0, 2]] = y[[2, 0]]
    return y * x


@case(x=(N, D))
def chain_out(x):
    buf = np.zeros(x.shape)
    np.tanh(x, out=buf)
    buf *= 2
    np.subtract(buf, 0.1, buf)
    return np.sum(buf, axis=0, out=np.zeros(x.shape[1]))


@case(x=(N, D))
def ufunc_where(x):
    return np.divide(x, np.abs(x), out=np.zeros_like(x), where=x > 0) * x


@case(x=(N, D))
def posenc(x):
    n, d = x.shape
    pos = np.arange(n)[:, None]
    i = np.arange(d)[None, :]
    ang = pos / np.power(10000, 2 * (i // 2) / d)
    pe = np.where(i % 2 == 0, np.sin(ang), np.cos(ang))
    return x * pe


@case(x=(N, D))
def index_argmax(x):
    j = np.argmax(x.sum(0))
    return x[:, j] * 2


@case(x=(N, D))
def item(x):
    return x * x[0, 0].item() + x.item(0)


@case(x=(N, D))
def allany(x):
    assert np.isfinite(x).all()
    assert not np.isnan(x).any()
    return np.all(x > -100) * x


@case(x=(N, '2 * H'))
def rope(x):
    h = x.shape[-1] // 2
    y = np.empty_like(x)
    c = np.cos(np.arange(h))
    s = np.sin(np.arange(h))
    y[:, 0::2] = x[:, 0::2] * c - x[:, 1::2] * s
    y[:, 1::2] = x[:, 0::2] * s + x[:, 1::2] * c
    return y


@case(x=('N',))
def horner(x, c=(1.0, 2.0, 3.0)):
    y = 0
    for a in c:
        y = y * x + a
    return y


@case(x=(N, D))
def matrix_chain(x):
    y = x.T @ x
    y @= y
    return y


@case(x=(N, D))
def vander(x):
    return np.stack([x ** i for i in range(3)])


@case(x=('2 * N', '2 * M'))
def haar(x):
    a = (x[0::2] + x[1::2]) / 2
    d = (x[0::2] - x[1::2]) / 2
    return np.concatenate([a, d], 0)


@case(x=(N, D))
def double_where(x):
    y = np.where(x > 0, x, 0.0)
    y = np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), -1.0) + y
    return y


@case(x=(N, D))
def norm_axis(x, axis=-1, keepdims=True):
    return x / np.linalg.norm(x, axis=axis, keepdims=keepdims)


@case(x=(N, D))
def neg_axis_expr(x):
    return x.sum(axis=x.ndim - 1) + x.mean(axis=tuple(range(1, x.ndim)))


@case(x=('B', N, D))
def reshape_star(x):
    *lead, d = x.shape
    y = x.reshape(-1, d) * 2
    return y.reshape(*lead, d) + y.reshape(x.shape[:-1] + (d,)) + y.reshape((*lead, -1))


@case(x=('B', 'H * D'))
def group(x, h=2):
    b, d = x.shape
    y = x.reshape(b, -1, d // 1)
    return y.mean(1)


@case(x=('N', '4 * G'))
def groupnorm(x, groups=4, eps=1e-05):
    n, c = x.shape
    y = x.reshape(n, groups, c // groups)
    m = y.mean(-1, keepdims=True)
    v = y.var(-1, keepdims=True)
    return ((y - m) / np.sqrt(v + eps)).reshape(n, c)


@case(x=(N, D))
def topk_mask(x, k=2):
    kth = np.sort(x, -1)[:, -k][:, None]
    return np.where(x >= kth, x, 0.0)


@case(x=(N, D))
def shape_index(x):
    shape = list(x.shape)
    shape[0] = 1
    return np.broadcast_to(x[:1], shape) + np.zeros(tuple(shape)) + np.ones([x.shape[1]])


@case(x=(N, D))
def sort_keys(x):
    return np.stack(sorted([x[0], x[1]], key=lambda v: v.shape[0]))


@case(x=(3, 3))
def unpack2(x):
    (a, b, c), (d, e, f), (g, h, i) = x
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


@case(x=(N, D))
def minmax(x):
    return min(x[0, 0], x[0, 1]) * max(x[0]) + max(x.shape) * min([x[1, 0], 0.3])


@case(x=(N, D))
def slices(x):
    s = slice(1, None)
    i = (slice(None), 0)
    return x[s].sum() + x[i].sum() + x[-2:].sum() + x[:-1][::2].sum() + x[1:x.shape[0] - 1, :x.shape[1] // 2].sum()


@case(x=(N, D))
def npfloat(x):
    return np.float64(x.sum()) * x


@case(x=(N, D))
def ix(x):
    return x[np.ix_([0, 1], [1, 2])]


@case(x=(N, D))
def bool_mult(x):
    return x * (x.shape[0] > 2) + True


@case(x=(N, D))
def neg_step_store(x):
    y = np.zeros_like(x)
    y[::-1] = x
    y[:, ::2] *= 2
    y[..., -1] = 0
    return y
