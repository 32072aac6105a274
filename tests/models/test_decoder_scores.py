"""Scores step by step give what the attention ops give for all steps at once."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.models.decoder_scores import SCORES, Score, make_score, products, weighted_sum
from handgrad.ops import additive_attention, attention, cosine_attention
from handgrad.ops.scores import weights
from tests.tolerances import assert_close

BATCH, STEPS, KEYS = 3, 4, 5
SIZES = {"additive": (6, 8), "cosine": (6, 6), "dot": (6, 6)}


def normal(seed: int, *shape: int) -> np.ndarray:
    array = np.random.default_rng(seed).standard_normal(shape)
    array.flags.writeable = False
    return array


def make(kind: str) -> Score:
    return make_score(kind, *SIZES[kind], rng=np.random.default_rng(1), dtype=np.float64)


def by_op(
    kind: str, score: Score, s: np.ndarray, h: np.ndarray, dc: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """c, ds, dh and the gradients of the parameters."""
    if kind == "additive":
        names = ("weight_s", "weight_h", "v")
        c, cache = additive_attention.forward(s, h, *(score.parameters[name] for name in names))
        ds, dh, *found = additive_attention.backward(dc, cache)
        return c, ds, dh, dict(zip(names, found, strict=True))
    if kind == "cosine":
        c, cache = cosine_attention.forward(s, h)
        ds, dh = cosine_attention.backward(dc, cache)
        return c, ds, dh, {}
    c, cache = attention.forward(s[:, None], h[:, None], h[:, None])
    dq, dk, dv, _ = attention.backward(dc[:, None], cache)
    return c[:, 0], dq[:, 0], (dk + dv)[:, 0], {}


@pytest.mark.parametrize("kind", SCORES)
def test_steps_are_the_op(kind: str) -> None:
    score = make(kind)
    hidden, memory = SIZES[kind]
    s = normal(2, BATCH, STEPS, hidden)
    h = normal(3, BATCH, KEYS, memory)
    dc = normal(4, BATCH, STEPS, memory)
    expected_c, expected_ds, expected_dh, expected = by_op(kind, score, s, h, dc)

    weight = normal(5, 3, memory)
    keys, values, kept_of_memory = score.memory(h, weight)
    assert_close(values, h @ weight.T, "float64", "values")
    dkeys = np.zeros_like(keys)
    dh = np.zeros_like(h)
    kept, dscores, dqueries = [], [], []
    for j in range(STEPS):
        scores, kept_of_step = score.step(s[:, j], keys)
        alpha = weights(scores)
        assert_close(weighted_sum(alpha, h), expected_c[:, j], "float64", "c")
        dalpha = products(h, dc[:, j])
        dscore = alpha * (dalpha - np.sum(alpha * dalpha, axis=-1, keepdims=True))
        ds, dquery, dkeys = score.step_backward(dscore, kept_of_step, keys, dkeys)
        assert_close(ds, expected_ds[:, j], "float64", "ds")
        dh += alpha[:, :, None] * dc[:, j][:, None, :]
        kept.append(kept_of_step)
        dscores.append(dscore)
        dqueries.append(dquery)
    dkeys, gradients = score.finish(
        np.stack(dscores), np.stack(dqueries), dkeys, tuple(kept), s.transpose(1, 0, 2)
    )
    dvalues = normal(6, BATCH, KEYS, 3)
    dmemory = np.concatenate((dkeys, dvalues), axis=2)
    dh_of_memory, dweight, of_keys = score.memory_backward(dmemory, kept_of_memory)
    gradients |= of_keys
    assert_close(dh + dh_of_memory, expected_dh + dvalues @ weight, "float64", "dh")
    assert_close(dweight, np.einsum("nsg,nsc->gc", dvalues, h), "float64", "dweight")
    assert gradients.keys() == score.parameters.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, expected[name], "float64", name)


def test_cosine_with_a_state_of_zeros_is_0() -> None:
    score = make("cosine")
    h = normal(3, BATCH, KEYS, 6)
    keys, _, _ = score.memory(h, np.empty((0, 6)))
    scores, _ = score.step(np.zeros((BATCH, 6)), keys)
    np.testing.assert_array_equal(scores, 0.0)


def test_what_does_not_fit_is_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ArgumentError, match="score is 'dott'; allowed: additive, cosine, dot"):
        make_score("dott", 6, 6, rng=rng, dtype=np.float64)
    for kind in ("cosine", "dot"):
        with pytest.raises(ArgumentError, match=f"hidden is 6; allowed with score '{kind}': 8"):
            make_score(kind, 6, 8, rng=rng, dtype=np.float64)
