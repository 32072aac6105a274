"""Data in the forms people have them, and what is said before the first step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Pixels, Sequences
from handgrad.errors import ArgumentError, HandgradError
from handgrad.inference.preprocessing import Scale, Standardization
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.training import Trainer

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(m, 1, (40, 4)) for m in (-3, 0, 3)])
NAMES = np.repeat(["low", "middle", "high"], 40)


class Frame:
    """A table as pandas has it, as far as handgrad asks."""

    def __init__(self, values: Any, columns: list[str]) -> None:
        self.values, self.columns = np.asarray(values), columns

    def to_numpy(self) -> np.ndarray:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


class Series:
    """One column of it."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, object)

    def to_numpy(self) -> np.ndarray:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


def network(outputs: int = 3) -> hg.Sequential:
    return hg.Sequential(hg.Dense(None, 16, activation="relu"), hg.Dense(None, outputs))


def fitted(model: Any, x: Any, y: Any, loss: Any = None, **settings: Any) -> Trainer:
    chosen = {"lr": 0.05, "batch_size": 16, "progress": "off", **settings}
    trainer = Trainer(model, loss, "adam", **chosen)
    trainer.fit(x, y, epochs=8)
    return trainer


@pytest.mark.parametrize(
    "x", [X, X.tolist(), X.astype(np.float32), Frame(X, list("abcd")), Frame(X.astype(object), [])]
)
@pytest.mark.parametrize("y", [NAMES, NAMES.tolist(), Series(NAMES)])
def test_arrays_lists_and_frames_are_the_same(x: Any, y: Any) -> None:
    trained = fitted(network(), x, y).trained
    assert trained.task == "classification"
    assert trained.classes == ("high", "low", "middle")
    assert trained.input_shape == (4,)
    assert np.mean(trained.predict(x) == NAMES) > 0.9
    np.testing.assert_array_equal(
        trained.predict(X), fitted(network(), X, NAMES).trained.predict(X)
    )


def test_the_targets_choose_the_loss() -> None:
    assert isinstance(fitted(network(), X, NAMES).loss, CrossEntropy)
    regression = fitted(network(1), X, X[:, 0] * 2)
    assert isinstance(regression.loss, SquaredError)
    assert regression.trained.predict(X).shape == (120,)
    assert regression.trained.evaluate(X, X[:, 0] * 2)["r2"] > 0.8
    tags = fitted(
        hg.SequenceTagger(4, 8, 3), X.reshape(12, 10, 4), np.repeat([0, 1, 2], 40).reshape(12, 10)
    )
    assert tags.trained.task == "tagging"
    assert tags.trained.predict(X.reshape(12, 10, 4)).shape == (12, 10)


@pytest.mark.parametrize("y", [NAMES == "low", np.where(NAMES == "low", "yes", "no")])
def test_yes_and_no_by_one_logit(y: np.ndarray) -> None:
    trained = fitted(network(1), X, y, "bce").trained
    assert trained.task == "binary"
    assert trained.predict_proba(X).shape == (120, 2)
    assert np.mean(trained.predict(X) == y) > 0.9
    assert trained.evaluate(X, y)["accuracy"] > 0.9


def test_sequences_of_different_lengths_are_tagged() -> None:
    lengths = RNG.integers(3, 9, 60)
    x = [RNG.normal(size=(n, 2)) for n in lengths]
    y = [np.where(each[:, 0] > 0, "up", "down").tolist() for each in x]
    trained = fitted(hg.SequenceTagger(2, 8, 2, cell="gru"), x, y).trained
    found = trained.predict(x)
    assert [len(each) for each in found] == lengths.tolist()
    assert (
        trained.evaluate(x, [[trained.classes.index(t) for t in row] for row in y])["accuracy"]
        > 0.8
    )
    assert np.mean(np.concatenate(found) == np.concatenate(y)) > 0.8


def test_sequences_of_different_lengths_are_classified() -> None:
    x = [RNG.normal(1 if i % 2 else -1, 1, (3 + i % 5, 2)) for i in range(80)]
    y = ["odd" if i % 2 else "even" for i in range(80)]
    trained = fitted(hg.SequenceClassifier(None, 8, 2), x, y).trained
    assert np.mean(trained.predict(x) == np.array(y)) > 0.9


def test_validation_is_split_off_by_class() -> None:
    trainer = Trainer(network(), lr=0.01, batch_size=1, progress="off")
    history = trainer.fit(X, NAMES, validation_split=0.25, epochs=1)
    assert "validation_loss" in history.epochs[0]
    assert trainer.step == 90


