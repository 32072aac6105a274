"""Ways to go over things, and to keep what was made."""

import functools
import itertools
from collections import deque

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


@case(loops=1, x=(T, D), w=(D, D))
def list_by_index(x, w):
    hs = [np.zeros(x.shape[1])]
    for t in range(x.shape[0]):
        hs.append(np.tanh(w @ hs[t] + x[t]))
    return np.stack(hs[1:])


@case(loops=1, x=(T, D), w=(D, D))
def list_filled(x, w):
    hs = [None] * len(x)
    h = np.zeros(x.shape[1])
    for t in range(len(x)):
        h = np.tanh(w @ h + x[t])
        hs[t] = h
    return np.stack(hs)


@case(loops=1, x=(T, D), w=(D, D))
def with_initial(x, w):
    hs = [x[0] * 0]
    for x_t in x:
        hs.append(np.tanh(w @ hs[-1] + x_t))
    return np.stack(hs)


@case(loops=1, x=(T, D))
def fib(x):
    a, b = (x[0], x[1])
    out = [a, b]
    for t in range(2, len(x)):
        a, b = (b, np.sin(a) * b + x[t])
        out.append(b)
    return np.stack(out)


@case(loops=1, x=(T, D))
def edges(x):
    y = np.zeros_like(x)
    for t in range(len(x)):
        if t == 0:
            y[t] = x[t]
        elif t == len(x) - 1:
            y[t] = x[t] * 3
        else:
            y[t] = (x[t - 1] + x[t] * x[t + 1]) * 0.5
    return y


@case(loops=1, x=(T, D))
def interior(x):
    y = np.empty(x.shape)
    for t in range(x.shape[0]):
        y[t] = x[t] if t < 1 else y[t - 1] * 0.5 + x[t]
    return y


@case(loops=1, x=(T, D), w=(D, D))
def reduce_(x, w):
    return functools.reduce(lambda h, v: np.tanh(w @ h + v), x, np.zeros(x.shape[1]))


@case(loops=1, x=(T, D), w=(D, D))
def accum(x, w):
    hs = list(itertools.accumulate(x, lambda h, v: np.tanh(w @ h + v)))
    return np.stack(hs)


@case(loops=1, x=(T, D))
def pairwise(x):
    return np.stack([(b - a) ** 2 for a, b in itertools.pairwise(x)])


@case(loops=1, x=(T, D), y=(T, D))
def enum_zip(x, y):
    s = 0
    for i, (a, b) in enumerate(zip(x, y)):
        s = s + (i + 1) * (a * b).sum()
    return s


@case(loops=1, x=(T, D))
def deque_(x):
    from collections import deque
    d = deque(maxlen=2)
    out = []
    for v in x:
        d.append(v)
        out.append(sum(d))
    return np.stack(out)


@case(loops=1, x=(T, D))
def strided(x):
    s = 0
    for t in range(1, x.shape[0], 2):
        s = s + x[t] * x[t - 1]
    return s


@case(loops=1, x=(T, D))
def down(x):
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0] - 1, -1, -1):
        h = np.tanh(h) + x[t]
    return h


@case(loops=1, x=(T, D))
def down2(x):
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0] - 1, 0, -2):
        h = np.tanh(h) + x[t]
    return h


@case(loops=1, x=(T, D))
def for_else(x):
    h = x[0]
    for v in x:
        h = h * v
    else:
        h = h + 1
    return h + v


@case(loops=1, x=(T, D))
def continue_(x):
    h = x[0] * 0
    for t in range(len(x)):
        if t == 0:
            continue
        h = h + x[t] * x[t - 1]
    return h


@case(loops=1, x=(T, D))
def after_loop_index(x):
    s = 0
    for t in range(len(x)):
        s = s + x[t]
    return s * x[t]


@case(loops=1, x=(T, D))
def prev_index(x):
    p = 0
    s = 0
    for t in range(len(x)):
        s = s + x[t] * x[p]
        p = t
    return s


@case(loops=1, x=(T, D))
def gen_fn(x):

    def seq():
        h = np.zeros(x.shape[1])
        for v in x:
            h = np.tanh(h + v)
            yield h
    return np.stack(list(seq()))


@case(loops=1, x=(T, D))
def gen_fn2(x):

    def seq():
        h = np.zeros(x.shape[1])
        for v in x:
            h = np.tanh(h + v)
            yield h
    out = 0
    for h in seq():
        out = out + h * h
    return out


