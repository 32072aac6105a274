"""An interrupted and resumed run ends exactly like one that was left alone."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from handgrad.errors import HandgradWarning, RunError
from handgrad.io.checkpoint import load_arrays
from handgrad.losses import CrossEntropy
from handgrad.optimizers import Adam
from handgrad.optimizers.schedules import Constant
from handgrad.training import Callback, Interrupted, Trainer, train
from tests.training import problem

STEPS_PER_EPOCH = 8
CLOCKS = ("seconds", "examples_per_second")


class CrashError(Exception):
    """Stands for whatever ends a process."""


class At(Callback):
    """Does something after one step."""

    def __init__(self, step: int, action: Any) -> None:
        self.step, self.action = step, action

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step == self.step:
            self.action()


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def crash() -> None:
    raise CrashError


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_arrays(folder / "model.safetensors")[0]


def lines(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what a clock decides."""
    text = (folder / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in text]
    return [{k: v for k, v in line.items() if k not in CLOCKS} for line in found]


def assert_same_run(folder: Path, other: Path) -> None:
    expected, found = weights(other), weights(folder)
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name
    assert lines(folder) == lines(other)


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    """Ctrl-C as in a terminal: a shell starts what runs in its background with SIGINT ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    train(**problem.parts(), out=folder)
    return folder


LAST = problem.EPOCHS * STEPS_PER_EPOCH


@pytest.mark.parametrize("step", [1, 5, STEPS_PER_EPOCH, STEPS_PER_EPOCH + 1, 19, LAST - 1])
def test_ctrl_c_and_resume(tmp_path: Path, undisturbed: Path, step: int) -> None:
    folder = tmp_path / "a run"
    with pytest.raises(Interrupted) as stopped:
        train(**problem.parts(callbacks=[At(step, press_ctrl_c)]), out=folder)
    assert f"handgrad train --resume '{folder}'" in str(stopped.value)
    assert stopped.value.exit_code == 130
    assert not (folder / "summary.json").exists()
    train(**problem.parts(callbacks=[At(-1, crash)]), out=folder, resume=True)
    assert_same_run(folder, undisturbed)


@pytest.mark.parametrize("step", [1, 4, STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH + 3, LAST])
@pytest.mark.parametrize("checkpoint_steps", [3, None])
def test_crash_and_resume(
    tmp_path: Path, undisturbed: Path, step: int, checkpoint_steps: int | None
) -> None:
    folder = tmp_path / "run"
    pieces = problem.parts(callbacks=[At(step, crash)], checkpoint_steps=checkpoint_steps)
    with pytest.raises(CrashError):
        train(**pieces, out=folder)
    train(**problem.parts(callbacks=[At(-1, crash)]), out=folder, resume=True)
    assert_same_run(folder, undisturbed)


def test_many_interruptions(tmp_path: Path, undisturbed: Path) -> None:
    folder = tmp_path / "run"
    for i, step in enumerate([2, 7, 8, 17, 30]):
        pieces = problem.parts(callbacks=[At(step, press_ctrl_c)])
        with pytest.raises(Interrupted):
            train(**pieces, out=folder, resume=i > 0)
    train(**problem.parts(callbacks=[At(-1, crash)]), out=folder, resume=True)
    assert_same_run(folder, undisturbed)


def test_interruption_inside_an_accumulated_batch_waits_for_its_end(tmp_path: Path) -> None:
    train(**problem.parts(accumulate=3), out=tmp_path / "one")
    pieces = problem.parts(accumulate=3, callbacks=[At(4, press_ctrl_c)])
    with pytest.raises(Interrupted):
        train(**pieces, out=tmp_path / "two")
    pieces = problem.parts(accumulate=3, callbacks=[At(-1, crash)])
    train(**pieces, out=tmp_path / "two", resume=True)
    assert_same_run(tmp_path / "two", tmp_path / "one")


def test_interruption_in_the_last_step_still_finishes(tmp_path: Path, undisturbed: Path) -> None:
    train(**problem.parts(callbacks=[At(LAST, press_ctrl_c)]), out=tmp_path / "run")
    assert_same_run(tmp_path / "run", undisturbed)
    assert (tmp_path / "run" / "summary.json").exists()


def test_resuming_a_finished_run_returns_its_summary(undisturbed: Path) -> None:
    before = (undisturbed / "metrics.jsonl").read_bytes()
    summary = train(**problem.parts(), out=undisturbed, resume=True)
    assert summary == json.loads((undisturbed / "summary.json").read_text())
    assert (undisturbed / "metrics.jsonl").read_bytes() == before


def _longer(epochs: int = problem.EPOCHS, **settings: Any) -> dict[str, Any]:
    """The problem with a schedule that does not know of the number of epochs."""
    return problem.parts(epochs, schedule=Constant(5e-3), **settings)


@pytest.mark.parametrize("step", [None, 2 * STEPS_PER_EPOCH + 3])
def test_a_finished_run_goes_on_for_more_epochs(tmp_path: Path, step: int | None) -> None:
    train(**_longer(), out=tmp_path / "one")
    quiet = {"callbacks": [At(-1, crash)]}
    train(**_longer(2, **quiet), out=tmp_path / "two")
    more = {"out": tmp_path / "two", "resume": True}
    if step is not None:
        with pytest.raises(CrashError):
            train(**_longer(callbacks=[At(step, crash)]), **more, changes="training.epochs=4")
        assert not (tmp_path / "two" / "summary.json").exists()
        train(**_longer(**quiet), **more)
    else:
        train(**_longer(**quiet), **more, changes="training.epochs=4")
    assert_same_run(tmp_path / "two", tmp_path / "one")
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert summary["epochs"] == problem.EPOCHS
    assert train(**_longer(**quiet), **more) == summary
    with pytest.raises(
        RunError, match=r"finished; allowed: .* more epochs than 4, such as --epochs"
    ):
        train(**_longer(3, **quiet), **more, changes="training.epochs=3")


def test_a_schedule_over_all_epochs_is_said_to_be_another(tmp_path: Path) -> None:
    train(**problem.parts(2), out=tmp_path / "run")
    with pytest.warns(
        HandgradWarning, match="schedule.steps is 32 from step 16 on, and was 16, bec"
    ):
        train(**problem.parts(), out=tmp_path / "run", resume=True, changes="training.epochs=4")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["epochs"] == 4


def test_a_run_that_stopped_early_has_no_more_epochs(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_epoch(self, trainer: Trainer, record: dict[str, Any]) -> None:
            trainer.stop = True

    train(**_longer(callbacks=[Stop()]), out=tmp_path / "run")
    with pytest.raises(RunError, match=r"ended the run after epoch 1; allowed: no more epochs"):
        train(
            **_longer(5, callbacks=[Stop()]),
            out=tmp_path / "run",
            resume=True,
            changes="training.epochs=5",
        )
    assert (tmp_path / "run" / "summary.json").exists()


def test_a_trainer_goes_on_with_its_finished_folder(tmp_path: Path) -> None:
    def fit(name: str, epochs: int, **settings: Any) -> None:
        pieces = problem.parts()
        trainer = Trainer(
            pieces["model"],
            pieces["loss"],
            pieces["optimizer"],
            batch_size=problem.BATCH,
            out=tmp_path / name,
            progress="off",
        )
        trainer.fit(problem.data(), epochs=epochs, **settings)

    fit("one", 3)
    fit("two", 2)
    fit("two", 3, resume=True)
    assert_same_run(tmp_path / "two", tmp_path / "one")


def test_ctrl_c_without_a_folder_is_the_usual_one() -> None:
    pieces = problem.parts()
    x, y = pieces["data"].x_train, pieces["data"].y_train
    trainer = Trainer(
        pieces["model"],
        pieces["loss"],
        pieces["optimizer"],
        callbacks=[At(2, press_ctrl_c)],
        progress="off",
    )
    with pytest.raises(KeyboardInterrupt) as stopped:
        trainer.fit(x, y, epochs=2)
    assert not isinstance(stopped.value, Interrupted)


def test_the_usual_handler_is_back_after_training(tmp_path: Path) -> None:
    train(**problem.parts(epochs=1), out=tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_trainer_resumes_its_own_folder(tmp_path: Path) -> None:
    def trainer(folder: Path, *callbacks: Callback) -> Trainer:
        pieces = problem.parts()
        return Trainer(
            pieces["model"],
            pieces["loss"],
            pieces["optimizer"],
            batch_size=problem.BATCH,
            callbacks=callbacks,
            out=folder,
            progress="off",
        )

    data = problem.data()
    trainer(tmp_path / "one").fit(data, epochs=3)
    with pytest.raises(Interrupted, match="resume=True"):
        trainer(tmp_path / "two", At(11, press_ctrl_c)).fit(data, epochs=3)
    history = trainer(tmp_path / "two", At(-1, crash)).fit(data, epochs=3, resume=True)
    assert_same_run(tmp_path / "two", tmp_path / "one")
    assert [record["epoch"] for record in history.epochs] == [1, 2, 3]


class Every(Callback):
    """Changes something of the trainer after each epoch, and at some steps."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def on_epoch(self, trainer: Trainer, record: Any) -> None:
        self.change(trainer)

    def on_step(self, trainer: Trainer) -> None:
        if trainer.step % 5 == 0:
            self.change(trainer)


