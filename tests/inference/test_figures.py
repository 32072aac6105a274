"""Figures of answers: by hand, and as scikit-learn has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from handgrad.inference.figures import (
    area_under_curve,
    by_class,
    calibration,
    class_figures,
    mean_area,
    number_figures,
)


def drawn(classes: int, count: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Targets, of which the last class is rare, and probabilities that know something of them."""
    rng = np.random.default_rng(seed)
    shares = np.arange(classes, 0, -1.0) ** 2
    targets = rng.choice(classes, count, p=shares / shares.sum())
    scores = rng.normal(size=(count, classes)).round(1)  # with ties
    scores[np.arange(count), targets] += 0.8
    return targets, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def test_figures_of_classes_by_hand() -> None:
    targets = np.array([0, 0, 0, 1, 1, 2])
    answers = np.array([0, 0, 1, 1, 0, 0])
    found = by_class(targets, answers, 4)
    np.testing.assert_array_equal(found.examples, [3, 2, 1, 0])
    np.testing.assert_allclose(found.precision, [2 / 4, 1 / 2, 0, 0])
    np.testing.assert_allclose(found.recall, [2 / 3, 1 / 2, 0, 0])
    np.testing.assert_allclose(found.f1, [4 / 7, 1 / 2, 0, 0])
    assert found.mean("recall") == pytest.approx((2 / 3 + 1 / 2) / 3)  # nobody saw the fourth


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    positive = np.array([True, False, True, False])
    scores = np.array([0.9, 0.4, 0.4, 0.1])
    assert area_under_curve(positive, scores) == (1 + 1 + 0.5 + 1) / 4
    assert area_under_curve(~positive, -scores) == area_under_curve(positive, scores)
    assert math.isnan(area_under_curve(np.ones(3, bool), np.arange(3.0)))


def test_calibration_by_hand() -> None:
    right = np.array([True, False, True, True])
    found = calibration(right, np.array([0.55, 0.6, 0.95, 1.0]))
    np.testing.assert_array_equal(found.examples, [2, 2])
    np.testing.assert_allclose(found.probability, [0.575, 0.975])
    np.testing.assert_allclose(found.right, [0.5, 1.0])
    assert found.error == pytest.approx((2 * 0.075 + 2 * 0.025) / 4)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_figures_of_classes_are_those_of_scikit_learn(classes: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    curve = pytest.importorskip("sklearn.calibration").calibration_curve
    targets, probabilities = drawn(classes)
    answers = probabilities.argmax(axis=1)
    found = class_figures(targets, probabilities, answers)
    own = by_class(targets, answers, classes)
    each = metrics.precision_recall_fscore_support(targets, answers)
    for ours, theirs in zip((own.precision, own.recall, own.f1, own.examples), each, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    mean = metrics.precision_recall_fscore_support(targets, answers, average="macro")[:3]
    np.testing.assert_allclose(
        [found[f"macro_{name}"] for name in ("precision", "recall", "f1")], mean
    )
    scores = probabilities[:, 1] if classes == 2 else probabilities
    area = metrics.roc_auc_score(targets, scores, multi_class="ovr", average="macro")
    assert found["auc"] == pytest.approx(area, rel=1e-12)
    assert found["accuracy"] == metrics.accuracy_score(targets, answers)

    right, confidence = answers == targets, probabilities.max(axis=1)
    bins = calibration(right, confidence)
    shares, means = curve(right, confidence, n_bins=10)
    np.testing.assert_allclose(bins.right, shares)
    np.testing.assert_allclose(bins.probability, means)


def test_a_class_without_examples_takes_no_part_in_the_mean_area() -> None:
    targets, probabilities = drawn(3)
    with_another = np.column_stack((probabilities, np.zeros(len(targets))))
    assert mean_area(targets, with_another) == pytest.approx(mean_area(targets, probabilities))
    alone = class_figures(np.zeros(3, int), np.full((3, 2), 0.5), np.zeros(3, int))
    assert "auc" not in alone
    assert alone["macro_f1"] == 1.0


def test_figures_of_numbers() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    targets = rng.normal(size=300)
    predicted = targets + rng.normal(size=300)
    assert number_figures(targets, predicted) == {
        "mean_absolute_error": pytest.approx(metrics.mean_absolute_error(targets, predicted)),
        "root_mean_squared_error": pytest.approx(
            metrics.root_mean_squared_error(targets, predicted)
        ),
        "r2": pytest.approx(metrics.r2_score(targets, predicted)),
    }
    by_hand = number_figures(np.array([1.0, 2.0, 6.0]), np.array([1.0, 4.0, 3.0]))
    assert by_hand == {
        "mean_absolute_error": pytest.approx(5 / 3),
        "root_mean_squared_error": pytest.approx(math.sqrt(13 / 3)),
        "r2": pytest.approx(1 - 13 / 14),
    }
    assert "r2" not in number_figures(np.ones(3), np.zeros(3))
