"""A trainer with the backend jax: the same numbers, run folder and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, RunError
from handgrad.io.checkpoint import load_arrays
from handgrad.training import Callback, Trainer, train
from tests.tolerances import assert_close
from tests.training import problem

jax = pytest.importorskip("jax")

KEPT = ("loss", "accuracy", "validation_loss", "validation_accuracy", "learning_rate", "step")


def digits(count: int = 100) -> tuple[np.ndarray, np.ndarray]:
    data = hg.data.load("digits")
    return data.x_train[:count].reshape(count, -1), data.y_train[:count]


def trainer(backend: str, out: Path | None = None, **others: Any) -> Trainer:
    model = hg.MLP([64, 16, 10], rng=np.random.default_rng(0), dtype=np.float64)
    settings = {"lr": 0.01, "batch_size": 40, "clip_norm": 1.0, "progress": "off", **others}
    return Trainer(model, "cross_entropy", "adam", backend=backend, out=out, **settings)


def parts(backend: str, stop: int = 0) -> dict[str, Any]:
    """The problem of the tests of training without dropout, whose masks are the backend's own.

    The optimizer is not Adam, which makes large steps of gradients that are rounding errors alone,
    as those of a bias before batch normalisation are.
    """
    settings: dict[str, Any] = {"checkpoint_steps": 8, "callbacks": [Stopping(stop)]}
    pieces = problem.parts(4, backend=backend, **settings)
    layers = {name: layer for name, layer in pieces["model"].layers.items() if name != "drop"}
    optimizer = hg.optimizers.Momentum(0.1)
    return {**pieces, "model": hg.Sequential(**layers), "optimizer": optimizer}


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_arrays(folder / "model.safetensors")[0]


def test_the_numbers_are_those_of_this_engine() -> None:
    x, y = digits()
    of_each = {name: trainer(name) for name in ("numpy", "jax")}
    found = {name: each.fit(x, y, epochs=2, validation_split=0.2) for name, each in of_each.items()}
    for own, other in zip(found["numpy"].epochs, found["jax"].epochs, strict=True):
        for key in KEPT:
            assert_close(other[key], own[key], "other arrays", key)
    for name, array in of_each["numpy"].model.parameters.items():
        assert_close(of_each["jax"].model.parameters[name], array, "other arrays", name)
    assert of_each["jax"].optimizer.steps == of_each["numpy"].optimizer.steps


def test_sequences_of_many_lengths() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 48)
    x = [rng.normal(size=(3 + i % 18, 2)) + label for i, label in enumerate(y)]
    losses = []
    for backend in ("numpy", "jax"):
        settings = {"rng": np.random.default_rng(0), "cell": "rnn", "dtype": np.float64}
        model = hg.SequenceClassifier(2, 4, 2, pooling="max", **settings)
        each = Trainer(model, "cross_entropy", "sgd", backend=backend, batch_size=8, progress="off")
        losses.append([record["loss"] for record in each.fit(x, y, epochs=2).epochs])
    assert_close(losses[1], losses[0], "other arrays")


class Averaged(Callback):
    """Moves the weights after every step, which the next step has to begin from."""

    def on_step(self, trainer: Trainer) -> None:
        trainer.parameters.buffer *= 0.99


def test_callbacks_see_and_change_the_weights() -> None:
    x, y = digits()
    of_each = [trainer(name, callbacks=[Averaged()]) for name in ("numpy", "jax")]
    for each in of_each:
        each.fit(x, y, epochs=1)
    own, other = (each.parameters.buffer for each in of_each)
    assert_close(other, own, "other arrays")


class StopError(Exception):
    """Stands for what ends a process."""


class Stopping(Callback):
    """Ends the training at a step, which is no part of what identifies a run."""

    def __init__(self, at: int = 0) -> None:
        self.at = at

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step == self.at:
            raise StopError


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("numpy", "jax"), ("jax", "numpy")])
def test_a_run_goes_on_with_the_other_backend(first: str, second: str, tmp_path: Path) -> None:
    summary = train(**parts("numpy"), out=tmp_path / "whole")
    with pytest.raises(StopError):
        train(**parts(first, stop=20), out=tmp_path / "parted")
    with pytest.raises(RunError, match=r"parted: engine is '.*'; allowed: '.*', as in the che"):
        train(**parts(second), out=tmp_path / "parted", resume=True)
    resumed = train(
        **parts(second), out=tmp_path / "parted", resume=True, changes="training.backend"
    )
    assert resumed["engine"].startswith("jax (cpu)") == (second == "jax")
    assert resumed.keys() == summary.keys()
    assert_close(resumed["test_loss"], summary["test_loss"], "backends")
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "parted")
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert_close(found[name], array, "backends", name)
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {path.name for path in (tmp_path / "parted").iterdir()} == names


@pytest.mark.slow
def test_a_resumed_run_with_dropout_is_the_run_that_never_stopped(tmp_path: Path) -> None:
    """The keys of every step come from the generators that a checkpoint keeps."""
    settings: dict[str, Any] = {"backend": "jax", "checkpoint_steps": 5}
    train(**problem.parts(2, **settings, callbacks=[Stopping()]), out=tmp_path / "whole")
    with pytest.raises(StopError):
        train(**problem.parts(2, **settings, callbacks=[Stopping(12)]), out=tmp_path / "parted")
    pieces = problem.parts(2, **settings, callbacks=[Stopping()])
    train(**pieces, out=tmp_path / "parted", resume=True)
    expected = weights(tmp_path / "whole")
    for name, array in weights(tmp_path / "parted").items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_is_not_finite_ends_in_a_sentence() -> None:
    x, y = digits()
    each = trainer("jax", lr=1e300)
    with pytest.raises(RunError, match=r"^training: the loss is nan at step 2 .*; a smaller l"):
        each.fit(x, y, epochs=9)


def test_what_the_backend_cannot_do_is_refused() -> None:
    refusals = {
        "Trainer: backend is 'tpu'; allowed: numpy, jax": {"backend": "tpu"},
        "Trainer: devices is 9; allowed: 1 to 1, the cpu devices that JAX has; XLA_FLAGS=": {
            "backend": "jax",
            "devices": 9,
        },
        "Trainer: devices is 2; allowed with backend 'numpy': 1": {"devices": 2},
        "Trainer: accumulate is 2; allowed with backend 'jax': 1, because": {
            "backend": "jax",
            "accumulate": 2,
        },
    }
    model = hg.MLP([2, 2], rng=np.random.default_rng(0))
    for sentence, settings in refusals.items():
        with pytest.raises(ArgumentError) as caught:
            Trainer(model, "cross_entropy", **settings)
        assert str(caught.value).startswith(sentence)
