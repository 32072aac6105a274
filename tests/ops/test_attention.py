"""Attention beside PyTorch's own for every kind of mask; what is masked, dropped and ragged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.ops import attention, softmax
from tests.tolerances import assert_close

INF = np.inf


def rng() -> np.random.Generator:
    return np.random.default_rng(31)


def heads(
    batch: int = 2, groups: int = 4, queries: int = 5, keys: int = 7, features: int = 3
) -> tuple[np.ndarray, ...]:
    """q with 4 heads, k and v with `groups`; values have 6 features."""
    draw = rng().standard_normal
    return (
        draw((batch, 4, queries, features)),
        draw((batch, groups, keys, features)),
        draw((batch, groups, keys, 6)),
    )


def run(q: Any, k: Any, v: Any, *more: Any, **settings: Any) -> tuple[Any, ...]:
    """y and the gradients for a random dy."""
    y, cache = attention.forward(q, k, v, *more, **settings)
    dy = np.random.default_rng(32).standard_normal(y.shape)
    return (y, *(gradient for gradient in attention.backward(dy, cache) if gradient is not None))


MASK = np.random.default_rng(33).random((2, 1, 5, 7)) < 0.6
MASK[..., 0] = True
BIAS = np.random.default_rng(34).standard_normal((1, 4, 5, 7))
ENDS = np.arange(7) < np.array([7, 3])[:, None, None, None]

#: The size of q, k, v, our settings, and the same in PyTorch's words.
IN_TORCH: dict[str, tuple[dict[str, int], dict[str, Any], dict[str, Any]]] = {
    "no mask": ({}, {}, {}),
    "causal": ({"keys": 5}, {"causal": True}, {"is_causal": True}),
    "causal, more keys": ({}, {"causal": True}, {"is_causal": True}),
    "boolean mask": ({}, {"mask": MASK}, {"attn_mask": MASK}),
    "additive bias": ({}, {"bias": BIAS}, {"attn_mask": BIAS}),
    "additive mask": (
        {},
        {"bias": np.where(MASK, 0.0, -INF)},
        {"attn_mask": np.where(MASK, 0.0, -INF)},
    ),
    "lengths": ({}, {"lengths": np.array([7, 3])}, {"attn_mask": ENDS}),
    "scale": ({}, {"scale": 0.3}, {"scale": 0.3}),
    "grouped heads": ({"groups": 2}, {}, {"enable_gqa": True}),
    "one key-value head": (
        {"groups": 1, "keys": 5},
        {"causal": True},
        {"is_causal": True, "enable_gqa": True},
    ),
}


@pytest.mark.parametrize("name", IN_TORCH)
def test_equals_scaled_dot_product_attention(name: str) -> None:
    torch = pytest.importorskip("torch")
    sizes, ours, theirs = IN_TORCH[name]
    arrays = heads(**sizes)
    found = run(*arrays, **ours)
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    words = {
        key: torch.tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in theirs.items()
    }
    if "bias" in ours:
        tensors.append(words["attn_mask"].requires_grad_())
    y = torch.nn.functional.scaled_dot_product_attention(*tensors[:3], **words)
    dy = torch.tensor(np.random.default_rng(32).standard_normal(tuple(y.shape)))
    expected = (y, *torch.autograd.grad(y, tensors, dy))
    for what, here, there in zip(("y", "dq", "dk", "dv", "dbias"), found, expected, strict=False):
        assert_close(here, there.detach().numpy(), "torch float64", what)
    assert len(found) == len(expected)


@pytest.mark.parametrize(
    "nowhere",
    [
        {"mask": np.zeros((5, 7), bool)},
        {"lengths": np.zeros(2, int)},
        {"causal": True, "offset": -5},
        {"bias": np.full((5, 7), -INF)},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_a_query_that_may_look_nowhere_gives_0(nowhere: dict[str, Any]) -> None:
    for found in run(*heads(), **nowhere):
        np.testing.assert_array_equal(found, 0.0)


def test_a_masked_key_has_no_part_whatever_its_values() -> None:
    q, k, v = heads()
    mask = np.ones((5, 7), bool)
    mask[:, 2] = False
    first = run(q, k, v, mask=mask)
    k[:, :, 2], v[:, :, 2] = 1e3, -1e3
    for found, expected in zip(run(q, k, v, mask=mask), first, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(first[2][:, :, 2], 0.0)
    np.testing.assert_array_equal(first[3][:, :, 2], 0.0)


def test_lengths_give_what_every_sequence_gives_alone() -> None:
    q, k, v = heads(batch=3)
    lengths = np.array([4, 0, 7])
    y, cache = attention.forward(q, k, v, lengths=lengths)
    dy = rng().standard_normal(y.shape)
    dq, dk, dv, _ = attention.backward(dy, cache)
    for n, length in enumerate(lengths):
        own = slice(n, n + 1)
        np.testing.assert_array_equal(dk[n, :, length:], 0.0)
        np.testing.assert_array_equal(dv[n, :, length:], 0.0)
        if length == 0:
            np.testing.assert_array_equal(y[n], 0.0)
            np.testing.assert_array_equal(dq[n], 0.0)
            continue
        alone, alone_cache = attention.forward(q[own], k[own, :, :length], v[own, :, :length])
        gradients = attention.backward(dy[own], alone_cache)
        assert_close(y[own], alone, "float64", "y")
        for here, there in zip((dq, dk[:, :, :length], dv[:, :, :length]), gradients, strict=False):
            assert_close(here[own], there, "float64")


def test_causal_with_an_offset_goes_on_where_another_call_ended() -> None:
    q, k, v = heads(keys=5)
    whole, _ = attention.forward(q, k, v, causal=True)
    for step in range(5):
        seen = slice(0, step + 1)
        one, _ = attention.forward(
            q[:, :, step : step + 1], k[:, :, seen], v[:, :, seen], causal=True, offset=step
        )
        assert_close(one, whole[:, :, step : step + 1], "float64")


def test_dropout_keeps_the_mean_and_drops_its_share() -> None:
    """With one feature of 1 in every value, y is the sum of the weights that stayed, scaled up."""
    q, k = rng().standard_normal((2, 8, 8, 64, 4))
    ones = np.ones((8, 8, 64, 1))
    y, cache = attention.forward(q, k, ones, dropout_p=0.3, rng=np.random.default_rng(1))
    weights = cache.keep.size
    assert abs(np.mean(cache.keep) - 0.7) < 5 * np.sqrt(0.7 * 0.3 / weights)
    assert abs(np.mean(y) - 1.0) < 5 * np.std(y) / np.sqrt(y.size)


def test_dropout_is_the_same_for_the_same_generator_only() -> None:
    first, again, other = (
        run(*heads(), dropout_p=0.5, rng=np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    for one, two, three in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert np.any(one != three)


def test_the_generator_advances_by_one_float32_per_weight() -> None:
    q, k, v = heads()
    used, plain = np.random.default_rng(3), np.random.default_rng(3)
    attention.forward(q, k, v, dropout_p=0.5, rng=used)
    plain.random((2, 4, 5, 7), dtype=np.float32)
    assert used.bit_generator.state == plain.bit_generator.state


def test_a_single_soft_query() -> None:
    """Yamanishi, figure 10: r = softmax(q Kᵀ/√d) V with values of another size than the keys."""
    q, k, v = rng().standard_normal(4), rng().standard_normal((6, 4)), rng().standard_normal((6, 3))
    weights, _ = softmax.forward(q @ k.T / np.sqrt(4))
    r, _ = attention.forward(q.reshape(1, 1, 1, 4), k[None, None], v[None, None])
    assert_close(r.reshape(3), weights @ v, "float64")


def test_columns_and_rows_say_the_same() -> None:
    """Turner: Y = X A with one column per position and A normalised over its columns."""
    x = rng().standard_normal((4, 6))
    u_q, u_k = rng().standard_normal((2, 3, 4))
    scores = (u_k @ x).T @ (u_q @ x) / np.sqrt(3)
    a, _ = softmax.forward(scores, axis=0)
    assert_close(a.sum(axis=0), np.ones(6), "float64")
    row_x = x.T[None, None]
    y, cache = attention.forward(row_x @ u_q.T, row_x @ u_k.T, row_x)
    assert_close(y[0, 0].T, x @ a, "float64")
    assert_close(cache.a[0, 0].T, a, "float64")
