"""CNN: convolution stages, then a dense classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

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
from handgrad.layers.construction import FROM_SEED


class CNN(Sequential):
    """Scores (N, K) for images x (N, C, H, W).

    `input_shape` is (C, H, W). Stage i has a convolution 3 × 3 to `channels[i − 1]` channels that
    keeps H and W (`conv<i>`), the activation, and a max pooling 2 × 2 (`pool<i>`), which leaves out
    an odd last row or column. With `batch_norm` a BatchNorm (`norm<i>`) stands before the
    activation (`act<i>`) and takes the place of the convolution's bias. Behind the stages come
    `flatten`, row by row, `linear1` with `hidden` units and the activation, dropout in training,
    and `linear2`.

    Forward and backward are the chain of those of the layers. For one convolution with stride s
    they are Z = c(K, V, s), the kernel's gradient g(G, V, s) and the input's h(K, G, s).

    Raises ShapeError where the image is too small for the stages, ArgumentError for other settings.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 3.
    """

    capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        channels: Sequence[int],
        classes: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        hidden: int = 128,
        activation: str = "relu",
        batch_norm: bool = False,
        dropout: float = 0.0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if len(input_shape) != 3:
            raise ShapeError(f"CNN: input_shape is {tuple(input_shape)}; allowed: (C, H, W)")
        if len(channels) < 1 or min(*channels, hidden, classes) < 1:
            raise ArgumentError(
                f"CNN: channels are {tuple(channels)}, hidden is {hidden} and classes {classes}; "
                "allowed: one stage or more, and sizes from 1"
            )
        in_channels, height, width = input_shape
        if min(height, width) < 2 ** len(channels):
            raise ShapeError(
                f"CNN: an image is {height} × {width}; allowed: {2 ** len(channels)} or more each "
                f"way, because each of {len(channels)} stages halves it"
            )
        layers: dict[str, Layer] = {}
        for i, out_channels in enumerate(channels, start=1):
            layers[f"conv{i}"] = Conv2d(
                in_channels,
                out_channels,
                3,
                padding=1,
                rng=rng,
                bias=not batch_norm,
                activation="identity" if batch_norm else activation,
                dtype=dtype,
            )
            if batch_norm:
                layers[f"norm{i}"] = BatchNorm(out_channels, dtype=dtype)
                layers[f"act{i}"] = Activation(activation)
            layers[f"pool{i}"] = MaxPool2d(2)
            in_channels, height, width = out_channels, height // 2, width // 2
        features = math.prod((in_channels, height, width))
        layers["flatten"] = Flatten()
        layers["linear1"] = Dense(features, hidden, rng=rng, activation=activation, dtype=dtype)
        if dropout != 0:
            layers["dropout"] = Dropout(dropout, rng=rng)
        layers["linear2"] = Dense(hidden, classes, rng=rng, dtype=dtype)
        super().__init__(seed=None, **layers)
