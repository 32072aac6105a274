"""Leaky units: a moving average of what comes in, with a fixed rate for every unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.steps import active_steps, in_running_order, in_time_order
from handgrad.ops.arguments import check_length_values, check_size, check_vector
from handgrad.ops.recurrence import check_matrix, check_sequences, check_state, zero_state

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """The inputs and g_t = tanh a_t of every step, in running order; no gradient needs the states.

    Of what is optional only whether it was there.
    """

    x: Array
    weight_ih: Array
    g: Array
    alpha: float | Array
    active: Array | None
    has_bias: bool
    has_h0: bool
    reverse: bool


def validate(
    x: Array,
    weight_ih: Array,
    bias_ih: Array | None = None,
    h0: Array | None = None,
    *,
    alpha: float | Array,
    lengths: Array | None = None,
    reverse: bool = False,
) -> None:
    check_sequences("leaky_rnn", x, lengths)
    if len(weight_ih.shape) != 2:
        raise ShapeError(
            f"leaky_rnn: weight_ih has shape {tuple(weight_ih.shape)}; allowed: (H, D)"
        )
    hidden, features = weight_ih.shape[0], x.shape[2]
    because = f"x has shape {tuple(x.shape)}"
    check_matrix("leaky_rnn", "weight_ih", weight_ih, hidden, features, because)
    if bias_ih is not None:
        check_vector("leaky_rnn", "bias_ih", bias_ih, hidden)
    check_state("leaky_rnn", "h0", h0, x, hidden)
    if hasattr(alpha, "shape"):
        check_vector("leaky_rnn", "alpha", alpha, hidden)
    elif not 0.0 <= alpha <= 1.0:
        raise ArgumentError(f"leaky_rnn: alpha is {alpha}; allowed: 0 to 1")
    check_size("leaky_rnn", "what is kept of the steps", (*x.shape[:2], hidden))


def validate_values(
    x: Array,
    weight_ih: Array,
    bias_ih: Array | None = None,
    h0: Array | None = None,
    *,
    alpha: float | Array,
    lengths: Array | None = None,
    reverse: bool = False,
) -> None:
    check_length_values("leaky_rnn", lengths, x.shape[1])
    if isinstance(alpha, float | int | np.ndarray):
        rates = np.asarray(alpha)
        if not np.all((rates >= 0.0) & (rates <= 1.0)):
            raise ArgumentError(
                f"leaky_rnn: alpha goes from {rates.min()} to {rates.max()}; allowed: 0 to 1"
            )


@operation
def forward(
    x: Float[Array, "N T D"],
    weight_ih: Float[Array, "H D"],
    bias_ih: Float[Array, "H"] | None = None,
    h0: Float[Array, "N H"] | None = None,
    *,
    alpha: float | Float[Array, "H"],
    lengths: Int[Array, "N"] | None = None,
    reverse: bool = False,
) -> tuple[tuple[Float[Array, "N T H"], Float[Array, "N H"]], Cache]:
    """Leaky units h_t = α h_{t−1} + (1 − α) g_t; gives y = (h_1, ..., h_T) and the final state.

    Forward:  a_t = W_ih x_t + b_ih,  g_t = tanh a_t,  h_t = α h_{t−1} + (1 − α) g_t,  y_t = h_t
    Backward: dh_t = dy_t + α dh_{t+1}  (at the last step dy_T + dh_n),
              da_t = (1 − α) dh_t (1 − g_t²),  dx_t = W_ihᵀ da_t,  dW_ih = Σ da_t x_tᵀ,
              db_ih = Σ da_t,  dh0 = α dh_1   (sums over steps and sequences)

    No matrix stands between h_{t−1} and h_t, so a gradient fades by α for every step and by no
    more. α is fixed, one number or one for every unit, and has no gradient: 0 forgets at once, 1
    never takes anything in. `reverse`, `lengths` and a missing h0 are as in `rnn`.

    Shapes: x (N, T, D) with T at least 1, weight_ih (H, D), bias_ih (H,), alpha a number or (H,),
    h0 and the final state (N, H), lengths (N,), y (N, T, H).
    Raises ShapeError where these do not fit, ArgumentError for alpha outside of 0 to 1 and lengths
    outside of 0 to T (looked at only if they are numbers or NumPy arrays).
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), section 5 and figure 7.
    """
    xp = array_namespace(x)
    active = active_steps(lengths, x.shape[1], reverse)
    x_run = in_running_order(x, active, reverse)
    a = x_run @ weight_ih.T
    if bias_ih is not None:
        a = a + bias_ih
    g = xp.tanh(a)
    h = zero_state(x, weight_ih.shape[0]) if h0 is None else h0
    states: tuple[Array, ...] = ()
    for t in range(x.shape[1]):
        h_new = alpha * h + (1.0 - alpha) * g[:, t, :]
        h = h_new if active is None else xp.where(active[:, t, :], h_new, h)
        states = (*states, h)
    y = in_time_order(xp.stack(states, axis=1), active, reverse)
    has_bias, has_h0 = bias_ih is not None, h0 is not None
    return (y, h), Cache(x_run, weight_ih, g, alpha, active, has_bias, has_h0, reverse)


@operation
def backward(
    doutputs: tuple[Float[Array, "N T H"], Float[Array, "N H"] | None], cache: Cache
) -> tuple[
    Float[Array, "N T D"],
    Float[Array, "H D"],
    Float[Array, "H"] | None,
    Float[Array, "N H"] | None,
]:
    """dh_t = dy_t + α dh_{t+1},  da_t = (1 − α) dh_t (1 − g_t²),  dx_t = W_ihᵀ da_t,
    dW_ih = Σ da_t x_tᵀ,  db_ih = Σ da_t,  dh0 = α dh_1.

    `doutputs` is (dy, dh_n); dh_n is None where nothing depends on the final state.
    """
    dy, dh_n = doutputs
    x, weight_ih, g, alpha, active, has_bias, has_h0, reverse = cache
    xp = array_namespace(dy)
    dy_run = in_running_order(dy, active, reverse)
    dh = zero_state(x, g.shape[-1]) if dh_n is None else dh_n
    dhs: tuple[Array, ...] = ()
    for t in reversed(range(x.shape[1])):
        dh_t = dh + dy_run[:, t, :]
        dh_before = alpha * dh_t
        dh = dh_before if active is None else xp.where(active[:, t, :], dh_before, dh_t)
        dhs = (dh_t, *dhs)
    dh_run = xp.stack(dhs, axis=1)
    da_run = (1.0 - alpha) * dh_run * (1.0 - g * g)
    da = da_run if active is None else xp.where(active, da_run, xp.zeros_like(da_run))
    rows = math.prod(da.shape[:-1])
    rows_da = xp.reshape(da, (rows, da.shape[-1]))
    rows_x = xp.reshape(x, (rows, x.shape[-1]))
    dx_run = da @ weight_ih
    dx = in_time_order(dx_run, active, reverse)
    dweight_ih = rows_da.T @ rows_x
    dbias_ih = xp.sum(rows_da, axis=0) if has_bias else None
    dh0 = dh if has_h0 else None
    return dx, dweight_ih, dbias_ih, dh0
