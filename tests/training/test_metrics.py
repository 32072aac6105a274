"""Loss and accuracy over a data set do not depend on how it is cut into batches."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import layers
from handgrad.losses import CrossEntropy
from handgrad.training import evaluate
from handgrad.training.metrics import Judge, Sums
from tests.training import problem


@pytest.mark.parametrize(
    "options", [{}, {"weight": np.array([0.2, 1.0, 3.0])}, {"ignore_index": 1}]
)
def test_evaluation_in_parts_is_the_whole(options: dict[str, object]) -> None:
    rng = np.random.default_rng(0)
    model = layers.Sequential(layers.Dense(4, 3, rng=rng, dtype=np.float64))
    x, y = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    loss = CrossEntropy(**options)  # type: ignore[arg-type]
    outputs = model.forward(x)[0]
    whole = float(loss.forward(outputs, y)[0])
    for size in (7, 50, 1000):
        judged = evaluate(model, loss, (x, y), size, keep_outputs=True)
        assert judged.loss == pytest.approx(whole, rel=1e-12)
        counting = y != options.get("ignore_index", -100)
        assert judged.accuracy == np.mean((outputs.argmax(1) == y)[counting])
        np.testing.assert_allclose(judged.outputs, outputs, rtol=1e-12)


def test_evaluation_of_a_data_set_takes_its_test_part() -> None:
    data = problem.data()
    judged = evaluate(problem.model(), CrossEntropy(), data)
    assert judged.examples == len(data.x_test)
    assert judged.outputs is None


def test_accuracy_of_sequences_and_of_none() -> None:
    scores = np.zeros((2, 3, 4))
    scores[:, 1] = 1
    judge, sums = Judge(CrossEntropy()), Sums()
    judge.count(sums, 0.5, scores, np.array([[1, 1, 1, 1], [1, 1, 2, -100]]))
    assert (sums.correct, sums.judged, sums.examples, sums.weight) == (6, 7, 2, 7.0)
    assert judge.count(sums, 0.5, scores, np.zeros((2, 3, 4))) == 2.0
    assert (sums.judged, sums.examples) == (7, 4)


def test_ignored_targets_are_not_judged() -> None:
    rng = np.random.default_rng(0)
    model = layers.Sequential(layers.Dense(4, 3, rng=rng, dtype=np.float64))
    x, y = rng.normal(size=(50, 4)), rng.integers(0, 3, 50)
    right = (model.forward(x)[0].argmax(1) == y)[y != 1]
    judged = evaluate(model, CrossEntropy(ignore_index=1), (x, y), 8)
    assert judged.accuracy == pytest.approx(right.mean())
