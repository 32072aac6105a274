from __future__ import annotations

import tomllib

import numpy as np
import pytest

from handgrad import layers, recipes
from handgrad.data import Dataset, Pixels
from handgrad.errors import RecipeError
from handgrad.ops import standardize
from handgrad.recipes.building import build_schedule
from handgrad.recipes.recipe import Recipe
from handgrad.recipes.tasks import classification


def recipe_for(described: str, **sections: dict) -> Recipe:
    tables = {
        "data": {"name": "toy"},
        "model": tomllib.loads(f"layers = [{described}]"),
        "optimizer": {"type": "sgd"},
        "training": {"epochs": 2},
        **sections,
    }
    return Recipe.from_tables("toy", tables)


def model_for(recipe: Recipe, shape: tuple[int, ...], classes: int) -> layers.Layer:
    found = {"shape": list(shape), "classes": [str(i) for i in range(classes)]}
    return recipes.build_model(recipe.changed("data", **found))


def test_input_sizes_are_inferred():
    recipe = recipe_for(
        '{type = "conv2d", channels = 4, kernel_size = 3, stride = 2, activation = "relu"},'
        '{type = "batch_norm"},'
        '{type = "residual", layers = ['
        '  {type = "conv2d", channels = 6, kernel_size = [3, 1], padding = [1, 0]}],'
        '  projection = [{type = "conv2d", channels = 6, kernel_size = 1, bias = false}]},'
        '{type = "avg_pool2d", kernel_size = "global"},'
        '{type = "flatten"},'
        '{type = "layer_norm"},'
        '{type = "dropout", p = 0.5},'
        '{type = "dense", features = 5, initializer = "orthogonal"},'
        '{type = "activation", name = "tanh"},'
        '{type = "dense", features = 3}'
    )
    model = model_for(recipe, (1, 9, 7), 3)
    assert model.parameters["2.inner.0.weight"].shape == (6, 4, 3, 1)
    assert model.parameters["2.projection.0.weight"].shape == (6, 4, 1, 1)
    assert model.parameters["7.weight"].shape == (5, 6)
    y, _ = model.forward(np.zeros((2, 1, 9, 7), np.float32))
    assert y.shape == (2, 3)


def test_recurrent_layers_read_the_rows_of_an_example():
    recipe = recipe_for(
        '{type = "leaky_rnn", hidden_size = 4, alpha = 0.5},'
        '{type = "rnn", hidden_size = 5, nonlinearity = "relu"},'
        '{type = "gru", hidden_size = 6, num_layers = 2, dropout = 0.5},'
        '{type = "lstm", hidden_size = 7, proj_size = 3, bidirectional = true, forget_bias = 1.0},'
        '{type = "last_step", bidirectional = true},'
        '{type = "dense", features = 3}'
    )
    model = model_for(recipe, (9, 7), 3)
    assert model.parameters["0.weight_ih_l0"].shape == (4, 7)
    assert model.parameters["3.weight_ih_l0_reverse"].shape == (28, 6)
    assert model.parameters["5.weight"].shape == (3, 6)
    assert list(model.generators) == ["2.rng"]
    y, _ = model.forward(np.zeros((2, 9, 7), np.float32))
    assert y.shape == (2, 3)


def test_standardize_takes_the_axes_that_it_is_told():
    recipe = recipe_for(
        '{type = "standardize", axes = [2, 3]}, {type = "flatten"}, {type = "dense", features = 2}'
    )
    x = np.random.default_rng(0).normal(3, 5, (4, 2, 6, 6)).astype(np.float32)
    y, _ = model_for(recipe, (2, 6, 6), 2).layers["0"].forward(x)
    np.testing.assert_array_equal(y, standardize.forward(x, axes=(2, 3))[0])
    with pytest.raises(RecipeError, match=r"Standardize: axes are .* allowed: 1 to 2"):
        model_for(recipe, (6, 6), 2)


def test_sequences_are_pooled_and_made_longer():
    recipe = recipe_for(
        '{type = "conv1d", channels = 4, kernel_size = 3},'
        '{type = "max_pool1d", kernel_size = 2},'
        '{type = "conv_transpose1d", channels = 5, kernel_size = 3, stride = 2},'
        '{type = "avg_pool1d", kernel_size = "global"},'
        '{type = "flatten"}, {type = "dense", features = 3}'
    )
    model = model_for(recipe, (6, 10), 3)
    assert model.parameters["2.weight"].shape == (4, 5, 3)
    assert [row.output_shape for row in model.rows((6, 10))][1:4] == [(4, 4), (5, 9), (5, 1)]


