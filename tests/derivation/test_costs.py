from __future__ import annotations

import numpy as np
import pytest

from handgrad.derivation.models.costs import costs
from handgrad.derivation.models.flow import flow_of, flow_of_inputs
from handgrad.dispatch import engine
from handgrad.layers import (
    LSTM,
    Activation,
    Flatten,
    LayerNorm,
    MultiHeadAttention,
    Residual,
    Sequential,
    TransformerBlock,
)
from tests.derivation.models import F64, MODELS, Scaled, dense


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _reference():
    """Caches are what the op's contract says, with or without kernels."""
    with engine("reference"):
        yield


def columns(model, shape, batch=3):
    found = costs(flow_of(model, shape), np.ones((batch, *shape)))
    return [(each.parameters, each.cached, each.forward, each.backward) for each in found]


def test_a_dense_network(rng):
    model = Sequential(Flatten(), dense(rng, 4, 5, "relu"), dense(rng, 5, 2))
    assert columns(model, (2, 2)) == [
        (0, 0, 0, 0),
        # x and a; the gradient of the data is not computed.
        (25, 3 * (4 + 5) * 8, 5 * 9, 5 * 9),
        # h and a; both gradients.
        (12, 3 * (5 + 2) * 8, 2 * 11, 2 * 2 * 11),
    ]


def test_a_fork_adds_its_gradients_at_the_sum(rng):
    model = Sequential(dense(rng, 4, 4), Residual(Activation("tanh")))
    _, tanh, joined = columns(model, (4,))
    assert tanh == (0, 3 * 4 * 8, 4, 4)
    assert joined == (0, 0, 4, 4)
    alone = Sequential(Residual(Sequential(dense(rng, 4, 4))))
    assert columns(alone, (4,))[-1] == (0, 0, 4, 0)


def test_an_array_counts_where_it_is_kept_first(rng):
    model = Sequential(Activation("tanh"), dense(rng, 4, 2), Residual(dense(rng, 2, 2)))
    first, second, third, _ = columns(model, (4,))
    assert first[1] == 3 * 4 * 8  # y, which the next layer keeps too
    assert second[1] == 3 * 2 * 8
    assert third[1] == 3 * (2 + 2) * 8  # x, which is no array that a layer before keeps, and a


def test_parameters_are_not_counted_as_cache(rng):
    (norm,) = columns(LayerNorm(4, dtype=F64), (4,))
    assert norm == (8, 3 * (4 + 1) * 8, 28, 28)  # x̂ and 1/σ, not γ


def test_a_layer_that_does_not_tell_its_flops(rng):
    (cost,) = costs(flow_of(Scaled(4), (4,)), np.ones((3, 4)))
    assert (cost.forward, cost.backward) == (None, None)
    assert cost.cached == 3 * 4 * 8


@pytest.mark.parametrize(
    "model", [each for each in MODELS if each.name != "foreign"], ids=lambda model: model.name
)
def test_forward_is_that_of_the_summary(model, rng):
    layer = model.make(rng)
    flow = flow_of(layer, model.input_shape)
    x = np.ones((3, *model.input_shape), dtype=int if model.name == "words" else F64)
    found = costs(flow, x)
    rows = layer.rows(model.input_shape)
    by_name = {row.name: row for row in rows}
    for cost in found:
        row = by_name[cost.node.name]
        assert (cost.parameters, cost.forward) == (row.parameters, row.flops)
        assert cost.node.shape == row.output_shape


def test_a_first_layer_that_is_several_ops_sends_gradients_through_itself(rng):
    size, hidden, steps = 3, 4, 5
    stack = LSTM(size, hidden, 2, rng=rng, dtype=F64)
    ((_, _, forward, backward),) = columns(stack, (steps, size))
    of_x = steps * 2 * 4 * hidden * size  # the products W_ih x of the first layer
    assert backward == 2 * forward - of_x
    attention = MultiHeadAttention(4, 2, rng=rng, dtype=F64)
    ((_, _, forward, backward),) = columns(attention, (steps, 4))
    assert backward == 2 * forward - 3 * steps * 4 * (2 * 4 + 1)  # q, k, v of x, with biases
    block = TransformerBlock(4, 2, 8, norm="pre", rng=rng, dtype=F64)
    ((_, _, forward, backward),) = columns(block, (steps, 4))
    assert backward == 2 * forward - 7 * steps * 4  # the norm that x goes into first


def test_a_state_that_is_given_costs_what_a_step_does_without(rng):
    layer, x = LSTM(3, 4, rng=rng), np.ones((2, 5, 3), np.float32)
    state = np.ones((1, 2, 4), np.float32)
    inputs = x, (state, state)
    (found,) = costs(flow_of_inputs(layer, inputs), inputs)
    (alone,) = costs(flow_of(layer, (5, 3)), x)
    assert (found.forward, found.backward) == (alone.forward, alone.backward)


def test_what_a_layer_does_not_count_for_several_inputs_is_unknown(rng):
    layer = MultiHeadAttention(4, 2, rng=rng)
    inputs = tuple(np.ones((2, t, 4), np.float32) for t in (5, 3, 3))
    (found,) = costs(flow_of_inputs(layer, inputs), inputs)
    assert (found.forward, found.backward) == (None, None)
