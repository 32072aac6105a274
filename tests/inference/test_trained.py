"""A trained model answers by names, by probabilities and in text, and says what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import DataError, HandgradError
from handgrad.inference.preprocessing import Preprocessing, Scale, Standardization
from tests.tolerances import assert_close

RNG = np.random.default_rng(0)


def classifier(**settings: Any) -> hg.TrainedModel:
    model = hg.Sequential(hg.Dense(3, 2), seed=0)
    return hg.TrainedModel(model, "classification", ("no", "yes"), (3,), **settings)


def test_names_and_probabilities_belong_together() -> None:
    trained = classifier()
    x = RNG.normal(size=(600, 3))  # more than one batch
    probabilities = trained.predict_proba(x)
    assert_close(probabilities.sum(axis=1), np.ones(600), "float32")
    names = np.array(["no", "yes"])[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(trained.predict(x), names)
    judged = trained.evaluate(x, names)
    assert judged["accuracy"] == 1.0
    assert judged["examples"] == 600
    own = probabilities.max(axis=1)
    assert judged["cross_entropy"] == pytest.approx(-np.log(own).mean(), rel=1e-5)
    assert trained.evaluate(x, np.where(names == "no", 1, 0))["accuracy"] == 0.0


def test_numbers_come_back_as_they_were_learned() -> None:
    model = hg.Sequential(hg.Dense(3, 1), seed=0)
    trained = hg.TrainedModel(model, "regression", targets=Standardization((100.0,), (10.0,)))
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(trained.predict(x), model(x)[:, 0] * 10 + 100, rtol=1e-6)
    judged = trained.evaluate(x, trained.predict(x) + 2)
    assert judged["mean_absolute_error"] == pytest.approx(2)
    assert judged["mean_squared_error"] == pytest.approx(4)


def test_steps_come_before_the_model() -> None:
    steps = Preprocessing((Scale(10), Standardization((0.5,), (2.0,))))
    trained, x = classifier(preprocessing=steps), RNG.integers(0, 10, (4, 3))
    plain = classifier().predict_proba(((x / 10 - 0.5) / 2).astype(np.float32))
    np.testing.assert_allclose(trained.predict_proba(x), plain, rtol=1e-5)
    np.testing.assert_allclose(trained.predict_proba(x / 10), plain, rtol=1e-5)


def test_a_frame_may_have_its_columns_in_any_order() -> None:
    class Frame:
        columns = ("c", "name", "a", "b")

        def to_numpy(self) -> np.ndarray:
            return np.array([[3.0, "x", 1.0, 2.0]], object)

        def __len__(self) -> int:
            return 1

    trained = classifier(columns=("a", "b", "c"))
    np.testing.assert_array_equal(
        trained.predict_proba(Frame()), trained.predict_proba([[1.0, 2.0, 3.0]])
    )


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda t: t.predict(np.zeros(3)), r"x has shape \(3,\); allowed: \(N, ...\)"),
        (lambda t: t.predict(np.zeros((2, 4))), r"x has examples of shape \(4,\); allowed: \(3,\)"),
        (lambda t: t.predict(np.zeros((0, 3))), "x has no examples"),
        (lambda t: t.predict([[1, 2, np.nan]]), "x has nan in row 0, column 2"),
        (lambda t: t.predict([["a", "b", "c"]]), "x has values of <U1; expected numbers"),
        (
            lambda t: t.evaluate(np.zeros((2, 3)), ["no", "maybe"]),
            "y has the class 'maybe' in row 1",
        ),
        (lambda t: t.evaluate(np.zeros((2, 3)), ["no"]), r"y has shape \(1,\); allowed: \(2,\)"),
        (lambda t: t.generate("a"), "the model is one of classification; allowed: predict"),
        (lambda t: t.translate("a"), "the model is one of classification; allowed: predict"),
    ],
)
def test_what_does_not_fit_is_one_sentence(work: Any, message: str) -> None:
    with pytest.raises(HandgradError, match=message):
        work(classifier())


def test_a_model_alone_does_not_say_what_its_outputs_are(tmp_path: Path) -> None:
    classifier().model.save(tmp_path / "m.safetensors")
    found = hg.load(tmp_path / "m.safetensors")
    with pytest.raises(
        HandgradError, match=r"allowed: hg.TrainedModel\(model, task=...\) with class"
    ):
        found.predict(np.zeros((1, 3)))
    with pytest.raises(HandgradError, match="task is 'guess'; allowed: classification"):
        hg.TrainedModel(found.model, "guess")


def test_a_text_goes_on(tmp_path: Path) -> None:
    tokens = hg.data.Symbols("abc\n")
    model = hg.GPT(4, context=6, width=4, heads=2, blocks=1).build(seed=1)
    hg.TrainedModel(model, "text", tokenizers={"tokens": tokens}).save(tmp_path / "m.safetensors")
    found = hg.load(tmp_path / "m.safetensors")
    text = found.generate("ab", length=5, seed=3)
    assert text.startswith("ab")
    assert len(text) == 7
    assert text == found.generate("ab", length=5, seed=3)
    with pytest.raises(HandgradError, match="the model makes text; allowed: generate"):
        found.predict([[0, 1]])


def test_a_text_becomes_another(tmp_path: Path) -> None:
    marked = hg.data.Symbols.learn(["abc"], marked=True)
    model = hg.Seq2Seq(marked.size, marked.size, embedding=3, hidden=4).build(seed=0)
    tokenizers = {"source": marked, "target": marked}
    hg.TrainedModel(model, "pairs", tokenizers=tokenizers).save(tmp_path / "m.safetensors")
    found = hg.load(tmp_path / "m.safetensors")
    several = found.translate(["ab", "c"], longest=4)
    assert found.translate("ab", longest=4) == several[0]
    assert found.translate(["ab"], longest=4, beam=2)


def test_evaluate_names_the_row_of_a_label_that_the_model_lacks():
    trainer = hg.Trainer(hg.Sequential(hg.Dense(2, 2, rng=np.random.default_rng(0))))
    trainer.fit(np.eye(2), [0, 1], epochs=1)
    with pytest.raises(DataError, match="label 5 in row 1; expected 0 to 1"):
        trainer.trained.evaluate(np.eye(2), [0, 5])


@pytest.mark.parametrize(
    ("task", "features", "classes"),
    [("classification", 3, ("no", "yes")), ("classification", 2, ()), ("binary", 1, ("yes",))],
)
def test_fewer_classes_than_outputs_are_one_sentence(task, features, classes):
    trained = hg.TrainedModel(hg.Dense(2, features, rng=RNG), task=task, classes=classes)
    x = np.ones((4, 2))
    for use in (trained.predict, trained.predict_proba, lambda x: trained.evaluate(x, [0] * 4)):
        with pytest.raises(
            DataError, match=f"outputs and {len(classes)} classes; expected the name"
        ):
            use(x)
    with pytest.raises(DataError, match="expected the name of a class for each"):
        trained.name_of(len(classes))
