"""The steps of an attention decoder, one after the other, and what of them depends on the last.

Arrays come and go as (N, T, ...). Within the loop a step has (N, ...), and all steps together are
(T, N, ...), time first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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
    compared: list[Any]
    gates: list[Any]


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
    steps = a.shape[1]
    s = np.empty((steps + 1, *s0.shape), dtype=s0.dtype)
    alpha = np.empty((steps, *keys.shape[:2]), dtype=s0.dtype)
    padding = None
    if lengths is not None:
        padding = np.where(within(lengths, keys.shape[1], axes=2), 0.0, -np.inf).astype(s0.dtype)
    compared: list[Any] = []
    gates: list[Any] = []
    s[0] = s0
    for j in range(steps):
        score_j, compared_j = score.step(s[j], keys)
        alpha[j] = weights(score_j if padding is None else score_j + padding)
        s[j + 1], gates_j = cell.step(a[:, j] + weighted_sum(alpha[j], values), s[j])
        compared.append(compared_j)
        gates.append(gates_j)
    y = np.ascontiguousarray(s[1:].transpose(1, 0, 2))
    return y, Cache(score, cell, keys, values, s, alpha, compared, gates)


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
    dy_of_step = dy.transpose(1, 0, 2)
    das_input = np.empty((*alpha.shape[:2], values.shape[2]), dtype=s.dtype)
    das_state = np.empty_like(das_input)
    dscores = np.empty_like(alpha)
    dqueries = np.empty((*alpha.shape[:2], keys.shape[2]), dtype=s.dtype)
    dkeys = np.zeros_like(keys)
    ds = np.zeros_like(s[0])
    for j in reversed(range(len(alpha))):
        das_input[j], das_state[j], ds = cell.step_backward(dy_of_step[j] + ds, s[j], gates[j])
        dalpha = products(values, das_input[j])
        dscores[j] = alpha[j] * (dalpha - np.sum(alpha[j] * dalpha, axis=-1, keepdims=True))
        ds_score, dqueries[j] = score.step_backward(dscores[j], compared[j], keys, dkeys)
        ds += ds_score
    ds0 = ds

    before = s[:-1]
    dkeys, of_score = score.finish(dscores, dqueries, dkeys, compared, before)
    found = {f"score.{name}": gradient for name, gradient in of_score.items()}
    found["cell.weight_hh"] = rows(das_state).T @ rows(before)
    found["cell.bias_hh"] = np.sum(rows(das_state), axis=0)
    found["cell.bias_ih"] = np.sum(rows(das_input), axis=0)
    dvalues = sum_over_time(alpha, das_input)
    da = np.ascontiguousarray(das_input.transpose(1, 0, 2))
    return da, np.concatenate((dkeys, dvalues), axis=2), ds0, found
