import numpy as np


def lse(a, axis):
    m = a.max(axis=axis, keepdims=True)
    return (m + np.log(np.exp(a - m).sum(axis=axis, keepdims=True))).squeeze(axis)


def crf_logz(emit, trans):
    """log partition of a linear chain; emit (T, K), trans (K, K)."""
    T, K = emit.shape
    alpha = np.zeros((T, K))
    alpha[0] = emit[0]
    for t in range(1, T):
        alpha[t] = lse(alpha[t - 1][:, None] + trans, 0) + emit[t]
    return lse(alpha[-1], 0), (emit, trans, alpha)


def crf_logz_grad(g, cache):
    emit, trans, alpha = cache
    T, K = emit.shape
    demit, dtrans = np.zeros_like(emit), np.zeros_like(trans)
    da = g * np.exp(alpha[-1] - lse(alpha[-1], 0))
    for t in range(T - 1, 0, -1):
        demit[t] = da
        s = alpha[t - 1][:, None] + trans
        w = np.exp(s - lse(s, 0)) * da
        dtrans += w
        da = w.sum(axis=1)
    demit[0] = da
    return demit, dtrans


# ---- the case
TARGET = (crf_logz, crf_logz_grad)
inputs = normal((4, 3), (3, 3))
WRONG = [
    Wrong("da = w.sum(axis=1)", "da = w.sum(axis=0)", "axis"),
    Wrong("dtrans += w", "dtrans = w", "accumulate"),
    Wrong("    demit[0] = da\n", "", "term missing", (r"missing|zero|first|row|step|demit",)),
]
