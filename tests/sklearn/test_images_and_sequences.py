"""Images and sequences as estimators take them, ragged ones too."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from handgrad.errors import ArgumentError, HandgradWarning, ShapeError
from handgrad.sklearn import (
    ConvNetClassifier,
    MLPClassifier,
    TimeSeriesClassifier,
    TimeSeriesTagger,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

IMAGES, DIGITS = (each[:400] for each in load_digits(return_X_y=True))
CONVOLUTIONS = {
    "channels": (8, 8),
    "hidden": 32,
    "max_iter": 12,
    "batch_size": 32,
    "learning_rate_init": 0.01,
    "random_state": 0,
}
LSTM = {"hidden_size": 16, "max_iter": 15, "learning_rate_init": 0.03, "random_state": 0}

RNG = np.random.default_rng(0)
WALKS = [np.cumsum(RNG.normal(size=(length, 2)), axis=0) for length in RNG.integers(1, 15, 150)]
ENDS = np.array([walk[-1, 0] > 0 for walk in WALKS])
SIDES = [np.where(walk[:, 1] > 0, "up", "down") for walk in WALKS]
CELLS = ["lstm", "gru", "transformer"]


def test_images_in_every_shape_train_the_same_network() -> None:
    pixels = IMAGES / 16
    found = [
        ConvNetClassifier(**CONVOLUTIONS, image_shape=(8, 8)).fit(pixels, DIGITS),
        ConvNetClassifier(**CONVOLUTIONS).fit(pixels.reshape(-1, 8, 8), DIGITS),
        ConvNetClassifier(**CONVOLUTIONS).fit(pixels.reshape(-1, 1, 8, 8), DIGITS),
    ]
    first = found[0].predict_proba(pixels)
    for model, x in zip(
        found[1:], (pixels.reshape(-1, 8, 8), pixels.reshape(-1, 1, 8, 8)), strict=True
    ):
        np.testing.assert_array_equal(model.predict_proba(x), first)
    assert found[0].score(pixels, DIGITS) > 0.8


def test_a_convnet_in_a_pipeline_with_batch_norm_and_dropout() -> None:
    network = ConvNetClassifier(
        **CONVOLUTIONS, image_shape=(8, 8), batch_norm=True, dropout=0.2, early_stopping=True
    )
    pipeline = make_pipeline(StandardScaler(), network).fit(IMAGES, DIGITS)
    assert pipeline.score(IMAGES, DIGITS) > 0.8
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(IMAGES), pipeline.predict_proba(IMAGES))


def test_rows_without_a_shape_are_images_of_one_row() -> None:
    model = ConvNetClassifier(**CONVOLUTIONS).fit(IMAGES, DIGITS)
    assert model.image_shape_ == (1, 1, 64)


def test_images_that_are_no_n_c_h_w_are_named() -> None:
    images = [np.ones((size, 8)) for size in (8, 9)]
    with pytest.raises(ValueError, match=r"shape \(8, 8\) in row 0 and \(9, 8\) in row 1; allowed"):
        ConvNetClassifier().fit(images, [0, 1])
    last = np.ones((6, 8, 8, 3))
    with pytest.warns(HandgradWarning, match=r"with the channels last, write X.transpose\(0, 3, 1"):
        ConvNetClassifier(max_iter=1, channels=(2,)).fit(last, [0, 1] * 3)


def test_one_class_is_refused_in_the_words_of_scikit_learn() -> None:
    sentence = "needs samples of at least 2 classes in the data, but the data contains only one"
    for estimator in (MLPClassifier(), ConvNetClassifier()):
        with pytest.raises(ValueError, match=sentence):
            estimator.fit(np.ones((6, 4)), ["a"] * 6)


@pytest.mark.parametrize("cell", CELLS)
def test_ragged_sequences_with_one_class_each(cell: str) -> None:
    model = TimeSeriesClassifier(cell=cell, **LSTM).fit(WALKS, ENDS)
    assert model.score(WALKS, ENDS) > 0.85
    alone = np.concatenate([model.predict_proba([walk]) for walk in WALKS[:5]])
    np.testing.assert_allclose(model.predict_proba(WALKS)[:5], alone, rtol=1e-4, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(WALKS), model.predict_proba(WALKS))


@pytest.mark.parametrize("cell", CELLS)
def test_ragged_sequences_with_a_class_at_every_step(cell: str) -> None:
    model = TimeSeriesTagger(cell=cell, **LSTM).fit(WALKS, SIDES)
    assert model.score(WALKS, SIDES) > 0.85
    labels, chances = model.predict(WALKS), model.predict_proba(WALKS)
    assert [each.shape for each in labels] == [each.shape for each in SIDES]
    assert [each.shape for each in chances] == [(len(each), 2) for each in SIDES]
    np.testing.assert_allclose(np.exp(model.predict_log_proba(WALKS)[3]), chances[3], rtol=1e-4)


def test_sequences_in_searches_and_cross_validation() -> None:
    scores = cross_val_score(TimeSeriesClassifier(**LSTM), WALKS, ENDS, cv=2)
    assert scores.min() > 0.7
    search = GridSearchCV(TimeSeriesTagger(**LSTM), {"hidden_size": [4, 16]}, cv=2)
    assert search.fit(WALKS, SIDES).best_score_ > 0.7


def test_an_array_of_sequences_and_a_matrix_of_one_feature_are_the_same() -> None:
    series = RNG.normal(size=(60, 9))
    y = series[:, -1] > 0
    rows = TimeSeriesClassifier(**LSTM).fit(series, y)
    cube = TimeSeriesClassifier(**LSTM).fit(series[..., None], y)
    np.testing.assert_array_equal(rows.predict_proba(series), cube.predict_proba(series[..., None]))


def test_weights_and_class_weights_of_sequences() -> None:
    for make, y in ((TimeSeriesClassifier, ENDS), (TimeSeriesTagger, SIDES)):
        kept = RNG.random(len(WALKS)) < 0.5
        some = [walk for walk, keep in zip(WALKS, kept, strict=True) if keep]
        settings = {**LSTM, "max_iter": 3, "dtype": "float64", "shuffle": False}
        weighted = make(**settings, class_weight="balanced").fit(WALKS, y, kept.astype(float))
        assert weighted.n_iter_ == 3
        short = [each for each, keep in zip(y, kept, strict=True) if keep]
        weighted = make(**settings).fit(WALKS, y, kept.astype(float))
        alone = make(**settings).fit(some, short)
        np.testing.assert_allclose(
            np.vstack(weighted.predict_proba(WALKS)),
            np.vstack(alone.predict_proba(WALKS)),
            rtol=1e-6,
        )


def test_parts_of_sequences() -> None:
    model = TimeSeriesTagger(**LSTM)
    for _ in range(10):
        model.partial_fit(WALKS, SIDES, classes=["down", "up"])
    assert model.score(WALKS, SIDES) > 0.7


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (WALKS, SIDES[:-1], "y has other lengths than X"),
        ([*WALKS[:-1], np.ones((2, 3))], SIDES, "one step has shape"),
        ([*WALKS[:-1], np.ones((0, 2))], SIDES, "sequence 149 of X has shape"),
        ([*WALKS[:-1], np.array([["a", "b"]])], SIDES, "sequence 149 of X is of"),
        ([*WALKS[:-1], np.full((1, 2), np.nan)], SIDES, "NaN"),
    ],
)
def test_wrong_sequences(X: Any, y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TimeSeriesTagger(max_iter=1).fit(X, y)


def test_wrong_images_and_settings() -> None:
    with pytest.raises(ShapeError, match="64 pixels and image_shape is"):
        ConvNetClassifier(image_shape=(8, 9)).fit(IMAGES, DIGITS)
    with pytest.raises(ArgumentError, match="dropout is 1; allowed: a number from 0 below 1"):
        ConvNetClassifier(dropout=1).fit(IMAGES, DIGITS)
    with pytest.raises(ArgumentError, match="even multiple of heads"):
        TimeSeriesClassifier(cell="transformer", hidden_size=10).fit(WALKS, ENDS)
    fitted = TimeSeriesClassifier(max_iter=1).fit(WALKS, ENDS)
    with pytest.raises(ShapeError, match="X is a matrix; allowed: sequences, as in fit"):
        fitted.predict(IMAGES)
    with pytest.raises(ShapeError, match="a step of X has 3 features; allowed: 2"):
        fitted.predict([np.ones((4, 3))])


def test_sequences_may_be_lists_of_steps_and_anything_that_is_an_array():
    rng = np.random.default_rng(0)
    walks = [rng.normal(size=(length, 2)) for length in (3, 5, 2, 4)]

    class Frame:
        def __init__(self, values):
            self.values, self.ndim = values, values.ndim

        def __array__(self, dtype=None, copy=None):
            return self.values

    expected = None
    for x in (walks, [walk.tolist() for walk in walks], [Frame(walk) for walk in walks]):
        model = TimeSeriesClassifier(max_iter=2, n_iter_no_change=3, random_state=0)
        found = model.fit(x, ["a", "b", "a", "b"]).predict_proba(walks)
        expected = found if expected is None else expected
        np.testing.assert_array_equal(found, expected)
