"""The keys of a recipe's layers are what the constructors of the layers take."""

from __future__ import annotations

from typing import Any

import numpy as np

from handgrad.layers import OpLayer
from handgrad.ops import standardize
from handgrad.recipes.constructors import CLASSES, constructed, keys_of
from handgrad.recipes.schema import Flag, Integer, Real
from tests.layers.cases import from_recipe
from tests.rows import rows

SEQUENCE = (5, 4)


class Grouped(OpLayer):
    """A layer that recipes have never seen."""

    op = standardize

    def __init__(
        self,
        num_groups: int,
        channels: int,
        *,
        eps: float = 1e-5,
        slope: float = 0.0,
        bias: bool = True,
        rng: np.random.Generator,
        dtype: Any = np.float32,
    ) -> None:
        raise NotImplementedError


@rows("name", CLASSES)
def test_every_type_is_made_from_what_is_required(name: str) -> None:
    case = from_recipe(name, np.float32)
    layer = case.make(np.random.default_rng(0))
    assert type(layer) is CLASSES[name]
    y, _ = layer.forward_y(case.batch().astype(np.float32))
    assert y.shape == (2, *layer.output_shape(case.shape[1:]))
    assert {array.dtype for array in layer.parameters.values()} <= {np.dtype(np.float32)}


def test_keys_of_a_new_layer_follow_from_its_constructor() -> None:
    keys = keys_of(Grouped)
    assert list(keys) == ["num_groups", "eps", "slope", "bias"]
    assert [each.required for each in keys.values()] == [True, False, False, False]
    assert [each.kind for each in keys.values()] == [Integer(1), Real(0), Real(None), Flag()]


def test_only_layers_that_draw_in_training_get_a_generator_of_their_own() -> None:
    rng = np.random.default_rng(0)
    assert constructed("dropout", {}, SEQUENCE, rng).generators["rng"] is not rng
    assert constructed("dense", {"features": 2}, SEQUENCE, rng).generators == {}


def test_nothing_that_is_no_layer_of_one_op_is_a_type() -> None:
    beside = {"embedding", "sequential", "multi_head_attention", "op_layer", "recurrent", "layer"}
    assert not beside & set(CLASSES)
    assert {"dense", "max_pool2d", "leaky_rnn", "rms_norm", "gru", "flatten"} < set(CLASSES)
