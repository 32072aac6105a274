"""The report about models of sequences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.data import Dataset, Pixels, Sequences
from handgrad.losses import CrossEntropy
from handgrad.models.cls_encoder import ClsEncoder
from handgrad.models.sequence_classifier import SequenceClassifier
from handgrad.optimizers import SGD
from handgrad.recipes import read
from handgrad.recipes.tasks import classification
from handgrad.training import Trainer
from handgrad.training.reviews import SequencesReview
from handgrad.training.reviews.sequences import _decade
from tests.tolerances import assert_close
from tests.training.html import check_html, opacity, pictures

CLASSES = ("a", "b & c", "d")


def ragged(lengths: tuple[int, ...] = (4, 7, 0, 1, 6, 5, 7, 3)) -> tuple[Sequences, np.ndarray]:
    rng = np.random.default_rng(2)
    x = Sequences.of([rng.standard_normal((length, 2)) for length in lengths])
    return x, rng.integers(0, 3, len(lengths))


def classifier(inputs: int = 2, **settings: Any) -> SequenceClassifier:
    rng = np.random.default_rng(1)
    return SequenceClassifier(inputs, 4, 3, rng=rng, dtype=np.float64, **settings)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"cell": "lstm"}, ["input gate", "forget gate", "output gate", "cell"]),
        ({"cell": "lstm", "proj_size": 2}, ["input gate", "forget gate", "output gate", "cell"]),
        ({"cell": "gru", "bidirectional": True}, ["reset gate", "update gate", "state"]),
        ({"cell": "rnn", "nonlinearity": "relu", "num_layers": 2}, ["state"]),
        ({"cell": "leaky_rnn", "alpha": 0.9}, ["taken in"]),
    ],
    ids=["lstm", "projection", "gru", "rnn", "leaky"],
)
def test_gates_stand_beneath_the_input(settings: dict[str, Any], names: list[str]) -> None:
    x, y = ragged()
    along, gradient = SequencesReview(x, y, CLASSES).sections(classifier(**settings))
    check_html(along.body)
    check_html(gradient.body)
    drawn = along.body.count("<figure>")
    assert drawn == 4
    shown = re.findall(r'text-anchor="end">([a-z ]+)</text>', along.body)
    assert shown == ["input", *names, "step"] * drawn
    for picture in pictures(along.body):
        assert picture.shape[0] in (2, 4)
    assert "b &amp; c" in along.body
    assert "b & c" not in along.body


def test_gates_are_those_of_the_example() -> None:
    x, y = ragged((5,))
    model = classifier()
    along, _ = SequencesReview(x, y, CLASSES).sections(model)
    _, cache = model.forward(*x[:1])
    gate = 2 * cache.recurrent.layers[0][0].gates[0, :, :4].T - 1
    gate = gate[np.argsort(-gate.mean(axis=1))]
    np.testing.assert_allclose(opacity(along.body)[1], np.abs(gate), atol=0.003)


def test_examples_differ_and_one_of_them_is_wrong() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 6, 2)), rng.integers(0, 3, 40)
    along, _ = SequencesReview(x, y, CLASSES).sections(classifier())
    assert along.body.count('class="wrong"') == 1
    inputs = pictures(along.body)[::5]
    assert len({picture.tobytes() for picture in inputs}) == 4


def test_norms_are_means_by_the_distance_to_the_end() -> None:
    x, y = ragged((3, 5, 4, 5))
    model = classifier()
    review = SequencesReview(x, y, CLASSES)
    _, gradient = review.sections(model)
    assert "4 test examples" in gradient.note
    loss = CrossEntropy()
    expected: list[list[float]] = [[] for _ in range(5)]
    for i in range(4):
        one, lengths = x[i]
        scores, cache = model.forward(one, lengths)
        dx, _ = model.backward(loss.backward(loss.forward(scores, y[i : i + 1])[1]), cache)
        assert dx is not None
        for step in range(len(one[0])):
            expected[len(one[0]) - 1 - step].append(float(np.linalg.norm(dx[0, step])))
    found = review._run(model).norms
    assert_close(found, np.array([np.mean(each) for each in expected]), "float64")


def test_a_class_token_looks_at_steps() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 6, 2)).astype(np.float32), rng.integers(0, 3, 9)
    model = ClsEncoder(2, 4, 4, 3, rng=rng)
    along, gradient = SequencesReview(x, y, CLASSES).sections(model)
    check_html(along.body)
    assert "class token" in along.note
    assert "at once" in gradient.note
    shapes = [picture.shape[:2] for picture in pictures(along.body)]
    assert shapes == [(2, 6), (1, 6)] * 4


def test_rows_of_an_image_stay_an_image() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, (5, 6, 7)).astype(np.uint8)
    x, y = Pixels(values), np.zeros(5, np.int64)
    review = SequencesReview(x, y, CLASSES)
    along, _ = review.sections(classifier(7))
    check_html(along.body)
    images = pictures(along.body)[::5]
    assert all(any(np.array_equal(p[..., 3], image) for image in values) for p in images)
    line = SequencesReview(Pixels(values.reshape(5, 42, 1)), y, CLASSES)
    assert "Beneath" in line.sections(classifier(1))[0].note


def test_level_looks_level() -> None:
    assert _decade(np.array([2.0, 2.0])) == pytest.approx((2 / 10**0.5, 2 * 10**0.5))
    assert _decade(np.array([1e-6, np.inf, 0.0, 1.0])) == (1e-6, 1.0)
    assert _decade(np.zeros(3)) == (0.1, 1.0)


def test_no_gradient_no_chart() -> None:
    x, y = ragged()
    model = classifier()
    model.head.weight[...] = 0
    _, gradient = SequencesReview(x, y, CLASSES).sections(model)
    assert gradient.body == ""


def test_mistakes_are_shown_as_sequences(tmp_path: Path) -> None:
    x, y = ragged((4, 7, 2, 1, 6, 5, 7, 3))
    data = Dataset("ragged", x, y, x, y, CLASSES)
    trainer = Trainer(classifier(), CrossEntropy(), SGD(lr=0.1), out=tmp_path / "run")
    trainer.fit(data, epochs=1, review=SequencesReview(x, y, CLASSES))
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    headings = re.findall("<h2>(.*?)</h2>", page)
    assert headings[2:6] == [
        "Class by class",
        "Worst mistakes",
        "Along time",
        "Gradient along time",
    ]
    widths = re.findall(r'class="shades" [^>]*style="width:(\d+)%"', page)
    assert widths
    assert len(set(widths)) > 1


def test_models_of_sequences_have_this_review() -> None:
    x, y = ragged()
    data = Dataset("ragged", x, y, x, y, CLASSES)
    assert isinstance(classification.of(read("vowels"), data).review, SequencesReview)
    images = Dataset("images", np.ones((3, 4)), y[:3], np.ones((3, 4)), y[:3], CLASSES)
    assert classification.of(read("digits"), images).review is None
