from __future__ import annotations

import numpy as np
import pytest

from handgrad.equations.models.flow import Fork, example_shape, flow_of
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import Conv2d, Embedding, Layer, LayerNorm, Residual, Sequential
from tests.equations.models import MODELS, Scaled, dense, nested, of_data, projected, residual


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def edges(flow):
    return {node.number: node.inputs for node in flow.nodes}


def test_a_residual_forks_and_joins(rng):
    flow = flow_of(residual(rng), (4,))
    assert edges(flow) == {1: (0,), 2: (1,), 3: (2,), 4: (1, 3), 5: (4,)}
    names = [node.name for node in flow.nodes]
    assert names == ["first", "block.inner.0", "block.inner.1", "block", "last"]
    assert [node.number for node in flow.uses(1)] == [2, 4]
    assert [node.is_sum for node in flow.nodes] == [False, False, False, True, False]
    assert flow.output == 5


def test_a_projection_is_the_other_way(rng):
    flow = flow_of(projected(rng), (2, 5, 4))
    assert edges(flow)[7] == (6, 4)
    assert [node.number for node in flow.uses(1)] == [2, 5]
    assert flow.shape(0) == (2, 5, 4)
    assert flow.shape(7) == (4, 5, 4)


def test_a_value_can_fork_more_than_once(rng):
    flow = flow_of(nested(rng), (4,))
    assert [node.number for node in flow.uses(1)] == [2, 3, 5]
    assert [(fork.start, fork.join.number) for fork in flow.forks] == [
        (1, 3),
        (1, 5),
        (5, 7),
        (5, 9),
        (5, 10),
    ]


def test_an_empty_way_is_the_value_itself(rng):
    flow = flow_of(Sequential(dense(rng, 4, 4), Residual(Sequential())), (4,))
    assert edges(flow) == {1: (0,), 2: (1, 1)}
    assert [node.number for node in flow.uses(1)] == [2, 2]
    assert flow.parts[1] == Fork(1, (), (), flow.nodes[1])


def test_gradients_are_needed_behind_the_first_parameter(rng):
    assert flow_of(of_data(rng), (2, 3)).needed == {4, 5, 6}
    assert flow_of(residual(rng), (4,)).needed == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_gradient_is_needed_where_training_computes_it(model, rng):
    """A layer is asked for dx exactly where the graph needs its input's gradient."""
    layer = model.make(rng)
    flow = flow_of(layer, model.input_shape)
    asked = {}
    for node in flow.nodes:
        if not node.is_sum:
            asked[node.number] = False
            node.layer.backward = _recording(node.layer.backward, asked, node.number)
    tokens = isinstance(flow.nodes[0].layer, Embedding)
    shape = (3, *model.input_shape)
    x = rng.integers(0, 7, shape) if tokens else rng.standard_normal(shape)
    y, cache = layer.forward(x, training=True)
    layer.backward(rng.standard_normal(y.shape), cache, input_gradient=False)
    for node in flow.nodes:
        if not node.is_sum:
            assert asked[node.number] == (node.inputs[0] in flow.needed)


def _recording(backward, asked, number):
    def recorded(dy, cache, *, gradients=None, input_gradient=True):
        asked[number] = input_gradient
        return backward(dy, cache, gradients=gradients, input_gradient=input_gradient)

    return recorded


def test_a_container_with_its_own_forward_is_one_node(rng):
    class Twice(Sequential):
        def forward(self, x, *, training=False):
            return super().forward(2 * x, training=training)

    flow = flow_of(Sequential(Twice(dense(rng, 4, 4)), dense(rng, 4, 2)), (4,))
    assert [type(node.layer).__name__ for node in flow.nodes] == ["Twice", "Dense"]


def test_the_first_layer_tells_the_shape_of_an_example(rng):
    assert example_shape(residual(rng)) == (4,)
    assert example_shape(Sequential(Residual(LayerNorm(6)))) == (6,)
    assert example_shape(Embedding(7, 4, rng=rng)) == ()
    assert example_shape(Conv2d(2, 3, 3, rng=rng)) is None
    assert example_shape(Sequential()) is None


def test_mistakes_are_named(rng):
    with pytest.raises(ShapeError, match=r"Dense: an example has shape \(3,\)"):
        flow_of(residual(rng), (3,))
    with pytest.raises(ArgumentError, match=r"the model has no layers"):
        flow_of(Sequential(), (3,))

    class Silent(Layer):
        pass

    with pytest.raises(ArgumentError, match=r"layer 1 does not tell .* Silent.output_shape"):
        flow_of(Sequential(Scaled(4), Silent()), (4,))
