"""Training that runs away stops with the layer, the step and what to do, and can be continued."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import layers
from handgrad.data.sources import as_source
from handgrad.errors import ArgumentError, DataError, RunError
from handgrad.io.checkpoint import finite, load_arrays, to_json
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.optimizers import SGD, Adam
from handgrad.training import Callback, EarlyStopping, Trainer, train
from tests.training import problem


def small_model(seed: int = 0) -> layers.Sequential:
    rng = np.random.default_rng(seed)
    return layers.Sequential(
        first=layers.Dense(5, 7, rng=rng, activation="tanh"),
        second=layers.Dense(7, 3, rng=rng),
    )


def small_data(count: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, 5)).astype(np.float32), rng.integers(0, 3, count)


class Poison(Callback):
    """Puts a NaN where training would have computed one."""

    def __init__(self, step: int, name: str) -> None:
        self.step, self.name = step, name

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step == self.step:
            trainer.parameters[self.name].flat[0] = np.nan

    def settings(self) -> dict[str, Any]:
        """None has to be the same, though it acts: it stands for a fault that comes once."""
        return {}


def test_a_learning_rate_that_is_too_large_names_the_layer_and_the_step() -> None:
    x, _ = small_data()
    trainer = Trainer(
        small_model(), SquaredError(), SGD(lr=1e30), batch_size=8, progress="off", clip_norm=None
    )
    targets = np.random.default_rng(2).normal(size=(24, 3)).astype(np.float32)
    with pytest.raises(RunError) as stopped, np.errstate(all="ignore"):
        trainer.fit(x, targets, epochs=3)
    message = str(stopped.value)
    assert message.startswith("training: the ")
    assert " of the layer " in message or "the loss of them is not" in message
    assert "(epoch 1)" in message
    assert "a smaller learning rate or clip_norm usually prevents this, such as lr=1e+29" in message


@pytest.mark.parametrize("accumulate", [1, 2])
def test_weights_that_became_nan_name_their_layer(accumulate: int) -> None:
    trainer = Trainer(
        small_model(),
        CrossEntropy(),
        Adam(lr=1e-3),
        batch_size=4,
        accumulate=accumulate,
        callbacks=[Poison(2, "second.weight")],
        progress="off",
    )
    with pytest.raises(RunError, match=r"loss is nan at step 3 .*weights of the layer second"):
        trainer.fit(*small_data(), epochs=1)


def test_a_last_step_that_diverges_is_no_success(tmp_path: Path) -> None:
    data = small_data()
    for out in (None, tmp_path / "run"):
        trainer = Trainer(
            small_model(),
            CrossEntropy(),
            Adam(lr=1e-3),
            batch_size=12,
            callbacks=[Poison(2, "first.bias")],
            out=out,
            progress="off",
        )
        with pytest.raises(
            RunError, match=r"weights of the layer first are not finite after step 2"
        ):
            trainer.fit(*data, epochs=1)
    assert not (tmp_path / "run" / "summary.json").exists()
    arrays, _ = load_arrays(tmp_path / "run" / "checkpoint" / "latest.safetensors")
    assert all(np.isfinite(array).all() for array in arrays.values())


@pytest.mark.parametrize("clip_norm", [1.0, None])
def test_gradients_that_are_not_finite_never_reach_the_weights(clip_norm: float | None) -> None:
    x, _ = small_data()
    targets = np.full((24, 3), 1e25, np.float32)  # the loss overflows in float32, so use a sum
    model = small_model()
    trainer = Trainer(
        model, Huge(), SGD(lr=1e-3), batch_size=8, clip_norm=clip_norm, progress="off"
    )
    message = "gradient of the layer second is not finite at step 1" if clip_norm else "second"
    with pytest.raises(RunError, match=message), np.errstate(all="ignore"):
        trainer.fit(x, targets, epochs=1)
    assert clip_norm is None or np.isfinite(trainer.parameters.buffer).all()


class Huge:
    """A finite loss with a gradient that is infinite."""

    options: dict[str, Any] = {}  # noqa: RUF012

    def forward(self, y: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, Any]:
        return np.float32(1.0), y

    def backward(self, cache: Any, out: Any = None) -> np.ndarray:
        return np.full_like(cache, np.inf)


def test_a_diverged_run_continues_from_before(tmp_path: Path) -> None:
    def trainer(lr: float, *callbacks: Callback) -> Trainer:
        return Trainer(
            small_model(),
            CrossEntropy(),
            Adam(lr=lr),
            batch_size=8,
            callbacks=callbacks,
            out=tmp_path / "run",
            checkpoint_steps=1,
            progress="off",
        )

    data = small_data()
    with pytest.raises(RunError) as stopped:
        trainer(0.5, Poison(2, "second.weight")).fit(*data, epochs=2)
    assert "the same program with another learning rate, such as lr=0.05" in str(stopped.value)
    assert "fit(..., resume=True, change=True)" in str(stopped.value)
    with pytest.raises(RunError, match=r"optimizer\.lr is 0\.05; allowed: 0\.5.*change=True"):
        trainer(0.05, Poison(-1, "")).fit(*data, epochs=2, resume=True)
    history = trainer(0.05, Poison(-1, "")).fit(*data, epochs=2, resume=True, change=True)
    assert history.summary is not None
    assert history.summary["steps"] == 6
    records = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    changes = [record for record in map(json.loads, records) if record["kind"] == "change"]
    assert changes == [{"kind": "change", "step": 1, "changes": {"optimizer.lr": [0.5, 0.05]}}]


def test_data_that_are_not_finite_are_told_as_such() -> None:
    x, y = small_data()
    x[7, 2] = np.inf
    trainer = Trainer(small_model(), CrossEntropy(), Adam(lr=1e-3), batch_size=24, progress="off")
    x[8, 2] = np.nan
    with pytest.raises(DataError, match="the data of this batch are not finite; allowed"):
        trainer.fit(as_source((x, y), "train"), epochs=1)
    with pytest.raises(DataError, match="x has inf in row 7, column 2; expected finite numbers"):
        trainer.fit(x, y, epochs=1)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), "0.1", None])
def test_a_schedule_that_gives_no_rate_is_one_sentence(rate: Any) -> None:
    trainer = Trainer(
        small_model(), CrossEntropy(), Adam(), schedule=lambda step: rate, progress="off"
    )
    with pytest.raises(ArgumentError, match=r"schedule\(0\) is .*; allowed: a finite number"):
        trainer.fit(*small_data(), epochs=1)


def test_early_stopping_takes_no_nan_for_an_improvement() -> None:
    class Watched:
        stop = False
        epoch = 1

        def model_arrays(self) -> dict[str, np.ndarray]:
            return {"w": np.zeros(1)}

    stopping = EarlyStopping(2)
    trainer: Any = Watched()
    for value in (float("nan"), 0.5, float("nan")):
        stopping.on_epoch(trainer, {"validation_loss": value})
    assert stopping.state() == {"best": 0.5, "epoch": 1, "waited": 1}
    stopping.on_epoch(trainer, {"validation_loss": float("inf")})
    assert trainer.stop
    rising = EarlyStopping(1, monitor="validation_accuracy")
    rising.on_epoch(trainer, {"validation_accuracy": float("inf")})
    assert rising.state()["best"] is None


def test_metrics_and_summary_have_null_for_what_is_not_finite(tmp_path: Path) -> None:
    parts = problem.parts(epochs=1, early_stopping=None)
    parts["data"].x_validation[0] = np.finfo(np.float32).max
    parts["data"].x_test[1] = np.finfo(np.float32).max
    with np.errstate(all="ignore"):
        summary = train(**parts, out=tmp_path / "run")
    assert summary["test_loss"] is None
    for text in (
        (tmp_path / "run" / "summary.json").read_text(),
        *(tmp_path / "run" / "metrics.jsonl").read_text().splitlines(),
    ):
        json.loads(text, parse_constant=lambda name: pytest.fail(name))


def test_json_has_no_nan() -> None:
    assert finite({"a": [math.nan, 1.5, (math.inf,)], "b": "x"}) == {
        "a": [None, 1.5, [None]],
        "b": "x",
    }
    with pytest.raises(RunError, match=r"a state: .*; allowed: what JSON holds"):
        to_json("a state", {"a": math.nan})
    with pytest.raises(RunError, match="a state"):
        to_json("a state", {"a": {1, 2}})


@pytest.mark.filterwarnings("error")
def test_the_layer_whose_gradient_exploded_is_named_without_warnings() -> None:
    rng = np.random.default_rng(0)
    model = layers.Sequential(
        calm=layers.Dense(5, 7, rng=rng, activation="tanh"), wild=layers.Dense(7, 3, rng=rng)
    )
    trainer = Trainer(model, SquaredError(), SGD(lr=1e6), batch_size=8, progress="off")
    x, _ = small_data()
    message = "; the gradient of the layer wild exploded, and has taken its weights to"
    with pytest.raises(RunError, match=message):
        trainer.fit(x, x[:, :3], epochs=200)
