"""The gradients that notes of a model show are those that the model computes."""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest

from handgrad.documents.formulas.formula import Sign, row
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.flow import flow_of
from handgrad.equations.models.names import Sizes
from handgrad.equations.models.passes import loss_subject, run_forward
from handgrad.equations.models.sample import example, target_for
from handgrad.equations.models.symbols import value_gradient
from handgrad.layers import Layer, Residual, Sequential
from tests.equations.models import MODELS, Scaled, dense, foreign, projected, residual
from tests.layers.cases import CASES
from tests.tolerances import assert_close


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def chained(model, input_shape, loss=None, batch=5):
    """The chain after all nodes, and the steps from the last to the first."""
    flow = flow_of(copy.deepcopy(model), input_shape)
    run = run_forward(flow, example(flow, batch))
    chain = Chain(flow, run, Sizes(), "en")
    y = run.values[-1]
    if loss is not None:
        chain.loss(loss_subject(loss, y, target_for(loss, y)))
    else:
        chain.found.values[flow.output] = np.random.default_rng(1).standard_normal(y.shape)
    steps = [(chain.gathered(node.number), chain.node(node)) for node in reversed(flow.nodes)]
    return chain, steps


def compare(model, input_shape, loss=None):
    chain, _ = chained(model, input_shape, loss)
    flow, values = chain.flow, chain.run.values
    y, cache = model.forward_y(values[0], training=True)
    assert_close(values[-1], y, "float64")
    dy = chain.found.values[flow.output]
    if loss is not None:
        _, loss_cache = loss.forward(y, target_for(loss, y))
        assert_close(dy, loss.backward(loss_cache), "float64")
    _, gradients = model.backward_y(dy, cache, input_gradient=False)
    assert chain.found.parameters.keys() == gradients.keys()
    for name, gradient in gradients.items():
        assert_close(chain.found.parameters[name], gradient, "float64")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_gradients_are_those_of_the_model(model, rng):
    compare(model.make(rng), model.input_shape, model.loss)


#: A chain is compared on normal values, which are no levels.
NUMERIC = [case for case in CASES if not case.levels]


@pytest.mark.parametrize("case", NUMERIC, ids=lambda case: case.name)
def test_every_layer_has_a_chain(case, rng):
    model = case.make(rng)
    if model.layers or not isinstance(model, Sequential):
        compare(model, case.shape[1:])


def test_a_fork_gathers_what_comes_back(rng):
    chain, steps = chained(residual(rng), (4,))
    gathered = {each.left: each.right for each, _ in steps if each is not None}
    both = row(value_gradient(4), Sign("+"), value_gradient(1, 2))
    assert gathered == {value_gradient(3): value_gradient(4), value_gradient(1): both}
    assert_close(chain.found.values[1], chain.found.values[4] + chain.found.copies[1, 2], "float64")


def test_both_ways_of_a_projection_come_back(rng):
    chain, _ = chained(projected(rng), (2, 5, 4))
    assert set(chain.found.copies) == {(1, 2), (1, 5)}


def test_a_value_added_to_itself_counts_twice(rng):
    compare(Sequential(dense(rng, 4, 4), Residual(Sequential()), dense(rng, 4, 2)), (4,))


def test_a_layer_that_does_more_than_its_op_is_written_whole(rng):
    _, steps = chained(foreign(rng), (4,))
    assert not any(step.is_opaque for _, step in steps)


def test_a_layer_without_source_is_opaque(rng):
    source = inspect.getsource(Scaled).replace("class Scaled", "class Hidden")
    names = {"Layer": Layer, "np": np}
    exec(source, names)
    _, steps = chained(names["Hidden"](3), (3,))
    assert [step.is_opaque for _, step in steps] == [True]


def test_what_only_leads_to_the_gradient_of_the_data_is_left_out(rng):
    _, steps = chained(projected(rng), (2, 5, 4))
    first = steps[-1][1]
    assert [equation.name for equation in first.backward[0].equations] == [
        "v",
        "dbias",
        "dw_offsets",
        "dweight",
    ]
