"""The programs of Yang's paper against its own recursions, written out here.

Source: Yang, Tensor programs I: wide feedforward or recurrent neural networks of any architecture
are Gaussian processes (2019), appendix on RNN, GRU, batch normalisation and transformer. Its RNN
and GRU have erf in the place of tanh and (1 + erf)/2 in that of the logistic function.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import handgrad as hg
from benchmarks.limit_networks import rng, tied_attention
from handgrad import limits
from handgrad.limits import samples
from handgrad.limits.gates import gated
from handgrad.limits.inputs import InputPosition, Side
from handgrad.limits.lattice import Lattice
from handgrad.limits.moments import Moments
from handgrad.limits.program import activated, mixed, total
from handgrad.limits.variables import Bias, Gate, InputVector, MatMul, Variable, Weight
from handgrad.ops.special import erf

W, U, B = 1.4, 0.9, 0.3
RNG = np.random.default_rng(3)
#: Two sentences of three words each, as vectors.
SENTENCES = RNG.standard_normal((2, 3, 20))
GRAM = np.einsum("ntd,msd->ntms", SENTENCES, SENTENCES) / 20
WORDS = [InputVector("x", InputPosition("last", (t,)), index=(t,)) for t in range(3)]


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


def orthant(k12: np.ndarray, k11: np.ndarray, k22: np.ndarray) -> np.ndarray:
    """E[(1 + erf z₁)/2 (1 + erf z₂)/2] = ¼ + arcsin(…)/2π."""
    return 0.25 + 0.25 * arcsine(k12, k11, k22)


def half(sign: float, a: Variable) -> Gate:
    """(1 ± erf a)/2."""
    scale = sign / math.sqrt(math.pi)
    return Gate(a, lambda a: 0.5 * (1.0 + sign * erf(a)), lambda a: scale * np.exp(-a * a))


def gated_states(words: list[InputVector], variances: dict[str, float]) -> list[Variable]:
    """h_t = (1 − z_t) h_{t−1} + z_t erf(U x_t + W (h_{t−1} ⊙ r_t) + b), from Yang's program."""
    w = {name: Weight(f"W{name}", variances["W"]) for name in "zrh"}
    u = {name: Weight(f"U{name}", variances["U"]) for name in "zrh"}
    b = {name: Bias(f"b{name}", Weight(f"b{name}", variances["b"])) for name in "zrh"}
    states: list[Variable] = [mixed()]
    for x in words:
        h = states[-1]
        z, r = (total(MatMul("W", w[n], h), MatMul("U", u[n], x), b[n]) for n in "zr")
        reset = gated("reset", (half(1.0, r), h), text="")
        new = total(MatMul("W", w["h"], reset), MatMul("U", u["h"], x), b["h"])
        candidate = activated("erf", new)
        states.append(gated("h", (half(-1.0, z), h), (half(1.0, z), candidate), text=""))
    return states[1:]


def gated_moments(x: np.ndarray, points: int) -> Moments:
    """Of the first example with the second."""
    lattice = Lattice(points, 0)
    one, other = (Moments(Side(x[i : i + 1]), points=lattice) for i in range(2))
    return Moments(one.sides[0], other.sides[0], alone=(one, other), points=lattice)


@pytest.mark.slow
def test_the_gated_recurrent_unit_on_the_published_example() -> None:
    """The states after each of six words of two sentences, all variances 1, as in Yang's code.

    `gram` are the covariances of the words' GloVe vectors from that code. `kernel` is by its
    recursion, whose Gaussian orthants SciPy integrated, to about 1e-5; here are 2¹⁶ points.
    """
    with np.load(Path(__file__).parent / "gru_of_two_sentences.npz") as saved:
        gram, kernel = saved["gram"], saved["kernel"]
    values, vectors = np.linalg.eigh(gram)
    features = vectors * np.sqrt(np.maximum(values, 0.0) * len(gram))
    words = [InputVector("x", InputPosition("last", (t,)), index=(t,)) for t in range(6)]
    states = gated_states(words, {"W": 1.0, "U": 1.0, "b": 1.0})
    both = gated_moments(features.reshape(2, 6, -1), 1 << 16)
    one, other = both.alone
    blocks = [
        [np.array([[m.second(h, g).item() for g in states] for h in states]) for m in row]
        for row in ((one, both), (both, other))
    ]
    blocks[1][0] = blocks[0][1].T
    error = np.block(blocks) - kernel
    assert np.sqrt(np.mean(error**2)) < 1e-5
    assert np.abs(error).max() < 4e-5


def test_two_steps_of_the_gated_recurrent_unit_with_erf() -> None:
    """E[h₂ h₂′] in closed form but for that of the four gates, which is a product rule's."""
    states = gated_states(WORDS[:2], {"W": W, "U": U, "b": B})
    found = gated_moments(SENTENCES, 1 << 14).second(states[1], states[1])

    def over(transform, k: np.ndarray) -> np.ndarray:
        return transform(k, np.diag(k)[:, None], np.diag(k)[None])

    grams = {(t, s): U * GRAM[:, t, :, s] + B for t in range(2) for s in range(2)}
    first = grams[0, 0]
    hh = over(orthant, first) * over(arcsine, first)
    second = grams[1, 1] + W * hh
    candidate = grams[1, 1] + W * hh * over(orthant, second)
    gates = np.block([[first, grams[0, 1]], [grams[1, 0], second]])
    # Both steps of the first example, then of the second.
    order = [0, 2, 1, 3]
    root = np.linalg.cholesky(gates[np.ix_(order, order)])
    nodes, weights = np.polynomial.hermite_e.hermegauss(28)
    grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij")).reshape(4, -1)
    weight = np.prod(np.meshgrid(*[weights / np.sqrt(2 * np.pi)] * 4), axis=0).ravel()
    z = 0.5 * (1.0 + erf(root @ grid))
    shares = [[(1 - z[1]) * z[0], z[1]], [(1 - z[3]) * z[2], z[3]]]
    steps = [first, candidate]
    k12 = np.array([[first[0, 1], grams[0, 1][0, 1]], [grams[1, 0][0, 1], candidate[0, 1]]])
    k11, k22 = (np.array([k[n, n] for k in steps]) for n in range(2))
    candidates = arcsine(k12, k11[:, None], k22[None])
    expected = np.einsum("p,ip,jp,ij->", weight, *map(np.array, shares), candidates, optimize=True)
    assert abs(found.item() - expected) < 1e-5


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
