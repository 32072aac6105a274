"""Python as people write it around arrays."""

import math

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


def sig(z):
    return 1 / (1 + np.exp(-z))


def act(name):
    return {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}[name]


def helper(x, y=None, *rest, **kw):
    return x + (0 if y is None else y) + sum(rest) + kw.get("z", 0)


class Layer:
    def __init__(self, scale):
        self.scale = scale
        self.f = lambda v: np.tanh(v)

    def norm(self, x):
        return x / math.sqrt(x.shape[-1])

    def __call__(self, x, w):
        h = np.zeros((x.shape[0], w.shape[1]))
        for t in range(2):
            h = h + self.f(self.norm(x) @ w) * self.scale
        self.last = h
        return h


layer = Layer(0.5)
case(loops=1, x=(N, D), w=(D, H))(layer)
case(x=(N, D))(layer.norm)
case(x=(N,))(lambda x, a=2.0: np.exp(-a * x ** 2))


@case(x=(N, D))
def settings(x, eps=1e-05, p=2, mode='mean', axis=-1):
    assert x.ndim == 2, f'bad {x.shape}'
    y = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1 / p)
    if mode == 'mean':
        y = y / x.shape[axis]
    return x / max(eps, 1e-12) if False else x / (y + eps)


@case(x=(N, '2 * D'))
def even(x):
    if x.shape[-1] % 2:
        raise ValueError('odd')
    d = x.shape[-1] // 2
    a, b = (x[..., :d], x[..., d:])
    return a * sig(b)


@case(x=(N, D))
def sizes_of(x):
    n = len(x)
    d = x.size // n
    k = min(n, 4)
    m = max(n, d)
    q, r = divmod(d, 2)
    return x * k / m + q - r + math.sqrt(n) + np.log(d) + d ** (-0.5) + n ** 2 + abs(n - d) + round(n) + pow(n, 2) + int(n / 2) + math.ceil(n / 2) + float(n)


@case(x=(N, D))
def prods(x):
    return x / np.prod(x.shape) + math.prod(x.shape) * np.ones(x.shape).sum()


@case(x=(N, D), p={'w': (D, H), 'b': [(H,), (H,)]})
def nested_params(x, p):
    z = x @ p['w'] + p['b'][0]
    return {'z': np.tanh(z), 'all': [z * p['b'][1], (z.sum(),)]}


@case(x=(N, D))
def kwonly(x, *, scale=2.0, bias=1):
    return x * scale + bias


@case(x=(N, D), y=(N, D))
def posonly(x, /, y):
    return x * y


@case(x=(N, D))
def isinst(x):
    if not isinstance(x, np.ndarray):
        x = np.asarray(x)
    x = np.asarray(x, dtype=float)
    n = x.shape[0]
    assert isinstance(n, int) and isinstance(float(n), float)
    return x.astype(np.float64) * np.size(x) * np.ndim(x) + np.shape(x)[0]


@case(x=(N, D))
def activations(x, name='tanh'):
    return act(name)(x)


@case(x=(N, D), w=(D, H))
def uses_object(x, w):
    return layer(x, w)


@case(x=(N, D))
def errstate(x):
    with np.errstate(divide='ignore'):
        y = x / np.sqrt((x * x).sum(-1, keepdims=True))
    try:
        z = y.reshape(7, -1, 13)
    except ValueError:
        z = y
    return z


@case(x=(N, D))
def inner_import(x):
    import numpy as xp
    from math import sqrt as root
    return x + xp.ones(x.shape) * root(x.shape[1])


@case(x=(N, D))
def branch_any(x):
    if (x > 100).any():
        return x * 2
    return x * 3


@case(x=(N, D))
def mapped(x):
    return np.stack(list(map(np.tanh, x)))


@case(x=())
def scalar(x):
    return x * x + math.sin(x)


@case(x=(N, D))
def star(x):
    return helper(x, *[x * 2, x * 3], z=x ** 2) * len(x.shape)


@case(x=(N, D))
def floats(x):
    return x * float(x.sum()) + float(x.shape[0])


@case(x=(N, D))
def global_state(x):
    global COUNT
    COUNT = 1
    return x * COUNT


@case(x=(N, D))
def sorted_dict(x):
    d = {'a': x, 'b': x * 2}
    return sum((d[k] for k in sorted(d)))


@case(x=(N, D), ws=[(D, D), (D, D), (D, D)])
def deep_list(x, ws):
    for i, w in enumerate(ws):
        x = x @ w
        if i < len(ws) - 1:
            x = np.tanh(x)
    return x


