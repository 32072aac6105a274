"""The programs of Yang's paper against its own recursions, written out here.

Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture
are Gaussian processes (2019), appendix on RNN, GRU, batch normalisation and transformer. Its RNN
and GRU have erf in the place of tanh and (1 + erf)/2 in that of the logistic function.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import rng, tied_attention
from handgrad import limits
from handgrad.limits import samples
from handgrad.limits.inputs import Place, Side
from handgrad.limits.moments import Moments
from handgrad.limits.program import activated, mixed, total
from handgrad.limits.samples import Samples
from handgrad.limits.variables import Bias, Function, Input, MatMul, Variable, Weight
from handgrad.ops.special import erf

W, U, B = 1.4, 0.9, 0.3
RNG = np.random.default_rng(3)
#: Two sentences of three words each, as vectors.
SENTENCES = RNG.standard_normal((2, 3, 20))
GRAM = np.einsum("ntd,msd->ntms", SENTENCES, SENTENCES) / 20
WORDS = [Input("x", Place("last", (t,)), index=(t,)) for t in range(3)]


def arcsine(k12: np.ndarray, k11: np.ndarray, k22: np.ndarray) -> np.ndarray:
    """E[erf z₁ erf z₂]. Source: Williams, Computing with infinite networks (1997)."""
    return 2 / np.pi * np.arcsin(k12 / np.sqrt((k11 + 0.5) * (k22 + 0.5)))


def moments() -> Moments:
    side = Side(SENTENCES)
    alone = Moments(side)
    return Moments(side, side, alone=(alone, alone))


def test_the_recurrent_network_with_erf() -> None:
    """h_t = erf(W h_{t−1} + U x_t + b): the kernel of the states at all pairs of steps."""
    w, u, b = Weight("W", W), Weight("U", U), Bias("b", Weight("b", B))
    states: list[Variable] = []
    for x in WORDS:
        before = [MatMul("W", w, states[-1])] if states else []
        states.append(activated("erf", total(*before, MatMul("U", u, x), b)))
    found = moments()
    k = np.zeros((2, 3, 2, 3))
    for t in range(3):
        for s in range(3):
            k[:, t, :, s] = found.second(states[t], states[s])
    expected = np.zeros((2, 3, 2, 3))
    g = np.zeros((2, 3, 2, 3))
    for _ in range(5):  # g(t, s) needs the states at t − 1 and s − 1
        for t in range(3):
            for s in range(3):
                below = W * expected[:, t - 1, :, s - 1] if t and s else 0.0
                g[:, t, :, s] = below + U * GRAM[:, t, :, s] + B
        size = np.einsum("ntnt->nt", g)
        expected = arcsine(g, size[:, :, None, None], size[None, None])
    assert np.abs(k - expected).max() < 1e-12


def test_the_transformer() -> None:
    """Post-norm blocks of attention with one vector as query, key and value, scaled by 1/n.

    Not causal here; Yang's code masks. σ_w² = 1.4 in the feed-forward network, no LayerNorm ε.
    """
    x = SENTENCES
    make = tied_attention(1)
    model = make(8, 1)
    for name in ("1", "2"):
        model.layers[name].norm.eps = 0.0
    given = dict.fromkeys(("0.weight", "4.weight"), 1.0)
    given |= {f"2.inner.linear{i}.weight": W for i in (1, 2)}
    biases = {f"2.inner.linear{i}.bias": B for i in (1, 2)}
    embedded = hg.Sequential(
        hg.Dense(20, 8, rng=rng(), bias=False), *list(model.layers.values())[1:3], hg.LastStep()
    )
    weights = {"0.weight": 1.0, **{f"2.inner.linear{i}.weight": W for i in (1, 2)}}
    found = limits.kernel(embedded, x, weight_variance=weights, bias_variance=biases)
    assert set(given) >= set(weights)

    def softmax(scores: np.ndarray) -> np.ndarray:
        e = np.exp(scores)
        return e / e.sum(axis=-1, keepdims=True)

    def unit(k: np.ndarray) -> np.ndarray:
        root = np.sqrt(np.einsum("ntnt->nt", k))
        return k / (root[:, :, None, None] * root[None, None])

    mix = np.stack([np.eye(3) + softmax(GRAM[n, :, n, :]) for n in range(2)])
    k = unit(np.einsum("nta,nams,mbs->ntmb", mix, GRAM.transpose(0, 1, 2, 3), mix))
    g = W * k + B
    size = np.einsum("ntnt->nt", g)
    scale = np.sqrt(size[:, :, None, None] * size[None, None])
    c = np.clip(g / scale, -1.0, 1.0)
    relu = scale * (np.sqrt(1.0 - c * c) + (np.pi - np.arccos(c)) * c) / (2.0 * np.pi)
    k = unit(k + W * relu + B)
    assert np.abs(found - k[:, -1, :, -1]).max() < 1e-7


def logistic(a: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + erf(a))


def orthant(k12: np.ndarray, k11: np.ndarray, k22: np.ndarray) -> np.ndarray:
    """E[(1 + erf z₁)/2 (1 + erf z₂)/2] = ¼ + arcsin(…)/2π."""
    return 0.25 + 0.25 * arcsine(k12, k11, k22)


def test_two_steps_of_the_gated_recurrent_unit_with_erf() -> None:
    """h_t = (1 − z_t) h_{t−1} + z_t erf(U x_t + W (h_{t−1} ⊙ r_t) + b).

    The covariance of the second candidate has a closed form: gates come from other matrices than
    the state. By draws it has their error, three digits for 2¹⁸.
    """
    w = {name: Weight(f"W{name}", W) for name in "zrh"}
    u = {name: Weight(f"U{name}", U) for name in "zrh"}
    b = {name: Bias(f"b{name}", Weight(f"b{name}", B)) for name in "zrh"}

    def pre(name: str, x: Variable, h: Variable | None) -> Variable:
        terms = [MatMul("U", u[name], x), b[name]]
        return total(*terms, *([] if h is None else [MatMul("W", w[name], h)]))

    def gated(text: str, value, *operands: Variable) -> Function:
        return Function("h", operands, value, lambda *values: (), text)

    z, candidate = pre("z", WORDS[0], None), pre("h", WORDS[0], None)
    h = gated("", lambda z, c: logistic(z) * erf(c), z, candidate)
    r = pre("r", WORDS[1], h)
    reset = gated("", lambda h, r: h * logistic(r), h, r)
    second = pre("h", WORDS[1], reset)
    side = Side(SENTENCES)
    drawn = Samples(1 << 18, np.random.default_rng(0))
    alone = Moments(side, samples=drawn)
    drawn.moments = Moments(side, side, alone=(alone, alone), samples=drawn)
    found = drawn.moments.second(second, second)

    def covariance(t: int, below: np.ndarray | float) -> np.ndarray:
        return U * GRAM[:, t, :, t] + B + below

    def over(transform, k: np.ndarray) -> np.ndarray:
        return transform(k, np.diag(k)[:, None], np.diag(k)[None])

    first = covariance(0, 0.0)
    hh = over(orthant, first) * over(arcsine, first)
    gates = covariance(1, W * hh)
    expected = covariance(1, W * hh * over(orthant, gates))
    assert np.abs(found - expected).max() < 2e-3
    assert np.abs(drawn.moments.second(h, h) - hh).max() < 2e-3


def test_batch_normalization_and_relu() -> None:
    """V of one batch as an integral over s > 0, by the trapezoidal rule in ln s.

    With G = 1 − 1/B the centring, and G Σ G = E diag(λ) Eᵀ without its 0,
    V = B ∫ Π √(1/(1 + 2 s λ)) V_relu(E diag(λ/(1 + 2 s λ)) Eᵀ) ds.
    """
    batch = 6
    x = np.random.default_rng(4).standard_normal((batch, 9))
    sigma = x @ x.T / 9
    centring = np.eye(batch) - 1.0 / batch
    values, vectors = np.linalg.eigh(centring @ sigma @ centring)
    values, vectors = values[1:], vectors[:, 1:]
    total_value, step = np.zeros((batch, batch)), 0.05
    for log_s in np.arange(-25.0, 40.0, step):
        s = math.exp(log_s)
        shrunk = values / (1.0 + 2.0 * s * values)
        k = (vectors * shrunk) @ vectors.T
        scale = np.sqrt(np.outer(np.diag(k), np.diag(k)))
        c = np.clip(k / scale, -1.0, 1.0)
        relu = scale * (np.sqrt(1.0 - c * c) + (np.pi - np.arccos(c)) * c) / (2.0 * np.pi)
        weight = np.prod(1.0 / np.sqrt(1.0 + 2.0 * s * values))
        total_value += batch * weight * relu * s * step
    model = hg.Sequential(
        hg.Dense(9, 4, rng=rng(), bias=False),
        hg.BatchNorm(4, eps=0.0, activation="relu"),
    )
    found = limits.kernel(model, x, weight_variance=1.0)
    assert np.abs(found - total_value).max() < 1e-7


def test_two_batches_are_those_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integral over two roots beside a mean over draws; ε counts too."""
    x = np.random.default_rng(4).standard_normal((11, 9))
    model = hg.Sequential(
        hg.Dense(9, 4, rng=rng(), bias=False), hg.BatchNorm(4, eps=0.1, activation="relu")
    )
    exact = limits.kernel(model, x[:6], x[6:], weight_variance=1.0)
    monkeypatch.setattr(samples, "batch_second", lambda *given: None)
    drawn = limits.kernel(model, x[:6], x[6:], weight_variance=1.0, samples=1 << 18)
    # Four standard errors of a mean over the draws, of products of about 1.
    assert np.abs(exact - drawn).max() < 4.0 / math.sqrt(1 << 18)


def test_a_sum_of_nothing_is_zero() -> None:
    assert moments().second(mixed(), mixed()) == 0.0
