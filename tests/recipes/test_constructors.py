"""The keys of a recipe's layers are what the constructors of the layers take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from handgrad.layers import OpLayer
from handgrad.ops import standardize
from handgrad.recipes.constructors import CLASSES, KEYS, constructed, keys_of
from handgrad.recipes.schema import Flag, Integer, Number

#: A value for every key that has to be given.
REQUIRED = {
    "alpha": 0.5,
    "channels": 4,
    "features": 4,
    "hidden_size": 4,
    "kernel_size": 2,
    "name": "relu",
}
IMAGE, SEQUENCE = (3, 6, 6), (5, 4)


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


@pytest.mark.parametrize("name", CLASSES)
def test_every_type_is_made_from_what_is_required(name: str) -> None:
    settings = {key: REQUIRED[key] for key, each in KEYS[name].items() if each.required}
    images = name.endswith("2d") or name in ("batch_norm", "flatten")
    shape = IMAGE if images else SEQUENCE
    layer = constructed(name, settings, shape, np.random.default_rng(0))
    assert type(layer) is CLASSES[name]
    x = np.ones((2, *shape), np.float32)
    y, _ = layer.forward_y(x)
    assert y.shape == (2, *layer.output_shape(shape))


def test_keys_of_a_new_layer_follow_from_its_constructor() -> None:
    keys = keys_of(Grouped)
    assert list(keys) == ["num_groups", "eps", "slope", "bias"]
    assert [each.required for each in keys.values()] == [True, False, False, False]
    assert [each.kind for each in keys.values()] == [Integer(1), Number(0), Number(None), Flag()]


def test_only_layers_that_draw_in_training_get_a_generator_of_their_own() -> None:
    rng = np.random.default_rng(0)
    assert constructed("dropout", {}, SEQUENCE, rng).generators["rng"] is not rng
    assert constructed("dense", {"features": 2}, SEQUENCE, rng).generators == {}


def test_nothing_that_is_no_layer_of_one_op_is_a_type() -> None:
    beside = {"embedding", "sequential", "multi_head_attention", "op_layer", "recurrent", "layer"}
    assert not beside & set(CLASSES)
    assert {"dense", "max_pool2d", "leaky_rnn", "rms_norm", "gru", "flatten"} < set(CLASSES)
