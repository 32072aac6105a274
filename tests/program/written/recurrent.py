"""Recurrent networks, as people publish them."""


import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


def sig(z):
    return 1 / (1 + np.exp(-z))


class Cell:
    def __init__(self):
        self.h = None
        self.hist = []

    def step(self, v, w):
        self.h = np.tanh(v + w @ self.h)
        self.hist.append(self.h)
        return self.h

    def forward(self, x, w):
        self.h = np.zeros(w.shape[0])
        for v in x:
            self.step(v, w)
        return np.stack(self.hist)


@case(loops=1, x=(N, T, D), w=(D, '4 * H'), u=(H, '4 * H'), b=('4 * H',))
def lstm(x, w, u, b):
    n, t_max, d = x.shape
    h_size = u.shape[0]
    h = np.zeros((n, h_size))
    c = np.zeros((n, h_size))
    hs = []
    for t in range(t_max):
        z = x[:, t] @ w + h @ u + b
        i, f, g, o = np.split(z, 4, axis=-1)
        c = sig(f) * c + sig(i) * np.tanh(g)
        h = sig(o) * np.tanh(c)
        hs.append(h)
    return np.stack(hs, axis=1)


@case(loops=1, x=(T, N, D), w=('3 * H', D), u=('3 * H', H))
def gru(x, w, u):
    H = u.shape[1]
    h = np.zeros((x.shape[1], H))
    for x_t in x:
        gx = x_t @ w.T
        gh = h @ u.T
        r = sig(gx[:, :H] + gh[:, :H])
        z = sig(gx[:, H:2 * H] + gh[:, H:2 * H])
        n = np.tanh(gx[:, 2 * H:] + r * gh[:, 2 * H:])
        h = (1 - z) * n + z * h
    return h


@case(loops=1, x=('B', T, D), delta=('B', T, D), A=(D, N), Bm=('B', T, N), C=('B', T, N))
def mamba(x, delta, A, Bm, C):
    b, l, d = x.shape
    h = np.zeros((b, d, A.shape[1]))
    ys = []
    for t in range(l):
        dA = np.exp(delta[:, t, :, None] * A)
        dB = delta[:, t, :, None] * Bm[:, t, None, :]
        h = dA * h + dB * x[:, t, :, None]
        ys.append(np.einsum('bdn,bn->bd', h, C[:, t]))
    return np.stack(ys, 1)


@case(loops=1, q=(T, D), k=(T, D), v=(T, 'E'), g=(T, D))
def gla(q, k, v, g):
    S = np.zeros((q.shape[1], v.shape[1]))
    out = np.zeros_like(v)
    for t in range(len(q)):
        S = sig(g[t])[:, None] * S + np.outer(k[t], v[t])
        out[t] = q[t] @ S
    return out


@case(loops=1, q=(T, D), k=(T, D), v=(T, 'E'), beta=(T,))
def delta_rule(q, k, v, beta):
    S = np.zeros((v.shape[1], k.shape[1]))
    o = []
    for q_t, k_t, v_t, b_t in zip(q, k, v, beta):
        S = S + b_t * np.outer(v_t - S @ k_t, k_t)
        o.append(S @ q_t)
    return np.array(o)


@case(loops=2, x=(N, T, D), w1=(D, H), u1=(H, H), w2=(H, H), u2=(H, H))
def two_layers(x, w1, u1, w2, u2):
    h = np.zeros((x.shape[0], u1.shape[0]))
    hs = []
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ w1 + h @ u1)
        hs.append(h)
    g = np.zeros((x.shape[0], u2.shape[0]))
    gs = []
    for h_t in hs:
        g = np.tanh(h_t @ w2 + g @ u2)
        gs.append(g)
    return np.stack(gs, 1)


@case(loops=2, x=(T, D), w=(D, D))
def bidirectional(x, w):
    f, b = ([], [])
    h = np.zeros(x.shape[1])
    for t in range(len(x)):
        h = np.tanh(x[t] + w @ h)
        f.append(h)
    h = np.zeros(x.shape[1])
    for t in reversed(range(len(x))):
        h = np.tanh(x[t] + w @ h)
        b.append(h)
    return np.stack([np.concatenate([p, q]) for p, q in zip(f, b[::-1])])


@case(loops=2, x=(N, T, D), w=(D, D))
def stacked_rnn(x, w, layers=2):
    seq = [x[:, t] for t in range(x.shape[1])]
    for l in range(layers):
        h = np.zeros(x[:, 0].shape)
        out = []
        for v in seq:
            h = np.tanh(v @ w + h)
            out.append(h)
        seq = out
    return np.stack(seq, 1)


@case(loops=1, x=('B', T, D), h0=('B', H), c0=('B', H), wf=('D + H', H), wi=('D + H', H), wo=('D + H', H), wc=('D + H', H))
def lstm_concat(x, h0, c0, wf, wi, wo, wc):
    sg = lambda a: 0.5 * (np.tanh(a / 2) + 1)
    h, c = (h0, c0)
    hs = []
    for t in range(x.shape[1]):
        z = np.concatenate([x[:, t, :], h], axis=1)
        f, i, o = (sg(z @ wf), sg(z @ wi), sg(z @ wo))
        c = f * c + i * np.tanh(z @ wc)
        h = o * np.tanh(c)
        hs.append(h[:, None, :])
    return (np.concatenate(hs, axis=1), (h, c))


@case(loops=1, x=(T, D), s=('S', D), w=(D, D))
def attention_decoder(x, s, w):
    h = np.zeros(x.shape[1])
    ctx = []
    for t in range(s.shape[0]):
        a = np.exp(x @ (w @ h))
        a /= a.sum()
        c = a @ x
        h = np.tanh(c + s[t])
        ctx.append((h, a))
    return (np.stack([c[0] for c in ctx]), np.stack([a for _, a in ctx]))


@case(loops=1, x=(T, D), w=(D, D))
def stateful(x, w):
    return Cell().forward(x, w)


@case(loops=1, x=(T, D), m=(T, bool))
def masked_rnn(x, m):
    h = np.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = np.where(m[t], np.tanh(h + x[t]), h)
    return h


@case(loops=1, x=('B', T, D), w=(D,), u=(D,))
def rwkv(x, w, u):
    B, T, D = x.shape
    a = np.zeros((B, D))
    b = np.zeros((B, D))
    out = np.zeros((B, T, D))
    for t in range(T):
        k = np.tanh(x[:, t])
        v = x[:, t]
        out[:, t] = (a + np.exp(u + k) * v) / (b + np.exp(u + k))
        a = np.exp(-np.exp(w)) * a + np.exp(k) * v
        b = np.exp(-np.exp(w)) * b + np.exp(k)
    return out


@case(loops=1, x=(T, D))
def dict_state(x):
    st = {'h': np.zeros(x.shape[1]), 'c': np.zeros(x.shape[1])}
    for v in x:
        st['c'] = st['c'] * 0.5 + v
        st = {**st, 'h': np.tanh(st['c'])}
    return st['h']


@case(loops=1, x=(T, D), w=(D, D))
def highway(x, w, layers=3):
    for _ in range(layers):
        x = x + np.tanh(x @ w)
    return x


@case(loops=1, x=(N, D), ws=('L', D, D))
def deep(x, ws):
    for w in ws:
        x = np.maximum(x @ w, 0)
    return x