@case(x=(T, D))
def zip_star(x):
    rows = [(v, v * 2) for v in x]
    a, b = zip(*rows)
    return np.stack(a) + np.stack(b)


@case(loops=1, x=(T, D))
def hist_window(x):
    hs = []
    for t in range(len(x)):
        prev = hs[-1] if hs else 0.0
        hs.append(np.tanh(x[t] + prev))
    return hs[-1] + hs[0]


@case(loops=1, x=(T, D))
def hist_two(x):
    hs = [x[0], x[1]]
    for t in range(2, len(x)):
        hs.append(hs[-1] * 0.5 + hs[-2] * 0.25 + x[t])
    return np.stack(hs)


@case(loops=1, x=(T, D))
def swap_vars(x):
    a = np.zeros(x.shape[1])
    b = np.ones(x.shape[1])
    for v in x:
        a, b = (b + v, a * 0.5)
    return a + b


@case(loops=1, x=(T, D))
def buffer_swap(x):
    a = np.zeros(x.shape[1])
    b = np.zeros(x.shape[1])
    for v in x:
        b[:] = a * 0.5 + v
        a, b = (b, a)
    return a


@case(loops=1, x=(T, D))
def roll_buffer(x):
    buf = np.zeros((3, x.shape[1]))
    out = []
    for v in x:
        buf = np.roll(buf, 1, axis=0)
        buf[0] = v
        out.append(buf.sum(0) ** 2)
    return np.stack(out)


@case(loops=1, x=(T, D))
def inplace_state(x):
    h = np.zeros(x.shape[1])
    for v in x:
        h *= 0.9
        h += v
        h[0] = h[0] * 2
    return h


@case(loops=1, x=(T, D))
def moving_parts(x):
    y = x.copy()
    for t in range(1, len(y)):
        y[t] += 0.5 * y[t - 1]
    return y


@case(loops=1, w=('L', D, D), x=(D,))
def last_linear(w, x):
    L = len(w)
    for i in range(L):
        x = w[i] @ x
        if i != L - 1:
            x = np.maximum(x, 0)
    return x


@case(loops=1, x=(N, D))
def add_at(x, i=np.array([0, 1, 1, 2])):
    y = np.zeros((4, x.shape[1]))
    for row in x:
        np.add.at(y, i[:2], row)
    return y


@case(sizes=1, x=(N, D))
def it_next(x):
    it = iter(x)
    a = next(it)
    b = next(it)
    return a * b


@case(sizes=1, x=(N, D))
def lengths_list(x):
    idx = list(range(x.shape[0]))
    return sum((x[i] * (i + 1) for i in idx))


@case(x=(N, D))
def while_loop(x, n=3):
    i = 0
    while i < n:
        x = np.tanh(x) * 1.5
        i += 1
    return x


@case(sizes=1, loops=0, x=(T, D))
def while_counter(x):
    t = 0
    s = np.zeros(x.shape[1])
    while t < x.shape[0]:
        s = s * 0.5 + x[t]
        t += 1
    return s


@case(x=(T, D))
def early(x):
    for t in range(len(x)):
        x = np.sin(x)
        if t == 1:
            return x
    return x


@case(loops=2, w=(N, int), x=(N,))
def numbered_pairs(w, x):
    y = 0.0
    for number, _ in enumerate(itertools.product(range(2), range(3))):
        y = y + np.where(w == number, x, 0.0)
    return y


@case(loops=3, w=(N, int), x=(N,))
def numbered_triples(w, x):
    y = 0.0
    for number, _ in enumerate(itertools.product(range(3), range(2), range(2))):
        y = y + np.where(w == number, x, 0.0)
    return y


@case(loops=2, w=(N, int), x=(N,))
def numbered_outside(w, x):
    y = 0.0
    for number, _ in enumerate(k for k in range(3)):
        for j in range(2):
            y = y + np.where(w == number, x, 0.0) * (j + 1)
    return y


@case(loops=2, w=(N,), x=(6,))
def element_by_number(w, x):
    y = 0.0
    for number, _ in enumerate(itertools.product(range(3), range(2))):
        y = y + x[number] * w
    return y


@case(loops=3, x=(N, D), w=(3, D))
def rows_within_rows(x, w):
    rows = [np.tanh(v) for v in x]
    y = 0.0
    for r in rows:
        for j in range(3):
            y = y + r * w[j]
    return y
