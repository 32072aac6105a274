"""Long short-term memory: one layer, in one direction, over whole sequences.

The cell goes from step to step by a sum, so that its gradient comes back multiplied by the forget
gate alone, with no matrix in between: where f stays near 1, it neither vanishes nor grows. That is
why a forget gate's bias is often set to 1 or more: with a bias of 0 and small weights f is about
1/2 before anything is learned, and the gradient halves with every step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.dispatch import operation, part_of_backward
from handgrad.errors import ArgumentError, ShapeError
from handgrad.geometry.steps import active_steps, in_running_order, in_time_order
from handgrad.ops.arguments import check_length_values, check_size
from handgrad.ops.recurrence import (
    accumulating,
    blocks,
    check_gates,
    check_matrix,
    check_sequences,
    check_state,
    check_weights,
    zero_state,
)
from handgrad.ops.special import logistic

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """The inputs, states and gates of every step, in running order; tanh c is computed again.

    `h` is (N, T + 1, P) and `c` (N, T + 1, H), the initial states first; `gates` is (N, T, 4H): i,
    f, g, o. Of what is optional and has no part in other gradients only whether it was there.
    """

    x: Array
    weight_ih: Array
    weight_hh: Array
    weight_hr: Array | None
    h: Array
    c: Array
    gates: Array
    active: Array | None
    has_bias_ih: bool
    has_bias_hh: bool
    has_h0: bool
    has_c0: bool
    reverse: bool


class Steps(NamedTuple):
    """The gradients of every step's a_t and h_t, in running order, 0 for padding.

    What `backward_data` leaves for `backward_weights`.
    """

    da: Array
    dh: Array


def validate(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    weight_hr: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    *,
    lengths: Array | None = None,
    reverse: bool = False,
) -> None:
    check_sequences("lstm", x, lengths)
    hidden = check_gates("lstm", weight_hh, 4)
    state = hidden
    if weight_hr is not None:
        state = weight_hr.shape[0] if len(weight_hr.shape) == 2 else hidden
        because = f"weight_hh has shape {tuple(weight_hh.shape)}"
        check_matrix("lstm", "weight_hr", weight_hr, state, hidden, because)
    check_weights("lstm", x, weight_ih, weight_hh, bias_ih, bias_hh, state=state)
    check_state("lstm", "h0", h0, x, state)
    check_state("lstm", "c0", c0, x, hidden)
    check_size("lstm", "what is kept of the steps", (*x.shape[:2], 4 * hidden))


def validate_values(
    x: Array,
    weight_ih: Array,
    weight_hh: Array,
    bias_ih: Array | None = None,
    bias_hh: Array | None = None,
    weight_hr: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    *,
    lengths: Array | None = None,
    reverse: bool = False,
) -> None:
    check_length_values("lstm", lengths, x.shape[1])


@operation
def forward(
    x: Float[Array, "N T D"],
    weight_ih: Float[Array, "G D"],
    weight_hh: Float[Array, "G P"],
    bias_ih: Float[Array, "G"] | None = None,
    bias_hh: Float[Array, "G"] | None = None,
    weight_hr: Float[Array, "P H"] | None = None,
    h0: Float[Array, "N P"] | None = None,
    c0: Float[Array, "N H"] | None = None,
    *,
    lengths: Int[Array, "N"] | None = None,
    reverse: bool = False,
) -> tuple[
    tuple[Float[Array, "N T P"], tuple[Float[Array, "N P"], Float[Array, "N H"]]],
    Cache,
]:
    """Long short-term memory; gives y = (h_1, ..., h_T) and the final states (h_n, c_n).

    Forward:  a_t = W_ih x_t + b_ih + W_hh h_{t−1} + b_hh = [a_i; a_f; a_g; a_o],
              i_t = σ(a_i),  f_t = σ(a_f),  g_t = tanh(a_g),  o_t = σ(a_o),
              c_t = f_t ∘ c_{t−1} + i_t ∘ g_t,  m_t = o_t ∘ tanh(c_t),
              h_t = m_t or, with a projection, W_hr m_t,  y_t = h_t
    Backward: dh_t = dy_t + W_hhᵀ da_{t+1}  (at the last step dy_T + dh_n),  dm_t = W_hrᵀ dh_t,
              dc_t = dm_t ∘ o_t ∘ (1 − tanh²(c_t)) + dc_{t+1} ∘ f_{t+1}  (at the last step + dc_n),
              da_i = dc_t ∘ g_t ∘ i_t (1 − i_t),  da_f = dc_t ∘ c_{t−1} ∘ f_t (1 − f_t),
              da_g = dc_t ∘ i_t ∘ (1 − g_t²),  da_o = dm_t ∘ tanh(c_t) ∘ o_t (1 − o_t),
              dx_t = W_ihᵀ da_t,  dh0 = W_hhᵀ da_1,  dc0 = dc_1 ∘ f_1,
              dW_ih = Σ da_t x_tᵀ,  dW_hh = Σ da_t h_{t−1}ᵀ,  db_ih = db_hh = Σ da_t,
              dW_hr = Σ dh_t m_tᵀ   (sums over steps and sequences)

    There are no peepholes. The gates stand in the weights in the order i, f, g, o, as in PyTorch;
    `gate_order` brings weights to and from Yeung's i, f, o, c′, where c′ is g. `reverse`,
    `lengths` and a missing h0 or c0 are as in `rnn`. `backward` can also be had in two parts,
    `backward_data` and `backward_weights`.

    Shapes: x (N, T, D) with T at least 1, weight_ih (4H, D), weight_hh (4H, P), bias_ih, bias_hh
    (4H,), weight_hr (P, H), without it P = H; h0 and h_n (N, P), c0 and c_n (N, H), lengths (N,),
    y (N, T, P).
    Raises ShapeError where these do not fit, ArgumentError for lengths outside of 0 to T (looked at
    only if they are a NumPy array).
    Source: Yeung, The Deep Learning Dump (2023), section 3, with f_t ∘ c_{t−1} + i_t ∘ c′_t and
    W_hr m_t put right; Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 13
    to 15, where h and x are one vector and the gates act element by element; Sak, Senior, Beaufays,
    Long short-term memory based recurrent neural network architectures for large vocabulary speech
    recognition (2014), for the projection; Jozefowicz, Zaremba, Sutskever, An empirical exploration
    of recurrent network architectures (2015), for the bias of the forget gate.
    """
    xp = array_namespace(x)
    active = active_steps(lengths, x.shape[1], reverse)
    x_run = in_running_order(x, active, reverse)
    from_x = x_run @ weight_ih.T
    if bias_ih is not None:
        from_x = from_x + bias_ih
    if bias_hh is not None:
        from_x = from_x + bias_hh
    h = zero_state(x, weight_hh.shape[1]) if h0 is None else h0
    c = zero_state(x, weight_hh.shape[0] // 4) if c0 is None else c0
    hs: tuple[Array, ...] = (h,)
    cs: tuple[Array, ...] = (c,)
    gates: tuple[Array, ...] = ()
    for t in range(x.shape[1]):
        a = from_x[:, t, :] + h @ weight_hh.T
        a_i, a_f, a_g, a_o = blocks(a, 4)
        i = logistic(a_i)
        f = logistic(a_f)
        g = xp.tanh(a_g)
        o = logistic(a_o)
        c_new = f * c + i * g
        m = o * xp.tanh(c_new)
        h_new = m if weight_hr is None else m @ weight_hr.T
        h = h_new if active is None else xp.where(active[:, t, :], h_new, h)
        c = c_new if active is None else xp.where(active[:, t, :], c_new, c)
        hs = (*hs, h)
        cs = (*cs, c)
        gates = (*gates, xp.concat((i, f, g, o), axis=-1))
    h_run = xp.stack(hs, axis=1)
    c_run = xp.stack(cs, axis=1)
    gates_run = xp.stack(gates, axis=1)
    y = in_time_order(h_run[:, 1:, :], active, reverse)
    cache = Cache(
        x_run,
        weight_ih,
        weight_hh,
        weight_hr,
        h_run,
        c_run,
        gates_run,
        active,
        bias_ih is not None,
        bias_hh is not None,
        h0 is not None,
        c0 is not None,
        reverse,
    )
    return (y, (h, c)), cache


@operation
def backward(
    doutputs: tuple[
        Float[Array, "N T P"], tuple[Float[Array, "N P"] | None, Float[Array, "N H"] | None]
    ],
    cache: Cache,
) -> tuple[
    Float[Array, "N T D"],
    Float[Array, "G D"],
    Float[Array, "G P"],
    Float[Array, "G"] | None,
    Float[Array, "G"] | None,
    Float[Array, "P H"] | None,
    Float[Array, "N P"] | None,
    Float[Array, "N H"] | None,
]:
    """Both parts: what flows back through the steps, then the sums that are the weights' gradients.

    `doutputs` is (dy, (dh_n, dc_n)); dh_n or dc_n is None where nothing depends on that state.
    """
    dx, dh0, dc0, steps = backward_data(doutputs, cache)
    dweight_ih, dweight_hh, dbias_ih, dbias_hh, dweight_hr = backward_weights(steps, cache)
    return dx, dweight_ih, dweight_hh, dbias_ih, dbias_hh, dweight_hr, dh0, dc0


@part_of_backward
def backward_data(
    doutputs: tuple[
        Float[Array, "N T P"], tuple[Float[Array, "N P"] | None, Float[Array, "N H"] | None]
    ],
    cache: Cache,
) -> tuple[Float[Array, "N T D"], Float[Array, "N P"] | None, Float[Array, "N H"] | None, Steps]:
    """dx, dh0, dc0, and what `backward_weights` needs; cuDNN's backward-data.

    dh_t = dy_t + W_hhᵀ da_{t+1},  dm_t = W_hrᵀ dh_t,
    dc_t = dm_t ∘ o_t ∘ (1 − tanh²(c_t)) + dc_{t+1} ∘ f_{t+1},  dx_t = W_ihᵀ da_t.
    """
    dy, (dh_n, dc_n) = doutputs
    x, weight_ih, weight_hh, weight_hr, h, c, gates, active, _, _, has_h0, has_c0, reverse = cache
    xp = array_namespace(dy)
    dy_run = in_running_order(dy, active, reverse)
    tanh_c = xp.tanh(c[:, 1:, :])
    dh = zero_state(x, h.shape[-1]) if dh_n is None else dh_n
    dc = zero_state(x, c.shape[-1]) if dc_n is None else dc_n
    das: tuple[Array, ...] = ()
    dhs: tuple[Array, ...] = ()
    for t in reversed(range(x.shape[1])):
        i, f, g, o = blocks(gates[:, t, :], 4)
        tanh_c_t = tanh_c[:, t, :]
        dh_t = dh + dy_run[:, t, :]
        dm = dh_t if weight_hr is None else dh_t @ weight_hr
        dc_t = dc + dm * o * (1.0 - tanh_c_t * tanh_c_t)
        da_i = dc_t * g * i * (1.0 - i)
        da_f = dc_t * c[:, t, :] * f * (1.0 - f)
        da_g = dc_t * i * (1.0 - g * g)
        da_o = dm * tanh_c_t * o * (1.0 - o)
        da_t = xp.concat((da_i, da_f, da_g, da_o), axis=-1)
        dh_before = da_t @ weight_hh
        dc_before = dc_t * f
        dh = dh_before if active is None else xp.where(active[:, t, :], dh_before, dh_t)
        dc = dc_before if active is None else xp.where(active[:, t, :], dc_before, dc)
        das = (da_t, *das)
        dhs = (dh_t, *dhs)
    da_run = xp.stack(das, axis=1)
    dh_run = xp.stack(dhs, axis=1)
    da_steps = da_run if active is None else xp.where(active, da_run, xp.zeros_like(da_run))
    dh_steps = dh_run if active is None else xp.where(active, dh_run, xp.zeros_like(dh_run))
    dx_run = da_steps @ weight_ih
    dx = in_time_order(dx_run, active, reverse)
    dh0 = dh if has_h0 else None
    dc0 = dc if has_c0 else None
    steps = Steps(da_steps, dh_steps)
    return dx, dh0, dc0, steps


@part_of_backward
@accumulating
def backward_weights(
    steps: Steps, cache: Cache
) -> tuple[
    Float[Array, "G D"],
    Float[Array, "G P"],
    Float[Array, "G"] | None,
    Float[Array, "G"] | None,
    Float[Array, "P H"] | None,
]:
    """dW_ih = Σ da_t x_tᵀ,  dW_hh = Σ da_t h_{t−1}ᵀ,  db_ih = db_hh = Σ da_t,  dW_hr = Σ dh_t m_tᵀ.

    cuDNN's backward-weights, which adds to what is there: given `totals`, the same five gradients
    of another call, the result is their sum, in new arrays.
    """
    da_steps, dh_steps = steps
    x, _, _, weight_hr, h, c, gates, active, has_bias_ih, has_bias_hh, _, _, _ = cache
    xp = array_namespace(da_steps)
    rows = math.prod(da_steps.shape[:-1])
    rows_da = xp.reshape(da_steps, (rows, da_steps.shape[-1]))
    rows_x = xp.reshape(x, (rows, x.shape[-1]))
    h_before = h[:, :-1, :]
    states_before = in_time_order(h_before, active, False)
    rows_h = xp.reshape(states_before, (rows, h.shape[-1]))
    dweight_ih = rows_da.T @ rows_x
    dweight_hh = rows_da.T @ rows_h
    dbias_ih = xp.sum(rows_da, axis=0) if has_bias_ih else None
    dbias_hh = xp.sum(rows_da, axis=0) if has_bias_hh else None
    _, _, _, o_steps = blocks(gates, 4)
    m = o_steps * xp.tanh(c[:, 1:, :])
    m_steps = m if active is None else xp.where(active, m, xp.zeros_like(m))
    rows_m = xp.reshape(m_steps, (rows, m_steps.shape[-1]))
    rows_dh = xp.reshape(dh_steps, (rows, dh_steps.shape[-1]))
    dweight_hr = None if weight_hr is None else rows_dh.T @ rows_m
    return dweight_ih, dweight_hh, dbias_ih, dbias_hh, dweight_hr


def gate_order(weight: Float[Array, "G *rest"], frm: str, to: str) -> Float[Array, "G *rest"]:
    """A weight or bias of an LSTM with the blocks of its gates in another order.

    Orders are words of the letters i, f, g and o, in which c is another name of g: PyTorch, Keras
    and this op have "ifgo", Yeung "ifoc", ONNX "iofc".

    Shapes: weight (4H, ...), and so the result.
    Raises ShapeError where the first axis does not divide by 4, ArgumentError for other words.
    """
    before, after = frm.replace("c", "g"), to.replace("c", "g")
    for name, order, given in (("frm", before, frm), ("to", after, to)):
        if sorted(order) != sorted("ifgo"):
            raise ArgumentError(
                f"gate_order: {name} is {given!r}; allowed: the letters i, f, g (or c) and o, "
                "in any order"
            )
    if len(weight.shape) == 0 or weight.shape[0] % 4 != 0:
        raise ShapeError(f"gate_order: weight has shape {tuple(weight.shape)}; allowed: (4 H, ...)")
    xp = array_namespace(weight)
    hidden = weight.shape[0] // 4
    starts = {gate: k * hidden for k, gate in enumerate(before)}
    parts = [weight[starts[gate] : starts[gate] + hidden, ...] for gate in after]
    return xp.concat(parts, axis=0)
