from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.dispatch import engine
from handgrad.equations.models.costs import costs
from handgrad.equations.models.flow import flow_of, flow_of_inputs
from handgrad.layers import (
    LSTM,
    Activation,
    Dense,
    Flatten,
    Layer,
    LayerNorm,
    MultiHeadAttention,
    Residual,
    Sequential,
    TransformerBlock,
    walk,
)
from tests.equations.models import F64, MODELS, Scaled, dense
from tests.layers.cases import CASES


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


def _costs_of(model: Layer, inputs: tuple[Any, ...]) -> tuple[int, int]:
    """FLOPs forward and backward."""
    alone = len(inputs) == 1
    flow = flow_of(model, inputs[0].shape[1:]) if alone else flow_of_inputs(model, inputs)
    found = costs(flow, inputs[0] if alone else inputs)
    return sum(each.forward or 0 for each in found), sum(each.backward or 0 for each in found)


def _products(model: Layer, steps: int) -> int:
    """FLOPs of the products of a model of tokens: of each matrix, at each step, and of attention.

    A pooler is multiplied with one step, a tied table with all.
    """
    found = 0
    for name, layer in walk(model):
        if isinstance(layer, Dense):
            found += 2 * layer.weight.size * (1 if name == "pooler" else steps)
        if isinstance(layer, MultiHeadAttention):
            found += 2 * layer.heads * steps**2 * sum(layer.head_sizes)
    if getattr(model, "head", layer) is None:
        found += 2 * model.tokens.weight.size * steps
    return found


SIZES = {"context": 8, "width": 8, "heads": 2, "blocks": 2}
OF_TOKENS = {
    "GPT": lambda rng: hg.GPT(7, **SIZES, rng=rng),
    "GPT, untied": lambda rng: hg.GPT(7, **SIZES, tied=False, rng=rng),
    "GPT, recomputed": lambda rng: hg.GPT(7, **SIZES, recompute=True, rng=rng),
    "Llama": lambda rng: hg.Llama(7, **SIZES, hidden=12, kv_heads=1, rng=rng),
    "BERT": lambda rng: hg.Bert(7, **SIZES, rng=rng),
    "BERT, pooled": lambda rng: hg.Bert(7, **SIZES, pooling="first", rng=rng),
}


@pytest.mark.parametrize("make", OF_TOKENS.values(), ids=OF_TOKENS)
def test_each_product_of_a_model_of_tokens_costs_two_in_backward(make, rng):
    model, steps = make(rng), 6
    forward, backward = _costs_of(model, (np.ones((2, steps), int),))
    products = _products(model, steps)
    assert 0.5 * forward < products <= forward
    assert 2 * products <= backward <= 2 * forward


def test_tokens_of_two_texts_have_no_gradient_to_save(rng):
    texts = (np.ones((2, 5), int), np.array([5, 3]), np.ones((2, 4), int))
    sizes = {"d_model": 8, "heads": 2, "hidden": 12, "encoder_blocks": 2, "decoder_blocks": 1}
    transformer = hg.Transformer(7, 7, **sizes, rng=rng)
    forward, backward = _costs_of(transformer, texts)
    assert backward == 2 * forward
    translator = hg.Seq2Seq(7, 7, embedding=3, hidden=4, rng=rng)
    forward, backward = _costs_of(translator, texts)
    assert backward == 2 * forward


def test_vectors_have_only_the_products_that_they_go_into_to_save(rng):
    x = rng.standard_normal((2, 5, 3))
    net = hg.TwoLayerNet(5, 3, 4, 2, rng=rng, dtype=F64)
    forward, backward = _costs_of(net, (x,))
    assert backward == 2 * forward - 5 * 15 - 2 * 4 * 3 * 5  # x̂, W₁ x̂
    tagger = hg.SequenceClassifier(3, 4, 2, rng=rng, dtype=F64)
    forward, backward = _costs_of(tagger, (x,))
    assert backward == 2 * forward - tagger.recurrent.input_flops((5, 3))
    residual = Residual(dense(rng, 3, 4), dense(rng, 3, 4))
    assert residual.input_flops((3,)) == 2 * (4 * 7)
    low = hg.lora.adapt(Sequential(dense(rng, 3, 4)), rank=2, targets=["0"])
    assert low.input_flops((3,)) == 4 * 7 + 2 * 2 * 3


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_layer_saves_more_than_its_first_products(case, rng):
    layer = case.make(rng)
    flops, saved = layer.flops(case.shape[1:]), layer.input_flops(case.shape[1:])
    several = len([each for _, each in walk(layer) if each.parameter_names and not each.layers]) > 1
    assert saved == 0 if case.tokens else 0 <= saved <= flops
    assert not (several and flops and saved == flops)
