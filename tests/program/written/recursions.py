"""Recursions of algorithms: dynamic programs, solvers, filters, returns."""

import math

import numpy as np

from tests.program.written.cases import D, H, K, N, T, case


@case(loops=1, e=(T, K), tr=(K, K))
def crf(e, tr):
    alpha = e[0]
    for t in range(1, e.shape[0]):
        s = alpha[:, None] + tr + e[t][None, :]
        m = s.max(axis=0)
        alpha = m + np.log(np.exp(s - m).sum(axis=0))
    m = alpha.max()
    return m + np.log(np.exp(alpha - m).sum())


@case(loops=1, e=(T, K), tr=(K, K))
def crf2(e, tr):
    alpha = e[0]
    for t in range(1, len(e)):
        alpha = np.logaddexp.reduce(alpha[:, None] + tr, axis=0) + e[t]
    return np.logaddexp.reduce(alpha)


@case(loops=1, x=(T, N, N), p=(N,))
def hmm_scaled(x, p):
    a = p / p.sum()
    ll = 0.0
    for t in range(x.shape[0]):
        a = a @ np.exp(x[t])
        c = a.sum()
        a = a / c
        ll += np.log(c)
    return ll


@case(lp=(T, K))
def ctc(lp, labels=(1, 2)):
    ext = [0]
    for l in labels:
        ext += [l, 0]
    S = len(ext)
    T = lp.shape[0]
    a = np.full((T, S), -1e+30)
    a[0, 0] = lp[0, ext[0]]
    a[0, 1] = lp[0, ext[1]]
    for t in range(1, T):
        for s in range(S):
            best = a[t - 1, s]
            if s > 0:
                best = np.logaddexp(best, a[t - 1, s - 1])
            if s > 1 and ext[s] != 0 and (ext[s] != ext[s - 2]):
                best = np.logaddexp(best, a[t - 1, s - 2])
            a[t, s] = best + lp[t, ext[s]]
    return -np.logaddexp(a[T - 1, S - 1], a[T - 1, S - 2])


@case(loops=1, x0=(D,), w=(D, D))
def euler(x0, w, steps=5, dt=0.1):
    x = x0
    for _ in range(steps):
        x = x + dt * np.tanh(w @ x)
    return x


@case(loops=1, x0=(D,), w=(D, D))
def rk4(x0, w, steps=4, dt=0.1):
    f = lambda x: np.tanh(w @ x)
    x = x0
    for _ in range(steps):
        k1 = f(x)
        k2 = f(x + dt / 2 * k1)
        k3 = f(x + dt / 2 * k2)
        k4 = f(x + dt * k3)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


@case(loops=1, x=(T, D))
def averages(x, beta=0.9):
    m = 0
    v = 0
    for t, g in enumerate(x, 1):
        m = beta * m + (1 - beta) * g
        v = beta * v + (1 - beta) * g ** 2
        step = m / (1 - beta ** t) / (np.sqrt(v / (1 - beta ** t)) + 0.001)
    return step


@case(loops=1, x=(T, D))
def kahan(x):
    s = np.zeros(x.shape[1])
    c = np.zeros(x.shape[1])
    for v in x:
        y = v - c
        t = s + y
        c = t - s - y
        s = t
    return s


@case(loops=0, x=(N, D))
def power_iteration(x, rounds=3):
    v = np.ones(x.shape[1])
    for _ in range(rounds):
        v = x.T @ (x @ v)
        v = v / np.linalg.norm(v)
    return v @ x.T @ x @ v


@case(loops=1, x=('H', 'W'))
def jacobi(x, steps=4):
    u = x.copy()
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u = new
    return u


@case(loops=1, x=(N, D), c=(K, D))
def kmeans_soft(x, c, iters=3):
    for _ in range(iters):
        d = ((x[:, None] - c[None]) ** 2).sum(-1)
        r = np.exp(-d)
        r /= r.sum(1, keepdims=True)
        c = r.T @ x / r.sum(0)[:, None]
    return c


@case(loops=1, s=(N, N))
def sinkhorn(s, iters=4):
    u = np.zeros((s.shape[0], 1))
    v = np.zeros((1, s.shape[1]))
    lse = lambda z, a: np.log(np.exp(z - z.max(a, keepdims=True)).sum(a, keepdims=True)) + z.max(a, keepdims=True)
    for _ in range(iters):
        u = -lse(s + v, 1)
        v = -lse(s + u, 0)
    return np.exp(s + u + v)


@case(loops=1, x=(N, D), A=(D, D))
def neumann(x, A, k=4):
    out = term = x
    for _ in range(k):
        term = term @ A * 0.1
        out = out + term
    return out


@case(loops=1, q=(N, D), m=('M', D))
def hops(q, m):
    for _ in range(3):
        p = np.exp(q @ m.T)
        p = p / p.sum(-1, keepdims=True)
        q = q + p @ m
    return q


@case(loops=1, x=(T, D))
def cummax(x):
    best = x[0]
    out = [best]
    for v in x[1:]:
        best = np.maximum(best, v)
        out.append(best)
    return np.stack(out)


@case(loops=1, x=(T, D))
def ema_rev(x, g=0.9):
    ret = np.zeros(x.shape[1])
    out = []
    for r in x[::-1]:
        ret = r + g * ret
        out.append(ret)
    return np.stack(out[::-1])


@case(loops=1, r=(T,), v=('T + 1',))
def gae(r, v, gamma=0.99, lam=0.95):
    adv = np.zeros_like(r)
    last = 0.0
    for t in reversed(range(len(r))):
        delta = r[t] + gamma * v[t + 1] - v[t]
        last = delta + gamma * lam * last
        adv[t] = last
    return adv


@case(loops=1, r=(T,), rho=(T,), v=(T,), boot=())
def vtrace(r, rho, v, boot):
    vs_next = boot
    vs = [None] * len(r)
    for t in range(len(r) - 1, -1, -1):
        v_next = v[t + 1] if t + 1 < len(r) else boot
        vs_next = v[t] + np.minimum(rho[t], 1.0) * (r[t] + 0.9 * v_next - v[t]) + 0.9 * np.minimum(rho[t], 1.0) * (vs_next - v_next)
        vs[t] = vs_next
    return np.stack(vs)


@case(loops=1, x=(T,), a=('P',))
def iir(x, a):
    y = np.zeros_like(x)
    for t in range(len(x)):
        acc = x[t]
        if t >= 1:
            acc = acc - a[0] * y[t - 1]
        if t >= 2:
            acc = acc - a[1] * y[t - 2]
        y[t] = acc
    return y


@case(loops=1, u=(T, D), A=(N, N), B=(N, D), C=('M', N))
def kalman_like(u, A, B, C):
    s = np.zeros(A.shape[0])
    y = np.empty((len(u), C.shape[0]))
    for t, u_t in enumerate(u):
        s = A @ s + B @ u_t
        y[t] = C @ s
    return y


@case(loops=1, x=(T,))
def solve_tridiag(x, a=0.5):
    n = len(x)
    c = np.zeros(n)
    d = np.zeros(n)
    c[0] = a / 2.0
    d[0] = x[0] / 2.0
    for i in range(1, n):
        m = 2.0 - a * c[i - 1]
        c[i] = a / m
        d[i] = (x[i] - a * d[i - 1]) / m
    y = np.zeros(n)
    y[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        y[i] = d[i] - c[i] * y[i + 1]
    return y


@case(loops=1, x=(T,), y0=())
def scalar_loop(x, y0):
    y = y0
    for t in range(len(x)):
        y = y + 0.1 * (x[t] - y) * math.tanh(y)
    return y
