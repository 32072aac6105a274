"""Tasks on sequences, text and pairs: from a recipe to a model that takes what its data gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from handgrad import models, recipes
from handgrad.data import Sequences
from handgrad.errors import DataError, HandgradError, RecipeError
from handgrad.recipes import tasks
from handgrad.recipes.recipe import Recipe
from handgrad.recipes.tasks import classification
from tests.tolerances import assert_close

VERSES = "\n".join(
    f"{a} {b}\t{b.upper()} {a.upper()}"
    for a in ("one", "two", "six", "ten", "all")
    for b in ("dogs", "cats", "hens", "cows", "pigs", "fish", "bees", "owls")
)
MODELS = {
    "series-encoder": ("data.name=vectors",),
    "text": ("model.width=8", "model.heads=2", "model.blocks=1", "data.block=16", "data.blocks=24"),
    "translate": (
        "data.unit=words",
        "model.d_model=8",
        "model.heads=2",
        "model.hidden=8",
        "model.encoder_blocks=1",
        "model.decoder_blocks=1",
        "model.shared=false",
    ),
}


@pytest.fixture
def verses(tmp_path: Path) -> Path:
    path = tmp_path / "verses.tsv"
    path.write_text(VERSES, encoding="utf-8")
    return path


def small(name: str) -> Recipe:
    recipe = recipes.read(name, (*MODELS[name], "training.epochs=1", "training.batch_size=8"))
    tables = {key: value for key, value in recipe.data.items() if key != "size"}
    return Recipe.from_tables(name, {**recipe.tables, "data": tables})


def series(lengths: list[int], channels: int = 3) -> Sequences:
    rng = np.random.default_rng(0)
    return Sequences.of([rng.normal(2, 3, (n, channels)).astype(np.float32) for n in lengths])


@pytest.mark.parametrize("name", MODELS)
def test_a_run_is_rebuilt_from_its_config_alone(name: str, verses: Path) -> None:
    recipe = small(name)
    task = recipes.load_task(recipe, verses if name == "translate" else None)
    built = recipes.build(recipe, task)
    again = recipes.build_model(Recipe.parse("config.toml", built.config.text))
    assert {k: v.shape for k, v in again.parameters.items()} == {
        k: v.shape for k, v in built.model.parameters.items()
    }
    inputs = tasks.example(recipes.completed(recipe, task), 3, np.random.default_rng(0))
    inputs = tuple(x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs)
    np.testing.assert_array_equal(again.forward(*inputs)[0], built.model.forward(*inputs)[0])


@pytest.mark.parametrize("name", MODELS)
def test_it_trains_and_keeps_its_tokenizers(name: str, verses: Path, tmp_path: Path) -> None:
    recipe = small(name)
    built = recipes.build(
        recipe, recipes.load_task(recipe, verses if name == "translate" else None)
    )
    summary = built.train(tmp_path / "run", progress="off")
    assert np.isfinite(summary["test_loss"])
    kept = {path.stem for path in (tmp_path / "run").glob("*.json")} - {"summary"}
    assert kept == set(built.task.tokenizers)
    if name == "text":
        assert summary["judged_on"] == "validation"
        bits = summary["test_loss"] / np.log(2)
        assert_close(summary["bits_per_character"], bits, "float64")
    else:
        assert summary["judged_on"] == "test"


def test_sequences_of_one_length_become_an_array() -> None:
    recipe = small("series-encoder").changed("data", standardize=None)
    data = recipes.load_task(recipe).data
    parts = {"x_train": series([5] * 8), "x_test": series([5] * 4), "x_validation": None}
    y = np.arange(8) % 2
    ragged = type(data)("toy", y_train=y, y_test=y[:4], classes=("a", "b"), **parts)
    assert classification._dense(recipe, ragged).x_train.shape == (8, 5, 3)
    longer = type(data)("toy", series([5, 7] * 4), y, series([5] * 4), y[:4], classes=("a", "b"))
    with pytest.raises(RecipeError, match="toy has sequences of 5 to 7 steps; allowed: one length"):
        classification._dense(recipe, longer)


@pytest.mark.parametrize(("which", "count"), [("all", 1), ("channels", 3)])
def test_the_training_part_says_how_to_standardize(which: str, count: int) -> None:
    x = series([4, 6, 2])
    recipe = small("series-encoder").changed("data", standardize=which)
    step = classification.statistics(recipe, x)
    assert len(step.mean) == len(step.std) == count
    scaled = classification.standardized(x, step)
    axes = None if which == "all" else 0
    assert_close(scaled.values.mean(axis=axes), np.zeros(count if axes == 0 else ()), "float32")
    np.testing.assert_array_equal(scaled.lengths, x.lengths)
    kept = recipe.changed("data", mean=list(step.mean), std=list(step.std))
    assert classification.statistics(kept, series([9])) == step


def test_a_channel_without_variance_is_left_at_zero() -> None:
    x = Sequences.of([np.full((3, 1), 7, np.float32)])
    recipe = small("series-encoder").changed("data", standardize="channels")
    step = classification.statistics(recipe, x)
    assert not classification.standardized(x, step).values.any()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("text", ["model.heads=3"], "text: model: .* heads is 3, which does not divide 128"),
        ("text", ["data.block=0"], "data.block is 0; allowed: an integer of at least 1"),
        ("text", ["data.blok=2"], "data.blok is an unknown key; .* did you mean block"),
        ("text", ["model.type=gtp"], 'model.type is "gtp"; allowed: .* did you mean gpt'),
        ("dates", ["model.score=cos"], 'model.score is "cos"; allowed: additive, cosine, dot'),
        ("dates", ["data.unit=words"], "data.unit is an unknown key"),
        ("vowels", ["model.alpha=0.5"], 'model.alpha is 0.5 with cell = "lstm"; allowed: with "le'),
        ("vowels", ["model.cell=leaky_rnn"], "alpha is missing"),
        ("vowels", ["data.shape=[1,8,8]"], r"data.shape is \[1, 8, 8\]; allowed: \(T, D\)"),
    ],
)
def test_what_does_not_fit_is_named(name: str, changes: list[str], message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        model_of(name, changes)


def model_of(name: str, changes: list[str]) -> object:
    recipe = recipes.read(name, changes)
    found = {"vocabulary": 9} if name == "text" else {}
    if name == "vowels":
        found = {"shape": [20, 12], "classes": ["a"], **recipe.data}
    return recipes.build_model(recipe.changed("data", **found))


def test_a_text_that_is_too_short_is_named_with_both_parts(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("to be or not " * 30)
    message = r"note\.txt has 351 tokens to learn and 39 to judge; expected more than 64 in either"
    with pytest.raises(DataError, match=message):
        tasks.load(recipes.read("text"), path)


def test_a_pretrained_model_is_asked_for_before_its_tokenizer(verses: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"model\.folder is empty; allowed: the folder of a GPT-2"
    ):
        tasks.load(recipes.read("finetune-text"), verses)


def test_a_model_is_chosen_by_type() -> None:
    recipe = recipes.read("vowels").changed("data", shape=[9, 12], classes=["a", "b"])
    model = recipes.build_model(recipe)
    assert isinstance(model, models.SequenceClassifier)
    x, lengths = tasks.example(recipe, 4, np.random.default_rng(0))
    assert model.forward(x.astype(np.float32), lengths)[0].shape == (4, 2)