def test_steps_are_pooled() -> None:
    recipe = recipe_for(
        '{type = "gru", hidden_size = 6}, {type = "step_pooling", pooling = "max"},'
        '{type = "dense", features = 3}'
    )
    assert [row.output_shape for row in model_for(recipe, (9, 7), 3).rows((9, 7))][1] == (6,)
    with pytest.raises(RecipeError, match=r'pooling is "sum"; allowed: mean, max'):
        recipe_for('{type = "step_pooling", pooling = "sum"}')


def test_a_recurrent_layer_takes_the_biases_of_a_mode():
    recipe = recipe_for(
        '{type = "gru", hidden_size = 6, bias = "recurrent"},'
        '{type = "rnn", hidden_size = 5, bias = "input"},'
        '{type = "lstm", hidden_size = 4, bias = false},'
        '{type = "last_step"}, {type = "dense", features = 3}'
    )
    names = [name for name in model_for(recipe, (9, 7), 3).parameters if "bias_" in name]
    assert names == ["0.bias_hh_l0", "1.bias_ih_l0"]


def test_a_recurrent_layer_may_learn_its_initial_state():
    recipe = recipe_for(
        '{type = "lstm", hidden_size = 6, learn_h0 = true},'
        '{type = "last_step"}, {type = "dense", features = 3}'
    )
    names = list(model_for(recipe, (9, 7), 3).parameters)
    assert names[4:6] == ["0.h0", "0.c0"]


def test_a_sequence_classifier_takes_bias_modes_and_learned_states():
    tables = {
        "type": "sequence_classifier",
        "hidden_size": 5,
        "cell": "lstm",
        "bias": "recurrent",
        "learn_h0": True,
    }
    model = model_for(recipe_for("", model=tables), (9, 7), 3)
    own = [name.removeprefix("recurrent.") for name in model.parameters if "recurrent" in name]
    assert own == ["weight_ih_l0", "weight_hh_l0", "bias_hh_l0", "h0", "c0"]


def test_the_encoder_of_seq2seq_takes_bias_modes_and_learned_states():
    settings = {"embedding": 3, "hidden": 4, "encoder": "rnn", "bias": "input", "learn_h0": True}
    recipe = recipe_for("", model={"type": "seq2seq", **settings})
    names = recipes.build_model(recipe.changed("data", vocabularies=[9, 7])).parameters
    own = [name.removeprefix("encoder.") for name in names if name.startswith("encoder.")]
    assert own[:3] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0"]
    assert own[-1] == "h0"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            '{type = "gru", hidden_size = 6, bias = "single"}',
            'bias is "single"; allowed: true or false; or none, input, recurrent, double',
        ),
        (
            '{type = "leaky_rnn", hidden_size = 6, alpha = 0.5, bias = "double"}',
            "LeakyRNN: bias is 'double'; allowed: True, False, none, input",
        ),
    ],
)
def test_an_unknown_bias_mode_is_refused(layer, message):
    with pytest.raises(RecipeError, match=message):
        model_for(recipe_for(layer + ', {type = "last_step"}'), (9, 7), 6)


@pytest.mark.parametrize("shape", [(1, 6, 6), (4, 9), (12,)])
def test_standardize_takes_the_whole_example(shape):
    recipe = recipe_for(
        '{type = "standardize"}, {type = "flatten"}, {type = "dense", features = 2}'
    )
    model = model_for(recipe, shape, 2)
    x = np.random.default_rng(0).normal(3, 5, (4, *shape)).astype(np.float32)
    standard = model.layers["0"].forward(x)[0].reshape(4, -1)
    np.testing.assert_allclose(standard.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(standard.std(axis=1), 1, atol=1e-3)


CONV = '{type = "conv2d", channels = 4, kernel_size = 3}'
FLAT = '{type = "flatten"}'


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (
            f'{CONV}, {{type = "conv2d", channels = 4, kernel_size = 9}}',
            r"model.layers\[1\].kernel_size: Conv2d: an example has shape \(4, 6, 6\)",
        ),
        (
            '{type = "max_pool2d", kernel_size = 9}',
            r"model.layers\[0\].kernel_size: MaxPool2d: an example has shape \(1, 8, 8\)",
        ),
        (
            '{type = "conv2d", channels = 4, kernel_size = 3, groups = 3}',
            r"model.layers\[0\]: Conv2d: groups is 3",
        ),
        (
            '{type = "dense", features = 3}',
            r"model.layers\[0\].type: dense gets an example of shape \(1, 8, 8\); allowed: \(D,\)",
        ),
        (
            '{type = "lstm", hidden_size = 3}',
            r"model.layers\[0\].type: lstm gets an example of shape \(1, 8, 8\); allowed: \(T, D\)",
        ),
        (
            f"{FLAT}, {CONV}",
            r"model.layers\[1\].type: conv2d gets an example of shape \(64,\); allowed: \(C, H",
        ),
        (
            f'{FLAT}, {{type = "dense", features = 4}}',
            r"model.layers\[1\] gives an example of shape \(4,\); allowed: \(3,\)",
        ),
        (
            f'{{type = "residual", layers = [{CONV}]}}',
            r"model.layers\[0\].type: Residual: the branch gives an example of shape \(4, 6, 6\)",
        ),
        (
            '{type = "residual", layers = [{type = "max_pool2d", kernel_size = 9}]}',
            r"model.layers\[0\].layers\[0\].kernel_size: MaxPool2d",
        ),
    ],
)
def test_an_impossible_shape_names_the_layer(described, message):
    with pytest.raises(RecipeError, match=f"toy: {message}"):
        model_for(recipe_for(described), (1, 8, 8), 3)


