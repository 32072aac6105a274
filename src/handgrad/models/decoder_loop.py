"""The steps of an attention decoder, one after the other, and what of them depends on the last.

Arrays come and go as (N, T, ...). Within the loop a step has (N, ...), and all steps together are
(T, N, ...), time first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from array_api_compat import array_namespace

from handgrad.arrays import Array
from handgrad.models.decoder_cells import Cell
from handgrad.models.decoder_scores import Score, products, rows, sum_over_time, weighted_sum
from handgrad.ops.scores import weights, within

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Cache(NamedTuple):
    """The inputs, and of every step its state and weights; s has s_0 first.

    s (T + 1, N, H), alpha (T, N, S); compared and gates are what score and cell kept of each step.
    """

    score: Score
    cell: Cell
    keys: Array
    values: Array
    s: Array
    alpha: Array
    compared: tuple[Any, ...]
    gates: tuple[Any, ...]


def forward(
    score: Score,
    cell: Cell,
    a: Float[Array, "N T G"],
    keys: Float[Array, "N S A"],
    values: Float[Array, "N S G"],
    s0: Float[Array, "N H"],
    lengths: Int[Array, "N"] | None,
) -> tuple[Float[Array, "N T H"], Cache]:
    """α_j = softmax_i score(s_{j−1}, k_i),  s_j = cell(a_j + Σ_i α_ji m_i, s_{j−1}).

    a is the inputs' part of all steps; values are the m_i. The first `lengths` keys count.
    """
    xp = array_namespace(s0)
    padding = None
    if lengths is not None:
        is_key = within(lengths, keys.shape[1], axes=2)
        padding = xp.where(is_key, 0.0, -math.inf).astype(s0.dtype)
    s_j = s0
    s: tuple[Array, ...] = (s0,)
    alpha: tuple[Array, ...] = ()
    compared: tuple[Any, ...] = ()
    gates: tuple[Any, ...] = ()
    for j in range(a.shape[1]):
        score_j, compared_j = score.step(s_j, keys)
        alpha_j = weights(score_j if padding is None else score_j + padding)
        s_j, gates_j = cell.step(a[:, j, :] + weighted_sum(alpha_j, values), s_j)
        s = (*s, s_j)
        alpha = (*alpha, alpha_j)
        compared = (*compared, compared_j)
        gates = (*gates, gates_j)
    s_run = xp.stack(s, axis=0)
    alpha_run = _over_time(alpha, keys[:, :, 0])
    y = xp.permute_dims(s_run[1:, ...], (1, 0, 2))
    return y, Cache(score, cell, keys, values, s_run, alpha_run, compared, gates)


def backward(
    dy: Float[Array, "N T H"], cache: Cache
) -> tuple[
    Float[Array, "N T G"],
    Float[Array, "N S A+G"],
    Float[Array, "N H"],
    dict[str, Array],
]:
    """(da, [dkeys dvalues], ds0), and the gradients of the parameters that steps use.

    From the last step to the first, through the cell to a_j, through α_j to the scores:
    ds_{j−1} = dy_{j−1} + what comes through the cell of step j and through its scores.
    """
    score, cell, keys, values, s, alpha, compared, gates = cache
    xp = array_namespace(dy)
    dkeys = xp.zeros_like(keys)
    ds = xp.zeros_like(s[0, ...])
    das_input: tuple[Array, ...] = ()
    das_state: tuple[Array, ...] = ()
    dscores: tuple[Array, ...] = ()
    dqueries: tuple[Array, ...] = ()
    for j in reversed(range(alpha.shape[0])):
        da_input, da_state, ds_cell = cell.step_backward(dy[:, j, :] + ds, s[j, ...], gates[j])
        alpha_j = alpha[j, ...]
        dalpha = products(values, da_input)
        dscore = alpha_j * (dalpha - xp.sum(alpha_j * dalpha, axis=-1, keepdims=True))
        ds_score, dquery, dkeys = score.step_backward(dscore, compared[j], keys, dkeys)
        ds = ds_cell + ds_score
        das_input = (da_input, *das_input)
        das_state = (da_state, *das_state)
        dscores = (dscore, *dscores)
        dqueries = (dquery, *dqueries)
    ds0 = ds

    before = s[:-1, ...]
    das_input_run = _over_time(das_input, values[:, 0, :])
    das_state_run = _over_time(das_state, values[:, 0, :])
    dscores_run = _over_time(dscores, keys[:, :, 0])
    dqueries_run = _over_time(dqueries, keys[:, 0, :])
    dkeys, of_score = score.finish(dscores_run, dqueries_run, dkeys, compared, before)
    found = {f"score.{name}": gradient for name, gradient in of_score.items()}
    found["cell.weight_hh"] = rows(das_state_run).T @ rows(before)
    found["cell.bias_hh"] = xp.sum(rows(das_state_run), axis=0)
    found["cell.bias_ih"] = xp.sum(rows(das_input_run), axis=0)
    dvalues = sum_over_time(alpha, das_input_run)
    da = xp.permute_dims(das_input_run, (1, 0, 2))
    return da, xp.concat((dkeys, dvalues), axis=2), ds0, found


def _over_time(steps: tuple[Array, ...], like: Array) -> Array:
    """The arrays of all steps in one, time first; there may be no step, and each is like `like`."""
    xp = array_namespace(like)
    return xp.stack(steps, axis=0) if steps else xp.zeros((0, *like.shape), dtype=like.dtype)
