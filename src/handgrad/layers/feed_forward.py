"""The position-wise feed-forward network of a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.layers.base import Layer
from handgrad.layers.dense import Dense
from handgrad.layers.dropout import Dropout
from handgrad.layers.sequential import Sequential


class FeedForward(Sequential):
    """y = f(x W₁ᵀ + b₁) W₂ᵀ + b₂ at every step, with dropout after f and after y.

    Its parameters are those of `linear1` (hidden, features) and `linear2` (features, hidden).
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), sections 3 and 4.
    """

    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        features: int,
        hidden: int,
        *,
        rng: np.random.Generator,
        activation: str = "relu",
        approximate: str = "none",
        dropout: float = 0.0,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        linear1 = Dense(
            features,
            hidden,
            rng=rng,
            bias=bias,
            activation=activation,
            approximate=approximate,
            dtype=dtype,
        )
        linear2 = Dense(hidden, features, rng=rng, bias=bias, dtype=dtype)
        layers: dict[str, Layer] = {"linear1": linear1, "linear2": linear2}
        if dropout > 0:
            layers = {
                "linear1": linear1,
                "dropout1": Dropout(dropout, rng=rng),
                "linear2": linear2,
                "dropout2": Dropout(dropout, rng=rng),
            }
        super().__init__(**layers)
