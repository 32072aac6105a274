"""Gated recurrent unit: one layer, in one direction, over whole sequences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation
from handgrad.geometry.steps import active_steps, in_running_order, in_time_order
from handgrad.ops.arguments import check_length_values, check_size
from handgrad.ops.recurrence import (
    blocks,
    check_gates,
    check_sequences,
    check_state,
    check_weights,
    zero_state,
)
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """The inputs, states and gates of every step, in running order.

    `h` is (N, T + 1, H), the initial state first; `gates` is (N, T, 4H): r, z, n and u, the part of
    n that comes from h. Of what is optional only whether it was there.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    h: Array
    gates: Array
    active: Array | None
    has_bias_ih: bool
    has_bias_hh: bool
    has_h0: bool
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
    reverse: bool = False,
) -> None:
    check_sequences("gru", x, lengths)
    hidden = check_gates("gru", weight_hh, 3)
    check_weights("gru", x, weight_ih, weight_hh, bias_ih, bias_hh, state=hidden)
    check_state("gru", "h0", h0, x, hidden)
    check_size("gru", "what is kept of the steps", (*x.shape[:2], 4 * hidden))


def validate_values(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    h0: Array | None = None,
    *,
    lengths: Array | None = None,
    reverse: bool = False,
) -> None:
    check_length_values("gru", lengths, x.shape[1])


@operation
def forward(
    x: Float[Array, "N T D"],
    weight_ih: Float[Array, "G D"],
    weight_hh: Float[Array, "G H"],
    bias_ih: Float[Array, "G"] | None = None,
    bias_hh: Float[Array, "G"] | None = None,
    h0: Float[Array, "N H"] | None = None,
    *,
    lengths: Int[Array, "N"] | None = None,
    reverse: bool = False,
) -> tuple[tuple[Float[Array, "N T H"], Float[Array, "N H"]], Cache]:
    """Gated recurrent unit; gives y = (h_1, ..., h_T) and the final state.

    Forward:  r_t = σ(W_ir x_t + b_ir + W_hr h_{t−1} + b_hr),
              z_t = σ(W_iz x_t + b_iz + W_hz h_{t−1} + b_hz),
              u_t = W_hn h_{t−1} + b_hn,  n_t = tanh(W_in x_t + b_in + r_t ∘ u_t),
              h_t = (1 − z_t) ∘ n_t + z_t ∘ h_{t−1},  y_t = h_t
    Backward: dh_t = dy_t + dh_{t+1} ∘ z_{t+1} + W_hhᵀ dv_{t+1}  (at the last step dy_T + dh_n),
              da_n = dh_t ∘ (1 − z_t) ∘ (1 − n_t²),  da_z = dh_t ∘ (h_{t−1} − n_t) ∘ z_t (1 − z_t),
              da_r = da_n ∘ u_t ∘ r_t (1 − r_t),
              da_t = [da_r; da_z; da_n],  dv_t = [da_r; da_z; da_n ∘ r_t],
              dx_t = W_ihᵀ da_t,  dW_ih = Σ da_t x_tᵀ,  db_ih = Σ da_t,
              dW_hh = Σ dv_t h_{t−1}ᵀ,  db_hh = Σ dv_t   (sums over steps and sequences)

    The gates stand in the weights in the order r, z, n: W_ih = [W_ir; W_iz; W_in], W_hh, b_ih and
    b_hh likewise. The reset gate acts after the product with W_hn, as in PyTorch and cuDNN.
    `reverse`, `lengths` and a missing h0 are as in `rnn`.

    Shapes: x (N, T, D) with T at least 1, weight_ih (3H, D), weight_hh (3H, H), bias_ih, bias_hh
    (3H,), h0 and the final state (N, H), lengths (N,), y (N, T, H).
    Raises ShapeError where these do not fit, ArgumentError for lengths outside of 0 to T (looked at
    only if they are a NumPy array).
    Source: NVIDIA, cuDNN API reference (undated), cudnnRNNMode_t; Yeung, The Deep Learning Dump
    (2023), section 3, which goes by its list of modes.
    """
    xp = array_namespace(x)
    hidden = weight_hh.shape[1]
    active = active_steps(lengths, x.shape[1], reverse)
    x_run = in_running_order(x, active, reverse)
    from_x = x_run @ weight_ih.T
    if bias_ih is not None:
        from_x = from_x + bias_ih
    h = zero_state(x, hidden) if h0 is None else h0
    states: tuple[Array, ...] = (h,)
    gates: tuple[Array, ...] = ()
    for t in range(x.shape[1]):
        from_h = h @ weight_hh.T
        if bias_hh is not None:
            from_h = from_h + bias_hh
        x_r, x_z, x_n = blocks(from_x[:, t, :], 3)
        h_r, h_z, u = blocks(from_h, 3)
        r = logistic(x_r + h_r)
        z = logistic(x_z + h_z)
        n = xp.tanh(x_n + r * u)
        h_new = (1.0 - z) * n + z * h
        h = h_new if active is None else xp.where(active[:, t, :], h_new, h)
        states = (*states, h)
        gates = (*gates, xp.concat((r, z, n, u), axis=-1))
    h_run = xp.stack(states, axis=1)
    gates_run = xp.stack(gates, axis=1)
    y = in_time_order(h_run[:, 1:, :], active, reverse)
    cache = Cache(
        x_run,
        weight_ih,
        weight_hh,
        h_run,
        gates_run,
        active,
        bias_ih is not None,
        bias_hh is not None,
        h0 is not None,
        reverse,
    )
    return (y, h), cache


