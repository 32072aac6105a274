"""Wrong backwards on PyTorch's tensors: line, cause and change are named as NumPy's are."""

# mypy: ignore-errors
# ruff: noqa: RUF059  (people unpack the whole cache)

from __future__ import annotations

import inspect

import pytest

import handgrad as hg

torch = pytest.importorskip("torch")


def attention(q, k, v):
    scale = q.shape[-1] ** -0.5
    weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
    return weights @ v, (q, k, v, weights, scale)


def summed_over_queries(dy, cache):
    q, k, v, weights, scale = cache
    dv = weights.transpose(-2, -1) @ dy
    dweights = dy @ v.transpose(-2, -1)
    dscores = weights * (dweights - (weights * dweights).sum(dim=0, keepdim=True))
    return dscores @ k * scale, dscores.transpose(-2, -1) @ q * scale, dv


def norm(x, gamma, beta):
    mu = x.mean(dim=-1, keepdim=True)
    rstd = torch.rsqrt(x.var(dim=-1, unbiased=False, keepdim=True) + 1e-5)
    hat = (x - mu) * rstd
    return hat * gamma + beta, (hat, rstd, gamma)


def without_the_variance(dy, cache):
    hat, rstd, gamma = cache
    dhat = dy * gamma
    dx = (dhat - dhat.mean(dim=-1, keepdim=True)) * rstd
    return dx, (dy * hat).sum(dim=0), dy.sum(dim=0)


def rnn(x, h, w, u):
    states = [h]
    for t in range(x.shape[0]):
        states.append(torch.tanh(x[t] @ w + states[-1] @ u))
    return torch.stack(states[1:]), (x, states, w, u)


def without_the_next_step(dy, cache):
    x, states, w, u = cache
    dw, du = torch.zeros_like(w), torch.zeros_like(u)
    dx = torch.zeros_like(x)
    dh = torch.zeros_like(states[0])
    for t in range(x.shape[0] - 1, -1, -1):
        da = dy[t] * (1 - states[t + 1] ** 2)
        dw += x[t].T @ da
        du += states[t].T @ da
        dx[t] = da @ w.T
        dh = da @ u.T
    return dx, dh, dw, du


def mlp(x, w, b, v):
    h = torch.relu(x @ w + b)
    return h @ v, (x, w, v, h)


def untransposed(dy, cache):
    x, w, v, h = cache
    dh = dy @ v
    da = dh * (h > 0)
    return da @ w.T, x.T @ da, da.sum(dim=0), h.T @ dy


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        a = x @ w
        s = torch.sigmoid(a)
        ctx.save_for_backward(x, w, a, s)
        return a * s

    @staticmethod
    def backward(ctx, dy):
        x, w, a, s = ctx.saved_tensors
        da = dy * (s + s * (1 - s))
        return da @ w.T, x.T @ da


CASES = [
    pytest.param(
        *((attention, summed_over_queries), [(4, 4)] * 3, "dscores =", "wrong axis", "1 for 0"),
        id="a wrong axis",
    ),
    pytest.param(
        *((norm, without_the_variance), [(5, 4), (4,), (4,)], "dx =", "term missing", "through"),
        id="a missing term",
    ),
    pytest.param(
        *((rnn, without_the_next_step), [(3, 2, 4), (2, 5), (4, 5), (5, 5)]),
        *("da =", "term missing", "the term dh is missing"),
        id="a missing path through time",
    ),
    pytest.param(
        *((mlp, untransposed), [(5, 4), (4, 6), (6,), (6, 6)]),
        *("dh =", "transpose missing", "v should be transposed"),
        id="a transposed operand",
    ),
    pytest.param(
        *(Swish, [(5, 4), (4, 3)], "da =", "factor missing", "the factor a is missing"),
        id="a missing factor of an autograd function",
    ),
]


@pytest.mark.parametrize(("target", "shapes", "start", "kind", "phrase"), CASES)
def test_the_line_and_the_change_are_told(target, shapes, start, kind, phrase):
    rng = torch.Generator().manual_seed(1)
    arrays = [torch.randn(each, generator=rng, dtype=torch.float64) for each in shapes]
    report = hg.check(target, *arrays, seed=0)
    backward = target[1] if isinstance(target, tuple) else target.backward
    lines, first = inspect.getsourcelines(backward)
    line = next(first + i for i, each in enumerate(lines) if each.strip().startswith(start))
    faults = [each for each in report.faults if each.situation == "usual"]
    assert faults
    for fault in faults:
        assert fault.kind == kind, fault.message
        assert phrase in fault.message
        assert fault.line == line
        assert fault.diff or phrase == "through"
