"""MLP: a fully connected network of any depth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from handgrad.errors import ArgumentError
from handgrad.layers import Dense, Dropout, Layer, Sequential
from handgrad.layers.construction import FROM_SEED


class MLP(Sequential):
    """Scores (..., K) for x (..., D), with `sizes` (D, H₁, …, K), two or more.

    Forward:  h⁽⁰⁾ = x,  a⁽ⁱ⁾ = W⁽ⁱ⁾h⁽ⁱ⁻¹⁾ + b⁽ⁱ⁾,  h⁽ⁱ⁾ = f(a⁽ⁱ⁾);  the scores are a⁽ˡ⁾
    Backward: δ⁽ˡ⁾ = ∂J/∂a⁽ˡ⁾, then down to i = 1:
              δ⁽ⁱ⁾ = (W⁽ⁱ⁺¹⁾ᵀδ⁽ⁱ⁺¹⁾) ⊙ f′(a⁽ⁱ⁾),  ∂J/∂W⁽ⁱ⁾ = δ⁽ⁱ⁾h⁽ⁱ⁻¹⁾ᵀ,  ∂J/∂b⁽ⁱ⁾ = δ⁽ⁱ⁾,
              and ∂J/∂x = W⁽¹⁾ᵀδ⁽¹⁾

    Layer i is `linear<i>`, of weight W⁽ⁱ⁾ (out, in) and bias b⁽ⁱ⁾; `activation` is one of Dense's.
    In training `dropout` acts on every h between the layers and draws from `rng`.

    Raises ArgumentError for other sizes, an unknown activation or a dropout outside 0 to 1.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 2, with outer
    products in (3) and (4) and W⁽ⁱ⁺¹⁾ᵀ in (5).
    """

    capturable = True
    adds_residual_forward = True
    adds_residual_backward = True

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        rng: np.random.Generator = FROM_SEED,
        activation: str = "relu",
        dropout: float = 0.0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise ArgumentError(f"MLP: sizes are {tuple(sizes)}; allowed: two or more, each from 1")
        last = len(sizes) - 1
        layers: dict[str, Layer] = {}
        for i in range(1, last + 1):
            f = activation if i < last else "identity"
            layers[f"linear{i}"] = Dense(sizes[i - 1], sizes[i], rng=rng, activation=f, dtype=dtype)
            if dropout != 0 and i < last:
                layers[f"dropout{i}"] = Dropout(dropout, rng=rng)
        super().__init__(seed=None, **layers)
