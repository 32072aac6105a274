"""PyTorch's attention and transformers beside ours: weights by name, outputs, every gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.tolerances import assert_close
from tests.torch.comparing import draw_weights, own_gradients

torch = pytest.importorskip("torch")
nn = torch.nn

F64: dict[str, Any] = {"dtype": torch.float64}
SIZES = (8, 2, 12)
LENGTHS = np.array([4, 2])


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def padding(lengths: np.ndarray, steps: int) -> Any:
    """PyTorch's key_padding_mask: True where nothing is."""
    return torch.tensor(np.arange(steps) >= lengths[:, None])


def later(steps: int) -> Any:
    return nn.Transformer.generate_square_subsequent_mask(steps, **F64)


def compare(
    module: Any, inputs: tuple[np.ndarray, ...], call: Callable[..., Any], **settings: Any
) -> None:
    """Compare y and the gradients of everything, of the layer and of the module made of it."""
    layer = hg.from_torch(draw_weights(module))
    y, cache = layer.forward(*inputs, training=False, **settings)
    dy = some(*y.shape)
    dinputs, gradients = layer.backward(dy, cache)
    several = dinputs if isinstance(dinputs, tuple) else (dinputs,)
    for each in (module, layer.to_torch()):
        each.zero_grad()
        tensors = [torch.tensor(array, requires_grad=True) for array in inputs]
        expected = call(each, *tensors)
        expected.backward(torch.tensor(dy))
        assert_close(y, expected.detach().numpy(), "torch float64", "y")
        for found, tensor in zip(several, tensors, strict=True):
            assert_close(found, tensor.grad.numpy(), "torch float64", "input")
        theirs = own_gradients(each)
        assert set(theirs) == set(gradients)
        for name, gradient in gradients.items():
            assert_close(gradient, theirs[name], "torch float64", name)


@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_with_packed_projections(bias: bool) -> None:
    module = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, **F64)
    compare(module, (some(2, 5, 8),), lambda m, x: m(x, x, x)[0])
    compare(
        module,
        (some(2, 5, 8),),
        lambda m, x: m(x, x, x, attn_mask=later(5), need_weights=False)[0],
        causal=True,
    )


def test_cross_attention_with_projections_of_their_own() -> None:
    module = nn.MultiheadAttention(8, 2, kdim=6, vdim=3, batch_first=True, **F64)
    mask = np.random.default_rng(1).random((2, 2, 5, 4)) < 0.7
    mask[..., 0] = True
    hidden = padding(LENGTHS, 4)
    compare(
        module,
        (some(2, 5, 8), some(2, 4, 6), some(2, 4, 3)),
        lambda m, q, k, v: m(
            q, k, v, key_padding_mask=hidden, attn_mask=torch.tensor(~mask.reshape(4, 5, 4))
        )[0],
        mask=mask,
        lengths=LENGTHS,
    )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize(
    "activation", ["relu", "gelu", nn.SiLU(), nn.Tanh(), nn.GELU("tanh")], ids=str
)
def test_encoder_layer(norm_first: bool, activation: Any) -> None:
    settings = {"dropout": 0.0, "activation": activation, "batch_first": True, **F64}
    module = nn.TransformerEncoderLayer(*SIZES, norm_first=norm_first, **settings)
    hidden = padding(LENGTHS, 4)
    compare(
        module, (some(2, 4, 8),), lambda m, x: m(x, src_key_padding_mask=hidden), lengths=LENGTHS
    )


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_layer(norm_first: bool) -> None:
    module = nn.TransformerDecoderLayer(
        *SIZES, dropout=0.0, batch_first=True, norm_first=norm_first, **F64
    )
    hidden = padding(LENGTHS, 4)
    compare(
        module,
        (some(2, 5, 8), some(2, 4, 8)),
        lambda m, x, memory: m(x, memory, tgt_mask=later(5), memory_key_padding_mask=hidden),
        mask=np.tri(5, dtype=bool),
        memory_lengths=LENGTHS,
    )


def test_stacks() -> None:
    encoder_layer = nn.TransformerEncoderLayer(*SIZES, dropout=0.0, batch_first=True, **F64)
    encoder = nn.TransformerEncoder(encoder_layer, 2, enable_nested_tensor=False)
    compare(encoder, (some(2, 4, 8),), lambda m, x: m(x))
    decoder_layer = nn.TransformerDecoderLayer(
        *SIZES, dropout=0.0, batch_first=True, norm_first=True, **F64
    )
    decoder = nn.TransformerDecoder(decoder_layer, 2, norm=nn.LayerNorm(8, **F64))
    compare(
        decoder,
        (some(2, 5, 8), some(2, 4, 8)),
        lambda m, x, memory: m(x, memory, tgt_mask=later(5)),
        mask=np.tri(5, dtype=bool),
    )
