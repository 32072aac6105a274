"""Rare classes: weights in the loss and a decision threshold, from a recipe to what answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import recipes
from handgrad.errors import RecipeError, RunError
from handgrad.io.checkpoint import load_arrays
from handgrad.losses import CrossEntropy
from handgrad.recipes.runs import read_recipe
from handgrad.training import Callback


def rare(path: Path, count: int = 200) -> Path:
    """A table of which every tenth row is a fraud."""
    rng = np.random.default_rng(0)
    lines = ["amount,day,verdict"]
    for i in range(count):
        fraud = i % 10 == 0
        amount = rng.normal(2.0 if fraud else 0.0)
        lines.append(f"{amount:.3f},{i % 7},{'zz fraud' if fraud else 'ok'}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def weighted(path: Path, *changes: str) -> tuple[recipes.Recipe, Any]:
    recipe = recipes.read("table", ["training.epochs=3", *changes]).changed(
        "data", path=str(rare(path)), target="verdict"
    )
    return recipe, recipes.load_task(recipe)


def test_balanced_classes_weigh_the_same_together(tmp_path: Path) -> None:
    recipe, task = weighted(tmp_path / "t.csv", "training.class_weights=balanced")
    built = recipes.build(recipe, task)
    weight = built.loss.options["weight"]
    counts = np.bincount(task.data.y_train)
    assert counts[1] < counts[0] / 5
    np.testing.assert_allclose(weight * counts, counts.sum() / 2, rtol=1e-6)
    # As PyTorch has it: a mean over examples, each by the weight of its class.
    scores = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    targets = np.array([0, 0, 1, 0, 0, 0])
    each = -np.log(np.exp(scores[range(6), targets]) / np.exp(scores).sum(axis=1))
    expected = (weight[targets] * each).sum() / weight[targets].sum()
    assert float(built.loss.forward(scores, targets)[0]) == pytest.approx(expected, rel=1e-5)


def test_weights_of_classes_by_name(tmp_path: Path) -> None:
    recipe, task = weighted(tmp_path / "t.csv", 'training.class_weights={"zz fraud"=5}')
    np.testing.assert_array_equal(recipes.build(recipe, task).loss.options["weight"], [1, 5])
    with pytest.raises(RecipeError, match="has 'frod'; allowed: ok, zz fraud, the classes of"):
        weighted(tmp_path / "t.csv", "training.class_weights={frod=5}")
    numbers = recipe.changed("data", target="amount").changed("training", class_weights="balanced")
    with pytest.raises(RecipeError, match="given, and a number is to be learned; allowed: with cl"):
        recipes.build(numbers, recipes.load_task(numbers))


def test_a_threshold_needs_two_classes(tmp_path: Path) -> None:
    recipe, task = weighted(tmp_path / "t.csv", "training.threshold=0.25")
    assert task.about["threshold"] == 0.25
    assert task.summary.endswith("'zz fraud' is answered from a probability of 0.25 on")
    with pytest.raises(RecipeError, match=r"t.* has a number to predict; allowed: with"):
        recipes.load_task(recipe.changed("data", target="amount"))
    with pytest.raises(RecipeError, match="threshold is 1; allowed: a number above 0 and below 1"):
        recipes.read("table", ["training.threshold=1"])


class End(Callback):
    """Ends a training after a step."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step(self, trainer: Any) -> None:
        if trainer.step == self._step:
            raise ConnectionError


def test_a_weighted_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    settings = ("training.class_weights=balanced", "training.threshold=0.25")
    recipe, task = weighted(tmp_path / "t.csv", *settings)
    built = recipes.build(recipe, task)
    calm = replace(built, config=replace(built.config, callbacks=[End(-1)]))
    whole = calm.train(tmp_path / "whole", progress="off")
    built = recipes.build(recipe, task)
    crash = replace(built.config, callbacks=[End(7)], checkpoint_steps=2)
    with pytest.raises(ConnectionError):
        replace(built, config=crash).train(tmp_path / "cut", progress="off")
    again = read_recipe(tmp_path / "cut")
    assert again.training["threshold"] == 0.25
    built = recipes.build(again, recipes.load_task(again))
    built = replace(built, config=replace(built.config, callbacks=[End(-1)]))
    other = replace(built, loss=CrossEntropy())
    with pytest.raises(RunError, match=r"loss\.options\.weight"):
        other.train(tmp_path / "cut", resume=True, progress="off")
    resumed = built.train(tmp_path / "cut", resume=True, progress="off")
    for name in ("test_loss", "test_accuracy", "macro_f1", "threshold", "kept_epoch"):
        assert resumed[name] == whole[name]
    weights = [load_arrays(tmp_path / name / "model.safetensors")[0] for name in ("whole", "cut")]
    for name, array in weights[0].items():
        np.testing.assert_array_equal(array, weights[1][name])

    trained = hg.load(tmp_path / "whole")
    assert trained.threshold == 0.25
    rows = np.array([[1.4, 3.0], [0.2, 1.0]])
    share = trained.predict_proba(rows)[:, 1]
    assert trained.predict(rows).tolist() == np.where(share >= 0.25, "zz fraud", "ok").tolist()
