"""Classes, decorators, generators and other ways to wrap a function."""

import contextlib
import functools

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


class Base:

    def f(self, x):
        return np.tanh(x) * len(x)


class Sub(Base):

    def f(self, x):
        return super().f(x) + np.ones(x.shape)


@case(x=(N, D))
def decor(x):

    @functools.lru_cache(None)
    def k(n):
        return n * 2

    @functools.wraps(np.tanh)
    def act(v):
        return np.tanh(v)
    return act(x) * k(3)


@case(x=(N, D))
def ctx(x):

    @contextlib.contextmanager
    def scope():
        yield 2.0
    with scope() as s:
        return x * s


@case(x=(N, D))
def partial_np(x):
    f = functools.partial(np.sum, axis=-1, keepdims=True)
    return x / f(np.abs(x))


@case(x=(N, D))
def op_mod(x):
    import operator
    return operator.mul(x, operator.add(x, 1)) + functools.reduce(operator.mul, [x, x])


@case(x=(N, D))
def prop(x):

    class P:

        def __init__(self, a):
            self.a = a

        @property
        def n(self):
            return self.a.shape[0]

        @staticmethod
        def f(v):
            return np.zeros(v.shape) + v

        @classmethod
        def make(cls, v):
            return cls(v * 2)

        def __matmul__(self, o):
            return self.a @ o.a.T
    p = P.make(x)
    return p.f(p.a) * p.n + (p @ p).sum()


@case(x=(N, D))
def slots(x):

    class P:
        __slots__ = ('a',)

        def __init__(self, a):
            self.a = a
    return P(x).a * 2


@case(x=(N, D))
def inherit(x):
    return Sub().f(x)


@case(x=(N, D))
def async_like(x):

    def co():
        y = (yield (x * 2))
        yield (y * 3)
    c = co()
    a = next(c)
    return c.send(a)


@case(x=(N, D))
def named_tuple_state(x):
    from typing import NamedTuple

    class S(NamedTuple):
        h: object
        n: int
    s = S(np.zeros(x.shape[1]), 0)
    for v in x:
        s = s._replace(h=s.h + v, n=s.n + 1)
    return s.h


@case(x=(N, D))
def set_use(x):
    s = {x.shape[0], x.shape[1]}
    return x * len(s)


@case(sizes=1, x=(N, D))
def cond_list(x):
    return np.stack([r for i, r in enumerate(x) if i % 2 == 0])


class Decaying:

    def __init__(self):
        self.__rate = 0.5

    def last(self, x):
        h = np.zeros(x.shape[1])
        for v in x:
            h = self.__rate * h + v
        return h


DECAYING = Decaying()


@case(x=(N, D))
def private_names(x):
    return DECAYING.last(x)
