"""Cells of an attention decoder: from one state to the next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad import initializers
from handgrad.arrays import Array
from handgrad.layers.base import Layer, Shape
from handgrad.ops.arguments import check_choice
from handgrad.ops.recurrence import blocks
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float

CELLS: Final = ("sigmoid", "tanh", "gru")


class Cell(Layer):
    """From s_{j−1} to s_j; names, shapes and first values of the weights are those of PyTorch.

    weight_ih (gates · H, I) is for the inputs and weight_hh (gates · H, H) for the state before,
    bias_ih and bias_hh (gates · H,). `step` takes the inputs' part, W_ih x + b_ih, and gives s_j
    and what its backward needs; `step_backward` gives the gradients of the inputs' part, of
    W_hh s_{j−1} + b_hh, and of s_{j−1} itself.
    """

    kind: str
    parameter_names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    gates = 1
    #: Sums, products and functions of single elements in a step, for every hidden unit.
    flops_per_unit = 2

    def __init__(
        self, inputs: int, hidden: int, *, rng: np.random.Generator, dtype: DTypeLike
    ) -> None:
        def draw(*shape: int) -> Array:
            return initializers.uniform(shape, rng, bound=1 / math.sqrt(hidden), dtype=dtype)

        self.inputs = inputs
        self.hidden = hidden
        size = self.gates * hidden
        self.weight_ih = draw(size, inputs)
        self.weight_hh = draw(size, hidden)
        self.bias_ih = draw(size)
        self.bias_hh = draw(size)

    def step(
        self, a_input: Float[Array, "N G"], s: Float[Array, "N H"]
    ) -> tuple[Float[Array, "N H"], Any]:
        raise NotImplementedError

    def step_backward(
        self, ds_new: Float[Array, "N H"], s: Float[Array, "N H"], kept: Any
    ) -> tuple[Float[Array, "N G"], Float[Array, "N G"], Float[Array, "N H"]]:
        raise NotImplementedError

    def flops(self, input_shape: Shape) -> int:
        """The shape for T steps, (T,)."""
        size = self.gates * self.hidden
        weights = 2 * size * (self.inputs + self.hidden) + 2 * size
        return input_shape[0] * (weights + self.flops_per_unit * self.hidden)


class SigmoidCell(Cell):
    """s_j = σ(W_ih x + b_ih + W_hh s_{j−1} + b_hh), where [W_hh W_ih] is W_s without biases.

    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equation 17.
    """

    kind = "sigmoid"

    def step(self, a_input: Array, s: Array) -> tuple[Array, Array]:
        s_new = logistic(a_input + s @ self.weight_hh.T + self.bias_hh)
        return s_new, s_new

    def step_backward(self, ds_new: Array, s: Array, kept: Array) -> tuple[Array, Array, Array]:
        """da = ds_j s_j (1 − s_j),  ds_{j−1} = W_hhᵀ da."""
        s_new = kept
        da = ds_new * s_new * (1.0 - s_new)
        return da, da, da @ self.weight_hh


class TanhCell(Cell):
    """s_j = tanh(W_ih x + b_ih + W_hh s_{j−1} + b_hh)."""

    kind = "tanh"

    def step(self, a_input: Array, s: Array) -> tuple[Array, Array]:
        s_new = array_namespace(s).tanh(a_input + s @ self.weight_hh.T + self.bias_hh)
        return s_new, s_new

    def step_backward(self, ds_new: Array, s: Array, kept: Array) -> tuple[Array, Array, Array]:
        """da = ds_j (1 − s_j²),  ds_{j−1} = W_hhᵀ da."""
        s_new = kept
        da = ds_new * (1.0 - s_new * s_new)
        return da, da, da @ self.weight_hh


class GRUCell(Cell):
    """One step of `hg.ops.gru`; the gates stand in the weights in the order r, z, n."""

    kind = "gru"
    gates = 3
    flops_per_unit = 11

    def step(self, a_input: Array, s: Array) -> tuple[Array, tuple[Array, ...]]:
        a_r, a_z, a_n = blocks(a_input, 3)
        h_r, h_z, u = blocks(s @ self.weight_hh.T + self.bias_hh, 3)
        r = logistic(a_r + h_r)
        z = logistic(a_z + h_z)
        n = array_namespace(s).tanh(a_n + r * u)
        s_new = (1.0 - z) * n + z * s
        return s_new, (r, z, n, u)

    def step_backward(
        self, ds_new: Array, s: Array, kept: tuple[Array, ...]
    ) -> tuple[Array, Array, Array]:
        """da_n = ds_j (1 − z)(1 − n²),  da_z = ds_j (s_{j−1} − n) z (1 − z),
        da_r = da_n u r (1 − r),  ds_{j−1} = ds_j z + W_hhᵀ [da_r; da_z; da_n r].
        """
        r, z, n, u = kept
        da_n = ds_new * (1.0 - z) * (1.0 - n * n)
        da_z = ds_new * (s - n) * z * (1.0 - z)
        da_r = da_n * u * r * (1.0 - r)
        xp = array_namespace(s)
        da_input = xp.concat((da_r, da_z, da_n), axis=-1)
        da_state = xp.concat((da_r, da_z, da_n * r), axis=-1)
        ds = ds_new * z + da_state @ self.weight_hh
        return da_input, da_state, ds


def make_cell(
    kind: str, inputs: int, hidden: int, *, rng: np.random.Generator, dtype: DTypeLike
) -> Cell:
    """The cell `kind`, of `CELLS`. Raises ArgumentError for another one."""
    check_choice("AttentionDecoder", "cell", kind, CELLS)
    kinds: dict[str, type[Cell]] = {"sigmoid": SigmoidCell, "tanh": TanhCell, "gru": GRUCell}
    return kinds[kind](inputs, hidden, rng=rng, dtype=dtype)
