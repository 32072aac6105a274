import numpy as np


def decay_scan(a, u):
    """s_t = a_t * s_{t-1} + u_t, all s returned."""
    s = np.empty_like(u)
    s[0] = u[0]
    for t in range(1, len(u)):
        s[t] = a[t] * s[t - 1] + u[t]
    return s, (a, s)


def decay_scan_grad(ds, cache):
    a, s = cache
    T = len(a)
    g = ds.copy()
    da = np.zeros_like(a)
    for t in range(T - 1, 0, -1):
        da[t] = g[t] * s[t - 1]
        g[t - 1] += a[t] * g[t]
    return da, g


# ---- the case
TARGET = (decay_scan, decay_scan_grad)
inputs = normal(6, 6)
WRONG = [
    Wrong("range(T - 1, 0, -1)", "range(1, T)", "order"),
    Wrong("g[t - 1] += a[t] * g[t]", "g[t - 1] = a[t] * g[t]", "accumulate"),
    Wrong("da[t] = g[t] * s[t - 1]", "da[t] = g[t] * s[t]", "index"),
    Wrong("g[t - 1] += a[t] * g[t]", "g[t - 1] += a[t - 1] * g[t]", "index"),
]
