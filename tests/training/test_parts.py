"""A batch in parts: whoever computes them, the training is the same."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad import layers
from handgrad.errors import ArgumentError, RunError
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.optimizers import Adam
from handgrad.training import Callback, EarlyStopping, Replicas, Shift, Trainer
from tests.training.ranks import together

RANKS = (1, 2, 3)


def images(count: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count, 1, 6, 6)).astype(np.float32)
    return x, rng.integers(0, 3, count)


def plain() -> layers.Layer:
    rng = np.random.default_rng(0)
    return layers.Sequential(
        layers.Flatten(),
        layers.Dense(36, 8, rng=rng, activation="tanh"),
        layers.Dense(8, 3, rng=rng),
    )


def drawing() -> layers.Layer:
    """Everything whose numbers could depend on who computes which example."""
    rng = np.random.default_rng(0)
    return layers.Sequential(
        layers.Conv2d(1, 4, 3, rng=rng, bias=False),
        layers.BatchNorm(4, activation="relu"),
        layers.Flatten(),
        layers.Dropout(0.3, rng=np.random.default_rng(5)),
        layers.Dense(64, 3, rng=rng),
    )


def normalized() -> layers.Layer:
    rng = np.random.default_rng(0)
    return layers.Sequential(
        layers.Conv2d(1, 4, 3, rng=rng, bias=False),
        layers.BatchNorm(4, activation="relu"),
        layers.Flatten(),
        layers.Dense(64, 3, rng=rng),
    )


def trained(rank: Replicas, model: layers.Layer, **settings: Any) -> tuple[np.ndarray, Any]:
    """The weights and buffers of a small training, and its history."""
    given: dict[str, Any] = {"parts": 4, "batch_size": 32, "seed": 3, "clip_norm": 1.0, **settings}
    loss = given.pop("loss", CrossEntropy())
    data = given.pop("data", images())
    trainer = Trainer(
        copy.deepcopy(model), loss, Adam(1e-2), replicas=rank, progress="off", **given
    )
    history = trainer.fit(*data, epochs=2, validation_data=(data[0][:20], data[1][:20]))
    return np.concatenate([a.ravel() for a in trainer.model_arrays().values()]), history


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("model", [plain, drawing])
def test_exact_training_has_the_same_bits_on_any_number_of_ranks(
    model: Any, accumulate: int
) -> None:
    settings: dict[str, Any] = {"exact": True, "accumulate": accumulate}
    if model is drawing:
        settings["augment"] = Shift(1)
    expected, history = trained(Replicas(), model(), **settings)
    for size in RANKS:
        for weights, other in together(size, lambda rank: trained(rank, model(), **settings)):
            np.testing.assert_array_equal(weights, expected)
            assert other["loss"] == history["loss"]
            assert other["validation_loss"] == history["validation_loss"]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("model", [plain, drawing])
def test_the_ranks_change_no_more_than_the_order_of_a_sum(model: Any, accumulate: int) -> None:
    settings: dict[str, Any] = {"accumulate": accumulate}
    expected, _ = trained(Replicas(), model(), **settings)
    for size in RANKS:
        found = together(size, lambda rank: trained(rank, model(), **settings))
        for weights, _ in found:
            np.testing.assert_array_equal(weights, found[0][0])
        np.testing.assert_allclose(found[0][0], expected, atol=2e-3)


def test_parts_of_a_plain_model_give_the_gradient_of_the_whole_batch() -> None:
    """In float64, so that the order of the sum is all that is left of the difference."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(70, 5)), rng.normal(size=(70, 2))
    model = layers.Sequential(layers.Dense(5, 2, rng=rng, dtype=np.float64))
    weights = [
        trained(Replicas(), model, loss=loss, data=(x, y), **settings)[0]
        for loss in (SquaredError(), SquaredError(reduction="half_sum"))
        for settings in ({"parts": 1}, {"parts": 4}, {"parts": 4, "exact": True})
    ]
    for i in (1, 2):
        np.testing.assert_allclose(weights[i], weights[0], rtol=1e-9)
        np.testing.assert_allclose(weights[3 + i], weights[3], rtol=1e-9)


def test_a_mean_over_targets_weighs_the_parts_by_them() -> None:
    """Of ignored targets one rank may have more than another, or nothing else."""
    x, y = images(64)
    y = np.where(np.arange(64) % 32 < 14, -100, y)
    data = (x.astype(np.float64), y)
    rng = np.random.default_rng(0)
    model = layers.Sequential(layers.Flatten(), layers.Dense(36, 3, rng=rng, dtype=np.float64))
    loss = CrossEntropy(ignore_index=-100)
    expected, history = trained(Replicas(), model, data=data, loss=loss, parts=1)
    for weights, other in together(
        3, lambda rank: trained(rank, model, data=data, loss=loss, parts=6)
    ):
        np.testing.assert_allclose(weights, expected, rtol=1e-7)
        assert other["loss"] == pytest.approx(history["loss"])


