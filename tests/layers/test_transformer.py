"""Blocks and stacks: memory, masks, decoding step by step, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.layers import TransformerBlock, TransformerDecoder, TransformerEncoder
from tests.layers.gradients import check_destinations, check_gradients
from tests.tolerances import assert_close

F64 = np.float64
SMALL: dict[str, Any] = {"d_model": 4, "heads": 2, "hidden": 6, "dtype": F64}


def rng() -> np.random.Generator:
    return np.random.default_rng(81)


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def decoder(**settings: Any) -> TransformerDecoder:
    return TransformerDecoder(2, rng=rng(), **{**SMALL, "activation": "tanh", **settings})


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_of_x_and_memory(norm: str, training: bool) -> None:
    layer = decoder(norm=norm, dropout=0.2)
    masks = {"memory_lengths": np.array([3, 1]), "lengths": np.array([4, 5])}
    check_gradients(layer, some(2, 5, 4), some(2, 3, 4), training=training, **masks)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradients_go_where_they_are_sent(norm: str) -> None:
    check_destinations(decoder(norm=norm), some(2, 5, 4), some(2, 3, 4), training=False)


def test_the_gradient_of_the_memory_is_the_sum_over_the_blocks() -> None:
    layer = decoder(final_norm=False)
    first, second = layer.blocks
    x, memory = some(2, 5, 4), some(2, 3, 4)
    y, cache = layer.forward(x, memory)
    dy = some(*y.shape)
    (dx, dmemory), _ = layer.backward(dy, cache)
    middle, first_cache = first.forward(x, memory)
    _, second_cache = second.forward(middle, memory)
    (dmiddle, dmemory_of_second), _ = second.backward(dy, second_cache)
    (dx_alone, dmemory_of_first), _ = first.backward(dmiddle, first_cache)
    np.testing.assert_array_equal(dx, dx_alone)
    assert_close(dmemory, dmemory_of_first + dmemory_of_second, "float64")


def test_a_causal_stack_does_not_look_ahead() -> None:
    layer = TransformerEncoder(2, rng=rng(), causal=True, **SMALL)
    x = some(2, 5, 4)
    first, _ = layer.forward(x)
    x[:, 3:, 0] += 1.0
    again, _ = layer.forward(x)
    np.testing.assert_array_equal(again[:, :3], first[:, :3])
    assert np.all(again[:, 3:] != first[:, 3:])


def test_lengths_give_what_every_sequence_gives_alone() -> None:
    layer = TransformerEncoder(2, rng=rng(), norm="post", activation="gelu", **SMALL)
    x, lengths = some(3, 5, 4), [4, 1, 5]
    y, cache = layer.forward(x, lengths=np.array(lengths))
    dy = some(*y.shape)
    for n, length in enumerate(lengths):
        dy[n, length:] = 0.0
    dx, gradients = layer.backward(dy, cache)
    totals = {name: np.zeros_like(array) for name, array in gradients.items()}
    for n, length in enumerate(lengths):
        own = slice(n, n + 1)
        alone, alone_cache = layer.forward(x[own, :length])
        assert_close(y[own, :length], alone, "float64")
        dx_alone, parts = layer.backward(dy[own, :length], alone_cache)
        assert_close(dx[own, :length], dx_alone, "float64")
        np.testing.assert_array_equal(dx[n, length:], 0.0)
        totals = {name: total + parts[name] for name, total in totals.items()}
    for name, gradient in gradients.items():
        assert_close(gradient, totals[name], "float64", name)


@pytest.mark.parametrize("settings", [{}, {"rotary": True, "norm": "post"}, {"kv_heads": 1}])
def test_decoding_gives_what_forward_gives(settings: dict[str, Any]) -> None:
    layer = decoder(**settings)
    x, memory, lengths = some(2, 5, 4), some(2, 3, 4), np.array([3, 2])
    whole, _ = layer.forward(x, memory, memory_lengths=lengths)
    remembered = layer.remember(memory)
    y, past = layer.decode(x[:, :2], None, remembered, memory_lengths=lengths)
    found = [y]
    for t in range(2, 5):
        y, past = layer.decode(x[:, t : t + 1], past, remembered, memory_lengths=lengths)
        found.append(y)
    assert_close(np.concatenate(found, axis=1), whole, "float64")


def test_decoding_without_a_memory() -> None:
    layer = TransformerEncoder(2, rng=rng(), causal=True, **SMALL)
    x = some(2, 4, 4)
    first, past = layer.decode(x[:, :3])
    last, _ = layer.decode(x[:, 3:], past)
    assert_close(np.concatenate([first, last], axis=1), layer.forward(x)[0], "float64")


def test_a_norm_stands_behind_pre_norm_blocks_unless_told_otherwise() -> None:
    def names(**settings: Any) -> list[str]:
        return list(TransformerEncoder(1, rng=rng(), **SMALL, **settings).layers)

    assert names() == ["0", "norm"]
    assert names(norm="post") == ["0"]
    assert names(norm="post", final_norm=True) == ["0", "norm"]
    assert names(final_norm=False) == ["0"]


def test_parameters_have_readable_names() -> None:
    block = TransformerBlock(rng=rng(), cross=True, **SMALL)
    assert [name.rpartition(".")[0] for name in block.parameters if name.endswith("weight")] == [
        "attention.inner.q_proj",
        "attention.inner.k_proj",
        "attention.inner.v_proj",
        "attention.inner.o_proj",
        "cross_attention.inner.q_proj",
        "cross_attention.inner.k_proj",
        "cross_attention.inner.v_proj",
        "cross_attention.inner.o_proj",
        "feed_forward.inner.linear1",
        "feed_forward.inner.linear2",
    ]


def test_without_biases_no_part_has_one() -> None:
    layer = decoder(bias=False)
    assert {name.rpartition(".")[2] for name in layer.parameters} == {"weight", "gamma"}


def test_attention_maps_are_named_by_block() -> None:
    layer = decoder()
    _, cache = layer.forward(some(2, 5, 4), some(2, 3, 4))
    shapes = {name: weights.shape for name, weights in layer.attention_maps(cache)}
    assert shapes == {
        "0.attention": (2, 2, 5, 5),
        "0.cross_attention": (2, 2, 5, 3),
        "1.attention": (2, 2, 5, 5),
        "1.cross_attention": (2, 2, 5, 3),
    }


def test_what_does_not_fit_is_refused() -> None:
    plain, crossing = (TransformerBlock(rng=rng(), cross=cross, **SMALL) for cross in (False, True))
    x, memory = some(2, 5, 4), some(2, 3, 4)
    with pytest.raises(ArgumentError, match="memory is given; allowed: none, because cross is"):
        plain.forward(x, memory)
    with pytest.raises(ArgumentError, match="memory is missing; allowed: a memory, because cross"):
        crossing.forward(x)
    with pytest.raises(ArgumentError, match="memory is missing"):
        decoder().forward(x)
    with pytest.raises(ArgumentError, match="decode is called, but causal is False"):
        plain.decode(x)
    with pytest.raises(ArgumentError, match="TransformerEncoder: blocks is 0; allowed: 1 or more"):
        TransformerEncoder(0, rng=rng(), **SMALL)
