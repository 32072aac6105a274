from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from handgrad import recipes
from handgrad.errors import RecipeError
from handgrad.recipes.changes import to_toml
from handgrad.recipes.recipe import Recipe


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_that_comes_with_handgrad_is_valid(name):
    recipe = recipes.read(name)
    assert recipe.description
    assert tomllib.loads(to_toml(recipe.tables)) == recipe.tables


def test_the_names():
    assert recipes.names() == [
        "cifar-cnn",
        "dates",
        "digits",
        "fashion-cnn",
        "finetune-text",
        "mnist-cnn",
        "mnist-mlp",
        "mnist-mlp-adam",
        "mnist-rows-lstm",
        "mnist-rows-lstm-sgd",
        "pictures",
        "pronounce",
        "series-encoder",
        "table",
        "text",
        "translate",
        "vowels",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("modle.layers=[]", "modle is an unknown key; .* did you mean model?"),
        ("model.layers=[]", "model.layers is empty"),
        ("model.layers=3", "model.layers is 3; allowed: a list of tables"),
        ("model.layers[0].chanels=8", r"layers\[0\].chanels is an unknown key; .*mean channels?"),
        ("model.layers[0].channels=2.5", r"layers\[0\].channels is 2.5; allowed: an integer of at"),
        ("model.layers[0].channels=0", r"layers\[0\].channels is 0; allowed: an integer of at"),
        (
            "model.layers[0].activation=rely",
            r'layers\[0\].activation is "rely".*did you mean relu?',
        ),
        ("model.layers[0].type=conv3d", r'layers\[0\].type is "conv3d"; .* did you mean conv2d?'),
        ("model.layers[9].p=2", r"layers\[9\].p is 2; allowed: a number from 0 to 1"),
        ("optimizer.type=adma", 'optimizer.type is "adma"; .* did you mean adam?'),
        ("optimizer.momentum=0.9", "optimizer.momentum is an unknown key; allowed: type, lr"),
        ("optimizer.lr=0", "optimizer.lr is 0; allowed: a number above 0"),
        ("optimizer.betas=[0.9, 1]", r"optimizer.betas is \[0.9, 1\]; allowed: a list of 2"),
        ("schedule=3", "schedule is 3; allowed: a table with a type"),
        ("schedule.epochs=3", "schedule.epochs is an unknown key"),
        ("augmentation.steps=[3]", "augmentation.steps is"),
        (
            "augmentation.steps[0].rotation=-1",
            r"steps\[0\].rotation is -1; allowed: a number of at",
        ),
        ("training.epochs=0", "training.epochs is 0; allowed: an integer of at least 1"),
        ("training.seed=-1", "training.seed is -1; allowed: an integer of at least 0"),
        ("training.precision=int4", 'precision is "int4"; allowed: float32, bf16'),
        ("training.early_stopping=3", "early_stopping is 3 without data.validation"),
        ("data.validation=1", "data.validation is 1; allowed: a number 0 or more and below 1"),
        ("data.shape=[]", r"data.shape is \[\]"),
    ],
)
def test_a_wrong_recipe_names_the_key(change, message):
    with pytest.raises(RecipeError, match=message) as caught:
        recipes.read("digits", [change])
    assert str(caught.value).startswith("digits: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("optimizer.lr", "found no key and value; allowed: key=value"),
        ("=3", "found no key and value"),
        ("a b=3", "found no key and value"),
        ("model.layers[99].p=1", r"there is no \[99\]; allowed: below 13"),
        ("model.layres[0].p=1", "there is no layres; allowed: layers"),
        ("description.x=1", "x is inside"),
    ],
)
def test_a_change_that_leads_nowhere(change, message):
    with pytest.raises(RecipeError, match=message):
        recipes.read("digits", [change])


def test_changes_are_read_as_toml_or_as_plain_words():
    changes = ["optimizer.lr=1e-4", "optimizer.type=adam", "model.layers[0].kernel_size=[3, 5]"]
    recipe = recipes.read("digits", [*changes, 'loss = {type = "cross_entropy"}'])
    assert recipe.optimizer.settings["lr"] == 1e-4
    assert recipe.optimizer.type == "adam"
    assert recipe.layers.parts[0].settings["kernel_size"] == [3, 5]


def test_a_section_that_is_missing_can_be_made_by_a_change():
    recipe = recipes.read("mnist-mlp", ["loss.type=cross_entropy", "loss.label_smoothing=0.1"])
    assert recipe.loss.settings == {"label_smoothing": 0.1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = [", "not TOML"),
        ("", "data is missing; allowed: a table"),
        ("[data]\n[model]\n[optimizer]\n[training]\n", "model.layers is missing"),
    ],
)
def test_a_file_that_is_no_recipe(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=message) as caught:
        recipes.read(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dgits", "dgits is no recipe; allowed: cifar-cnn, dates, digits, .*did you mean digits?"),
        ("/nowhere/mine.toml", "is missing; expected a recipe in TOML"),
    ],
)
def test_a_recipe_that_does_not_exist(name, message):
    with pytest.raises(RecipeError, match=message):
        recipes.read(name)


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / "sales.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(
        RecipeError, match=r"sales\.xlsx is a file of a kind that is not read; allo"
    ):
        recipes.read(str(path))


def test_a_folder_named_toml(tmp_path):
    (tmp_path / "x.toml").mkdir()
    with pytest.raises(RecipeError, match="cannot be read"):
        recipes.read(str(tmp_path / "x.toml"))


def test_changed_checks_again_and_leaves_the_recipe_alone():
    recipe = recipes.read("digits")
    assert recipe.changed("training", epochs=2).training["epochs"] == 2
    assert recipe.training["epochs"] > 2
    assert recipe.changed("training", epochs=2, batch_size=None).training == {"epochs": 2}
    with pytest.raises(RecipeError, match=r"training\.epochs is -3"):
        recipe.changed("training", epochs=-3)


def test_toml_is_written_as_it_is_read():
    tables = {
        "description": 'a "quoted" \\ text\nwith ü and \x07',
        "data": {"name": "x", "classes": ["a,b", "c"], "maximum": 1e-05, "flag": True},
        "model": {"layers": [{"type": "residual", "layers": [{"type": "dense", "features": 3}]}]},
    }
    assert tomllib.loads(to_toml(tables)) == tables


def test_a_residual_layer_holds_layers():
    text = to_toml(recipes.read("digits").tables)
    tables = tomllib.loads(text)
    branch = {"type": "conv2d", "channels": 32, "kernel_size": 3, "padding": 1}
    tables["model"]["layers"].insert(1, {"type": "residual", "layers": [branch]})
    recipe = Recipe.from_tables("mine", tables)
    assert recipe.layers.inner[1].parts[0].path == "model.layers[1].layers[0]"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt"])
def test_data_where_a_recipe_is_wanted_are_not_asked_for(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(RecipeError, match=rf"{name} is no recipe; allowed: cifar-cnn, .*\.toml"):
        recipes.read(str(tmp_path / name))