@pytest.mark.parametrize(("count", "accumulate"), [(90, 1), (65, 1), (90, 2)])
def test_synchronized_statistics_are_those_of_the_whole_batch(count: int, accumulate: int) -> None:
    """With 65 examples the last batch has one, so that other ranks have none."""
    rng = np.random.default_rng(0)
    model = layers.Sequential(
        layers.Conv2d(1, 4, 3, rng=rng, dtype=np.float64),
        layers.BatchNorm(4, activation="relu", dtype=np.float64),
        layers.Flatten(),
        layers.Dense(64, 3, rng=rng, dtype=np.float64),
    )
    x, y = images(count)
    data = (x.astype(np.float64), y)
    settings: dict[str, Any] = {"data": data, "batch_size": 32 // accumulate}
    settings["accumulate"] = accumulate
    expected, _ = trained(Replicas(), model, parts=1, **settings)
    settings["sync_batch_norm"] = True
    for size in RANKS:
        for weights, _ in together(size, lambda rank: trained(rank, model, **settings)):
            np.testing.assert_allclose(weights, expected, rtol=1e-6, atol=1e-9)


def test_synchronized_gradients_count_by_the_weight_of_the_ranks() -> None:
    x, y = images(64)
    y = np.where(np.arange(64) % 32 < 10, -100, y)
    rng = np.random.default_rng(0)
    model = layers.Sequential(
        layers.Flatten(),
        layers.Dense(36, 4, rng=rng, dtype=np.float64),
        layers.BatchNorm(4, dtype=np.float64),
        layers.Dense(4, 3, rng=rng, dtype=np.float64),
    )
    settings: dict[str, Any] = {
        "data": (x.astype(np.float64), y),
        "loss": CrossEntropy(ignore_index=-100),
    }
    expected, _ = trained(Replicas(), model, parts=1, **settings)
    for weights, _ in together(
        2, lambda rank: trained(rank, model, sync_batch_norm=True, **settings)
    ):
        np.testing.assert_allclose(weights, expected, rtol=1e-6, atol=1e-9)


class _Breaks(Callback):
    """Ends the last of the ranks in the middle of the second epoch."""

    def __init__(self, step: int | None = None) -> None:
        self._step = step

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step == self._step and trainer.replicas.rank == trainer.replicas.size - 1:
            raise ConnectionError("a rank is lost")


def test_a_run_resumes_on_another_number_of_ranks(tmp_path: Path) -> None:
    def run(rank: Replicas, folder: Path, breaks: _Breaks, resume: bool = False) -> np.ndarray:
        trainer = Trainer(
            drawing(),
            CrossEntropy(),
            Adam(1e-2),
            parts=4,
            exact=True,
            batch_size=32,
            replicas=rank,
            callbacks=[EarlyStopping(5), breaks],
            checkpoint_steps=2,
            out=folder,
            progress="off",
        )
        trainer.fit(*images(), epochs=3, validation_data=images(30), resume=resume)
        return trainer.parameters.buffer

    expected = run(Replicas(), tmp_path / "whole", _Breaks())
    with pytest.raises(ConnectionError):
        together(2, lambda rank: run(rank, tmp_path / "parts", _Breaks(5)))
    for weights in together(3, lambda rank: run(rank, tmp_path / "parts", _Breaks(), True)):
        np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize(("size", "others"), [(1, 1), (2, 2), (2, 3)])
def test_a_run_with_statistics_over_all_ranks_resumes(
    tmp_path: Path, size: int, others: int
) -> None:
    """On as many ranks to the same bits; on others sums have another order."""

    def run(rank: Replicas, folder: Path, crash: bool, resume: bool = False) -> np.ndarray:
        trainer = Trainer(
            normalized(),
            CrossEntropy(),
            Adam(1e-2),
            parts=4,
            sync_batch_norm=True,
            batch_size=32,
            replicas=rank,
            callbacks=[_Breaks(5 if crash else None)],
            checkpoint_steps=2,
            out=folder,
            progress="off",
        )
        trainer.fit(*images(), epochs=3, validation_data=images(30), resume=resume)
        return trainer.parameters.buffer

    expected = together(size, lambda rank: run(rank, tmp_path / "whole", False))[0]
    with pytest.raises(ConnectionError):
        together(size, lambda rank: run(rank, tmp_path / "parts", True))
    for found in together(others, lambda rank: run(rank, tmp_path / "parts", False, True)):
        if size == others:
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_other_parts_are_another_training(tmp_path: Path) -> None:
    def run(parts: int, resume: bool) -> None:
        trainer = Trainer(plain(), out=tmp_path / "run", parts=parts, progress="off")
        trainer.fit(*images(), epochs=1, resume=resume)

    run(4, False)
    (tmp_path / "run" / "summary.json").unlink()
    with pytest.raises(RunError, match="parts is 2; allowed: 4"):
        run(2, True)


def test_every_rank_needs_a_part() -> None:
    with pytest.raises(ArgumentError, match="parts is 2 with 3 ranks; allowed"):
        together(3, lambda rank: trained(rank, plain(), parts=2))
    with pytest.raises(ArgumentError, match="exact together with sync_batch_norm"):
        Trainer(plain(), exact=True, sync_batch_norm=True)
    with pytest.raises(ArgumentError, match="parts is 0"):
        Trainer(plain(), parts=0)
