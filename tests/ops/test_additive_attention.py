"""Additive attention: the concatenated form, step by step, and sequences of their own length."""

from __future__ import annotations

import numpy as np

from handgrad.ops import additive_attention, softmax
from tests.tolerances import assert_close


def _inputs(batch: int = 3) -> tuple[np.ndarray, ...]:
    draw = np.random.default_rng(41).standard_normal
    return draw((batch, 4, 3)), draw((batch, 6, 5)), draw((7, 3)), draw((7, 5)), draw(7)


def test_equals_the_concatenated_form_for_every_pair() -> None:
    """Yamanishi (18) to (20), word by word: score = vᵀ tanh(W [s; h])."""
    s, h, weight_s, weight_h, v = _inputs(batch=1)
    weight = np.concatenate([weight_s, weight_h], axis=1)
    c, _ = additive_attention.forward(s, h, weight_s, weight_h, v)
    for j in range(4):
        scores = [v @ np.tanh(weight @ np.concatenate([s[0, j], h[0, i]])) for i in range(6)]
        alpha, _ = softmax.forward(np.array(scores))
        assert_close(c[0, j], sum(alpha[i] * h[0, i] for i in range(6)), "float64")


def test_steps_are_independent() -> None:
    """Calls step by step give what one call of all steps gives; dh is the sum over them."""
    s, h, *weights = _inputs()
    c, cache = additive_attention.forward(s, h, *weights)
    dc = np.random.default_rng(42).standard_normal(c.shape)
    whole = additive_attention.backward(dc, cache)
    steps = []
    for j in range(s.shape[1]):
        one = slice(j, j + 1)
        c_j, cache_j = additive_attention.forward(s[:, one], h, *weights)
        assert_close(c_j, c[:, one], "float64")
        steps.append(additive_attention.backward(dc[:, one], cache_j))
    ds, *others = zip(*steps, strict=True)
    assert_close(np.concatenate(ds, axis=1), whole[0], "float64")
    for found, expected in zip(others, whole[1:], strict=True):
        assert_close(np.sum(found, axis=0), expected, "float64")


def test_lengths_give_what_every_sequence_gives_alone() -> None:
    s, h, *weights = _inputs()
    lengths = np.array([4, 0, 6])
    c, cache = additive_attention.forward(s, h, *weights, lengths=lengths)
    dc = np.random.default_rng(42).standard_normal(c.shape)
    ds, dh, *dweights = additive_attention.backward(dc, cache)
    np.testing.assert_array_equal(c[1], 0.0)
    np.testing.assert_array_equal(ds[1], 0.0)
    totals = [np.zeros_like(weight) for weight in weights]
    for n, length in enumerate(lengths):
        np.testing.assert_array_equal(dh[n, length:], 0.0)
        if length > 0:
            own = slice(n, n + 1)
            alone, alone_cache = additive_attention.forward(s[own], h[own, :length], *weights)
            ds_n, dh_n, *dweights_n = additive_attention.backward(dc[own], alone_cache)
            assert_close(c[own], alone, "float64")
            assert_close(ds[own], ds_n, "float64")
            assert_close(dh[own, :length], dh_n, "float64")
            totals = [total + part for total, part in zip(totals, dweights_n, strict=True)]
    for found, expected in zip(dweights, totals, strict=True):
        assert_close(found, expected, "float64")
