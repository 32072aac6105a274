"""ConvNetClassifier: images in, classes out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_X_y, column_or_1d, validate_data

from handgrad.arrays import Array
from handgrad.data.given import warn_of_channels_last
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import (
    Activation,
    BatchNorm,
    Conv2d,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool2d,
    Sequential,
)
from handgrad.ops.activation import ACTIVATIONS
from handgrad.sklearn.arguments import is_size
from handgrad.sklearn.estimator import Classifier
from handgrad.sklearn.network import generator


def convolutional(
    rng: np.random.Generator,
    input_shape: tuple[int, int, int],
    channels: tuple[int, ...],
    hidden: int,
    classes: int,
    activation: str,
    batch_norm: bool,
    dropout: float,
    dtype: Any,
) -> Sequential:
    """Stages of a 3 × 3 convolution and a pooling that halves what has two pixels or more."""
    inputs, height, width = input_shape
    layers: list[Layer] = []
    for outputs in channels:
        f = "identity" if batch_norm else activation
        layers.append(Conv2d(inputs, outputs, 3, padding=1, rng=rng, activation=f, dtype=dtype))
        if batch_norm:
            layers += [BatchNorm(outputs, dtype=dtype), Activation(activation)]
        window = min(height, 2), min(width, 2)
        if window != (1, 1):
            layers.append(MaxPool2d(window))
        inputs, height, width = outputs, height // window[0], width // window[1]
    features = math.prod((inputs, height, width))
    layers += [Flatten(), Dense(features, hidden, rng=rng, activation=activation, dtype=dtype)]
    if dropout > 0:
        layers.append(Dropout(dropout, rng=rng))
    return Sequential(*layers, Dense(hidden, classes, rng=rng, dtype=dtype))


def _check_one_size(X: Any) -> None:
    """Raise ShapeError for a list of images that differ in shape."""
    shapes = [np.shape(each) for each in X] if isinstance(X, list | tuple) else []
    other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        raise ShapeError(
            f"ConvNetClassifier: X has images of shape {shapes[0]} in row 0 and {shapes[other]} in "
            f"row {other}; allowed: one shape, as Pillow's image.resize((W, H)) gives"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ConvNetClassifier(Classifier):
    """A convolutional network for images, with scikit-learn's arguments for training.

    X is (N, H, W), (N, C, H, W), or a matrix (N, pixels) whose rows are images of `image_shape`,
    (H, W) or (C, H, W); without it every row is an image of one row of pixels. A matrix is what
    scalers give on, so that the estimator can stand in a pipeline.

    Each of `channels` is a 3 × 3 convolution with so many channels, `activation` and max pooling by
    2, with `batch_norm` a BatchNorm between; `hidden` units follow, `dropout` acts on them in
    training.

    Raises ArgumentError or ShapeError, both ValueErrors, for what is not allowed.
    """

    channels: Sequence[int] = (16, 32)
    hidden: int = 64
    activation: str = "relu"
    batch_norm: bool = False
    dropout: float = 0.0
    image_shape: Sequence[int] | None = None

    prediction_batch: ClassVar[int] = 256
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **Classifier.choices,
        "activation": ACTIVATIONS,
        "batch_norm": (False, True),
    }

    def _build(self, random_state: Any = None, **architecture: Any) -> Layer:
        return convolutional(generator(random_state), **architecture)

    def _check_settings(self) -> None:
        super()._check_settings()
        channels = self.channels
        fits = isinstance(channels, Iterable) and all(is_size(each) for each in channels)
        if not fits or not is_size(self.hidden):
            raise ArgumentError(
                f"ConvNetClassifier: channels is {shown(channels)} and hidden "
                f"{shown(self.hidden)}; allowed: a sequence of integers from 1, and one"
            )
        self._check_fraction("dropout", self.dropout)
        shape = self.image_shape
        if shape is not None and not (
            isinstance(shape, Iterable) and len(tuple(shape)) in (2, 3) and all(map(is_size, shape))
        ):
            raise ArgumentError(
                f"ConvNetClassifier: image_shape is {shown(shape)}; allowed: (H, W) or (C, H, W)"
            )

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        _check_one_size(X)
        settings = {"dtype": (np.float64, np.float32), "allow_nd": True}
        ndim = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        if ndim > 2:
            X = check_array(X, **settings) if y is None else X
            if y is not None:
                X, y = check_X_y(X, y, **settings)
            if reset:
                self.n_features_in_ = math.prod(X.shape[1:])
        elif y is None:
            X = validate_data(self, X, **settings, reset=reset)
        else:
            X, y = validate_data(self, X, y, **settings, reset=reset)
        x = self._images(X)
        if not reset and x.shape[1:] != self.image_shape_:
            raise ShapeError(
                f"ConvNetClassifier: X has images of shape {x.shape[1:]}; allowed: "
                f"{self.image_shape_}, as in fit"
            )
        if reset:
            warn_of_channels_last(x.shape[1:], "X")
            self.image_shape_: tuple[int, ...] = x.shape[1:]
        return x, None if y is None else column_or_1d(y, warn=True)

    def _images(self, x: Array) -> Array:
        """(N, C, H, W), whatever the images are given as."""
        if x.ndim > 4:
            raise ShapeError(
                f"ConvNetClassifier: X has shape {x.shape}; allowed: (N, pixels), (N, H, W) or "
                "(N, C, H, W)"
            )
        if x.ndim == 4:
            return x
        if x.ndim == 3:
            return x[:, None]
        shape = (1, x.shape[1]) if self.image_shape is None else tuple(self.image_shape)
        if math.prod(shape) != x.shape[1]:
            raise ShapeError(
                f"ConvNetClassifier: a row of X has {x.shape[1]} pixels and image_shape is "
                f"{shape}; allowed: {math.prod(shape)} pixels"
            )
        return x.reshape(len(x), *(1,) * (3 - len(shape)), *shape)

    def _design(self, x: Array, targets: Array) -> dict[str, Any]:
        return {
            "input_shape": tuple(x.shape[1:]),
            "channels": tuple(self.channels),
            "hidden": self.hidden,
            "classes": len(self.classes_),
            "activation": self.activation,
            "batch_norm": self.batch_norm,
            "dropout": self.dropout,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
