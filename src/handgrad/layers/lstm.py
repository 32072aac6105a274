"""Long short-term memory over whole sequences."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from handgrad.layers.base import Shape
from handgrad.layers.construction import FROM_SEED, InputSize
from handgrad.layers.recurrent import BIAS_MODES, Recurrent
from handgrad.layers.settings import RecurrentSettings
from handgrad.ops import lstm


class LSTM(Recurrent):
    """Long short-term memory, gates in the order i, f, g, o; see `Recurrent` and `hg.ops.lstm`.

    Its state is the pair (h, c). With `proj_size` P > 0, h and y are projected: y has P features
    and h is (layers · directions, N, P), while c keeps hidden_size.

    `forget_bias` sets the forget gates' biases: the first that there is, b_ih or b_hh, to that
    value, and the other to 0; 1 lets a new network remember. None leaves them as drawn, as PyTorch
    does.

    Source: Jozefowicz, Zaremba, Sutskever, An empirical exploration of recurrent network
    architectures (2015), for the forget gates' bias of 1.
    """

    op = lstm
    forward_capturable = True
    weights = (*Recurrent.weights, "weight_hr")
    states = ("h", "c")
    gates = 4
    flops_per_unit = 13

    def __init__(
        self,
        input_size: InputSize,
        hidden_size: int,
        num_layers: int = 1,
        *,
        rng: np.random.Generator = FROM_SEED,
        proj_size: int = 0,
        forget_bias: float | None = None,
        **settings: Unpack[RecurrentSettings],
    ) -> None:
        if not 0 <= proj_size < max(hidden_size, 1):
            raise self._refusal(
                f"proj_size is {proj_size!r}; allowed: 0 (none) to {hidden_size - 1}, "
                "less than hidden_size"
            )
        self.proj_size = proj_size
        self.forget_bias = forget_bias
        super().__init__(input_size, hidden_size, num_layers, rng=rng, **settings)
        biases = BIAS_MODES[self.bias]
        if forget_bias is not None and not biases:
            raise self._refusal(f"forget_bias is {forget_bias!r}; allowed without bias: None")
        self.set_forget_bias()

    def set_forget_bias(self) -> None:
        """Set the forget gates' biases as `forget_bias` says; leave them where it is None."""
        if self.forget_bias is None:
            return
        biases = BIAS_MODES[self.bias]
        for name, array in self.parameters.items():
            if name.startswith(biases):
                value = self.forget_bias if name.startswith(biases[0]) else 0.0
                array[self.hidden_size : 2 * self.hidden_size] = value

    @property
    def output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _shapes(self, inputs: int) -> dict[str, Shape]:
        found = super()._shapes(inputs)
        if self.proj_size:
            found["weight_hr"] = (self.proj_size, self.hidden_size)
        return found
