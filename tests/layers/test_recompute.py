"""Recompute: less memory, the same bits, and states of forward that stay as they are."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.layers import Layer, Recompute
from tests.layers.gradients import check_gradients

RNG = np.random.default_rng
TOKENS = RNG(1).integers(0, 11, (3, 6))


def gpt(**settings: Any) -> Layer:
    sizes: dict[str, Any] = {"context": 8, "width": 8, "heads": 2, "blocks": 3, "dropout": 0.2}
    return hg.GPT(11, **sizes, rng=RNG(0), **settings)


def llama(**settings: Any) -> Layer:
    sizes: dict[str, Any] = {"context": 8, "width": 8, "heads": 2, "blocks": 2, "hidden": 12}
    return hg.Llama(11, **sizes, kv_heads=1, rng=RNG(0), **settings)


def adapted(**settings: Any) -> Layer:
    return hg.lora.adapt(gpt(**settings), rank=2, dropout=0.3)


@pytest.mark.parametrize("make", [gpt, llama, adapted])
def test_gradients_of_models_are_the_same_bits(make: Callable[..., Layer]) -> None:
    dlogits = RNG(2).standard_normal((3, 6, 11)).astype(np.float32)
    found = []
    for recompute in (False, True):
        model: Any = make(recompute=recompute)
        for _ in range(2):  # generators go on as they would
            logits, cache = model.forward(TOKENS, training=True)
        _, gradients = model.backward(dlogits, cache)
        _, again = model.backward(dlogits, cache)
        assert all(np.array_equal(gradients[name], again[name]) for name in gradients)
        states = [each.bit_generator.state for each in model.generators.values()]
        found.append((logits, gradients, states, model.attention_maps(cache)))
    (logits, gradients, states, maps), others = found
    assert np.array_equal(logits, others[0])
    assert gradients.keys() == others[1].keys()
    assert all(np.array_equal(gradients[name], others[1][name]) for name in gradients)
    assert states == others[2]
    assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(maps, others[3], strict=True))


def test_a_decoder_with_a_memory() -> None:
    x, memory, dy = RNG(3).standard_normal((3, 2, 5, 8)).astype(np.float32)
    found = []
    for recompute in (False, True):
        decoder = hg.TransformerDecoder(2, 8, 2, 12, dropout=0.2, recompute=recompute, rng=RNG(0))
        _, cache = decoder.forward(x, memory, training=True)
        (dx, dmemory), gradients = decoder.backward(dy, cache)
        found.append([dx, dmemory, *gradients.values()])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def convnet(dtype: Any = np.float64) -> hg.Sequential:
    return hg.Sequential(
        hg.Conv2d(2, 3, 3, rng=RNG(0), dtype=dtype),
        hg.BatchNorm(3, dtype=dtype),
        hg.Dropout(0.3, rng=RNG(1)),
        hg.Activation("gelu"),
    )


def test_running_statistics_move_once() -> None:
    plain, wrapped = convnet(), Recompute(convnet())
    x = RNG(2).standard_normal((4, 2, 6, 6))
    y, cache = plain.forward(x, training=True)
    again, kept = wrapped.forward(x, training=True)
    dy = RNG(3).standard_normal(y.shape)
    dx, gradients = plain.backward(dy, cache)
    dx_again, others = wrapped.backward(dy, kept)
    assert np.array_equal(y, again)
    assert np.array_equal(dx, dx_again)
    for name, gradient in gradients.items():
        assert np.array_equal(gradient, others[f"inner.{name}"])
    for name, array in plain.buffers.items():
        assert np.array_equal(array, wrapped.buffers[f"inner.{name}"])


def test_gradients_match_differences() -> None:
    layer = Recompute(convnet())
    check_gradients(layer, RNG(2).standard_normal((4, 2, 6, 6)), training=True)


def test_other_inputs_and_settings_are_kept() -> None:
    attention = hg.MultiHeadAttention(8, 2, dropout=0.3, rng=RNG(0))
    x, memory, dy = RNG(3).standard_normal((3, 2, 5, 8)).astype(np.float32)
    twin = Recompute(copy.deepcopy(attention))
    _, cache = attention.forward(x, memory, causal=True, training=True)
    _, kept = twin.forward(x, memory, causal=True, training=True)
    expected, _ = attention.backward(dy, cache)
    found, _ = twin.backward(dy, kept)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_it_keeps_less_memory() -> None:
    x = RNG(1).standard_normal((64, 32)).astype(np.float32)
    held = []
    for wrap in (lambda layer: layer, Recompute):
        inner = [hg.Dense(32, 32, activation="gelu", rng=RNG(i)) for i in range(8)]
        layer = wrap(hg.Sequential(*inner))
        with hg.engine("reference"):
            tracemalloc.start()
            try:
                kept = layer.forward(x, training=True)
                held.append(tracemalloc.get_traced_memory()[0])
            finally:
                tracemalloc.stop()
            del kept
    assert held[1] < held[0] / 4


def test_a_saved_model_recomputes_too(tmp_path: Any) -> None:
    model = gpt(recompute=True)
    model.save(tmp_path / "model.safetensors")
    assert hg.load(tmp_path / "model.safetensors").model.settings["recompute"] is True
