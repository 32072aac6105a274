"""Paths that are none, given to everything that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import exercises, lora, recipes
from handgrad.cli.app import app
from handgrad.data.pronounce import read_dictionary
from handgrad.data.stream import Shards, Tokens, write_array, write_shards
from handgrad.errors import HandgradError
from handgrad.training.callbacks import SaveAdapter
from handgrad.training.learning_rates import LearningRates
from tests.rows import rows

MODEL = hg.Dense(2, 2)
TAKE: dict[str, Callable[[Any], Any]] = {
    "layer.save": MODEL.save,
    "layer.load_weights": MODEL.load_weights,
    "load": hg.load,
    "import_onnx": hg.import_onnx,
    "export_onnx": lambda path: hg.export_onnx(MODEL, path, input_shape=(2,)),
    "Bert.from_pretrained": hg.Bert.from_pretrained,
    "notes": lambda path: hg.notes("relu").save(path, "md"),
    "derivation": lambda path: hg.derive("relu").to("numpy", path),
    "hf.load": lambda path: hg.hf.load(hg.Bert, path),
    "Tokenizer.from_pretrained": hg.hf.Tokenizer.from_pretrained,
    "lora.load": lambda path: lora.load(MODEL, path),
    "SaveAdapter": SaveAdapter,
    "data.load": lambda path: hg.data.load("mine", path),
    "load_pairs": lambda path: hg.data.load_pairs("mine", path),
    "load_text": hg.data.load_text,
    "load_tokenizer": hg.data.load_tokenizer,
    "Bytes.save": hg.data.Bytes().save,
    "Symbols.save": hg.data.Symbols("ab").save,
    "read_image": hg.data.read_image,
    "read_dictionary": read_dictionary,
    "write_array": lambda path: write_array(path, [np.ones(2)]),
    "write_shards": lambda path: write_shards(path, []),
    "Tokens": lambda path: Tokens(path, 2, 2),
    "Shards": Shards,
    "LearningRates": lambda path: LearningRates(*[np.ones(2)] * 3, None).save(path),
    "Run": hg.training.Run,
    "read_config": hg.training.read_config,
    "start_run": lambda path: hg.training.start_run(path, ""),
    "resume_run": hg.training.resume_run,
    "recipes.read": recipes.read,
    "exercise": lambda path: exercises.exercise(1).examine(path),
}


@pytest.mark.parametrize("path", ["", "a\0b", Path("a\0b"), "~nobody-of-this-name/x", 7, b"x"])
@pytest.mark.parametrize("take", TAKE.values(), ids=TAKE)
def test_what_is_no_path_is_one_sentence(take, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HandgradError) as found:
        take(path)
    assert "\n" not in str(found.value)
    assert not list(tmp_path.iterdir())


READ_LATER = ("SaveAdapter", "Run")


@rows("name", [name for name in TAKE if name not in READ_LATER])
def test_a_path_that_is_too_long_is_an_error_of_the_system_or_a_sentence(name):
    with pytest.raises((HandgradError, OSError)):
        TAKE[name]("x" * 5000 + ".py")


def test_text_is_taken_for_a_path(tmp_path):
    file = str(tmp_path / "tokenizer.json")
    hg.data.Symbols("ab").save(file)
    assert hg.data.load_tokenizer(file).encode("ba").tolist() == [1, 0]
    with pytest.raises(HandgradError, match=r"no\.png is missing"):
        hg.data.read_image("no.png")
    hg.training.start_run(str(tmp_path / "run"), "").close()
    assert hg.training.Run(str(tmp_path / "run")).folder == tmp_path / "run"


def path_parameters() -> list[tuple[str, str]]:
    groups = [(app, "")] + [
        (group.typer_instance, f"{group.name} ") for group in app.registered_groups
    ]
    return [
        (f"{prefix}{command.name}", name)
        for group, prefix in groups
        for command in group.registered_commands
        for name, each in inspect.signature(command.callback).parameters.items()
        if "Path" in str(getattr(each.annotation, "__origin__", ""))
    ]


def test_the_command_line_checks_every_path():
    assert len(path_parameters()) >= 15
    assert ("recipes copy", "file") in path_parameters()
