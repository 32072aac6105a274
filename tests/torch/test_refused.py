"""Modules and layers without a counterpart: one sentence with the place and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

import handgrad as hg
from handgrad.arrays import Array
from handgrad.errors import ArgumentError
from tests.rows import rows

torch = pytest.importorskip("torch")
nn = torch.nn


class Own(nn.Linear):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        return 2 * super().forward(x)


def tied() -> Any:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    return model


def changed(module: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def hooked() -> Any:
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda module, args, output: 2 * output)
    return nn.Sequential(module)


def encoder_layer(**settings: Any) -> Any:
    return nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, **settings)


def stack(**settings: Any) -> Any:
    return nn.TransformerEncoder(encoder_layer(), 2, enable_nested_tensor=False, **settings)


def uneven() -> Any:
    module = stack()
    module.layers[1] = encoder_layer(activation="gelu")
    return module


def named(name: str) -> Any:
    model = nn.Sequential()
    model.add_module(name, nn.ReLU())
    return model


MODULES: dict[str, tuple[Any, str]] = {
    "no module": (3, "a int is given; allowed: a torch.nn.Module"),
    "a class": (nn.Linear, "a type is given; allowed: a torch.nn.Module"),
    "unknown": (nn.Sequential(nn.Sequential(nn.ELU())), "ELU at '0.0' has no counterpart; allowed"),
    "own forward": (nn.Sequential(Own(3, 3)), "Own at '0' has a forward of its own; allowed: nn.L"),
    "tied": (tied(), "has one array as '0.weight' and '1.weight'; allowed: an array of its own"),
    "hooks": (hooked(), "Linear at '0' has hooks; allowed"),
    "parametrized": (
        nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)),
        "has parametrized weights; allowed: torch.nn.utils.parametrize.remove_parametrizations",
    ),
    "padding mode": (
        nn.Sequential(nn.Conv1d(1, 1, 3, padding=1, padding_mode="reflect")),
        "Conv1d at '0' has padding_mode='reflect'; allowed: padding_mode='zeros'",
    ),
    "uneven padding": (nn.Conv1d(1, 1, 2, padding="same"), r"adds \(1,\) values .*; allowed: even"),
    "affine": (nn.BatchNorm1d(3, affine=False), "has affine=False; allowed: affine=True"),
    "statistics": (nn.BatchNorm1d(3, track_running_stats=False), "allowed: track_running_stats=Tr"),
    "momentum": (nn.BatchNorm1d(3, momentum=None), "has momentum=None; allowed: a number"),
    "one weight": (changed(nn.GroupNorm(1, 3), bias=None), "has bias=False; allowed: bias=True"),
    "axes": (nn.LayerNorm((2, 3)), r"normalized_shape=\(2, 3\); allowed: one axis"),
    "max_norm": (nn.Embedding(3, 2, max_norm=1.0), "max_norm=1.0; allowed: max_norm=None"),
    "ceil": (nn.MaxPool1d(2, ceil_mode=True), "ceil_mode=True; allowed: ceil_mode=False"),
    "divisor": (nn.AvgPool2d(2, divisor_override=3), "divisor_override=3; allowed"),
    "pool to two": (nn.AdaptiveAvgPool1d(2), "output_size=2; allowed: output_size=1"),
    "flatten": (nn.Flatten(0), "has start_dim=0; allowed: start_dim=1"),
    "no axis": (nn.Softmax(), "has dim=None; allowed: a number"),
    "time first": (nn.LSTM(3, 2), "has batch_first=False; allowed: batch_first=True"),
    "several outputs": (
        nn.Sequential(nn.GRU(3, 2, batch_first=True)),
        "GRU at '0' stands in a container .*; allowed: handgrad.torch.OutputOnly around it",
    ),
    "several weights": (
        nn.Sequential(nn.MultiheadAttention(4, 2, batch_first=True)),
        "allowed: handgrad.torch.SelfAttention around it",
    ),
    "bias_k": (
        nn.MultiheadAttention(4, 2, add_bias_kv=True, batch_first=True),
        "has bias_k=.*; allowed: bias_k=None",
    ),
    "activation": (encoder_layer(activation=torch.sin), "the activation sin; allowed: relu or"),
    "part of a layer": (
        changed(encoder_layer(), linear1=Own(8, 12)),
        "Own is a part of a layer; allowed: nn.Linear",
    ),
    "rates": (
        changed(encoder_layer(), dropout=nn.Dropout(0.2)),
        "several rates of dropout: 0.1, 0.2; allowed: one for all its parts",
    ),
    "uneven stack": (uneven(), "has layers of different settings; allowed: the same for all"),
    "norm": (
        stack(norm=nn.RMSNorm(8)),
        "RMSNorm at 'norm' stands behind the layers; allowed: None or nn.LayerNorm with",
    ),
    "meta": (nn.Linear(3, 2, device="meta"), "has 'weight' on the device meta; allowed: floats"),
    "complex": (nn.Linear(3, 2, dtype=torch.complex64), "'weight' complex64; allowed: floats"),
    "lazy": (nn.LazyLinear(3), "LazyLinear .*; allowed"),
    "a taken name": (named("seed"), "ReLU at 'seed' is called 'seed'; allowed: another name"),
}


@pytest.mark.filterwarnings("ignore:.*nested_tensor")
@rows("name", MODULES)
def test_a_module_without_a_counterpart_is_named(name: str) -> None:
    module, sentence = MODULES[name]
    with pytest.raises(ArgumentError, match=rf"^from_torch: .*{sentence}"):
        hg.from_torch(module)


class OwnDense(hg.Dense):
    def forward(self, x: Array, **settings: Any) -> tuple[Array, Any]:
        y, cache = super().forward(x, **settings)
        return 2 * y, cache


LAYERS: dict[str, tuple[hg.layers.Layer, str]] = {
    "unknown": (
        hg.Sequential(hg.LearnedPositions(5, 3), seed=0),
        "LearnedPositions at '0' has no counterpart; allowed: ",
    ),
    "leaky": (hg.LeakyRNN(3, 2, alpha=0.5).build(), "LeakyRNN has no counterpart"),
    "own forward": (OwnDense(3, 2).build(), "has a forward or backward of its own; allowed: Dense"),
    "one bias": (hg.GRU(3, 2, bias="input").build(), "has bias='input'; allowed: True or False"),
    "learned state": (hg.LSTM(3, 2, learn_h0=True).build(), "has learned_states=.*; allowed"),
    "rotary": (hg.MultiHeadAttention(4, 2, rotary=True).build(), "rotary=True; allowed: rotary=F"),
    "head sizes": (hg.MultiHeadAttention(4, 2, v_proj_size=3).build(), r"sizes \(2, 3\); allowed"),
    "grouped": (
        hg.TransformerBlock(8, 4, 3, kv_heads=2).build(),
        "kv_heads=2; allowed: kv_heads=4",
    ),
    "gated": (
        hg.TransformerEncoder(1, 4, 2, 3, activation="swiglu").build(),
        "TransformerBlock at '0' has activation='swiglu'; allowed: one that is no gate",
    ),
    "a name of PyTorch's": (
        hg.Sequential(forward=hg.Flatten()),
        "Flatten at 'forward' is called 'forward'; allowed: another name",
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_without_a_counterpart_is_named(name: str) -> None:
    layer, sentence = LAYERS[name]
    with pytest.raises(ArgumentError, match=rf"^to_torch: .*{sentence}"):
        layer.to_torch()


def test_a_layer_without_weights_says_what_is_missing() -> None:
    with pytest.raises(ArgumentError, match="Dense has no weights yet, because rng was left open"):
        hg.Dense(3, 2).to_torch()


def test_no_sentence_is_endless() -> None:
    model: Any = nn.ELU()
    for _ in range(60):
        model = nn.Sequential(model)
    with pytest.raises(ArgumentError) as error:
        hg.from_torch(model)
    assert len(str(error.value)) < 800