def halve(trainer: Trainer) -> None:
    trainer.optimizer.lr *= 0.5


def scale_by_numpy(trainer: Trainer) -> None:
    trainer.optimizer.lr = np.float32(trainer.optimizer.lr * 0.7)


def forget_faster(trainer: Trainer) -> None:
    trainer.optimizer.hyperparameters["beta1"] *= 0.9


def clip_more(trainer: Trainer) -> None:
    trainer.clip_norm = 0.5 if trainer.clip_norm is None else trainer.clip_norm * 0.5


def trainer_of(
    out: Path, *callbacks: Callback, optimizer: type[Adam] = Adam, lr: float = 0.01
) -> Trainer:
    """A trainer without a schedule."""
    return Trainer(
        problem.model(),
        CrossEntropy(),
        optimizer(lr=lr),
        batch_size=problem.BATCH,
        checkpoint_steps=3,
        out=out,
        progress="off",
        callbacks=callbacks,
    )


def trained(
    out: Path, change: Any, step: int, *, resume: bool = False, optimizer: type[Adam] = Adam
) -> bytes:
    """The weights of a training that a crash ends after `step`."""
    data = problem.data()
    trainer = trainer_of(out, At(step, crash), Every(change), optimizer=optimizer)
    trainer.fit(data.x_train, data.y_train, epochs=3, resume=resume)
    return trainer.parameters.buffer.tobytes()


