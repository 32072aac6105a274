"""The training loop: it learns, and its arithmetic is what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from handgrad import layers
from handgrad.data import Pixels
from handgrad.errors import ArgumentError, DataError, ShapeError
from handgrad.losses import CrossEntropy, SquaredError
from handgrad.optimizers import SGD, Adam, clip_by_global_norm
from handgrad.training import Callback, EarlyStopping, History, Trainer, evaluate
from tests.training import problem


def small_model(seed: int = 0, dtype: Any = np.float64) -> layers.Layer:
    rng = np.random.default_rng(seed)
    return layers.Sequential(
        layers.Dense(5, 7, rng=rng, activation="tanh", dtype=dtype),
        layers.Dense(7, 3, rng=rng, dtype=dtype),
    )


def small_data(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 5)), rng.integers(0, 3, count)


def weights_after(loss: Any, data: Any, model: layers.Layer | None = None, **settings: Any) -> Any:
    model = model or small_model()
    trainer = Trainer(model, loss, SGD(lr=0.1), progress="off", **settings)
    trainer.fit(*data, epochs=2)
    return trainer.parameters.buffer


def test_it_learns() -> None:
    data = problem.data(400)
    trainer = Trainer(problem.model(), CrossEntropy(), Adam(lr=1e-2), batch_size=32, progress="off")
    history = trainer.fit(data, epochs=8)
    assert history["loss"][-1] < history["loss"][0] / 4
    assert evaluate(trainer.model, trainer.loss, data).accuracy == pytest.approx(1.0, abs=0.02)


def test_one_step_is_what_it_says() -> None:
    """One batch by hand: forward, loss, backward, clipping, optimizer."""
    x, y = small_data(12)
    model, loss = small_model(), CrossEntropy()
    outputs, cache = model.forward(x, training=True)
    value, loss_cache = loss.forward(outputs, y)
    gradients = dict(model.backward(loss.backward(loss_cache), cache)[1])
    assert clip_by_global_norm(gradients, 0.05) > 0.05
    expected = {name: array - 0.1 * gradients[name] for name, array in model.parameters.items()}

    trained = small_model()
    trainer = Trainer(trained, loss, SGD(lr=0.1), batch_size=12, clip_norm=0.05, progress="off")
    history = trainer.fit(x, y, epochs=1)
    assert history["loss"] == pytest.approx([float(value)])
    for name, array in trained.parameters.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropy(),
        CrossEntropy(weight=np.array([0.2, 1.0, 3.0]), ignore_index=1),
        CrossEntropy(reduction="sum"),
    ],
)
@pytest.mark.parametrize("count", [64, 53, 41])
def test_accumulation_is_the_large_batch(loss: CrossEntropy, count: int) -> None:
    data = small_data(count)
    accumulated = weights_after(loss, data, batch_size=8, accumulate=4)
    large = weights_after(loss, data, batch_size=32)
    np.testing.assert_allclose(accumulated, large, rtol=1e-12, atol=1e-14)
    assert not np.allclose(accumulated, weights_after(loss, data, batch_size=8))


def test_every_example_is_seen_once_an_epoch() -> None:
    seen: list[np.ndarray] = []

    def watch(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        seen.append(x[:, 0].copy())
        return x

    x, y = small_data(23)
    weights_after(CrossEntropy(), (x, y), batch_size=5, augment=watch)
    first, second = np.concatenate(seen[:5]), np.concatenate(seen[5:])
    assert [len(part) for part in seen] == [5, 5, 5, 5, 3] * 2
    np.testing.assert_array_equal(np.sort(first), np.sort(x[:, 0]))
    np.testing.assert_array_equal(np.sort(second), np.sort(x[:, 0]))
    assert not np.array_equal(first, second)


def test_the_seed_decides() -> None:
    data = small_data(30)
    first = weights_after(CrossEntropy(), data, seed=1, batch_size=4)
    again = weights_after(CrossEntropy(), data, seed=1, batch_size=4)
    other = weights_after(CrossEntropy(), data, seed=2, batch_size=4)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_inputs_of_other_types_are_converted() -> None:
    x, y = small_data(20)
    exact = np.round(x * 4) / 4
    pixels = Pixels(np.arange(100, dtype=np.uint8).reshape(20, 5), maximum=50.0)
    for given, converted in ((exact, exact.astype(np.float32)), (pixels, np.asarray(pixels))):
        results = [
            weights_after(CrossEntropy(), (z, y), small_model(dtype=np.float32), batch_size=8)
            for z in (given, converted)
        ]
        np.testing.assert_array_equal(results[0], results[1])
    assert evaluate(small_model(dtype=np.float32), CrossEntropy(), (exact, y)).examples == 20


def test_regression_has_no_accuracy() -> None:
    x, _ = small_data(20)
    target = x[:, :3] * 2
    trainer = Trainer(small_model(), SquaredError(), SGD(lr=0.05), batch_size=5, progress="off")
    history = trainer.fit(x, target, validation_data=(x, target), epochs=3)
    assert history["accuracy"] == [None] * 3
    assert history["validation_loss"][-1] < history["validation_loss"][0]


def test_schedule_and_callbacks() -> None:
    class Watch(Callback):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def on_start(self, trainer: Trainer) -> None:
            self.calls.append("start")

        def on_step(self, trainer: Trainer) -> None:
            self.calls.append(f"step {trainer.step}")

        def on_epoch(self, trainer: Trainer, record: Mapping[str, Any]) -> None:
            self.calls.append(f"epoch {record['epoch']}")

        def on_end(self, trainer: Trainer) -> None:
            self.calls.append("end")

    watch = Watch()
    trainer = Trainer(
        small_model(),
        CrossEntropy(),
        SGD(lr=1.0),
        schedule=lambda step: 0.5**step,
        batch_size=10,
        callbacks=[watch],
        progress="off",
    )
    history = trainer.fit(*small_data(20), epochs=2)
    assert watch.calls == [
        "start", "step 1", "step 2", "epoch 1", "step 3", "step 4", "epoch 2", "end",
    ]  # fmt: skip
    assert history["learning_rate"] == [0.5, 0.125]


def test_early_stopping_keeps_the_best_weights() -> None:
    data = small_data(24)
    stopping = EarlyStopping(2)
    # Learning rate 0 from the third epoch on: nothing improves any more.
    trainer = Trainer(
        small_model(),
        CrossEntropy(),
        SGD(lr=1.0),
        schedule=lambda step: 0.1 if step < 6 else 5.0,
        batch_size=8,
        callbacks=[stopping],
        progress="off",
    )
    history = trainer.fit(*data, validation_data=data, epochs=50)
    losses = history["validation_loss"]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3 < 50
    kept = evaluate(trainer.model, trainer.loss, data)
    assert kept.loss == pytest.approx(losses[best], rel=1e-12)


def test_early_stopping_names_an_unknown_monitor() -> None:
    with pytest.raises(ArgumentError, match=r"validation_loss.*allowed: loss"):
        weights_after(CrossEntropy(), small_data(9), callbacks=[EarlyStopping(1)])


def test_a_loss_that_is_not_finite_stops_the_training() -> None:
    x, y = small_data(12)
    x[3] = np.nan
    with pytest.raises(DataError, match=r"x has nan in row 3, column 0; expected finite numbers"):
        weights_after(CrossEntropy(), (x, y), batch_size=12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"accumulate": -1}, "accumulate is -1"),
        ({"clip_norm": 0.0}, r"clip_norm is 0\.0"),
        ({"precision": "fp8"}, "precision is 'fp8'; allowed: float32, bf16"),
        ({"progress": "loud"}, "progress is 'loud'; allowed: auto, bar, lines, off"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], message: str) -> None:
    x, y = small_data(4)
    with pytest.raises(ArgumentError, match=message):
        Trainer(small_model(), CrossEntropy(), SGD(lr=0.1), **settings).fit(x, y, epochs=1)


def test_unusable_calls() -> None:
    with pytest.raises(ArgumentError, match="reduction is 'none'"):
        Trainer(small_model(), CrossEntropy(reduction="none"), SGD(lr=0.1))
    trainer = Trainer(small_model(), CrossEntropy(), SGD(lr=0.1), progress="off")
    x, y = small_data(6)
    with pytest.raises(ShapeError, match="6 examples and y 5"):
        trainer.fit(x, y[:5], epochs=1)
    with pytest.raises(ArgumentError, match="resume needs out"):
        trainer.fit(x, y, epochs=1, resume=True)


def test_plain_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    history = fit_with("auto")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert printed[0].startswith(f"epoch 1/2  loss {history['loss'][0]:.4f}  accuracy ")
    assert printed[1].endswith(" examples/s")


def test_the_bar_draws(capsys: pytest.CaptureFixture[str]) -> None:
    fit_with("bar")
    assert "epoch 2/2  loss" in capsys.readouterr().out


def fit_with(progress: str) -> History:
    trainer = Trainer(small_model(), CrossEntropy(), SGD(lr=0.1), batch_size=4, progress=progress)
    return trainer.fit(*small_data(20), epochs=2)
