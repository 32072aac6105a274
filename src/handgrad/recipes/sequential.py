"""The model of a recipe that lists its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from handgrad import initializers, layers
from handgrad.errors import HandgradError, RecipeError
from handgrad.layers import Layer
from handgrad.recipes.constructors import OUTPUTS, constructed
from handgrad.recipes.recipe import Layers, Typed

Shape = tuple[int, ...]

#: Layers that take one example as an image (C, H, W), a sequence (C, T) or a row (D,).
_AXES: Final = {
    "conv2d": (3, "(C, H, W)"),
    "conv_transpose2d": (3, "(C, H, W)"),
    "max_pool2d": (3, "(C, H, W)"),
    "avg_pool2d": (3, "(C, H, W)"),
    **dict.fromkeys(("conv1d", "conv_transpose1d", "max_pool1d", "avg_pool1d"), (2, "(C, T)")),
    **dict.fromkeys(
        ("rnn", "leaky_rnn", "lstm", "gru", "last_step", "step_pooling"), (2, "(T, D)")
    ),
    "dense": (1, '(D,), which {type = "flatten"} gives'),
}


def build(
    described: Layers,
    input_shape: Shape,
    outputs: int,
    rng: np.random.Generator,
    vectors: Mapping[int, tuple[int, int]] = MappingProxyType({}),
) -> Layer:
    """The layers one after another, from an example of this shape to as many outputs: a score for
    each class, or one number.

    vectors: the columns of a table that are levels, with the rows and the length of the vectors
    that stand for them; a layer in front of the others makes these.
    Raises RecipeError naming the layer that cannot take what the one before it gives.
    """
    first = []
    if vectors:
        levels, features = zip(*vectors.values(), strict=True)
        first = [layers.ColumnEmbeddings(tuple(vectors), levels, features, rng=rng)]
        input_shape = first[0].output_shape(input_shape)
    model, shape = _sequential(described, input_shape, outputs, rng, first)
    if shape != (outputs,):
        raise RecipeError(
            f"{described.parts[-1].path} gives an example of shape {shape}; allowed: "
            f"({outputs},), one score for each class, or one number"
        )
    return model


def _sequential(
    described: Layers,
    shape: Shape,
    outputs: int,
    rng: np.random.Generator,
    first: Sequence[Layer] = (),
) -> tuple[Layer, Shape]:
    children = [*first]
    for i, part in enumerate(described.parts):
        if part.type == "residual":
            inner, _ = _sequential(described.inner[i], shape, outputs, rng)
            projection = None
            if i in described.projection:
                projection, _ = _sequential(described.projection[i], shape, outputs, rng)
            layer: Layer = layers.Residual(inner, projection)
        else:
            layer = _layer(part, shape, outputs, rng)
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


def _layer(part: Typed, shape: Shape, outputs: int, rng: np.random.Generator) -> Layer:
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
    if settings.get("features") == OUTPUTS:
        settings["features"] = outputs
    try:
        return constructed(part.type, settings, shape, rng)
    except HandgradError as error:
        raise RecipeError(f"{part.path}: {error}") from None
