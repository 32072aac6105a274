"""Cells step by step give what the recurrent ops give for a whole sequence."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from handgrad.errors import ArgumentError
from handgrad.models.decoder_cells import Cell, make_cell
from handgrad.ops import gru, rnn
from tests.tolerances import assert_close

BATCH, STEPS, INPUTS, HIDDEN = 3, 4, 5, 6


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def make(kind: str) -> Cell:
    return make_cell(kind, INPUTS, HIDDEN, rng=np.random.default_rng(1), dtype=np.float64)


@pytest.mark.parametrize(("kind", "op"), [("tanh", rnn), ("gru", gru)])
def test_steps_are_the_op(kind: str, op: ModuleType) -> None:
    cell = make(kind)
    x, h0, dy = normal(2, BATCH, STEPS, INPUTS), normal(3, BATCH, HIDDEN), normal(4, BATCH, 4, 6)
    (y, _), cache = op.forward(x, *cell.parameters.values(), h0)
    dx, _, _, dbias_ih, dbias_hh, dh0 = op.backward((dy, None), cache)

    states, kept = [h0], []
    for j in range(STEPS):
        s, kept_of_step = cell.step(x[:, j] @ cell.weight_ih.T + cell.bias_ih, states[-1])
        assert_close(s, y[:, j], "float64", "s")
        states.append(s)
        kept.append(kept_of_step)
    ds = np.zeros_like(h0)
    totals = [np.zeros_like(cell.bias_ih), np.zeros_like(cell.bias_hh)]
    for j in reversed(range(STEPS)):
        da_input, da_state, ds = cell.step_backward(dy[:, j] + ds, states[j], kept[j])
        assert_close(da_input @ cell.weight_ih, dx[:, j], "float64", "dx")
        totals = [totals[0] + da_input.sum(axis=0), totals[1] + da_state.sum(axis=0)]
    assert_close(ds, dh0, "float64", "ds0")
    assert_close(totals[0], dbias_ih, "float64", "dbias_ih")
    assert_close(totals[1], dbias_hh, "float64", "dbias_hh")


def test_a_sigmoid_cell_is_the_notes() -> None:
    """s_j = sigmoid(W_s [s_{j−1}; c_j]), Yamanishi (17)."""
    cell = make("sigmoid")
    cell.bias_ih[...] = cell.bias_hh[...] = 0.0
    c, s = normal(2, BATCH, INPUTS), normal(3, BATCH, HIDDEN)
    weight = np.concatenate((cell.weight_hh, cell.weight_ih), axis=1)
    expected = 1 / (1 + np.exp(-(np.concatenate((s, c), axis=1) @ weight.T)))
    found, _ = cell.step(c @ cell.weight_ih.T + cell.bias_ih, s)
    assert_close(found, expected, "float64")


def test_an_unknown_cell_is_refused() -> None:
    with pytest.raises(ArgumentError, match="cell is 'lstm'; allowed: sigmoid, tanh, gru"):
        make("lstm")
