"""The model of a recipe that names one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad import initializers, lora
from handgrad.errors import HandgradError, RecipeError
from handgrad.io.hf.config import Config
from handgrad.io.hf.families import FAMILIES
from handgrad.layers import Layer
from handgrad.models import (
    GPT,
    ClsEncoder,
    Llama,
    Seq2Seq,
    SequenceClassifier,
    Transformer,
    TwoLayerNet,
)
from handgrad.models.decoder_only import DecoderOnly
from handgrad.paths import as_path
from handgrad.recipes.recipe import Recipe

Settings = dict[str, Any]


def build(recipe: Recipe, rng: np.random.Generator) -> Layer:
    """The model of a recipe that has been completed with the values found in its data.

    Raises RecipeError where a setting does not fit.
    """
    settings = dict(recipe.model.settings)
    if "initializer" in settings:
        settings["initializer"] = getattr(initializers, settings["initializer"])
    if settings.get("standardize") == "none":
        settings["standardize"] = None
    try:
        return _MAKERS[recipe.model.type](settings, recipe.data, rng)
    except HandgradError as error:
        raise RecipeError(f"model: {error}") from None


def outputs(data: Settings) -> int:
    """A score for each class; one number where there are no classes."""
    return len(data["classes"]) or 1


def _sequence_classifier(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    features, classes = _features(data), outputs(data)
    cell = settings.get("cell", "lstm")
    for name, owner in _OF_ONE_CELL.items():
        if name in settings and owner != cell:
            raise RecipeError(
                f'model.{name} is {settings[name]} with cell = "{cell}"; allowed: with "{owner}"'
            )
    return SequenceClassifier(features, settings.pop("hidden_size"), classes, rng=rng, **settings)


def _cls_encoder(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    d1, d2, classes = settings.pop("d1"), settings.pop("d2"), outputs(data)
    return ClsEncoder(_features(data), d1, d2, classes, rng=rng, **settings)


def _two_layer_net(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    features, hidden, classes = _features(data), settings.pop("hidden"), outputs(data)
    return TwoLayerNet(data["shape"][0], features, hidden, classes, rng=rng, **settings)


#: Settings that one kind of cell has.
_OF_ONE_CELL: Final = {
    "nonlinearity": "rnn",
    "alpha": "leaky_rnn",
    "proj_size": "lstm",
    "forget_bias": "lstm",
}


def _features(data: Settings) -> int:
    """The shape of one step of a sequence (T, D)."""
    shape = data["shape"]
    if len(shape) != 2:
        raise RecipeError(f"data.shape is {shape}; allowed: (T, D), as of a sequence")
    return int(shape[1])


def _seq2seq(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    return Seq2Seq(*data["vocabularies"], rng=rng, **settings)


def _transformer(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    return Transformer(*data["vocabularies"], rng=rng, **settings)


def _gpt(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    return GPT(data["vocabulary"], context=data["block"], rng=rng, **settings)


def _pretrained(settings: Settings, data: Settings, rng: np.random.Generator) -> Layer:
    folder, method = pretrained_folder(settings.pop("folder")), settings.pop("method", "lora")
    recompute = settings.pop("recompute", False)
    if method == "full" and settings:
        name, value = next(iter(settings.items()))
        raise RecipeError(f'model.{name} is {value} with method = "full"; allowed: with "lora"')
    model = decoder_of(folder).from_pretrained(folder, recompute=recompute)
    for name, found, most in (
        ("vocabulary", data["vocabulary"], model.vocabulary),
        ("block", data["block"], model.context),
    ):
        if found > most:
            raise RecipeError(
                f"data.{name} is {found}; allowed: at most {most}, as the model in {folder} has"
            )
    if method == "lora":
        if "lora_dropout" in settings:
            settings["dropout"] = settings.pop("lora_dropout")
        lora.adapt(model, seed=int(rng.integers(2**31)), **settings)
    return model


def pretrained_folder(folder: str) -> str:
    """The folder of the model that a recipe begins with. Raises RecipeError where none is named."""
    if not folder:
        raise RecipeError(
            "model.folder is empty; allowed: the folder of a GPT-2 or Llama in the layout of "
            "Hugging Face, as by --set model.folder=SmolLM-135M"
        )
    return folder


def decoder_of(folder: str) -> type[DecoderOnly]:
    """The class of the decoder-only model in a folder in the layout of Hugging Face.

    Raises DataError where its config.json is missing, damaged or of another model.
    """
    kinds: dict[str, type[DecoderOnly]] = {
        name: kind for kind in (GPT, Llama) for name in FAMILIES[kind.__name__].model_types
    }
    return kinds[Config(as_path("model.folder", folder)).choice("model_type", tuple(kinds))]


_MAKERS: Final[dict[str, Callable[[Settings, Settings, np.random.Generator], Layer]]] = {
    "sequence_classifier": _sequence_classifier,
    "cls_encoder": _cls_encoder,
    "two_layer_net": _two_layer_net,
    "seq2seq": _seq2seq,
    "transformer": _transformer,
    "gpt": _gpt,
    "pretrained": _pretrained,
}
