"""Settings that constructors share: in signatures, errors and descriptions as if written out."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.io.description import known_layers
from handgrad.keywords import full_signature, selected, with_defaults
from handgrad.layers.settings import (
    AttentionSettings,
    BlockSettings,
    ConvolutionSettings,
    HeadSettings,
    RecurrentSettings,
    StackSettings,
)


class Shared(TypedDict, total=False):
    eps: Annotated[float, 1e-5]
    bias: Annotated[bool | str, True]


class Wider(Shared):
    size: int


def takes(x: int, *, own: int = 1, **settings: Unpack[Wider]) -> Wider:
    return with_defaults("takes", Wider, settings)


def test_a_signature_has_every_setting_with_its_kind_and_default() -> None:
    parameters = full_signature(takes).parameters
    assert list(parameters) == ["x", "own", "eps", "bias", "size"]
    assert parameters["eps"].default == 1e-5
    assert parameters["bias"].annotation == "bool | str"
    assert parameters["size"].default is inspect.Parameter.empty
    assert full_signature(lambda x, **rest: (x, rest)).parameters["rest"].kind is (
        inspect.Parameter.VAR_KEYWORD
    )


def test_what_is_not_given_has_its_default() -> None:
    assert takes(1, size=3) == {"eps": 1e-5, "bias": True, "size": 3}
    assert takes(1, size=3, bias="input") == {"eps": 1e-5, "bias": "input", "size": 3}
    assert selected(Shared, {"eps": 0.5, "size": 3}) == {"eps": 0.5}


def test_an_unknown_setting_is_named_with_those_that_there_are() -> None:
    allowed = "takes: epps is unknown; allowed: eps, bias, size; did you mean eps?"
    with pytest.raises(ArgumentError, match=f"^{allowed.replace('?', '[?]')}$"):
        takes(1, size=3, epps=0.1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (hg.MultiHeadAttention, AttentionSettings),
        (hg.TransformerBlock, BlockSettings),
        (hg.TransformerEncoder, StackSettings),
        (hg.TransformerDecoder, StackSettings),
        (hg.Conv2d, ConvolutionSettings),
        (hg.ConvTranspose1d, ConvolutionSettings),
        *((kind, RecurrentSettings) for kind in (hg.RNN, hg.GRU, hg.LSTM, hg.LeakyRNN)),
    ],
)
def test_a_layer_has_its_settings_in_its_signature(kind: type[Any], settings: Any) -> None:
    parameters = inspect.signature(kind).parameters
    defaults = {name: parameters[name].default for name in settings.__annotations__}
    assert with_defaults("any", settings, {}) == defaults


def test_layers_and_models_take_no_settings_without_a_name() -> None:
    """Only a container, which takes its layers by name, has keywords that it does not list."""
    open_ended = {
        name
        for name, kind in known_layers().items()
        if "__init__" in vars(kind)
        for each in inspect.signature(kind).parameters.values()
        if each.kind is each.VAR_KEYWORD
    }
    assert open_ended <= {"Sequential", "Activation"}


def test_a_setting_goes_from_the_model_to_its_attention() -> None:
    rng = np.random.default_rng(0)
    model = hg.GPT(7, context=4, width=8, heads=4, blocks=2, rng=rng, kv_heads=2, dropout=0.25)
    for block in model.blocks.blocks:
        attention = block.layers["attention"].inner
        assert isinstance(attention, hg.MultiHeadAttention)
        assert (attention.kv_heads, attention.dropout, attention.post_dropout) == (2, 0.25, 0.25)
    assert selected(HeadSettings, model.settings) == {"kv_heads": 2, "dropout": 0.25}


def test_a_wrong_name_or_kind_is_one_sentence() -> None:
    sizes: dict[str, Any] = {"context": 4, "width": 8, "heads": 2, "blocks": 1}
    with pytest.raises(ArgumentError, match=r"^GPT: dropuot is unknown; allowed: .*did you mean d"):
        hg.GPT(7, **sizes, dropuot=0.1)
    with pytest.raises(ArgumentError, match=r"^GPT: bias is 'no'; allowed: True or False$"):
        hg.GPT(7, **sizes, bias="no")
    with pytest.raises(ArgumentError, match=r"^LSTM: batch_first is unknown; allowed: input_size"):
        hg.LSTM(3, 4, batch_first=True)  # type: ignore[call-arg]


def test_a_derived_layer_that_passes_settings_on_is_told_of_wrong_ones() -> None:
    class Own(hg.MultiHeadAttention):
        def __init__(self, size: int, **settings: Any) -> None:
            super().__init__(size, 2, rng=np.random.default_rng(0), **settings)

    assert Own(4, scale=0.5).scale == 0.5
    with pytest.raises(ArgumentError, match=r"^MultiHeadAttention: scal is unknown; .* scale"):
        Own(4, scal=0.5)