@pytest.mark.parametrize("change", [halve, scale_by_numpy, forget_faster, clip_more])
@pytest.mark.parametrize("step", [4, 7, 8, 14, 17, 23])
def test_what_a_callback_changed_is_kept(tmp_path: Path, change: Any, step: int) -> None:
    whole = trained(tmp_path / "whole", change, -1)
    with pytest.raises(CrashError):
        trained(tmp_path / "parts", change, step)
    if step > 8:
        with pytest.raises(CrashError):
            trained(tmp_path / "parts", change, step - 1, resume=True)
    assert trained(tmp_path / "parts", change, -1, resume=True) == whole


def test_an_attribute_of_an_own_optimizer_is_kept(tmp_path: Path) -> None:
    class Fading(Adam):
        def __init__(self, lr: float) -> None:
            super().__init__(lr)
            self.factor, self.limit = 1.0, math.inf

        def step(self, parameters: Any, gradients: Any, lr: Any = None, **settings: Any) -> None:
            super().step(parameters, gradients, lr * self.factor, **settings)

    def fade(trainer: Trainer) -> None:
        vars(trainer.optimizer)["factor"] *= 0.8

    whole = trained(tmp_path / "whole", fade, -1, optimizer=Fading)
    with pytest.raises(CrashError):
        trained(tmp_path / "parts", fade, 14, optimizer=Fading)
    assert trained(tmp_path / "parts", fade, -1, resume=True, optimizer=Fading) == whole


def test_a_rate_that_is_changed_on_purpose_goes_before_that_of_a_callback(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        trained(tmp_path / "run", halve, 14)
    data, seen = problem.data(), []

    def see() -> None:
        seen.append(trainer.optimizer.lr)
        crash()

    for lr, change in ((0.003, True), (0.003, False)):
        trainer = trainer_of(tmp_path / "run", At(13, see), Every(halve), lr=lr)
        with pytest.raises(CrashError):
            trainer.fit(data.x_train, data.y_train, epochs=3, resume=True, change=change)
    assert seen == [0.003, 0.003]


class Keeping(Callback):
    """Keeps what its state has, as one without checks does."""

    def __init__(self, state):
        self.kept = state

    def state(self):
        return self.kept

    def restore(self, state, arrays):
        self.kept = {"best": state["best"][0]}


@pytest.mark.parametrize("state", [{}, {"best": None}, {"best": []}, {"best": 1.5}])
def test_a_damaged_state_of_a_callback_is_one_sentence(tmp_path, state):
    run = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(**problem.parts(callbacks=[Keeping(state), At(5, press_ctrl_c)]), out=run)
    with pytest.raises(RunError, match="the state of Keeping is damaged") as refused:
        train(**problem.parts(callbacks=[Keeping(state), At(-1, crash)]), out=run, resume=True)
    assert "\n" not in str(refused.value)
