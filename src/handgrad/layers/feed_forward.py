"""The position-wise feed-forward network of a transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from handgrad.layers.base import Layer
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.dense import Dense
from handgrad.layers.dropout import Dropout
from handgrad.layers.gated import GEGLU, SwiGLU
from handgrad.layers.sequential import Sequential


class FeedForward(Sequential):
    """y = f(x W₁ᵀ + b₁) W₂ᵀ + b₂ at every step, with dropout after f and after y.

    Its parameters are those of `linear1` (hidden, features) and `linear2` (features, hidden). With
    activation "swiglu" or "geglu" f is a gated linear unit, and `linear1` is (2 hidden, features).
    Source: Anonymous, Transformer Layer: notițe și arhitectură (undated), sections 3 and 4;
    Shazeer, GLU variants improve transformer (2020), section 2.
    """

    forward_capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        features: InputSize,
        hidden: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        activation: str = "relu",
        approximate: str = "none",
        dropout: float = 0.0,
        bias: bool = True,
        dtype: DTypeLike = np.float32,
    ) -> None:
        settings: dict[str, Any] = {"rng": rng, "bias": bias, "dtype": dtype}
        layers: dict[str, Layer] = {}
        if activation in ("swiglu", "geglu"):
            layers["linear1"] = Dense(features, 2 * hidden, **settings)
            layers["gate"] = SwiGLU() if activation == "swiglu" else GEGLU(approximate=approximate)
        else:
            settings_of_f: dict[str, Any] = {"activation": activation, "approximate": approximate}
            layers["linear1"] = Dense(features, hidden, **settings, **settings_of_f)
        linear2 = Dense(hidden, features, **settings)
        if dropout > 0:
            layers["dropout1"] = Dropout(dropout, rng=rng)
            layers |= {"linear2": linear2, "dropout2": Dropout(dropout, rng=rng)}
        super().__init__(seed=None, **(layers | {"linear2": linear2}))
