"""The model of a recipe that lists its layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from handgrad import initializers, layers
from handgrad.errors import HandgradError, RecipeError
from handgrad.layers import Layer
from handgrad.recipes.recipe import Layers, Typed

Shape = tuple[int, ...]

#: Layers that see one example as an image (C, H, W), a sequence (C, T) or a row (D,).
_AXES: Final = {
    "conv2d": (3, "(C, H, W)"),
    "conv_transpose2d": (3, "(C, H, W)"),
    "max_pool2d": (3, "(C, H, W)"),
    "avg_pool2d": (3, "(C, H, W)"),
    "conv1d": (2, "(C, T)"),
    **dict.fromkeys(("rnn", "leaky_rnn", "lstm", "gru", "last_step"), (2, "(T, D)")),
    "dense": (1, '(D,), which {type = "flatten"} gives'),
}


def build(described: Layers, input_shape: Shape, classes: int, rng: np.random.Generator) -> Layer:
    """The layers one after another, from an example of this shape to a score for each class.

    Raises RecipeError naming the layer that cannot take what the one before it gives.
    """
    model, shape = sequential(described, input_shape, rng)
    if shape != (classes,):
        raise RecipeError(
            f"{described.parts[-1].path} gives an example of shape {shape}; allowed: "
            f"({classes},), one score for each class"
        )
    return model


def sequential(described: Layers, shape: Shape, rng: np.random.Generator) -> tuple[Layer, Shape]:
    children = []
    for i, part in enumerate(described.parts):
        if part.type == "residual":
            inner, _ = sequential(described.inner[i], shape, rng)
            projection = None
            if i in described.projection:
                projection, _ = sequential(described.projection[i], shape, rng)
            layer: Layer = layers.Residual(inner, projection)
        else:
            layer = _layer(part, shape, rng)
        children.append(layer)
        shape = _output_shape(part, layer, shape)
    return layers.Sequential(*children), shape


def _output_shape(part: Typed, layer: Layer, shape: Shape) -> Shape:
    try:
        given = layer.output_shape(shape)
    except HandgradError as error:
        raise RecipeError(f"{part.path}.{_culprit(part)}: {error}") from None
    if min(given) < 1:
        raise RecipeError(
            f"{part.path}.{_culprit(part)}: {part.type} makes shape {given} of an example of shape "
            f"{shape}; allowed: no smaller than the window"
        )
    return given


def _culprit(part: Typed) -> str:
    """The key to look at first when a shape does not fit."""
    return "kernel_size" if "kernel_size" in part.settings else "type"


def _layer(part: Typed, shape: Shape, rng: np.random.Generator) -> Layer:
    axes, wanted = _AXES.get(part.type, (len(shape), ""))
    if len(shape) != axes:
        raise RecipeError(
            f"{part.path}.type: {part.type} gets an example of shape {shape}; allowed: {wanted}"
        )
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in part.settings.items()
    }
    if "initializer" in settings:
        settings["initializer"] = getattr(initializers, settings["initializer"])
    try:
        return _MAKERS[part.type](settings, shape, rng)
    except HandgradError as error:
        raise RecipeError(f"{part.path}: {error}") from None


def _dense(settings: dict[str, Any], shape: Shape, rng: np.random.Generator) -> Layer:
    return layers.Dense(shape[-1], settings.pop("features"), rng=rng, **settings)


def _convolution(
    kind: Callable[..., Layer],
) -> Callable[[dict[str, Any], Shape, np.random.Generator], Layer]:
    def make(settings: dict[str, Any], shape: Shape, rng: np.random.Generator) -> Layer:
        channels, kernel_size = settings.pop("channels"), settings.pop("kernel_size")
        return kind(shape[0], channels, kernel_size, rng=rng, **settings)

    return make


def _recurrent(
    kind: Callable[..., Layer],
) -> Callable[[dict[str, Any], Shape, np.random.Generator], Layer]:
    def make(settings: dict[str, Any], shape: Shape, rng: np.random.Generator) -> Layer:
        return kind(shape[1], settings.pop("hidden_size"), rng=rng.spawn(1)[0], **settings)

    return make


def _standardize(settings: dict[str, Any], shape: Shape, rng: np.random.Generator) -> Layer:
    """Over the whole example, whatever its axes."""
    return layers.Standardize(tuple(range(-len(shape), 0)), **settings)


_MAKERS: Final[dict[str, Callable[[dict[str, Any], Shape, np.random.Generator], Layer]]] = {
    "dense": _dense,
    "conv1d": _convolution(layers.Conv1d),
    "conv2d": _convolution(layers.Conv2d),
    "conv_transpose2d": _convolution(layers.ConvTranspose2d),
    "max_pool2d": lambda settings, shape, rng: layers.MaxPool2d(**settings),
    "avg_pool2d": lambda settings, shape, rng: layers.AvgPool2d(**settings),
    "rnn": _recurrent(layers.RNN),
    "leaky_rnn": _recurrent(layers.LeakyRNN),
    "lstm": _recurrent(layers.LSTM),
    "gru": _recurrent(layers.GRU),
    "last_step": lambda settings, shape, rng: layers.LastStep(**settings),
    "flatten": lambda settings, shape, rng: layers.Flatten(),
    "batch_norm": lambda settings, shape, rng: layers.BatchNorm(shape[0], **settings),
    "layer_norm": lambda settings, shape, rng: layers.LayerNorm(shape[-1], **settings),
    "rms_norm": lambda settings, shape, rng: layers.RMSNorm(shape[-1], **settings),
    "standardize": _standardize,
    "dropout": lambda settings, shape, rng: layers.Dropout(rng=rng.spawn(1)[0], **settings),
    "activation": lambda settings, shape, rng: layers.Activation(**settings),
}
