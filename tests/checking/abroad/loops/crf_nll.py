import numpy as np


def lse(a, axis):
    m = a.max(axis=axis, keepdims=True)
    return (m + np.log(np.exp(a - m).sum(axis=axis, keepdims=True))).squeeze(axis)


def crf_forward(emit, trans, tags):
    """emit: (T, K), trans: (K, K) from row to column, tags: (T,)"""
    T, K = emit.shape
    alpha = np.zeros((T, K))
    alpha[0] = emit[0]
    for t in range(1, T):
        alpha[t] = emit[t] + lse(alpha[t - 1][:, None] + trans, 0)
    logZ = lse(alpha[-1], 0)
    score = emit[np.arange(T), tags].sum() + trans[tags[:-1], tags[1:]].sum()
    return logZ - score, (emit, trans, tags, alpha, logZ)


def crf_backward(dloss, cache):
    emit, trans, tags, alpha, logZ = cache
    T, K = emit.shape
    beta = np.zeros((T, K))
    for t in range(T - 2, -1, -1):
        beta[t] = lse(trans + (emit[t + 1] + beta[t + 1])[None, :], 1)
    demit = np.exp(alpha + beta - logZ)
    dtrans = np.zeros_like(trans)
    for t in range(1, T):
        dtrans += np.exp(alpha[t - 1][:, None] + trans + (emit[t] + beta[t])[None, :] - logZ)
    demit[np.arange(T), tags] -= 1
    np.add.at(dtrans, (tags[:-1], tags[1:]), -1)
    return demit * dloss, dtrans * dloss


# ---- the case
TARGET = (crf_forward, crf_backward)
def inputs(rng):
    return rng.standard_normal((5, 3)), rng.standard_normal((3, 3)), np.array([0, 1, 0, 1, 2])
WRONG = [
    Wrong("np.add.at(dtrans, (tags[:-1], tags[1:]), -1)", "dtrans[tags[:-1], tags[1:]] -= 1", "duplicates"),
    Wrong("dtrans += np.exp(alpha[t - 1][:, None] + trans + (emit[t] + beta[t])[None, :] - logZ)",
          "dtrans += np.exp(alpha[t - 1][:, None] + trans + beta[t][None, :] - logZ)", "term missing"),
    Wrong("    demit[np.arange(T), tags] -= 1\n", "", "term missing"),
]