def test_the_seed_decides_the_first_weights():
    def weights(seed):
        recipe = recipes.read("digits", [f"training.seed={seed}"])
        return model_for(recipe, (1, 8, 8), 10).parameters["0.weight"]

    np.testing.assert_array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(1))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"type": "constant"}, {0: 0.5, 19: 0.5}),
        ({"type": "step", "epochs": 1, "gamma": 0.1}, {9: 0.5, 10: 0.05}),
        ({"type": "cosine"}, {0: 0.5, 10: 0.25, 20: 0.0}),
        ({"type": "cosine", "warmup": 0.5, "eta_min": 0.1}, {0: 0.0, 5: 0.5, 20: 0.1}),
        ({"type": "linear_warmup", "epochs": 1, "start_factor": 0.5}, {0: 0.25, 10: 0.5, 19: 0.5}),
        ({"type": "one_cycle", "div_factor": 10, "pct_start": 0.5}, {0: 0.05, 9: 0.5}),
    ],
)
def test_schedules_count_in_epochs(schedule, expected):
    found = build_schedule(recipe_for(FLAT, schedule=schedule), 0.5, steps_per_epoch=10)
    for step, rate in expected.items():
        assert found(step) == pytest.approx(rate)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "nesterov", "rmsprop", "adam", "adamw"])
def test_every_optimizer_can_be_built(kind):
    recipe = recipe_for(FLAT, optimizer={"type": kind, "lr": 0.25, "weight_decay": 0.1})
    assert recipes.building.build_optimizer(recipe).lr == 0.25


def test_every_augmentation_can_be_built():
    steps = [
        {"type": "affine", "rotation": 5, "scale": 0.1, "shear": 0.1, "shift": 1, "elastic": 0.5},
        {"type": "shift", "pixels": 2, "fill": 0.5},
        {"type": "flip", "probability": 0.3},
    ]
    augment = recipes.building.build_augmentation(recipe_for(FLAT, augmentation={"steps": steps}))
    x = np.ones((3, 1, 8, 8), np.float32)
    assert augment(x, np.random.default_rng(0)).shape == x.shape


def toy() -> Dataset:
    x = np.arange(160, dtype=np.uint8).reshape(20, 8)
    y = np.arange(20) % 2
    return Dataset("toy", Pixels(x[:16]), y[:16], Pixels(x[16:]), y[16:], ("even", "odd"))


def test_the_config_of_a_run_needs_no_data_to_be_rebuilt():
    recipe = recipe_for('{type = "dense", features = 2}')
    config = Recipe.parse(
        "again", recipes.build(recipe, classification.of(recipe, toy())).config.text
    )
    assert config.data["shape"] == [8]
    assert config.data["classes"] == ["even", "odd"]
    assert config.data["maximum"] == 255
    assert config.training["seed"] == 0
    assert isinstance(model_for(config, (8,), 2), layers.Sequential)


def test_the_recipe_shapes_scales_names_and_divides_the_data(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x=np.arange(320.0).reshape(20, 16), y=np.arange(20) % 2)
    changes = {"path": str(path), "shape": [1, 4, 4], "maximum": 319, "classes": ["a", "b"]}
    recipe = recipe_for(FLAT, data={"name": "mine", "validation": 0.25, **changes})
    data = classification.load_data(recipe)
    assert data.input_shape == (1, 4, 4)
    assert data.x_train[:].max() <= 1
    assert data.classes == ("a", "b")
    assert (len(data.x_train), len(data.x_validation), len(data.x_test)) == (12, 4, 4)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("shape", [3, 3], r"data.shape is \[3, 3\], 9 values; allowed: 64 values"),
        ("classes", ["a"], "data.classes has 1 names; allowed: 10"),
    ],
)
def test_a_shape_or_names_that_do_not_fit_the_data(key, value, message):
    with pytest.raises(RecipeError, match=message):
        classification.load_data(recipes.read("digits").changed("data", **{key: value}))
