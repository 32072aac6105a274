"""Attention with its three kinds of scores."""

from __future__ import annotations

from handgrad.checking.samples.attention import qkv
from tests.op_cases.case import Seed, add
from tests.op_cases.makers import Maker, booleans, fixed, normal

_EMPTY = "PyTorch refuses an axis of length 0 here, or takes it as another"

add("attention", "one by one", qkv(1, 1, 1, 1))
add("attention", "awkward", qkv(1, 1, 5, 123, keys=3))
add("attention", "primes", qkv(2, 3, 7, 5, keys=11, values=13))
add("attention", "one query", qkv(2, 2, 1, 5, keys=7, values=3))
add("attention", "one key", qkv(2, 2, 5, 3, keys=1))
add("attention", "grouped heads", qkv(2, 6, 5, 4, groups=2, keys=7, values=3))
add("attention", "one key-value head", qkv(2, 5, 3, 4, groups=1))
add("attention", "scale", qkv(2, 3, 5, 4), scale=1.7)
add("attention", "bias", {**qkv(2, 3, 5, 4, keys=7), "bias": normal(2, 3, 5, 7)})
add(
    "attention",
    "bias of heads",
    {**qkv(2, 3, 5, 4), "bias": normal(3, 1, 5)},
    not_annotated=("an annotation for every number of axes would say nothing"),
)
add("attention", "bias of pairs", {**qkv(2, 3, 5, 4, keys=7), "bias": normal(5, 7)})
add("attention", "mask", {**qkv(2, 3, 5, 4, keys=7), "mask": booleans(2, 3, 5, 7)})
add("attention", "mask of pairs", {**qkv(2, 3, 5, 4, keys=7), "mask": booleans(5, 7)})
add("attention", "masked rows", {**qkv(2, 2, 7, 3), "mask": booleans(2, 1, 7, 7, share=0.2)})
add("attention", "masked everywhere", {**qkv(1, 2, 3, 4), "mask": booleans(3, 3, share=0.0)})
add("attention", "lengths", {**qkv(4, 2, 5, 3, keys=7), "lengths": fixed([7, 0, 3, 1])})
add("attention", "causal", qkv(2, 3, 7, 4), causal=True)
add("attention", "causal with more keys", qkv(2, 3, 3, 4, keys=8), causal=True)
add("attention", "causal after others", qkv(2, 3, 3, 4, keys=8), causal=True, offset=5)
add("attention", "causal before the keys", qkv(1, 2, 5, 3), causal=True, offset=-2)
add(
    "attention",
    "everything at once",
    {
        **qkv(3, 4, 5, 4, groups=2, values=3),
        "bias": normal(1, 4, 5, 5),
        "mask": booleans(3, 1, 5, 5, share=0.8),
        "lengths": fixed([5, 2, 4]),
    },
    causal=True,
    scale=0.9,
    dropout_p=0.3,
    rng=Seed(7),
)
add("attention", "dropout", qkv(2, 2, 5, 4, keys=7), dropout_p=0.5, rng=Seed(7))
add("attention", "dropout of all", qkv(2, 2, 3, 4), dropout_p=1.0, rng=Seed(7))
add("attention", "spread scores", qkv(2, 2, 5, 4), scale=10.0)
add("attention", "empty batch", qkv(0, 2, 3, 4))
add("attention", "no queries", qkv(2, 2, 0, 4, keys=3))
add("attention", "no heads", qkv(2, 0, 3, 4, groups=2), not_in_torch=_EMPTY)
add("attention", "no values", qkv(2, 2, 3, 4, values=0), not_in_torch=_EMPTY)
add("attention", "no values of one query", qkv(2, 2, 1, 4, values=0), not_in_torch=_EMPTY)
add(
    "attention",
    "no queries with bias",
    {**qkv(2, 2, 0, 4, keys=3), "bias": normal(2, 1, 0, 3), "mask": booleans(0, 3)},
    not_in_torch=_EMPTY,
)
add("attention", "large", qkv(3, 4, 67, 32, groups=2, keys=131), large=True)


def _states(batch: int, steps: int, size: int, others: int, other_size: int) -> dict[str, Maker]:
    return {"s": normal(batch, steps, size), "h": normal(batch, others, other_size)}


def _additive(
    batch: int, steps: int, size: int, others: int, other_size: int, hidden: int
) -> dict[str, Maker]:
    return {
        **_states(batch, steps, size, others, other_size),
        "weight_s": normal(hidden, size, scale=size**-0.5),
        "weight_h": normal(hidden, other_size, scale=other_size**-0.5),
        "v": normal(hidden),
    }


add("additive_attention", "one by one", _additive(1, 1, 1, 1, 1, 1))
add("additive_attention", "awkward", _additive(1, 5, 4, 123, 3, 7))
add("additive_attention", "primes", _additive(3, 5, 7, 11, 2, 13))
add("additive_attention", "one step", _additive(5, 1, 3, 7, 4, 2))
add("additive_attention", "mask", {**_additive(2, 3, 4, 5, 3, 2), "mask": booleans(2, 3, 5)})
add(
    "additive_attention",
    "masked rows",
    {**_additive(2, 7, 4, 5, 3, 2), "mask": booleans(1, 7, 5, share=0.2)},
)
add("additive_attention", "lengths", {**_additive(3, 2, 3, 5, 4, 2), "lengths": fixed([5, 0, 2])})
add(
    "additive_attention",
    "lengths and mask",
    {**_additive(3, 4, 3, 5, 4, 2), "mask": booleans(3, 1, 5), "lengths": fixed([1, 5, 3])},
)
add("additive_attention", "empty batch", _additive(0, 3, 4, 5, 3, 2))
add("additive_attention", "no steps", _additive(2, 0, 4, 5, 3, 2))
add("additive_attention", "no units", _additive(2, 3, 4, 5, 3, 0), not_in_torch=_EMPTY)
_OF_NO_SIZE: dict[str, Maker] = {"weight_s": normal(2, 0), "weight_h": normal(2, 0)}
add(
    "additive_attention",
    "states of no size",
    _additive(2, 3, 1, 5, 1, 2) | _states(2, 3, 0, 5, 0) | _OF_NO_SIZE,
    not_in_torch=_EMPTY,
)
add("additive_attention", "large", _additive(3, 31, 37, 41, 29, 43), large=True)

add("cosine_attention", "one by one", _states(1, 1, 1, 1, 1))
add("cosine_attention", "awkward", _states(1, 5, 123, 3, 123))
add("cosine_attention", "primes", _states(3, 5, 7, 11, 7))
add("cosine_attention", "one step", _states(5, 1, 3, 7, 3))
add("cosine_attention", "mask", {**_states(2, 3, 4, 5, 4), "mask": booleans(2, 3, 5)})
add(
    "cosine_attention",
    "masked rows",
    {**_states(2, 7, 4, 5, 4), "mask": booleans(1, 7, 5, share=0.2)},
)
add("cosine_attention", "lengths", {**_states(3, 2, 3, 5, 3), "lengths": fixed([5, 0, 2])})
add("cosine_attention", "eps", _states(2, 3, 4, 5, 4), eps=0.5)
add("cosine_attention", "empty batch", _states(0, 3, 4, 5, 4))
add("cosine_attention", "no steps", _states(2, 0, 4, 5, 4))
add("cosine_attention", "states of no size", _states(2, 3, 0, 5, 0), not_in_torch=_EMPTY)
add("cosine_attention", "large", _states(3, 67, 32, 131, 32), large=True)