@operation
def backward(
    doutputs: tuple[Float[Array, "N T H"], Float[Array, "N H"] | None], cache: Cache
) -> tuple[
    Float[Array, "N T D"],
    Float[Array, "G D"],
    Float[Array, "G H"],
    Float[Array, "G"] | None,
    Float[Array, "G"] | None,
    Float[Array, "N H"] | None,
]:
    """da_n = dh_t ∘ (1 − z_t) ∘ (1 − n_t²),  da_z = dh_t ∘ (h_{t−1} − n_t) ∘ z_t (1 − z_t),
    da_r = da_n ∘ u_t ∘ r_t (1 − r_t),  dh_{t−1} = dy_{t−1} + dh_t ∘ z_t + W_hhᵀ dv_t.

    `doutputs` is (dy, dh_n); dh_n is None where nothing depends on the final state.
    """
    dy, dh_n = doutputs
    x, weight_ih, weight_hh, h, gates, active, has_bias_ih, has_bias_hh, has_h0, reverse = cache
    xp = array_namespace(dy)
    dy_run = in_running_order(dy, active, reverse)
    h_before = h[:, :-1, :]
    dh = zero_state(x, h.shape[-1]) if dh_n is None else dh_n
    das: tuple[Array, ...] = ()
    dvs: tuple[Array, ...] = ()
    for t in reversed(range(x.shape[1])):
        r, z, n, u = blocks(gates[:, t, :], 4)
        dh_t = dh + dy_run[:, t, :]
        da_n = dh_t * (1.0 - z) * (1.0 - n * n)
        da_z = dh_t * (h_before[:, t, :] - n) * z * (1.0 - z)
        da_r = da_n * u * r * (1.0 - r)
        da_t = xp.concat((da_r, da_z, da_n), axis=-1)
        dv_t = xp.concat((da_r, da_z, da_n * r), axis=-1)
        dh_before = dh_t * z + dv_t @ weight_hh
        dh = dh_before if active is None else xp.where(active[:, t, :], dh_before, dh_t)
        das = (da_t, *das)
        dvs = (dv_t, *dvs)
    da_run = xp.stack(das, axis=1)
    dv_run = xp.stack(dvs, axis=1)
    da = da_run if active is None else xp.where(active, da_run, xp.zeros_like(da_run))
    dv = dv_run if active is None else xp.where(active, dv_run, xp.zeros_like(dv_run))
    rows = math.prod(da.shape[:-1])
    rows_da = xp.reshape(da, (rows, da.shape[-1]))
    rows_dv = xp.reshape(dv, (rows, dv.shape[-1]))
    rows_x = xp.reshape(x, (rows, x.shape[-1]))
    states_before = in_time_order(h_before, active, False)
    rows_h = xp.reshape(states_before, (rows, h.shape[-1]))
    dx_run = da @ weight_ih
    dx = in_time_order(dx_run, active, reverse)
    dweight_ih = rows_da.T @ rows_x
    dweight_hh = rows_dv.T @ rows_h
    dbias_ih = xp.sum(rows_da, axis=0) if has_bias_ih else None
    dbias_hh = xp.sum(rows_dv, axis=0) if has_bias_hh else None
    dh0 = dh if has_h0 else None
    return dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, dh0
