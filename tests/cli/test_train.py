from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from handgrad.cli.described import described
from handgrad.cli.options import Columns
from handgrad.recipes.tasks.classification import load_data
from tests.data.files import write_cifar_batches, write_idx_set, write_image_folder

#: `digits` made small, so that a step takes a millisecond on any engine.
SMALL = [
    *("--set", "model.layers[0].channels=2", "--set", "model.layers[2].channels=2"),
    *("--set", "model.layers[5].channels=2", "--set", "model.layers[10].features=4"),
]


def test_a_run_is_a_folder(digits_run):
    summary = json.loads((digits_run / "summary.json").read_text())
    assert {"test_loss", "test_accuracy", "seconds", "parameters", "engine"} <= set(summary)
    assert summary["epochs"] == 1
    assert summary["seed"] == 3
    for name in ("config.toml", "metrics.jsonl", "model.safetensors", "report.html", "checkpoint"):
        assert (digits_run / name).exists()


def test_the_config_remembers_the_command_line(handgrad, tmp_path):
    (tmp_path / "data").mkdir()
    write_idx_set(tmp_path / "data", side=8)
    arguments = ["--data", tmp_path / "data", "--out", tmp_path / "run", "--epochs", 1]
    result = handgrad("train", "mnist-mlp", *arguments, "--set", "optimizer.lr=0.01")
    assert result.exit_code == 0, result.output
    assert "12 examples to learn, 4 to test" in result.stdout
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert config["data"]["path"] == str(tmp_path / "data")
    assert config["data"]["shape"] == [1, 8, 8]
    assert config["optimizer"]["lr"] == 0.01
    assert config["training"] == {"epochs": 1, "batch_size": 64, "seed": 0}


