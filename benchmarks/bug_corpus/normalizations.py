# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)
"""Layer norm with a tuple as cache, batch norm step by step, RMS norm with a dict as cache."""

from __future__ import annotations

import numpy as np

from benchmarks.bug_corpus.case import Bug, Exercise, kinds

# Layer norm, over any number of leading axes


def layernorm_forward(x, gamma, beta, eps=1e-5):
    mu = x.mean(axis=-1, keepdims=True)
    xmu = x - mu
    var = np.mean(xmu**2, axis=-1, keepdims=True)
    istd = 1.0 / np.sqrt(var + eps)
    xhat = xmu * istd
    return gamma * xhat + beta, (x, xhat, istd, gamma)


def layernorm_backward(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    dxhat = dout * gamma
    m1 = dxhat.mean(axis=-1, keepdims=True)
    m2 = (dxhat * xhat).mean(axis=-1, keepdims=True)
    return istd * (dxhat - m1 - xhat * m2), dgamma, dbeta


def layernorm_without_means(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    dx = dout * gamma * istd
    return dx, dgamma, dbeta


def layernorm_without_variance_term(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    dxhat = dout * gamma
    dx = (dxhat - dxhat.mean(axis=-1, keepdims=True)) * istd
    return dx, dgamma, dbeta


def layernorm_plus_mean(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = np.einsum("nd,nd->d", dout.reshape(-1, D), xhat.reshape(-1, D))
    dbeta = np.einsum("nd->d", dout.reshape(-1, D))
    g = dout * gamma
    dx = g.copy()
    dx += g.mean(axis=-1, keepdims=True)
    dx -= xhat * np.mean(g * xhat, axis=-1, keepdims=True)
    dx *= istd
    return dx, dgamma, dbeta


def layernorm_not_divided_by_d(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    g = dout * gamma
    s1 = np.sum(g, axis=-1, keepdims=True)
    s2 = np.sum(g * xhat, axis=-1, keepdims=True)
    dx = istd * (D * g - s1 - xhat * s2)
    return dx, dgamma, dbeta


def layernorm_without_gamma(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    m1 = dout.mean(axis=-1, keepdims=True)
    m2 = (dout * xhat).mean(axis=-1, keepdims=True)
    return istd * (dout - m1 - xhat * m2), dgamma, dbeta


def layernorm_dgamma_of_x(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * x).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0)
    dxhat = dout * gamma
    m1 = dxhat.mean(axis=-1, keepdims=True)
    m2 = (dxhat * xhat).mean(axis=-1, keepdims=True)
    return istd * (dxhat - m1 - xhat * m2), dgamma, dbeta


def layernorm_dbeta_keepdims(dout, cache):
    x, xhat, istd, gamma = cache
    D = x.shape[-1]
    dgamma = (dout * xhat).reshape(-1, D).sum(axis=0)
    dbeta = dout.reshape(-1, D).sum(axis=0, keepdims=True)
    dxhat = dout * gamma
    m1 = dxhat.mean(axis=-1, keepdims=True)
    m2 = (dxhat * xhat).mean(axis=-1, keepdims=True)
    return istd * (dxhat - m1 - xhat * m2), dgamma, dbeta


LAYER_NORM = Exercise(
    "layer norm",
    layernorm_forward,
    layernorm_backward,
    lambda rng: (rng.normal(1.0, 2.0, (6, 5)), rng.normal(size=5), rng.normal(size=5)),
    (
        Bug(
            layernorm_without_means,
            "both mean terms of dx are left out",
            kinds("term missing"),
            ("x",),
            ("mean", "μ"),
        ),
        Bug(
            layernorm_without_variance_term,
            "the term of dx that comes from the variance is left out",
            kinds("term missing"),
            ("x",),
            ("x_hat", "xhat", "x̂", "var"),
        ),
        Bug(
            layernorm_plus_mean,
            "the mean of dx̂ is added where it should be taken off",
            kinds("wrong sign"),
            ("x",),
            ("mean",),
        ),
        Bug(
            layernorm_not_divided_by_d,
            "the form with sums, without 1/D in front",
            kinds("scaled", "scale missing", "sum for mean"),
            ("x",),
            ("5", "D"),
        ),
        Bug(
            layernorm_without_gamma,
            "dx starts from dy, not from dy γ",
            kinds("factor missing"),
            ("x",),
            ("gamma", "γ"),
        ),
        Bug(
            layernorm_dgamma_of_x,
            "dγ uses x where x̂ belongs",
            kinds("stale variable"),
            ("gamma",),
            ("x",),
        ),
        Bug(
            layernorm_dbeta_keepdims,
            "keepdims leaves dβ with a row too many",
            kinds("wrong shape"),
            ("beta",),
        ),
    ),
    like="layer_norm",
)

# Batch norm, one step of the graph after the other


def batchnorm_forward(x, gamma, beta, eps=1e-5):
    N, D = x.shape
    mu = 1.0 / N * np.sum(x, axis=0)
    xmu = x - mu
    sq = xmu**2
    var = 1.0 / N * np.sum(sq, axis=0)
    sqrtvar = np.sqrt(var + eps)
    ivar = 1.0 / sqrtvar
    xhat = xmu * ivar
    out = gamma * xhat + beta
    cache = (xhat, gamma, xmu, ivar, sqrtvar, var, eps)
    return out, cache


def batchnorm_backward(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu1 = dxhat * ivar
    dsqrtvar = -1.0 / (sqrtvar**2) * divar
    dvar = 0.5 * 1.0 / np.sqrt(var + eps) * dsqrtvar
    dsq = 1.0 / N * np.ones((N, D), dtype=dout.dtype) * dvar
    dxmu2 = 2 * xmu * dsq
    dx1 = dxmu1 + dxmu2
    dmu = -1 * np.sum(dxmu1 + dxmu2, axis=0)
    dx2 = 1.0 / N * np.ones((N, D), dtype=dout.dtype) * dmu
    dx = dx1 + dx2
    return dx, dgamma, dbeta


def batchnorm_dvar_without_half(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    dvar = np.sum(dxhat * xmu, axis=0) * -1.0 * (var + eps) ** -1.5
    dmu = np.sum(dxhat * -ivar, axis=0) + dvar * np.mean(-2.0 * xmu, axis=0)
    dx = dxhat * ivar + dvar * 2.0 * xmu / N + dmu / N
    return dx, dgamma, dbeta


def batchnorm_means_over_features(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    dbeta = dout.sum(0)
    dgamma = (dout * xhat).sum(0)
    g = dout * gamma
    dx = (g - g.mean(1, keepdims=True) - xhat * (g * xhat).mean(0)) * ivar
    return dx, dgamma, dbeta


def batchnorm_statistics_as_constants(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    dbeta = dout.sum(0)
    dgamma = (dout * xhat).sum(0)
    return dout * gamma * ivar, dgamma, dbeta


def batchnorm_dgamma_averaged(dout, cache):
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    g = dout * gamma
    dx = (g - g.mean(0) - xhat * (g * xhat).mean(0)) * ivar
    return dx, np.mean(dout * xhat, axis=0), np.sum(dout, axis=0)


BATCH_NORM = Exercise(
    "batch norm",
    batchnorm_forward,
    batchnorm_backward,
    lambda rng: (rng.normal(1.0, 2.0, (7, 4)), rng.normal(size=4), rng.normal(size=4)),
    (
        Bug(
            batchnorm_dvar_without_half,
            "∂var^(−1/2)/∂var without its ½",
            kinds("term scaled", "scale missing"),
            ("x",),
        ),
        Bug(
            batchnorm_means_over_features,
            "one of the means of dx is taken over the features",
            kinds("wrong axis"),
            ("x",),
        ),
        Bug(
            batchnorm_statistics_as_constants,
            "mean and variance are treated as constants: the two terms of dx are left out",
            kinds("term missing"),
            ("x",),
        ),
        Bug(
            batchnorm_dgamma_averaged,
            "dγ is a mean over the batch, not a sum",
            kinds("mean for sum", "scaled"),
            ("gamma",),
        ),
    ),
)


def batchnorm_without_second_part_of_dmu(dout, cache):
    """Right: what is left out is the mean of xmu, which is 0."""
    xhat, gamma, xmu, ivar, sqrtvar, var, eps = cache
    N, D = dout.shape
    dxhat = dout * gamma
    dvar = np.sum(dxhat * xmu, axis=0) * -0.5 * ivar**3
    dmu = -np.sum(dxhat * ivar, axis=0)
    dx = dxhat * ivar + dvar * 2.0 * xmu / N + dmu / N
    return dx, np.sum(dout * xhat, axis=0), np.sum(dout, axis=0)


BATCH_NORM_SHORT = Exercise(
    "batch norm, short dmu",
    batchnorm_forward,
    batchnorm_without_second_part_of_dmu,
    BATCH_NORM.inputs,
)

# RMS norm with a dict as cache


def rmsnorm_forward(x, gamma, eps=1e-5):
    cache = {"x": x, "g": gamma}
    cache["r"] = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * cache["r"] * gamma, cache


def rmsnorm_backward(dy, cache):
    x, g, r = cache["x"], cache["g"], cache["r"]
    n = x.shape[-1]
    dg = (dy * x * r).reshape(-1, n).sum(0)
    dyg = dy * g
    dx = r * dyg - r**3 * x * (dyg * x).sum(-1, keepdims=True) / n
    return dx, dg


def rmsnorm_sum_for_mean(dy, cache):
    x, g, r = cache["x"], cache["g"], cache["r"]
    n = x.shape[-1]
    dg = (dy * x * r).reshape(-1, n).sum(0)
    dyg = dy * g
    dx = r * dyg - r**3 * x * (dyg * x).sum(-1, keepdims=True)
    return dx, dg


def rmsnorm_r_squared(dy, cache):
    x, g, r = cache["x"], cache["g"], cache["r"]
    n = x.shape[-1]
    dg = (dy * x * r).reshape(-1, n).sum(0)
    dyg = dy * g
    dx = r * dyg - r**2 * x * (dyg * x).sum(-1, keepdims=True) / n
    return dx, dg


def rmsnorm_dgamma_without_r(dy, cache):
    x, g, r = cache["x"], cache["g"], cache["r"]
    n = x.shape[-1]
    dg = (dy * x).reshape(-1, n).sum(0)
    dyg = dy * g
    dx = r * dyg - r**3 * x * (dyg * x).sum(-1, keepdims=True) / n
    return dx, dg


RMS_NORM = Exercise(
    "RMS norm",
    rmsnorm_forward,
    rmsnorm_backward,
    lambda rng: (rng.normal(0.5, 2.0, (5, 7)), rng.normal(size=7)),
    (
        Bug(
            rmsnorm_sum_for_mean,
            "the mean in dx is a sum: 1/n is missing",
            kinds("sum for mean", "scale missing", "term scaled"),
            ("x",),
        ),
        Bug(
            rmsnorm_r_squared,
            "r² where r³ belongs: a factor r is missing from one term",
            kinds("factor missing"),
            ("x",),
            ("r",),
        ),
        Bug(
            rmsnorm_dgamma_without_r,
            "dγ multiplies by x, not by x r",
            kinds("factor missing", "stale variable"),
            ("gamma",),
            ("r", "x"),
        ),
    ),
    like="rms_norm",
)

EXERCISES = (LAYER_NORM, BATCH_NORM, BATCH_NORM_SHORT, RMS_NORM)
