"""The recurrent network of one product: plain, and leaky with fixed rates."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.keywords import with_defaults
from handgrad.layers.base import Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.recurrent import BIAS_MODES, Recurrent
from handgrad.layers.settings import RecurrentSettings
from handgrad.ops import leaky_rnn, rnn
from handgrad.ops.arguments import check_choice


class RNN(Recurrent):
    """h_t = f(W_ih x_t + b_ih + W_hh h_{t−1} + b_hh), where f is tanh or relu; see `Recurrent`."""

    op = rnn
    forward_capturable = True
    flops_per_unit = 2

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rng: np.random.Generator = FROM_SEED,
        nonlinearity: str = "tanh",
        **settings: Unpack[RecurrentSettings],
    ) -> None:
        check_choice("RNN", "nonlinearity", nonlinearity, rnn.NONLINEARITIES)
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, rng=rng, **settings)

    def _options(self) -> dict[str, Any]:
        return {"nonlinearity": self.nonlinearity}


class LeakyRNN(Recurrent):
    """h_t = α h_{t−1} + (1 − α) tanh(W_ih x_t + b_ih), with fixed α; see `Recurrent`.

    `alpha`, 0 to 1, is one number or one for every hidden unit, the same in every layer; it is kept
    as a buffer and not trained. No product with h_{t−1} stands here that could have a bias of its
    own, so `bias` is "input" (as True) or "none" (as False).
    """

    op = leaky_rnn
    weights = ("weight_ih", "bias_ih")
    buffer_names = ("alpha",)
    constant_names = ("alpha",)
    flops_per_unit = 4

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rng: np.random.Generator = FROM_SEED,
        alpha: float | Array,
        **settings: Unpack[RecurrentSettings],
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, rng=rng, **settings)
        dtype = with_defaults("LeakyRNN", RecurrentSettings, settings)["dtype"]
        rates = np.asarray(alpha, dtype=dtype)
        if rates.shape not in ((), (hidden_size,)):
            raise ShapeError(
                f"LeakyRNN: alpha has shape {rates.shape}; allowed: a number or ({hidden_size},)"
            )
        if not np.all((rates >= 0) & (rates <= 1)):
            raise self._refusal(f"alpha is {alpha!r}; allowed: 0 to 1")
        self.alpha = np.array(np.broadcast_to(rates, (hidden_size,)))

    def _shapes(self, inputs: int) -> dict[str, Shape]:
        found: dict[str, Shape] = {"weight_ih": (self.hidden_size, inputs)}
        return found | dict.fromkeys(BIAS_MODES[self.bias], (self.hidden_size,))

    def _options(self) -> dict[str, Any]:
        return {"alpha": self.alpha}
