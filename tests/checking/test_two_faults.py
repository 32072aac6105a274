"""Backwards with two faults each: every one is found, on its own line, and named."""

# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import handgrad as hg


def sigmoid(z):
    return 0.5 * (1 + np.tanh(0.5 * z))


def attention(q, k, v):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.T * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v, (q, k, v, weights, scale)


def attention_right(dy, cache):
    q, k, v, p, scale = cache
    dv = p.T @ dy
    dp = dy @ v.T
    dscores = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return dscores @ k * scale, dscores.T @ q * scale, dv


def attention_no_sum_no_transpose(dy, cache):
    q, k, v, weights, scale = cache
    dv = weights @ dy
    dweights = dy @ v.T
    dscores = weights * dweights
    return dscores @ k * scale, dscores.T @ q * scale, dv


def attention_no_scale_other_axis(dy, cache):
    q, k, v, weights, scale = cache
    dv = weights.T @ dy
    dweights = dy @ v.T
    dscores = weights * (dweights - (weights * dweights).sum(axis=0, keepdims=True))
    dq = dscores @ k
    dk = dscores.T @ q * scale
    return dq, dk, dv


def attention_sign_and_untransposed_keys(dy, cache):
    q, k, v, weights, scale = cache
    dv = weights.T @ dy
    dweights = dy @ v.T
    grad_scores = weights * (dweights + (weights * dweights).sum(axis=-1, keepdims=True))
    dq = grad_scores @ k * scale
    dk = grad_scores @ q * scale
    return dq, dk, dv


def layer_norm(x, gamma, beta):
    mu = x.mean(axis=-1, keepdims=True)
    centred = x - mu
    std = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    x_hat = centred / std
    return gamma * x_hat + beta, (x, x_hat, std, gamma)


def layer_norm_right(dy, cache):
    x, x_hat, std, gamma = cache
    dxhat = dy * gamma
    dx = dxhat - dxhat.mean(axis=-1, keepdims=True)
    dx -= x_hat * (dxhat * x_hat).mean(axis=-1, keepdims=True)
    dx /= std
    return dx, (dy * x_hat).sum(axis=0), dy.sum(axis=0)


def layer_norm_no_gamma_no_mean(dy, cache):
    x, x_hat, std, gamma = cache
    dx_hat = dy
    m = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - x_hat * m) / std
    dgamma = (dy * x_hat).sum(axis=0)
    dbeta = dy.sum(axis=0)
    return dx, dgamma, dbeta


def layer_norm_sum_and_stale_x(dy, cache):
    x, x_hat, std, gamma = cache
    dx_hat = dy * gamma
    m = dx_hat.sum(axis=-1, keepdims=True)
    dx = (dx_hat - m - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)) / std
    dgamma = np.sum(dy * x, axis=0)
    dbeta = dy.sum(axis=0)
    return dx, dgamma, dbeta


def layer_norm_sign_and_mean(dy, cache):
    x, x_hat, std, gamma = cache
    dx_hat = dy * gamma
    a = dx_hat.mean(axis=-1, keepdims=True)
    b = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - a + x_hat * b) / std
    return dx, (dy * x_hat).sum(axis=0), dy.mean(axis=0)


def two_layers(x, W1, b1, W2, b2):
    a = x @ W1 + b1
    h = np.tanh(a)
    y = h @ W2 + b2
    return y, (x, W1, W2, h)


def two_layers_right(dy, cache):
    x, W1, W2, h = cache
    dh = dy @ W2.T
    da = dh * (1 - h * h)
    return da @ W1.T, x.T @ da, da.sum(axis=0), h.T @ dy, dy.sum(axis=0)


def two_layers_no_tanh_no_transpose(dy, cache):
    x, W1, W2, h = cache
    dh = dy @ W2
    da = dh
    return da @ W1.T, x.T @ da, da.sum(axis=0), h.T @ dy, dy.sum(axis=0)