def test_steps_are_taken_from_the_training_part_and_kept(tmp_path: Path) -> None:
    trainer = fitted(network(), X * 1000 + 5, NAMES, preprocessing="standardize")
    (step,) = trainer.trained.preprocessing.steps
    assert step == Standardization.of(X * 1000 + 5)
    trainer.trained.save(tmp_path / "m.safetensors")
    loaded = hg.load(tmp_path / "m.safetensors")
    assert loaded.preprocessing == trainer.trained.preprocessing
    assert np.mean(loaded.predict(X * 1000 + 5) == NAMES) > 0.9


def test_pixels_keep_their_scale() -> None:
    pixels = Pixels(np.uint8(np.clip(X * 20 + 100, 0, 200)), 200)
    trained = fitted(network(), pixels, NAMES).trained
    assert trained.preprocessing.steps == (Scale(200),)
    np.testing.assert_array_equal(trained.predict(pixels), trained.predict(pixels.values))
    np.testing.assert_array_equal(trained.predict(pixels), trained.predict(pixels[:]))


def test_the_seed_gives_first_weights() -> None:
    one, two, other = (
        fitted(network(), X, NAMES, seed=seed).parameters.buffer for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def _with(x: np.ndarray, at: Any, value: Any) -> np.ndarray:
    changed = np.array(x)
    changed[at] = value
    return changed


NUMBERS = np.repeat([0, 1, 2], 40)
REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (_with(X, (17, 2), np.nan), NUMBERS, {}, "x has nan in row 17, column 2; expected finite"),
    (X, _with(X[:, 0], 3, np.inf), {}, "y has inf in row 3; expected finite"),
    (X[:0], NUMBERS[:0], {}, "x has no examples; expected one or more"),
    (X, NUMBERS[:7], {}, "x has 120 examples and y 7; allowed: as many of each"),
    (X, _with(NUMBERS, 5, 3), {}, "y has the label 3 in row 5; expected 0 to 2, because the model"),
    (X, _with(NUMBERS, 6, -1), {}, "y has the label -1 in row 6; expected 0 to 2"),
    (X, X[:, 0], {"loss": "cross_entropy"}, r"y has values of float64; .* y.astype\(int\)"),
    (X, X[:, :2], {"loss": "mse"}, r"y has shape \(120, 2\); allowed for mse: \(N, 3\)"),
    (X, NAMES, {"loss": "mse"}, "y holds classes or tags; expected for mse numbers"),
    (X[:, 0], NUMBERS, {}, r"x has shape \(120,\); allowed: \(N, ...\), one example a row"),
    (NAMES[:, None], NUMBERS, {}, "x has values of <U6; expected numbers"),
    (
        Frame(np.array([[None, 1.0, "a"]] * 120, object), ["age", "size", "colour"]),
        NUMBERS,
        {},
        r"x: column 'age' has None in row 0; .*: frame.drop\(columns=\['age', 'colour'\]\)$",
    ),
    (
        Frame(_with(X, (17, 2), np.nan), list("abcd")),
        NUMBERS,
        {},
        "x has nan in row 17, column 'c'; expected finite",
    ),
    (X, NUMBERS, {"loss": "hinge"}, "loss is 'hinge'; allowed: cross_entropy, mse"),
    (X, NUMBERS, {"loss": CrossEntropy}, r"loss is the class CrossEntropy; .* CrossEntropy\(\)"),
    (X, NUMBERS, {"optimizer": "newton"}, "optimizer is 'newton'; allowed: sgd"),
    (X, NUMBERS, {"optimizer": hg.optimizers.SGD(), "lr": 0.1}, "lr is 0.1 beside an optimizer"),
    (X, NUMBERS, {"preprocessing": "whiten"}, "preprocessing has 'whiten'; allowed: 'standardize'"),
    (X, NUMBERS, {"split": 1.5}, "validation_split is 1.5; allowed: between 0 and 1"),
    (X, NUMBERS, {"validation": (X, NAMES)}, "the y of validation_data has names of classes"),
    (X, NAMES, {"validation": (X[:1], ["none"])}, "has the class 'none' in row 0; expected high"),
    ((X, NUMBERS), None, {}, "x is a tuple and y is missing; allowed: fit"),
]


