"""From a recipe to the objects it describes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final

import numpy as np

from handgrad import data as data_sets
from handgrad import initializers, layers, losses, optimizers, training
from handgrad.data import Dataset, Pixels
from handgrad.errors import HandgradError, RecipeError
from handgrad.layers import Layer
from handgrad.optimizers import Optimizer, Schedule
from handgrad.recipes.recipe import Layers, Recipe, Typed, to_toml

Shape = tuple[int, ...]

_OPTIMIZERS: Final[dict[str, type[Optimizer]]] = {
    "sgd": optimizers.SGD,
    "momentum": optimizers.Momentum,
    "nesterov": optimizers.Nesterov,
    "rmsprop": optimizers.RMSProp,
    "adam": optimizers.Adam,
    "adamw": optimizers.AdamW,
}
_AUGMENTATIONS: Final[dict[str, Callable[..., training.Augmentation]]] = {
    "affine": training.Affine,
    "shift": training.Shift,
    "flip": training.Flip,
}
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


@dataclass(frozen=True)
class Built:
    """Everything `handgrad.training.train` takes."""

    config: training.RunConfig
    model: Layer
    loss: Any
    optimizer: Optimizer
    schedule: Schedule
    data: Dataset


def build(recipe: Recipe, data: Dataset) -> Built:
    """The objects of a recipe for its data, with a config text that needs neither to be rebuilt."""
    values = recipe.training
    optimizer = build_optimizer(recipe)
    steps = math.ceil(
        len(data.x_train) / (values.get("batch_size", 64) * values.get("accumulate", 1))
    )
    config = training.RunConfig(
        text=config_text(recipe, data),
        augment=build_augmentation(recipe),
        **values,
    )
    return Built(
        config=config,
        model=build_model(recipe, data.input_shape, len(data.classes)),
        loss=build_loss(recipe),
        optimizer=optimizer,
        schedule=build_schedule(recipe, optimizer.lr, steps),
        data=data,
    )


# -- data ------------------------------------------------------------------------------------------


def load_data(recipe: Recipe, path: str | PathLike[str] | None = None) -> Dataset:
    """The recipe's data set, from `path`, or where it says, or from HANDGRAD_DATA."""
    values = recipe.data
    given = path if path is not None else values.get("path")
    data = data_sets.load(values["name"], given, recipe.seed, maximum=values.get("maximum"))
    shape = values.get("shape")
    if shape is not None and tuple(shape) != data.input_shape:
        if math.prod(shape) != math.prod(data.input_shape):
            raise RecipeError(
                f"{recipe.name}: data.shape is {shape}, {math.prod(shape)} values; allowed: "
                f"{math.prod(data.input_shape)} values, as an example of {data.name} has"
            )
        data = replace(
            data, x_train=_reshaped(data.x_train, shape), x_test=_reshaped(data.x_test, shape)
        )
    classes = values.get("classes")
    if classes is not None and len(classes) != len(data.classes):
        raise RecipeError(
            f"{recipe.name}: data.classes has {len(classes)} names; allowed: {len(data.classes)}, "
            f"as many as {data.name} has classes"
        )
    if classes is not None:
        data = replace(data, classes=tuple(classes))
    if values.get("validation"):
        data = data_sets.with_validation(data, values["validation"], recipe.seed)
    return data


def _reshaped(x: Any, shape: list[int]) -> Any:
    if isinstance(x, Pixels):
        return Pixels(x.values.reshape(len(x), *shape), x.maximum)
    return x.reshape(len(x), *shape)


def config_text(recipe: Recipe, data: Dataset) -> str:
    """The recipe with what its data told, so that a run is rebuilt without reading the data."""
    found: dict[str, Any] = {"shape": list(data.input_shape), "classes": list(data.classes)}
    if isinstance(data.x_train, Pixels):
        found["maximum"] = data.x_train.maximum
    complete = recipe.changed("data", **found).changed("training", seed=recipe.seed)
    return to_toml(complete.tables)


# -- the model -------------------------------------------------------------------------------------


def build_model(recipe: Recipe, input_shape: Shape, classes: int) -> Layer:
    """The model, its first weights drawn from the recipe's seed.

    Raises RecipeError naming the layer that cannot take what the one before it gives.
    """
    # A stream of its own: shuffling and augmentation use the seed itself.
    rng = np.random.default_rng((recipe.seed, 1))
    try:
        model, shape = _sequential(recipe.layers, input_shape, rng)
        if shape != (classes,):
            raise RecipeError(
                f"{recipe.layers.parts[-1].path} gives an example of shape {shape}; allowed: "
                f"({classes},), one score for each class"
            )
    except RecipeError as error:
        raise RecipeError(f"{recipe.name}: {error}") from None
    return model


def _sequential(described: Layers, shape: Shape, rng: np.random.Generator) -> tuple[Layer, Shape]:
    children = []
    for i, part in enumerate(described.parts):
        if part.type == "residual":
            inner, _ = _sequential(described.inner[i], shape, rng)
            projection = None
            if i in described.projection:
                projection, _ = _sequential(described.projection[i], shape, rng)
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


# -- the rest --------------------------------------------------------------------------------------


def build_loss(recipe: Recipe) -> Any:
    return losses.CrossEntropy(**recipe.loss.settings)


def build_optimizer(recipe: Recipe) -> Optimizer:
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in recipe.optimizer.settings.items()
    }
    return _OPTIMIZERS[recipe.optimizer.type](**settings)


def build_schedule(recipe: Recipe, lr: float, steps_per_epoch: int) -> Schedule:
    """The learning rate by step, from the optimizer's `lr`; a recipe counts its time in epochs."""
    settings = dict(recipe.schedule.settings)
    total = steps_per_epoch * recipe.training["epochs"]

    def steps(epochs: float) -> int:
        return max(1, round(epochs * steps_per_epoch))

    match recipe.schedule.type:
        case "step":
            return optimizers.Step(lr, steps(settings.pop("epochs")), **settings)
        case "cosine":
            first = steps(settings.pop("warmup")) if "warmup" in settings else 0
            cosine = optimizers.Cosine(lr, max(1, total - first), **settings)
            return optimizers.LinearWarmup(cosine, first) if first else cosine
        case "linear_warmup":
            first = steps(settings.pop("epochs"))
            return optimizers.LinearWarmup(optimizers.Constant(lr), first, **settings)
        case "one_cycle":
            return optimizers.OneCycle(lr, total, **settings)
        case _:
            return optimizers.Constant(lr)


def build_augmentation(recipe: Recipe) -> training.Augmentation | None:
    steps = [_AUGMENTATIONS[step.type](**step.settings) for step in recipe.augmentation]
    return training.Compose(steps) if steps else None
