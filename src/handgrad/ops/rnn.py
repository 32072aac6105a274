"""Simple recurrent network: one layer, in one direction, over whole sequences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.steps import active_steps, in_running_order, in_time_order
from handgrad.ops.activation import activate
from handgrad.ops.arguments import check_choice, check_length_values, check_size
from handgrad.ops.recurrence import (
    check_gates,
    check_sequences,
    check_state,
    check_weights,
    zero_state,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NONLINEARITIES: Final = ("tanh", "relu")


class Cache(NamedTuple):
    """The inputs and states of every step, in running order; a is not kept, as f′ follows from h.

    `h` is (N, T + 1, H), the initial state first. Of what is optional only whether it was there.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    h: Array
    active: Array | None
    has_bias_ih: bool
    has_bias_hh: bool
    has_h0: bool
    nonlinearity: str
    reverse: bool


def validate(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    h0: Array | None = None,
    *,
    lengths: Array | None = None,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> None:
    check_sequences("rnn", x, lengths)
    hidden = check_gates("rnn", weight_hh, 1)
    check_weights("rnn", x, weight_ih, weight_hh, bias_ih, bias_hh, state=hidden)
    check_state("rnn", "h0", h0, x, hidden)
    check_choice("rnn", "nonlinearity", nonlinearity, NONLINEARITIES)
    check_size("rnn", "what is kept of the steps", (*x.shape[:2], hidden))


def validate_values(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    h0: Array | None = None,
    *,
    lengths: Array | None = None,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> None:
    check_length_values("rnn", lengths, x.shape[1])


@operation
def forward(
    x: Float[Array, "N T D"],
    weight_ih: Float[Array, "H D"],
    weight_hh: Float[Array, "H H"],
    bias_ih: Float[Array, "H"] | None = None,
    bias_hh: Float[Array, "H"] | None = None,
    h0: Float[Array, "N H"] | None = None,
    *,
    lengths: Int[Array, "N"] | None = None,
    nonlinearity: str = "tanh",
    reverse: bool = False,
) -> tuple[tuple[Float[Array, "N T H"], Float[Array, "N H"]], Cache]:
    """Recurrent network h_t = f(a_t); gives y = (h_1, ..., h_T) and the final state.

    Forward:  a_t = W_ih x_t + b_ih + W_hh h_{t−1} + b_hh,  h_t = f(a_t),  y_t = h_t
    Backward: dh_t = dy_t + W_hhᵀ da_{t+1}  (at the last step dy_T + dh_n),  da_t = dh_t f′(a_t),
              dx_t = W_ihᵀ da_t,  dW_ih = Σ da_t x_tᵀ,  dW_hh = Σ da_t h_{t−1}ᵀ,
              db_ih = db_hh = Σ da_t,  dh0 = W_hhᵀ da_1   (sums over steps and sequences)

    f is tanh or, as `nonlinearity`, relu, whose derivative at 0 is 0. With `reverse` the steps run
    from the last to the first; y_t still belongs to x_t. Without h0 the initial state is 0.

    With `lengths`, sequence n has lengths[n] steps, and what follows is padding: y is 0 there, and
    the values of x and dy there do not count, even where they are NaN. The final state is that
    after the last of its own steps to run. A sequence of length 0 ends in its initial state.

    Shapes: x (N, T, D) with T at least 1, weight_ih (H, D), weight_hh (H, H), bias_ih, bias_hh
    (H,), h0 and the final state (N, H), lengths (N,), y (N, T, H).
    Raises ShapeError where these do not fit, ArgumentError for an unknown nonlinearity and for
    lengths outside of 0 to T (looked at only if they are a NumPy array).
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 10 to 12, with
    outer products, and without a term t + 1 at the last step.
    """
    xp = array_namespace(x)
    active = active_steps(lengths, x.shape[1], reverse)
    x_run = in_running_order(x, active, reverse)
    from_x = x_run @ weight_ih.T
    if bias_ih is not None:
        from_x = from_x + bias_ih
    if bias_hh is not None:
        from_x = from_x + bias_hh
    h = zero_state(x, weight_hh.shape[0]) if h0 is None else h0
    states: tuple[Array, ...] = (h,)
    for t in range(x.shape[1]):
        a = from_x[:, t, :] + h @ weight_hh.T
        h_new = activate(a, nonlinearity)
        h = h_new if active is None else xp.where(active[:, t, :], h_new, h)
        states = (*states, h)
    h_run = xp.stack(states, axis=1)
    y = in_time_order(h_run[:, 1:, :], active, reverse)
    cache = Cache(
        x_run,
        weight_ih,
        weight_hh,
        h_run,
        active,
        bias_ih is not None,
        bias_hh is not None,
        h0 is not None,
        nonlinearity,
        reverse,
    )
    return (y, h), cache


@operation
def backward(
    doutputs: tuple[Float[Array, "N T H"], Float[Array, "N H"] | None], cache: Cache
) -> tuple[
    Float[Array, "N T D"],
    Float[Array, "H D"],
    Float[Array, "H H"],
    Float[Array, "H"] | None,
    Float[Array, "H"] | None,
    Float[Array, "N H"] | None,
]:
    """dh_t = dy_t + W_hhᵀ da_{t+1},  da_t = dh_t f′(a_t),  dx_t = W_ihᵀ da_t,
    dW_ih = Σ da_t x_tᵀ,  dW_hh = Σ da_t h_{t−1}ᵀ,  db_ih = db_hh = Σ da_t,  dh0 = W_hhᵀ da_1.

    `doutputs` is (dy, dh_n); dh_n is None where nothing depends on the final state.
    """
    dy, dh_n = doutputs
    x, weight_ih, weight_hh, h, active, has_bias_ih, has_bias_hh, has_h0, nonlinearity, reverse = (
        cache
    )
    xp = array_namespace(dy)
    steps = x.shape[1]
    dy_run = in_running_order(dy, active, reverse)
    h_before, h_after = h[:, :-1, :], h[:, 1:, :]
    is_relu = nonlinearity == "relu"
    slope = xp.astype(h_after > 0, dy.dtype) if is_relu else 1.0 - h_after * h_after
    dh = zero_state(x, h.shape[-1]) if dh_n is None else dh_n
    das: tuple[Array, ...] = ()
    for t in reversed(range(steps)):
        dh_t = dh + dy_run[:, t, :]
        da_t = dh_t * slope[:, t, :]
        dh_before = da_t @ weight_hh
        dh = dh_before if active is None else xp.where(active[:, t, :], dh_before, dh_t)
        das = (da_t, *das)
    da_run = xp.stack(das, axis=1)
    da = da_run if active is None else xp.where(active, da_run, xp.zeros_like(da_run))
    rows = math.prod(da.shape[:-1])
    rows_da = xp.reshape(da, (rows, da.shape[-1]))
    rows_x = xp.reshape(x, (rows, x.shape[-1]))
    states_before = in_time_order(h_before, active, False)
    rows_h = xp.reshape(states_before, (rows, h.shape[-1]))
    dx_run = da @ weight_ih
    dx = in_time_order(dx_run, active, reverse)
    dweight_ih = rows_da.T @ rows_x
    dweight_hh = rows_da.T @ rows_h
    dbias_ih = xp.sum(rows_da, axis=0) if has_bias_ih else None
    dbias_hh = xp.sum(rows_da, axis=0) if has_bias_hh else None
    dh0 = dh if has_h0 else None
    return dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, dh0
