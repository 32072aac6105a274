"""LoRADense: gradients, first values, and the sum that it becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.layers import Dense, LoRADense
from tests.layers.gradients import check_destinations, check_gradients

RNG = np.random.default_rng
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "rank-1": {"rank": 1, "alpha": 3.0},
    "full-rank": {"rank": 4},
    "dropout": {"dropout": 0.4},
    "no-bias": {"bias": False},
    "gelu": {"activation": "gelu", "approximate": "tanh"},
    "leaky-relu": {"activation": "leaky_relu", "negative_slope": 0.2, "dropout": 0.2},
}


def layer(dtype: Any = np.float64, **settings: Any) -> LoRADense:
    own = {"rank": 2, **{k: settings.pop(k) for k in ("rank", "alpha", "dropout") if k in settings}}
    dense = Dense(5, 4, rng=RNG(0), dtype=dtype, **settings)
    found = LoRADense(dense, rng=RNG(1), **own)
    found.lora_b[...] = RNG(2).standard_normal(found.lora_b.shape)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trains_weight", [False, True])
def test_gradients_match_differences(name: str, trains_weight: bool) -> None:
    lora = layer(**CASES[name])
    if trains_weight:
        lora.unfreeze()
    for shape in ((3, 5), (2, 3, 5)):
        check_gradients(lora, RNG(3).standard_normal(shape), training=True)
    check_destinations(lora, RNG(3).standard_normal((3, 5)), training=True)


@pytest.mark.parametrize("name", CASES)
def test_the_checker_agrees(name: str) -> None:
    assert hg.check(layer(**CASES[name]), RNG(3).standard_normal((7, 5))).ok


def test_only_the_small_matrices_are_trained() -> None:
    lora = layer()
    assert list(lora.parameters) == ["lora_a", "lora_b"]
    assert set(lora.buffers) == {"weight", "bias"}
    assert lora.weight is lora.dense.weight


def test_first_outputs_are_those_of_the_layer_it_stands_for() -> None:
    dense = Dense(5, 4, rng=RNG(0), activation="silu")
    lora = LoRADense(dense, rank=3, rng=RNG(1))
    x = RNG(3).standard_normal((6, 5)).astype(np.float32)
    assert np.abs(lora.lora_a).max() <= 1 / np.sqrt(5)
    assert np.allclose(lora(x), dense(x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_merging_keeps_outputs(name: str) -> None:
    lora = layer(**CASES[name])
    x = RNG(3).standard_normal((6, 5))
    y = lora(x)
    dense = lora.merged()
    assert type(dense) is Dense
    assert np.allclose(dense(x), y, rtol=1e-12, atol=1e-12)


def test_residual_is_added_to_dx() -> None:
    lora = layer(dropout=0.3)
    x, residual = RNG(3).standard_normal((2, 6, 5))
    y, cache = lora.forward(x, training=True)
    dy = RNG(4).standard_normal(y.shape)
    expected, _ = lora.backward(dy, cache)
    assert expected is not None
    found, _ = lora.backward(dy, cache, residual=residual)
    assert np.allclose(found, expected + residual, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "found"),
    [({"rank": 0}, "rank is 0"), ({"rank": 5}, "1 to 4"), ({"dropout": 2}, "dropout is 2")],
)
def test_impossible_settings(settings: dict[str, Any], found: str) -> None:
    with pytest.raises(ArgumentError, match=found):
        layer(**settings)


def test_flops_count_both_ways() -> None:
    assert layer().flops((3, 5)) == 3 * (4 * (2 * 5 + 1) + 2 * 2 * (5 + 4))