@pytest.mark.parametrize(("x", "y", "settings", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_data_are_one_sentence(
    x: Any, y: Any, settings: dict[str, Any], message: str
) -> None:
    settings = dict(settings)
    fit = {"validation_split": settings.pop("split", None)}
    fit["validation_data"] = settings.pop("validation", None)
    with pytest.raises(HandgradError, match=message):
        Trainer(network(), progress="off", **settings).fit(x, y, epochs=1, **fit)


def test_labels_that_are_out_of_range_for_one_output_name_the_loss() -> None:
    with pytest.raises(HandgradError, match='loss="bce" for yes or no'):
        Trainer(network(1), progress="off").fit(X, NUMBERS > 0, epochs=1)


def test_a_source_takes_no_steps() -> None:
    source = hg.data.Labelled(Sequences.of([X, X]), np.array([0, 1]))
    with pytest.raises(ArgumentError, match="preprocessing is given with a source of batches"):
        Trainer(network(), preprocessing="standardize").fit(source, epochs=1)


def test_a_run_of_a_program_is_loaded(tmp_path: Path) -> None:
    trainer = fitted(network(), X, NAMES, out=tmp_path / "run")
    loaded = hg.load(tmp_path / "run")
    assert loaded.classes == ("high", "low", "middle")
    assert loaded.predict_proba(X).tobytes() == trainer.trained.predict_proba(X).tobytes()
    assert loaded.evaluate(X, NAMES)["accuracy"] > 0.9


def small(outputs: int = 2) -> hg.Sequential:
    return hg.Sequential(hg.Dense(None, outputs))


@pytest.mark.parametrize("x", [[[1, 2], [3, 4], [5, 6]], np.eye(3, dtype=bool)])
def test_whole_numbers_and_booleans_build_a_model(x):
    trainer = Trainer(small())
    trainer.fit(x, ["a", "b", "a"], epochs=1)
    assert trainer.model_dtype == np.float32
    assert set(trainer.trained.predict(x)) <= {"a", "b"}


def test_one_hot_rows_are_classes():
    indices = np.arange(len(X)) % 3
    histories = []
    for y in (indices, np.eye(3)[indices], np.eye(3, dtype=bool)[indices]):
        trainer = Trainer(small(3))
        histories.append(trainer.fit(X, y, epochs=2).epochs[-1]["loss"])
        assert isinstance(trainer.loss, CrossEntropy)
    assert histories[0] == histories[1] == histories[2]
    trainer = Trainer(small(3), "mse")
    trainer.fit(X, np.eye(3)[indices], epochs=1)
    assert isinstance(trainer.loss, SquaredError)


def test_sequences_may_be_frames_or_an_array_of_objects():
    songs = [RNG.normal(size=(length, 3)) for length in (2, 5, 3, 4)]
    objects = np.empty(4, object)
    objects[:] = songs
    losses = set()
    for x in (songs, objects, [Frame(song, ["a", "b", "c"]) for song in songs]):
        trainer = Trainer(hg.SequenceClassifier(None, 4, 2))
        losses.add(trainer.fit(x, ["a", "b", "a", "b"], epochs=1).epochs[-1]["loss"])
    assert len(losses) == 1


def test_rows_of_different_lengths_need_a_model_of_sequences():
    with pytest.raises(
        HandgradError, match="length 2 in row 0 and 3 in row 1; expected one length"
    ):
        Trainer(small()).fit([[1.0, 2.0], [1.0, 2.0, 3.0]], [0, 1], epochs=1)


def test_channels_that_seem_to_stand_last():
    network = hg.Sequential(hg.Conv2d(None, 2, 3), hg.Flatten(), hg.Dense(None, 2))
    with pytest.warns(hg.errors.HandgradWarning, match=r"write x\.transpose\(0, 3, 1, 2\)"):
        Trainer(network).fit(RNG.random((4, 8, 8, 3)), [0, 1, 0, 1], epochs=1)


def test_images_without_a_channel_are_said():
    network = hg.Sequential(hg.Conv2d(None, 2, 3), hg.Flatten(), hg.Dense(None, 2))
    with pytest.raises(HandgradError, match=r"\(8, 8\); allowed: \(C, H, W\); .* x\[:, None\]"):
        Trainer(network).fit(RNG.random((4, 8, 8)), [0, 1, 0, 1], epochs=1)


def test_epochs_below_zero():
    with pytest.raises(ArgumentError, match="epochs is -1; allowed: 0 or more"):
        Trainer(small()).fit(X, NAMES, epochs=-1)


def test_a_trainer_says_what_it_is():
    assert repr(Trainer(small(), "mse", lr=0.1)).startswith("Trainer(Sequential, SquaredError")
