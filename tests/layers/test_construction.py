"""Constructors: what they were given is kept, and what they were not given comes later."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, HandgradError
from handgrad.layers import Layer
from handgrad.layers.base import NotBuiltError


def test_settings_are_the_arguments_that_are_not_at_their_default() -> None:
    rng = np.random.default_rng(0)
    dense = hg.Dense(4, out_features=3, rng=rng, activation="relu", bias=True)
    assert dense.settings == {"in_features": 4, "out_features": 3, "activation": "relu"}
    mlp = hg.MLP([4, 3, 2], rng=rng, dropout=0.5)
    assert mlp.settings == {"sizes": (4, 3, 2), "dropout": 0.5}
    several = hg.Sequential(dense, last=mlp, seed=3)
    assert several.settings == {"*layers": (dense,), "seed": 3, "last": mlp}
    assert hg.Activation("softmax", axis=1).settings == {"name": "softmax", "axis": 1}
    assert hg.Flatten().settings == {}


def test_settings_are_those_of_the_moment() -> None:
    alpha, sizes = np.array([0.1, 0.2]), [4, 3]
    leaky = hg.LeakyRNN(3, 2, rng=np.random.default_rng(0), alpha=alpha)
    mlp = hg.MLP(sizes, rng=np.random.default_rng(0))
    alpha[0], sizes[0] = 9, 9
    np.testing.assert_array_equal(leaky.settings["alpha"], [0.1, 0.2])
    assert mlp.settings["sizes"] == (4, 3)


class Own(hg.Dense):
    """A layer of a program with a constructor of its own."""

    def __init__(self, size: int, *, wide: bool = False) -> None:
        super().__init__(size, 2 * size if wide else size, rng=np.random.default_rng(0))
        self.wide = wide


def test_a_derived_layer_has_its_own_settings() -> None:
    assert Own(3, wide=True).settings == {"size": 3, "wide": True}
    assert list(inspect.signature(Own).parameters) == ["size", "wide"]


def test_copies_keep_the_settings() -> None:
    model = hg.Sequential(hg.Dense(3, 2, rng=np.random.default_rng(0)))
    twin = copy.deepcopy(model)
    assert twin.settings["*layers"][0] is twin.layers["0"]
    waiting = copy.deepcopy(hg.Dense(None, 2)).build((3,))
    assert waiting.parameters["weight"].shape == (2, 3)
    again = pickle.loads(pickle.dumps(hg.Dense(None, 2)))
    assert again.build((3,)).settings == {"in_features": 3, "out_features": 2}


def test_a_call_is_a_forward_without_training() -> None:
    model = hg.Sequential(hg.Dense(3, 4), hg.Dropout(0.5), hg.BatchNorm(4), seed=0)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(model(x), model.forward(x)[0])


def test_a_seed_draws_as_one_generator_does() -> None:
    seeded = hg.Sequential(hg.Dense(4, 3), hg.Dense(3, 2), seed=5)
    rng = np.random.default_rng(5)
    given = hg.Sequential(hg.Dense(4, 3, rng=rng), hg.Dense(3, 2, rng=rng))
    for name, array in given.parameters.items():
        np.testing.assert_array_equal(seeded.parameters[name], array)


def test_sizes_come_from_the_layer_before() -> None:
    model = hg.Sequential(
        hg.Conv2d(None, 4, 3, padding=1),
        hg.BatchNorm(None),
        hg.Residual(hg.Sequential(hg.Conv2d(None, 4, 1), hg.GroupNorm(2, None))),
        hg.AvgPool2d("global"),
        hg.Flatten(),
        hg.LayerNorm(None),
        hg.Dense(None, 3),
    )
    assert not model.is_built
    assert model.build((2, 6, 6), seed=1) is model
    assert model.is_built
    assert model.output_shape((2, 6, 6)) == (3,)
    again = copy.deepcopy(model).build((2, 6, 6), seed=2)
    np.testing.assert_array_equal(again.parameters["6.weight"], model.parameters["6.weight"])


@pytest.mark.parametrize(
    "layer",
    [
        hg.LSTM(None, 4),
        hg.GRU(None, 4),
        hg.RNN(None, 4),
        hg.TransformerEncoder(1, None, 2, 8),
        hg.FeedForward(None, 8),
        hg.MultiHeadAttention(None, 2),
        hg.RMSNorm(None),
        hg.SequenceClassifier(None, 4, 2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_of_steps_take_the_size_of_a_step(layer: Layer) -> None:
    layer.build((5, 6))
    y = layer.forward_y(np.zeros((2, 5, 6), np.float32))[0]
    assert len(y) == 2


def test_a_layer_of_a_seeded_model_draws_masks_of_its_own() -> None:
    model = hg.Sequential(hg.Dense(3, 3), hg.Dropout(0.5), hg.Dropout(0.5), seed=0)
    one, two = model.generators.values()
    assert one is not two


@pytest.mark.parametrize(
    "work",
    [
        lambda layer: layer(np.zeros((1, 3))),
        lambda layer: layer.parameters,
        lambda layer: layer.bind(),
        lambda layer: layer.output_shape((3,)),
        lambda layer: hg.Sequential(layer).parameters,
    ],
)
def test_use_before_building_says_what_is_missing(work: object) -> None:
    message = "Dense has no weights yet, because in_features and rng were left open; allowed: build"
    with pytest.raises(NotBuiltError, match=message):
        work(hg.Dense(None, 3))  # type: ignore[operator]


def test_building_names_the_layer_that_lacks_a_shape_or_is_wrong() -> None:
    model = hg.Sequential(a=hg.Dense(2, 3), b=hg.Residual(hg.Dense(None, 3)))
    with pytest.raises(ArgumentError, match=r"build: Dense \(layer b.inner\) has in_features None"):
        model.build()
    wrong = hg.Sequential(hg.Conv2d(None, 4, 3, groups=3))
    with pytest.raises(HandgradError, match=r"build: Conv2d \(layer 0\): Conv2d: groups is 3"):
        wrong.build((2, 6, 6))
