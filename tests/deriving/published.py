"""Forwards beside the backwards that papers and kernels have for them, operation by operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

ND = ("N", "D")


@dataclass(frozen=True)
class Pair:
    """A forward, and its published backward as a function of the inputs and the cotangent that
    makes what it keeps.
    """

    forward: Callable[..., Any]
    #: From the inputs: the arrays that are kept, in the order in which the backward takes them.
    kept: Callable[..., tuple[Any, ...]]
    backward: Callable[..., Any]
    given: dict[str, Any]
    assume: dict[str, float]


PAIRS: dict[str, Pair] = {}


def pair(
    name: str,
    forward: Callable[..., Any],
    kept: Callable[..., tuple[Any, ...]],
    backward: Callable[..., Any],
    assume: dict[str, float] | None = None,
    **given: Any,
) -> None:
    PAIRS[name] = Pair(forward, kept, backward, given, assume or {})


# Normalisations


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    var = (centred * centred).mean(-1, keepdims=True)
    inv_std = 1 / np.sqrt(var + eps)
    x_hat = centred * inv_std
    return gamma * x_hat + beta


def layer_norm_kept(x, gamma, beta):
    inv_std = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - x.mean(-1, keepdims=True)) * inv_std, inv_std, gamma


def layer_norm_backward(dy, x_hat, inv_std, gamma):
    dx_hat = dy * gamma
    a = dx_hat.mean(-1, keepdims=True)
    b = (dx_hat * x_hat).mean(-1, keepdims=True)
    dx = (dx_hat - a - x_hat * b) * inv_std
    return dx, (dy * x_hat).sum(0), dy.sum(0)


pair(
    "layer_norm", layer_norm, layer_norm_kept, layer_norm_backward, x=ND, gamma=("D",), beta=("D",)
)


def rms_norm(x, gamma, eps=1e-6):
    inv_rms = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * inv_rms * gamma


def rms_norm_kept(x, gamma):
    return x, 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6), gamma


def rms_norm_backward(dy, x, inv_rms, gamma):
    x_hat = x * inv_rms
    g = dy * gamma
    dx = (g - x_hat * (g * x_hat).mean(-1, keepdims=True)) * inv_rms
    return dx, (dy * x_hat).sum(0)


pair("rms_norm", rms_norm, rms_norm_kept, rms_norm_backward, x=ND, gamma=("D",))


def residual_rms_norm(x, residual, gamma, eps=1e-6):
    h = x + residual
    inv_rms = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + eps)
    return gamma * h * inv_rms, h


def residual_kept(x, residual, gamma):
    h = x + residual
    return h, 1 / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6), gamma


def residual_rms_norm_backward(dys, h, inv_rms, gamma):
    dy, dh = dys
    h_hat = h * inv_rms
    g = dy * gamma
    dx = (g - h_hat * (g * h_hat).mean(-1, keepdims=True)) * inv_rms + dh
    return dx, dx, (dy * h_hat).sum(0)


pair(
    "residual + rms_norm",
    residual_rms_norm,
    residual_kept,
    residual_rms_norm_backward,
    x=ND,
    residual=ND,
    gamma=("D",),
)


def batch_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(0)
    xc = x - mu
    var = (xc**2).mean(0)
    return gamma * xc / np.sqrt(var + eps) + beta


def batch_norm_kept(x, gamma, beta):
    inv_std = 1 / np.sqrt(x.var(0) + 1e-5)
    return (x - x.mean(0)) * inv_std, inv_std, gamma


def batch_norm_backward(dy, x_hat, inv_std, gamma):
    dbeta = dy.sum(0)
    dgamma = (dy * x_hat).sum(0)
    N = dy.shape[0]
    dx = gamma * inv_std * (dy - dbeta / N - x_hat * (dgamma / N))
    return dx, dgamma, dbeta


pair(
    "batch_norm", batch_norm, batch_norm_kept, batch_norm_backward, x=ND, gamma=("D",), beta=("D",)
)


def group_norm(x, gamma, beta, groups=2, eps=1e-5):
    N, C, L = x.shape
    g = x.reshape(N, groups, C // groups * L)
    mean = g.mean(-1, keepdims=True)
    var = ((g - mean) ** 2).mean(-1, keepdims=True)
    g_hat = (g - mean) / np.sqrt(var + eps)
    return g_hat.reshape(N, C, L) * gamma[:, None] + beta[:, None]


def group_norm_kept(x, gamma, beta):
    g = x.reshape(x.shape[0], 2, -1)
    inv_std = 1 / np.sqrt(g.var(-1, keepdims=True) + 1e-5)
    return (g - g.mean(-1, keepdims=True)) * inv_std, inv_std, gamma


def group_norm_backward(dy, g_hat, inv_std, gamma):
    dbeta = dy.sum((0, 2))
    dgamma = (dy * g_hat.reshape(*dy.shape)).sum((0, 2))
    d = (dy * gamma[:, None]).reshape(*g_hat.shape)
    a = d.mean(-1, keepdims=True)
    b = (d * g_hat).mean(-1, keepdims=True)
    return ((d - a - g_hat * b) * inv_std).reshape(*dy.shape), dgamma, dbeta


pair(
    "group_norm",
    group_norm,
    group_norm_kept,
    group_norm_backward,
    x=("N", "2 * C", "L"),
    gamma=("2 * C",),
    beta=("2 * C",),
)


def l2_normalise(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def l2_kept(x):
    n = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / n, n


def l2_backward(dy, y, n):
    return (dy - y * (dy * y).sum(-1, keepdims=True)) / n


pair("l2_normalise", l2_normalise, l2_kept, l2_backward, x=ND)


def cosine_similarity(a, b):
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def cosine_kept(a, b):
    na, nb = np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1)
    return a, b, na, nb, (a * b).sum(-1) / (na * nb)


def cosine_backward(dy, a, b, na, nb, y):
    d = (dy / (na * nb))[:, None]
    ca = (dy * y / (na * na))[:, None]
    cb = (dy * y / (nb * nb))[:, None]
    return d * b - ca * a, d * a - cb * b


pair("cosine_similarity", cosine_similarity, cosine_kept, cosine_backward, a=ND, b=ND)


def weight_norm(x, v, g):
    w = g[:, None] * v / np.linalg.norm(v, axis=1, keepdims=True)
    return x @ w.T


def weight_norm_kept(x, v, g):
    n = np.linalg.norm(v, axis=1, keepdims=True)
    return x, v, g, n, g[:, None] * v / n


def weight_norm_backward(dy, x, v, g, n, w):
    dx = dy @ w
    dw = dy.T @ x
    v_hat = v / n
    dg = (dw * v_hat).sum(1)
    dv = (g[:, None] / n) * (dw - dg[:, None] * v_hat)
    return dx, dv, dg


pair(
    "weight_norm",
    weight_norm,
    weight_norm_kept,
    weight_norm_backward,
    x=ND,
    v=("K", "D"),
    g=("K",),
)


# Softmax and losses


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


pair(
    "softmax",
    softmax,
    lambda x: (softmax(x),),
    lambda dy, y: y * (dy - (dy * y).sum(-1, keepdims=True)),
    x=ND,
)


def cross_entropy(z, q):
    shifted = z - z.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -(q * log_p).sum() / z.shape[0]


pair(
    "log_softmax + cross-entropy",
    cross_entropy,
    lambda z, q: (softmax(z), q),
    lambda dy, p, q: (p - q) * (dy / p.shape[0]),
    {"sum(q, -1)": 1},
    z=("N", "C"),
    q=("N", "C"),
    wrt=["z"],
)


def label_smoothing(z, q, smoothing=0.1):
    e = np.exp(z - z.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    t = (1 - smoothing) * q + smoothing / z.shape[1]
    return -(t * np.log(p)).sum() / z.shape[0]


def smoothing_kept(z, q):
    return softmax(z), 0.9 * q + 0.1 / z.shape[1]


pair(
    "label smoothing",
    label_smoothing,
    smoothing_kept,
    lambda dy, p, t: (p - t) * (dy / p.shape[0]),
    {"sum(q, -1)": 1},
    z=("N", "C"),
    q=("N", "C"),
    wrt=["z"],
)


def bce_with_logits(x, z):
    return (np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))).mean()


pair(
    "sigmoid BCE with logits",
    bce_with_logits,
    lambda x, z: (x, z),
    lambda dy, x, z: (1 / (1 + np.exp(-x)) - z) * (dy / (x.shape[0] * x.shape[1])),
    x=ND,
    z=ND,
    wrt=["x"],
)


def focal_loss(x, z, power=2.0):
    p = 1 / (1 + np.exp(-x))
    p_t = np.where(z, p, 1 - p)
    return -((1 - p_t) ** power * np.log(p_t)).mean()


def focal_kept(x, z):
    p = 1 / (1 + np.exp(-x))
    return p, z, np.where(z, p, 1 - p)


def focal_backward(dy, p, z, p_t):
    u = 1 - p_t
    d = u * (2.0 * np.log(p_t) - u / p_t) * (dy / (p.shape[0] * p.shape[1]))
    return np.where(z, d, -d) * p * (1 - p)


pair("focal loss", focal_loss, focal_kept, focal_backward, x=ND, z=("N", "D", bool), wrt=["x"])


# Attention


def attention(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return p @ v


def attention_kept(q, k, v):
    return q, k, v, softmax(q @ k.T / np.sqrt(q.shape[-1]))


def attention_backward(do, q, k, v, p):
    dv = p.T @ do
    dp = do @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return ds @ k, ds.T @ q, dv


pair(
    "attention",
    attention,
    attention_kept,
    attention_backward,
    q=("T", "D"),
    k=("S", "D"),
    v=("S", "E"),
)


def linear_attention(q, k, v, m):
    return ((q @ k.T) * m) @ v


def linear_attention_backward(do, q, k, v, m, a):
    da = (do @ v.T) * m
    return da @ k, da.T @ q, a.T @ do


pair(
    "linear attention",
    linear_attention,
    lambda q, k, v, m: (q, k, v, m, (q @ k.T) * m),
    linear_attention_backward,
    q=("T", "D"),
    k=("T", "D"),
    v=("T", "E"),
    m=("T", "T"),
    wrt=["q", "k", "v"],
)


def additive_attention(q, k, v, w):
    t = np.tanh(q[:, None, :] + k[None, :, :])
    return softmax(t @ w) @ v


def additive_kept(q, k, v, w):
    t = np.tanh(q[:, None, :] + k[None, :, :])
    return t, softmax(t @ w), v, w


def additive_backward(do, t, p, v, w):
    dv = p.T @ do
    dp = do @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True))
    dw = np.tensordot(ds, t, ([0, 1], [0, 1]))
    dpre = ds[:, :, None] * w * (1 - t * t)
    return dpre.sum(1), dpre.sum(0), dv, dw


pair(
    "additive attention",
    additive_attention,
    additive_kept,
    additive_backward,
    q=("T", "H"),
    k=("S", "H"),
    v=("S", "E"),
    w=("H",),
)


# Activations and layers


def gelu(x):
    return 0.5 * x * (1 + scipy.special.erf(x / np.sqrt(2)))


def gelu_backward(dy, x):
    cdf = 0.5 * (1 + scipy.special.erf(x / np.sqrt(2)))
    return dy * (cdf + x * (0.3989422804014327 * np.exp(-0.5 * x * x)))


pair("gelu", gelu, lambda x: (x,), gelu_backward, x=ND)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def gelu_tanh_backward(dy, x, t):
    du = 0.7978845608028654 * (1 + 0.134145 * x * x)
    return dy * 0.5 * (1 + t + x * (1 - t * t) * du)


pair(
    "gelu (tanh)",
    gelu_tanh,
    lambda x: (x, np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))),
    gelu_tanh_backward,
    x=ND,
)


def swiglu(a, b):
    return a / (1 + np.exp(-a)) * b


def swiglu_kept(a, b):
    s = 1 / (1 + np.exp(-a))
    return a, b, s, a * s


def swiglu_backward(dy, a, b, s, u):
    return dy * b * (s + u * (1 - s)), dy * u


pair("swiglu", swiglu, swiglu_kept, swiglu_backward, a=ND, b=ND)


def lora(x, w, a, b, scale=2.0):
    return x @ w + (x @ a) @ b * scale


def lora_backward(dy, x, w, a, b, xa):
    d = dy * 2.0
    db = xa.T @ d
    dxa = d @ b.T
    return dy @ w.T + dxa @ a.T, x.T @ dy, x.T @ dxa, db


pair(
    "LoRA linear",
    lora,
    lambda x, w, a, b: (x, w, a, b, x @ a),
    lora_backward,
    x=ND,
    w=("D", "E"),
    a=("D", "R"),
    b=("R", "E"),
)


def lstm_step(x, h, c, w, u, b):
    z = x @ w + h @ u + b
    H = h.shape[1]
    i = 1 / (1 + np.exp(-z[:, :H]))
    f = 1 / (1 + np.exp(-z[:, H : 2 * H]))
    g = np.tanh(z[:, 2 * H : 3 * H])
    o = 1 / (1 + np.exp(-z[:, 3 * H :]))
    c_new = f * c + i * g
    return o * np.tanh(c_new), c_new


def lstm_kept(x, h, c, w, u, b):
    z = x @ w + h @ u + b
    i, f, g, o = np.split(z, 4, 1)
    i, f, o = (1 / (1 + np.exp(-v)) for v in (i, f, o))
    g = np.tanh(g)
    return x, h, c, w, u, i, f, g, o, np.tanh(f * c + i * g)


def lstm_backward(dys, x, h, c, w, u, i, f, g, o, t):
    dh_new, dc_new = dys
    dc = dc_new + dh_new * o * (1 - t * t)
    di = dc * g * i * (1 - i)
    df = dc * c * f * (1 - f)
    dg = dc * i * (1 - g * g)
    do = dh_new * t * o * (1 - o)
    dz = np.concatenate([di, df, dg, do], 1)
    return dz @ w.T, dz @ u.T, dc * f, x.T @ dz, h.T @ dz, dz.sum(0)


pair(
    "LSTM cell",
    lstm_step,
    lstm_kept,
    lstm_backward,
    x=ND,
    h=("N", "H"),
    c=("N", "H"),
    w=("D", "4 * H"),
    u=("H", "4 * H"),
    b=("4 * H",),
)


def gru_step(x, h, wz, uz, wr, ur, wn, un):
    z = 1 / (1 + np.exp(-(x @ wz + h @ uz)))
    r = 1 / (1 + np.exp(-(x @ wr + h @ ur)))
    n = np.tanh(x @ wn + (r * h) @ un)
    return (1 - z) * n + z * h


def gru_kept(x, h, wz, uz, wr, ur, wn, un):
    z = 1 / (1 + np.exp(-(x @ wz + h @ uz)))
    r = 1 / (1 + np.exp(-(x @ wr + h @ ur)))
    rh = r * h
    return x, h, wz, uz, wr, ur, wn, un, z, r, rh, np.tanh(x @ wn + rh @ un)


def gru_backward(dy, x, h, wz, uz, wr, ur, wn, un, z, r, rh, n):
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ wn.T + dz @ wz.T + dr @ wr.T
    dh = dy * z + drh * r + dz @ uz.T + dr @ ur.T
    return dx, dh, x.T @ dz, h.T @ dz, x.T @ dr, h.T @ dr, x.T @ dn, rh.T @ dn


pair(
    "GRU step",
    gru_step,
    gru_kept,
    gru_backward,
    x=ND,
    h=("N", "H"),
    wz=("D", "H"),
    uz=("H", "H"),
    wr=("D", "H"),
    ur=("H", "H"),
    wn=("D", "H"),
    un=("H", "H"),
)
