"""Importances of columns: of those that count for nothing, and beside scikit-learn's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data.table import load_csv
from handgrad.inference.preprocessing import Standardization
from handgrad.training.importance import importances, too_many
from handgrad.training.judged import Judged
from tests.data.people import people


def linear(weights: list[list[float]], x: np.ndarray) -> hg.Layer:
    """A dense layer with these weights (outputs, inputs)."""
    model = hg.Sequential(hg.Dense(x.shape[1], len(weights)), seed=0)
    (weight, bias) = model.parameters.values()
    weight[...] = weights
    bias[...] = 0
    return model


def drawn(count: int = 300) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)


def test_a_column_without_weight_has_none() -> None:
    x = drawn()
    y = 3 * x[:, :1] + x[:, 1:2]
    trained = hg.TrainedModel(linear([[3.0, 1.0, 0.0]], x), "regression")
    judged = Judged(x, y, columns={"a": [0], "b": [1], "none": [2]})
    first, second, third = importances(trained, judged, 0, repeats=200)
    assert (first.column, second.column) == ("a", "b")
    assert (third.column, third.fall, third.deviation) == ("none", 0.0, 0.0)
    # Shuffling adds E (w (x' − x))² = 2 w² var x to the squared error.
    for each, weight, own in ((first, 3, x[:, 0]), (second, 1, x[:, 1])):
        assert each.fall == pytest.approx(2 * weight**2 * own.var() / y.var(), rel=0.02)
    assert importances(trained, judged, 0, repeats=200)[0] == first
    assert importances(trained, judged, 1, repeats=200)[0] != first


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_importances_are_those_of_scikit_learn(task: str) -> None:
    inspection = pytest.importorskip("sklearn.inspection")
    x, rng = drawn(), np.random.default_rng(1)
    scores = x @ np.array([1.5, -0.7, 0.2], np.float32) + rng.normal(size=len(x))
    classes = task == "classification"
    weights = [[0.0, 0.0, 0.0], [1.4, -0.8, 0.1]] if classes else [[1.4, -0.8, 0.1]]
    y = (scores > 0).astype(np.int64) if classes else scores.astype(np.float32)
    trained = hg.TrainedModel(linear(weights, x), task)

    class Estimator:
        classes_ = np.array([0, 1])
        _estimator_type = "classifier" if classes else "regressor"

        def __sklearn_tags__(self) -> Any:
            from sklearn.base import ClassifierMixin, RegressorMixin

            base: Any = ClassifierMixin if classes else RegressorMixin
            return type("Tagged", (base, _base()), {})().__sklearn_tags__()

        def fit(self, x: Any, y: Any) -> None: ...

        def predict(self, x: np.ndarray) -> np.ndarray:
            return trained.predict(x)

        def predict_proba(self, x: np.ndarray) -> np.ndarray:
            found = trained.predict_proba(x).astype(np.float64)
            return found / found.sum(axis=1, keepdims=True)

    theirs = inspection.permutation_importance(
        Estimator(),
        x,
        y,
        scoring="neg_log_loss" if classes else "r2",
        n_repeats=200,
        random_state=0,
    )
    judged = Judged(x, y if classes else y[:, None], columns={"0": [0], "1": [1], "2": [2]})
    for each in importances(trained, judged, 0, repeats=200):
        mean = theirs.importances_mean[int(each.column)]
        deviation = theirs.importances_std[int(each.column)]
        assert abs(each.fall - mean) < 5 * deviation / np.sqrt(200 / 2)
        assert each.deviation == pytest.approx(deviation, rel=0.25)


def _base() -> Any:
    from sklearn.base import BaseEstimator

    return BaseEstimator


def test_a_column_of_texts_is_shuffled_as_a_whole(tmp_path: Path) -> None:
    data = load_csv("people", people(tmp_path / "people.csv", 200), target="outcome")
    judged = Judged.of(data)
    assert list(judged.columns) == list(data.columns)
    assert len(judged.columns["city"]) == 3
    rows = set(map(tuple, data.x_test[:, judged.columns["city"]].tolist()))
    seen: list[np.ndarray] = []

    class Watched(hg.Sequential):
        def forward(self, x: np.ndarray, training: bool = True) -> Any:
            seen.append(x.copy())
            return super().forward(x, training=training)

    model = Watched(hg.Dense(data.x_test.shape[1], 2), seed=0)
    found = importances(hg.TrainedModel(model, "classification"), judged, 0)
    assert {each.column for each in found} == set(data.columns)
    assert len(seen) == 1 + 5 * len(data.columns)
    for x in seen:
        assert set(map(tuple, x[:, judged.columns["city"]].tolist())) <= rows
        np.testing.assert_array_equal(np.sort(x, axis=0), np.sort(seen[0], axis=0))


def test_columns_that_are_too_many_are_not_shuffled(tmp_path: Path) -> None:
    """Ten thousand columns would be shuffled for minutes after an epoch of a moment."""
    x = np.random.default_rng(0).integers(0, 9, (30, 10_000))
    rows = (",".join(map(str, [*row, "ab"[i % 2]])) for i, row in enumerate(x.tolist()))
    names = ",".join(f"c{i}" for i in range(x.shape[1]))
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([f"{names},label", *rows]))
    data = load_csv("wide", path)
    judged = Judged.of(data)
    assert "10,000 columns are too many for importances" in too_many(judged)
    model = hg.Sequential(hg.Dense(x.shape[1], 2), seed=0)
    assert importances(hg.TrainedModel(model, "classification"), judged, 0) == []
    trainer = hg.Trainer(model, out=tmp_path / "run", progress="off")
    summary = trainer.fit(data, epochs=1).summary
    assert summary is not None
    assert summary["remarks"][-1] == too_many(judged)
    assert "too many for importances" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_the_report_says_what_a_table_is_decided_by(tmp_path: Path) -> None:
    data = load_csv("people", people(tmp_path / "people.csv", 300), target="outcome")
    x = data.x_train
    model = hg.Sequential(hg.Dense(None, 16, activation="relu"), hg.Dense(None, 2))
    trainer = hg.Trainer(
        model, preprocessing=(Standardization.of(x),), lr=0.02, out=tmp_path / "run", progress="off"
    )
    summary = trainer.fit(data, epochs=10).summary
    assert summary is not None
    assert max(summary["importances"], key=summary["importances"].get) == "city"
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["importances"]
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    section = page[page.index("<h2>What it goes by</h2>") :]
    assert re.findall("<tr><td>(.*?)</td>", section)[0] == "city"
    section = page[page.index("<h2>How the table was read</h2>") :]
    assert re.findall("<tr><td>(.*?)</td>", section)[:3] == ["id", "who", "age"]
    assert "<td>id</td><td>left out</td><td></td><td>a running number</td>" in section
