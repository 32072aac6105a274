"""PyTorch's attention and transformers beside ours: weights by name, outputs, every gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.interop.state_dict import from_torch
from handgrad.layers import (
    Layer,
    MultiHeadAttention,
    TransformerBlock,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")
nn = torch.nn

F64: dict[str, Any] = {"dtype": torch.float64}
OURS: dict[str, Any] = {"dtype": np.float64, "rng": np.random.default_rng(0)}
SIZES = (8, 2, 12)
LENGTHS = np.array([4, 2])


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def padding(lengths: np.ndarray, steps: int) -> Any:
    """PyTorch's key_padding_mask: True where nothing is."""
    return torch.tensor(np.arange(steps) >= lengths[:, None])


def compare(
    module: Any,
    layer: Layer,
    inputs: tuple[np.ndarray, ...],
    call: Callable[..., Any],
    **settings: Any,
) -> None:
    """Load the module's weights, drawn anew, and compare y and the gradients of everything."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    arrays = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    layer.update_parameters(from_torch(arrays))
    y, cache = layer.forward(*inputs, training=False, **settings)
    dy = some(*y.shape)
    dinputs, gradients = layer.backward(dy, cache)

    tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
    module.zero_grad()
    expected = call(*tensors)
    expected.backward(torch.tensor(dy))
    assert_close(y, expected.detach().numpy(), "torch float64", "y")
    several = dinputs if isinstance(dinputs, tuple) else (dinputs,)
    for found, tensor in zip(several, tensors, strict=True):
        assert_close(found, tensor.grad.numpy(), "torch float64", "input")
    theirs = from_torch({name: p.grad.numpy() for name, p in module.named_parameters()})
    assert set(theirs) == set(gradients)
    for name, gradient in gradients.items():
        assert_close(gradient, theirs[name], "torch float64", name)


@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_with_packed_projections(bias: bool) -> None:
    module = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, **F64)
    layer = MultiHeadAttention(8, 2, bias=bias, **OURS)
    causal = nn.Transformer.generate_square_subsequent_mask(5, **F64)
    compare(module, layer, (some(2, 5, 8),), lambda x: module(x, x, x)[0])
    compare(
        module,
        layer,
        (some(2, 5, 8),),
        lambda x: module(x, x, x, attn_mask=causal, need_weights=False)[0],
        causal=True,
    )


def test_cross_attention_with_projections_of_their_own() -> None:
    module = nn.MultiheadAttention(8, 2, kdim=6, vdim=3, batch_first=True, **F64)
    layer = MultiHeadAttention(8, 2, k_size=6, v_size=3, **OURS)
    mask = np.random.default_rng(1).random((2, 2, 5, 4)) < 0.7
    mask[..., 0] = True
    hidden = padding(LENGTHS, 4)
    compare(
        module,
        layer,
        (some(2, 5, 8), some(2, 4, 6), some(2, 4, 3)),
        lambda q, k, v: module(
            q, k, v, key_padding_mask=hidden, attn_mask=torch.tensor(~mask.reshape(4, 5, 4))
        )[0],
        mask=mask,
        lengths=LENGTHS,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm: str, activation: str) -> None:
    settings = {"dropout": 0.0, "activation": activation, "batch_first": True, **F64}
    module = nn.TransformerEncoderLayer(*SIZES, norm_first=norm == "pre", **settings)
    layer = TransformerBlock(*SIZES, norm=norm, activation=activation, **OURS)
    hidden = padding(LENGTHS, 4)
    compare(
        module,
        layer,
        (some(2, 4, 8),),
        lambda x: module(x, src_key_padding_mask=hidden),
        lengths=LENGTHS,
    )


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_layer(norm: str) -> None:
    module = nn.TransformerDecoderLayer(
        *SIZES, dropout=0.0, batch_first=True, norm_first=norm == "pre", **F64
    )
    layer = TransformerBlock(*SIZES, norm=norm, cross=True, causal=True, **OURS)
    causal = nn.Transformer.generate_square_subsequent_mask(5, **F64)
    hidden = padding(LENGTHS, 4)
    compare(
        module,
        layer,
        (some(2, 5, 8), some(2, 4, 8)),
        lambda x, memory: module(x, memory, tgt_mask=causal, memory_key_padding_mask=hidden),
        memory_lengths=LENGTHS,
    )


def test_stacks() -> None:
    encoder_layer = nn.TransformerEncoderLayer(*SIZES, dropout=0.0, batch_first=True, **F64)
    encoder = nn.TransformerEncoder(encoder_layer, 2, enable_nested_tensor=False)
    compare(
        encoder,
        TransformerEncoder(2, *SIZES, norm="post", **OURS),
        (some(2, 4, 8),),
        lambda x: encoder(x),
    )
    decoder_layer = nn.TransformerDecoderLayer(
        *SIZES, dropout=0.0, batch_first=True, norm_first=True, **F64
    )
    decoder = nn.TransformerDecoder(decoder_layer, 2, norm=nn.LayerNorm(8, **F64))
    causal = nn.Transformer.generate_square_subsequent_mask(5, **F64)
    compare(
        decoder,
        TransformerDecoder(2, *SIZES, **OURS),
        (some(2, 5, 8), some(2, 4, 8)),
        lambda x, memory: decoder(x, memory, tgt_mask=causal),
    )


def test_weights_without_a_counterpart_are_named() -> None:
    module = nn.MultiheadAttention(8, 2, add_bias_kv=True)
    arrays = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    with pytest.raises(ArgumentError, match="'bias_k' is given; allowed: attention made with"):
        from_torch(arrays)


def test_names_of_other_layers_stay() -> None:
    arrays = {name: np.zeros(1) for name in ("0.weight", "lstm.weight_ih_l0", "norms.weight")}
    assert from_torch(arrays) == arrays