@pytest.mark.slow
def test_a_folder_of_photographs_in_the_place_of_a_recipe(handgrad, tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    write_image_folder(tmp_path / "pets")
    monkeypatch.chdir(tmp_path)
    trained = handgrad("train", "pets/", "--epochs", 1)
    assert trained.exit_code == 0, trained.output
    assert "run in runs/pets" in trained.stdout
    picture = next((tmp_path / "pets" / "cat").iterdir())
    predicted = handgrad("predict", "runs/pets", picture)
    assert predicted.stdout.split()[1] in ("cat", "dog")


def test_folders_of_known_files_have_recipes_of_their_own(tmp_path):
    for folder in ("digits-of-mine", "Fashion-MNIST", "cifar"):
        (tmp_path / folder).mkdir()
    write_idx_set(tmp_path / "digits-of-mine")
    write_idx_set(tmp_path / "Fashion-MNIST", compressed=True)
    write_cifar_batches(tmp_path / "cifar")
    found = {
        name: described("train", str(tmp_path / name), None, Columns())
        for name in os.listdir(tmp_path)
    }
    names = {name: Path(each.recipe.name).stem for name, each in found.items()}
    assert names == {
        "digits-of-mine": "mnist-cnn",
        "Fashion-MNIST": "fashion-cnn",
        "cifar": "cifar-cnn",
    }
    classes = {name: load_data(each.recipe, each.data).classes[0] for name, each in found.items()}
    assert classes == {"digits-of-mine": "0", "Fashion-MNIST": "T-shirt/top", "cifar": "airplane"}


@pytest.mark.parametrize(
    ("file", "text", "recipe"),
    [
        ("poems.txt", "The rain\n\tfalls\n", "text"),
        ("one-line.txt", "The rain falls", "text"),
        ("README.MD", "# Rain", "text"),
        ("empty.txt", "", "text"),
        ("phrases.txt", "the rain\tla lluvia\n\nthe sun\tel sol\n", "translate"),
        ("one-pair.txt", "the rain\tla lluvia", "translate"),
        ("three.txt", "a\tb\tc\n", "text"),
    ],
)
def test_a_text_has_a_recipe_of_its_own(tmp_path, file, text, recipe):
    (tmp_path / file).write_text(text, "utf-8")
    found = described("train", str(tmp_path / file), None, Columns())
    assert Path(found.recipe.name).stem == recipe
    assert found.name == file.partition(".")[0]
    assert found.data == tmp_path / file


def test_a_text_is_trained_by_its_name(handgrad, tmp_path):
    (tmp_path / "poems.txt").write_text("The rain falls, and the rain falls. " * 40, "utf-8")
    small = ("--set", "model.width=8", "--set", "data.blocks=4", "--set", "data.block=8")
    run = ("train", tmp_path / "poems.txt", "--epochs", 1, "--out", tmp_path / "run")
    result = handgrad(*run, *small)
    assert result.exit_code == 0, result.output
    assert "poems: " in result.stdout


@pytest.mark.slow
def test_a_number_is_judged_in_its_own_unit(handgrad, tmp_path):
    table = _table(tmp_path / "t.csv", "a,price", [(i % 50, 1000 * (i % 50)) for i in range(300)])
    run = tmp_path / "run"
    trained = handgrad("train", table, "--epochs", 20, "--out", run).stdout
    assert "; the loss is of targets divided by their deviation, 13" in trained
    error = json.loads((run / "summary.json").read_text())["mean_absolute_error"]
    assert f"mean absolute error {error:g}, R² 1.000, after 20 epochs" in trained
    assert f"mean absolute error {error:g}, R² 1.000\n" in handgrad("evaluate", run).stdout


@pytest.mark.slow
def test_large_numbers_are_predicted_without_an_exponent(handgrad, tmp_path):
    table = _table(tmp_path / "t.csv", "a,price", [(i, 2e6 + 1e5 * i) for i in range(40)])
    assert handgrad("train", table, "--epochs", 5, "--out", tmp_path / "run").exit_code == 0
    new = _table(tmp_path / "new.csv", "a", [(3,), (30,)])
    values = handgrad("predict", tmp_path / "run", new).stdout.split()[1::2]
    assert all(value.isdigit() for value in values)


def test_runs_get_a_folder_of_their_own(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("runs/digits", "runs/digits-2"):
        result = handgrad("train", "digits", "--epochs", 1, *SMALL)
        assert result.exit_code == 0, result.output
        assert (tmp_path / folder / "summary.json").exists()


def test_validation_and_early_stopping(handgrad, tmp_path):
    changes = ["--set", "data.validation=0.2", "--set", "training.early_stopping=1"]
    result = handgrad("train", "digits", "--epochs", 2, "--out", tmp_path / "run", *SMALL, *changes)
    assert result.exit_code == 0, result.output
    epochs = [
        record
        for record in map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
        if record["kind"] == "epoch"
    ]
    assert "validation_loss" in epochs[0]


def test_a_folder_of_images_with_a_recipe_of_ones_own(handgrad, tmp_path):
    pytest.importorskip("PIL")
    write_image_folder(tmp_path / "pets")
    (tmp_path / "pets.toml").write_text(
        '[data]\nname = "pets"\n[optimizer]\ntype = "sgd"\n[training]\nepochs = 1\n'
        '[model]\nlayers = [{type = "flatten"}, {type = "dense", features = 2}]\n'
    )
    arguments = ["--data", tmp_path / "pets", "--out", tmp_path / "run"]
    result = handgrad("train", tmp_path / "pets.toml", *arguments)
    assert result.exit_code == 0, result.output
    result = handgrad("predict", tmp_path / "run", tmp_path / "pets" / "cat" / "0.png")
    assert result.exit_code == 0, result.output
    assert "cat" in result.stdout


def test_a_finished_run_is_left_alone(handgrad, refused, digits_run):
    assert "holds a finished run" in refused("train", "digits", "--out", digits_run)
    before = (digits_run / "model.safetensors").read_bytes()
    result = handgrad("train", "--resume", digits_run)
    assert result.exit_code == 0, result.output
    assert (digits_run / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "no recipe given; allowed: cifar-cnn, dates, digits"),
        (["train", "dgits"], "did you mean digits?"),
        (["train", "/nowhere/x.toml"], "is missing"),
        (["train", "digits", "--epochs", "0"], "training.epochs is 0"),
        (["train", "digits", "--seed", "-1"], "training.seed is -1"),
        (["train", "digits", "--epochs", "9" * 20], f"{'9' * 20}, beyond 63 bits; allowed: an"),
        (["train", "digits", "--class-weights", "a=-1"], "class_weights is {a = -1.0}; allowed"),
        (["train", "digits", "--set", "optimizer.lrr=1"], "did you mean lr?"),
        (["train", "digits", "--set", "optimizer"], "allowed: key=value"),
        (["train", "digits", "--set", "model.layers[5].kernel_size=9"], "layers[5].kernel_size"),
        (["train", "digits", "--set", "model.layers[12].features=9"], "allowed: (10,)"),
        (["train", "digits", "--data", "/nowhere"], "/nowhere does not exist"),
        (["train", "digits", "--resume", "/nowhere"], "--resume together with digits"),
        (["train", "--resume", "/nowhere", "--seed", "1"], "--resume together with --seed"),
        (["train", "--resume", "/nowhere"], "no run here"),
        (["train", "mnist-cnn"], "--data PATH or HANDGRAD_DATA=PATH"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(refused, monkeypatch, tmp_path, arguments, message):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert message in refused(*arguments)
    assert not list(tmp_path.iterdir())


def test_a_truncated_file_is_one_sentence_and_code_2(refused, tmp_path):
    write_idx_set(tmp_path)
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:1000])
    message = refused("train", "mnist-mlp", "--data", tmp_path, "--out", tmp_path / "run")
    assert "t10k-images-idx3-ubyte has 1,000 bytes; expected 3,152" in message


def _table(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_a_table_of_ones_own_is_two_commands(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(*rng.normal(3 * (i % 2), 1, 3).round(3), ("cat", "dog")[i % 2]) for i in range(120)]
    _table(tmp_path / "pets.csv", "height,length,weight,kind", rows)
    _table(tmp_path / "new.csv", "weight,name,length,height", [(0, "a", 0, 0), (3, "b", 3, 3)])
    trained = handgrad("train", "pets.csv", "--epochs", 20)
    assert trained.exit_code == 0, trained.output
    assert trained.stdout.startswith("pets: 86 examples to learn, 24 to test; run in runs/pets")
    predicted = handgrad("predict", "runs/pets", "new.csv")
    lines = [line.split()[:2] for line in predicted.stdout.splitlines()]
    assert lines == [["new.csv[0]", "cat"], ["new.csv[1]", "dog"]]


def test_a_number_of_a_table_is_predicted_as_it_is(handgrad, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(a, 1000 * a + 50_000, b) for a, b in rng.uniform(0, 10, (200, 2)).round(3)]
    table = _table(tmp_path / "houses.csv", "rooms,price,noise", rows)
    out = tmp_path / "run"
    trained = handgrad("train", table, "--target", "price", "--out", out, "--epochs", 30)
    assert trained.exit_code == 0, trained.output
    _table(tmp_path / "new.csv", "noise,rooms", [(5, 2), (1, 8)])
    lines = handgrad("predict", out, tmp_path / "new.csv").stdout.split()
    np.testing.assert_allclose([float(lines[1]), float(lines[3])], [52_000, 58_000], rtol=0.02)
    judged = handgrad("evaluate", out).stdout
    assert float(judged.split("R² ")[1].split()[0]) > 0.95


def test_a_table_that_is_wrong_is_refused(refused, tmp_path):
    table = _table(tmp_path / "t.csv", "a,b,c", [("same", "", "x"), ("same", "", "y")] * 5)
    message = (
        "no column has anything to learn from (a: the same in each row; b: no cell has a value)"
    )
    assert message in refused("train", table)
    assert "has no column 'd'; expected one of a, b, c" in refused("train", table, "--target", "d")
    assert "together with --data" in refused("train", table, "--data", table)


def test_a_backend_that_is_not_there_is_refused(refused, tmp_path, monkeypatch):
    run = tmp_path / "run"
    sentence = refused("train", "digits", "--out", run, "--backend", "tpu")
    assert sentence.endswith('training.backend is "tpu"; allowed: numpy, jax\n')
    sentence = refused("train", "digits", "--out", run, "--devices", 2)
    assert sentence == "handgrad: Trainer: devices is 2; allowed with backend 'numpy': 1\n"
    for name in [*sys.modules]:
        if name.startswith("handgrad.jax"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    sentence = refused("train", "digits", "--out", run, "--backend", "jax")
    assert "JAX is missing; allowed once it is installed: pip install 'handgrad[jax]'" in sentence
    assert not run.exists()


def test_a_finished_run_takes_more_epochs(handgrad, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    settings = [*SMALL, "--set", "schedule.type=constant"]
    assert handgrad("train", "digits", *settings, "--epochs", 2, "--out", one).exit_code == 0
    assert handgrad("train", "digits", *settings, "--epochs", 1, "--out", two).exit_code == 0
    result = handgrad("train", "--resume", two, "--epochs", 2)
    assert result.exit_code == 0, result.output
    assert "after 2 epochs" in result.stdout
    expected, found = (load_file(run / "model.safetensors") for run in (one, two))
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert tomllib.loads((two / "config.toml").read_text())["training"]["epochs"] == 2
    assert handgrad("evaluate", two).exit_code == 0


@pytest.mark.slow
def test_a_run_of_jax_is_a_run_like_any_other(handgrad, refused, tmp_path):
    pytest.importorskip("jax.numpy")  # tests/jax is a package of this name too
    run = tmp_path / "run"
    result = handgrad("train", "digits", *SMALL, "--epochs", 1, "--backend", "jax", "--out", run)
    assert result.exit_code == 0, result.output
    assert "with jax (cpu)" in result.stdout
    assert tomllib.loads((run / "config.toml").read_text())["training"]["backend"] == "jax"
    assert handgrad("evaluate", run).exit_code == 0
    assert "the run is finished" in refused("train", "--resume", run, "--backend", "numpy")
    sentence = refused(
        "train", "digits", "--out", tmp_path / "x", "--backend", "jax", "--devices", 9
    )
    assert sentence.startswith("handgrad: Trainer: devices is 9; allowed: 1 to ")