@case(x=(N, D))
def generator_sum(x):
    return sum((np.sin(x[:, j]) * j for j in range(x.shape[1])))


@case(x=(N, D))
def dict_accum(x):
    d = {}
    for j in range(3):
        d[f'k{j}'] = x * j
    return sum(d.values())


@case(x=(N, D), w={'l0': (D, D), 'l1': (D, D)})
def named_layers(x, w, n=2):
    for i in range(n):
        x = np.tanh(x @ w[f'l{i}'])
    return x


@case(x=(N, D))
def try_finally(x):
    try:
        y = np.log(np.abs(x) + 1)
    finally:
        z = 2
    return y * z


@case(x=(N, D))
def closure_state(x):
    seen = []

    def hook(v):
        seen.append(v)
        return v * 2
    y = hook(hook(x))
    return y + seen[0] + seen[1]


@case(x=(N, D))
def nonlocal_(x):
    c = 0

    def bump(v):
        nonlocal c
        c = c + v.sum()
        return v
    bump(x)
    bump(x * 2)
    return x * c


@case(sizes=1, x=(N, D))
def recursion(x):

    def tree(v):
        if v.shape[0] <= 1:
            return v.sum(0)
        m = v.shape[0] // 2
        return np.logaddexp(tree(v[:m]), tree(v[m:]))
    return tree(x)


@case(x=(N, D))
def walrus(x):
    if (n := x.shape[0]) > 2:
        return x / n
    return x


@case(x=(N, D))
def matchcase(x, kind='a'):
    match kind:
        case 'a':
            return x * 2
        case _:
            return x


@case(x=(N, D))
def ternary_scalar(x):
    return x * (2.0 if x.sum() > -1000000000.0 else 3.0)


@case(x=(N, D), y=(N, D))
def shapes_equal(x, y):
    assert x.shape == y.shape and x.shape[0] == len(y) and ((x.ndim, y.ndim) == (2, 2))
    if x.shape != y.shape:
        raise ValueError
    return x * y


@case(x=(N, D), w=(D, K), b=(K,))
def mlp_default(x, w, b, act=np.tanh):
    return act(x @ w + b)


@case(x=(N, D))
def string_mode(x, mode='sum'):
    out = {'sum': lambda v: v.sum(), 'mean': lambda v: v.mean()}[mode](x)
    return out


@case(x=(N, D))
def dataclass_(x):
    from dataclasses import dataclass

    @dataclass
    class P:
        a: object
        b: float = 2.0

        def f(self):
            return self.a * self.b
    return P(x).f()


@case(x=(N, D))
def any_builtin(x):
    if any((s == 0 for s in x.shape)):
        return x
    return x * all([True, x.shape[0] > 0])


@case(x=(N, D))
def chained(x):
    if 0 < x.shape[0] <= x.shape[1] + 10:
        return x * 2
    return x


@case(x=(N, D))
def enumerate_dict(x):
    table = {x.shape[0]: 2.0}
    return x * table[x.shape[0]]


@case(x=(N, D))
def float_fmt(x):
    s = f'{x.shape[0]:d}-{x.shape}'
    assert s
    return x * len(s.split('-')[0]) / len(s.split('-')[0])


@case(sizes=1, x=(N, D))
def bitops(x):
    n = x.shape[0]
    return x * (n >> 1) * (1 << 2) * (n & 1 or 1) * -n * +n


@case(x=(N, D))
def type_check(x):
    if type(x.shape[0]) is int:
        pass
    if isinstance(x, (list, tuple)):
        return x[0]
    if np.isscalar(x):
        return x
    if x.dtype == np.float32 or np.issubdtype(x.dtype, np.integer):
        return x
    return x * np.finfo(x.dtype).eps ** 0 * x.dtype.type(2)


@case(x=(N, D))
def del_(x):
    y = x * 2
    del x
    return y


@case(x=(N, D))
def lambda_default(x):
    fs = [lambda v, k=k: v * k for k in range(3)]
    return sum((f(x) for f in fs))


@case(x=(N, D))
def contains(x):
    if None in (x.shape[0], 3):
        return x
    return x * (2 if x.shape[1] in (1, 2) else 3)


@case(x=(N, D))
def einsum_dyn(x):
    letters = 'abc'[:x.ndim]
    return np.einsum(f'{letters},{letters}->{letters[0]}', x, x)