def two_layers_mean_and_stale_input(dy, cache):
    x, W1, W2, h = cache
    dh = dy @ W2.T
    da = dh * (1 - h * h)
    return da @ W1.T, x.T @ da, da.mean(axis=0), x.T @ dy, dy.sum(axis=0)


def two_layers_sign_and_no_transpose(dy, cache):
    x, W1, W2, h = cache
    h_grad = dy @ W2.T
    a_grad = h_grad * (1 + h * h)
    return a_grad @ W1, x.T @ a_grad, a_grad.sum(axis=0), h.T @ dy, dy.sum(axis=0)


def gru(x, h, Wz, Wr, Wn, Uz, Ur, Un):
    z = sigmoid(x @ Wz + h @ Uz)
    r = sigmoid(x @ Wr + h @ Ur)
    n = np.tanh(x @ Wn + (r * h) @ Un)
    return (1 - z) * n + z * h, (x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n)


def gru_right(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_sign_and_no_direct_path(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h + n) * z * (1 - z)
    drh = dn @ Un.T
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_no_one_minus_z_no_h(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z
    drh = dn @ Un.T
    dr = drh * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, (r * h).T @ dn


def gru_untransposed_and_other_state(dy, cache):
    x, h, Wz, Wr, Wn, Uz, Ur, Un, z, r, n = cache
    dn = dy * (1 - z) * (1 - n * n)
    dz = dy * (h - n) * z * (1 - z)
    drh = dn @ Un
    dr = drh * h * r * (1 - r)
    dx = dn @ Wn.T + dz @ Wz.T + dr @ Wr.T
    dh = dy * z + dz @ Uz.T + dr @ Ur.T + drh * r
    return dx, dh, x.T @ dz, x.T @ dr, x.T @ dn, h.T @ dz, h.T @ dr, h.T @ dn


def two_layers_in_place(dy, cache):
    x, W1, W2, h = cache
    da = dy @ W2.T
    da[h <= 0] = 0
    return da @ W1.T, x.T @ da, da.sum(axis=0), h.T @ dy, dy.sum(axis=0)


SHAPES = {
    attention: [(5, 5)] * 3,
    layer_norm: [(6, 5), (5,), (5,)],
    two_layers: [(6, 4), (4, 4), (4,), (4, 4), (4,)],
    gru: [(4, 4), (4, 4), *[(4, 4)] * 6],
}
RIGHT = {
    attention: attention_right,
    layer_norm: layer_norm_right,
    two_layers: two_layers_right,
    gru: gru_right,
}
#: A backward with two faults, and of each: what its line begins with, its kind, and a phrase.
CASES = [
    (
        attention,
        attention_no_sum_no_transpose,
        ("dv", "transpose missing", "weights"),
        ("dscores", "term missing", "sum(weights dweights)"),
    ),
    (
        attention,
        attention_no_scale_other_axis,
        ("dscores", "wrong axis", "another axis"),
        ("dq", "scale missing", "scale"),
    ),
    (
        attention,
        attention_sign_and_untransposed_keys,
        ("grad_scores", "wrong sign", "sum"),
        ("dk", "transpose missing", "grad_scores"),
    ),
    (
        layer_norm,
        layer_norm_no_gamma_no_mean,
        ("dx_hat", "factor missing", "γ"),
        ("dx", "term missing", "−mean(dx̂) is missing"),
    ),
    (
        layer_norm,
        layer_norm_sum_and_stale_x,
        ("m", "sum for mean", "sum(dx̂) should be a mean"),
        ("dgamma", "stale variable", "x̂ for x"),
    ),
    (
        layer_norm,
        layer_norm_sign_and_mean,
        ("dx", "wrong sign", "x̂ b"),
        ("dbeta", "mean for sum", "mean(dy) should be a sum"),
    ),
    (
        two_layers,
        two_layers_no_tanh_no_transpose,
        ("dh", "transpose missing", "W2"),
        ("da", "activation derivative forgotten", "1 − h²"),
    ),
    (
        two_layers,
        two_layers_mean_and_stale_input,
        ("db1", "mean for sum", "mean(da)"),
        ("dW2", "stale variable", "h for x"),
    ),
    (
        two_layers,
        two_layers_sign_and_no_transpose,
        ("a_grad", "wrong sign", "h h"),
        ("dx", "transpose missing", "W1"),
    ),
    (
        gru,
        gru_sign_and_no_direct_path,
        ("dz", "wrong sign", "n"),
        ("dh", "term missing", "dy z"),
    ),
    (
        gru,
        gru_no_one_minus_z_no_h,
        ("dz", "factor missing", "1 − z"),
        ("dr", "factor missing", "h"),
    ),
    (
        gru,
        gru_untransposed_and_other_state,
        ("drh", "transpose missing", "Un"),
        ("dUn", "factor missing", "r"),
    ),
]


def arrays(forward):
    rng = np.random.default_rng(7)
    return [rng.normal(size=shape) for shape in SHAPES[forward]]


def line_of(function, start):
    """The line on which an assignment or the return stands."""
    lines, first = inspect.getsourcelines(function)
    return next(
        (first + i for i, line in enumerate(lines) if line.strip().startswith(start + " =")),
        first + len(lines) - 1,
    )


def told_at(fault):
    """The line of a fault, in its field or in its sentence."""
    found = re.search(r"\(line (\d+)\)", fault.message)
    return fault.line or (int(found[1]) if found else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "backward", "faults"), [(case[0], case[1], case[2:]) for case in CASES]
)
def test_both_faults_are_named(forward, backward, faults):
    report = hg.check((forward, backward), *arrays(forward), seed=0)
    for start, kind, phrase in faults:
        line = line_of(backward, start)
        assert any(
            kind in (fault.kind, *(each for each, _ in fault.alternatives))
            and phrase in fault.message
            and told_at(fault) == line
            for fault in report.faults
        ), (start, kind, [each.message for each in report.faults])


@pytest.mark.parametrize("forward", RIGHT)
def test_nothing_is_wrong_with_a_right_backward(forward):
    """dz and dn of the GRU are gradients of what goes into the sigmoid and the tanh."""
    assert hg.check((forward, RIGHT[forward]), *arrays(forward), seed=0).ok


def test_lines_before_a_store_into_an_array_are_not_blamed():
    report = hg.check((two_layers, two_layers_in_place), *arrays(two_layers), seed=0)
    first = line_of(two_layers_in_place, "da")
    assert {fault.gradient for fault in report.faults} == {"x", "W1", "b1"}
    assert {told_at(fault) for fault in report.faults} <= {0, first + 1}


class Steps:
    """Backward steps; both gradients of its weights have a factor too many, and so has dx."""

    def __init__(self):
        rng = np.random.default_rng(2)
        self.w, self.b, self.lr = rng.normal(size=(3, 4)), rng.normal(size=4), 0.01

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, dy):
        n, k = self.x.shape
        dw = self.x.T @ dy
        db = np.sum(dy, axis=0)
        dx = dy @ self.w.T
        dw = dw / (n * k)
        db = db / (n * k)
        dx = dx / k
        self.w = self.w - self.lr * dw
        self.b = self.b - self.lr * db
        return dx


def test_each_of_three_factors_has_its_own_line_and_no_other():
    report = hg.check(Steps(), np.random.default_rng(0).normal(size=(5, 3)))
    assert len(report.faults) == 3, str(report)
    added = [each.diff.splitlines()[-1][1:].strip() for each in report.faults]
    assert {each.gradient for each in report.faults} == {"x", "w", "b"}
    assert not any("not linear" in each.message for each in report.faults)
    assert sorted(each.split(" ")[0] for each in added) == ["db", "dw", "dx"], str(report)
