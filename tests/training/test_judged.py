"""The end of a run: what its answers are worth, and which epoch's weights were kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Dataset
from handgrad.errors import ArgumentError
from handgrad.io.checkpoint import load_arrays
from handgrad.training import Callback, EarlyStopping
from tests.training import problem


def _numbers(count: int = 200) -> Dataset:
    """A sum of two columns, and a third that says nothing."""
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    y = (2 * x[:, 0] + x[:, 1]).astype(np.float32) + 10
    held = count // 4
    rows = np.arange(count) + 2
    return Dataset(
        "sums",
        *(x[held:], y[held:]),
        *(x[:held], y[:held]),
        (),
        columns=("a", "b", "noise"),
        origins={"train": rows[held:], "test": rows[:held]},
    )


def _fitted(folder: Path, data: Dataset, epochs: int = 3, **settings: Any) -> tuple[Any, str]:
    outputs = len(data.classes) or 1
    model = hg.Sequential(hg.Dense(None, outputs))
    trainer = hg.Trainer(model, lr=0.1, out=folder, progress="off", **settings)
    summary = trainer.fit(data, epochs=epochs).summary
    return summary, (folder / "report.html").read_text("utf-8")


def test_numbers_are_judged_beside_their_mean_with_their_rows(tmp_path: Path) -> None:
    data = _numbers()
    summary, page = _fitted(tmp_path / "run", data, epochs=60)
    usual = data.y_train.mean(dtype=np.float64)
    expected = np.sqrt(np.square(data.y_test - usual).mean())
    assert summary["baseline_error"] == pytest.approx(expected)
    trained = hg.load(tmp_path / "run")
    errors = trained.predict(data.x_test) - data.y_test
    assert summary["root_mean_squared_error"] == pytest.approx(np.sqrt((errors**2).mean()))
    assert summary["mean_absolute_error"] == pytest.approx(np.abs(errors).mean())
    assert summary["doubts"] == []
    worst = int(np.abs(errors).argmax()) + 2
    assert re.search(r"<td>(.*?)</td>", page[page.index("Worst mistakes") :])[1] == f"row {worst}"


def test_answers_no_better_than_the_usual_one_are_said_to_be(tmp_path: Path) -> None:
    summary, page = _fitted(tmp_path / "run", _numbers(), epochs=1)
    assert summary["root_mean_squared_error"] > summary["baseline_error"]
    (said,) = summary["doubts"]
    assert said.startswith("The model is no better than answering 9.9")
    assert said in page

    data = problem.data()
    parts = [(x, (np.arange(len(x)) % 10 == 0) * 1) for x in (data.x_train, data.x_test)]
    rare = Dataset("rare", *parts[0], *parts[1], ("no", "<yes>"))
    model = hg.Sequential(hg.Flatten(), hg.Dense(None, 2))
    trainer = hg.Trainer(model, out=tmp_path / "rare", progress="off", lr=1e-9)
    summary = trainer.fit(rare, epochs=1).summary
    assert summary["baseline_accuracy"] == (rare.y_test == 0).mean()
    assert summary["test_accuracy"] <= summary["baseline_accuracy"]
    assert summary["doubts"][0].startswith(
        "The model is no better than answering 'no' each time by "
    )


def test_mistakes_carry_the_names_of_files(tmp_path: Path) -> None:
    data = problem.data()
    names = np.array([f"<{i}>.png" for i in range(len(data.x_test))])
    named = Dataset("bars", data.x_train, data.y_train, data.x_test, data.y_test, data.classes,
                    origins={"test": names})  # fmt: skip
    model = hg.Sequential(hg.Flatten(), hg.Dense(None, 3))
    trainer = hg.Trainer(model, lr=1e-6, out=tmp_path / "run", progress="off")
    trainer.fit(named, epochs=1)
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    found = re.findall(r'<span class="index">&lt;(\d+)&gt;.png</span>', page)
    wrong = np.flatnonzero(
        trainer.trained.predict(data.x_test) != np.array(list("abc"))[data.y_test]
    )
    assert len(found) == min(24, len(wrong))
    assert set(map(int, found)) <= set(wrong.tolist())


@pytest.mark.parametrize("loss", ["bce", "cross_entropy"])
def test_yes_and_no_have_the_same_figures_with_one_output_or_two(tmp_path: Path, loss: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2)).astype(np.float32)
    y = (x[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(np.int64)
    model = hg.Sequential(hg.Dense(None, 1 if loss == "bce" else 2))
    trainer = hg.Trainer(model, loss, lr=0.1, out=tmp_path / "run", progress="off")
    summary = trainer.fit(x, y, epochs=10, validation_data=(x, y)).summary
    assert summary is not None
    found = trainer.trained.evaluate(x, y)
    for name in ("macro_precision", "macro_recall", "macro_f1", "auc", "calibration_error"):
        assert summary[name] == pytest.approx(found[name], rel=1e-5), name
    assert summary["test_accuracy"] == found["accuracy"]
    assert summary["baseline_accuracy"] == max((y == 0).mean(), (y == 1).mean())


class _Spoil(Callback):
    """Makes the validation loss of the last epochs worse, by weights that are too large."""

    def on_step(self, trainer: Any) -> None:
        if trainer.epoch == 2:
            trainer.model.parameters["out.weight"][...] *= 1.5


def test_the_best_epoch_is_kept_and_the_last_one_remarked_on(tmp_path: Path) -> None:
    def run(name: str, **settings: Any) -> dict[str, Any]:
        trainer = hg.Trainer(problem.model(), out=tmp_path / name, progress="off", **settings)
        summary = trainer.fit(problem.data(), epochs=3).summary
        assert summary is not None
        return summary

    plain = run("plain", callbacks=[_Spoil()])
    assert "kept_epoch" not in plain
    (said,) = plain["remarks"]
    assert re.match(r"The last epoch, 3, is worse by validation than epoch 2: a loss of ", said)

    kept = run("kept", callbacks=[_Spoil(), EarlyStopping(None)])
    assert (kept["kept_epoch"], kept["epochs"]) == (2, 3)
    assert kept["remarks"][0].startswith("The weights are those of epoch 2, with a validation loss")
    assert kept["remarks"][0] in (tmp_path / "kept" / "report.html").read_text("utf-8")
    short = hg.Trainer(problem.model(), out=tmp_path / "short", progress="off")
    short.fit(problem.data(), epochs=2)
    weights = [load_arrays(tmp_path / name / "model.safetensors")[0] for name in ("kept", "short")]
    for name, array in weights[0].items():
        np.testing.assert_array_equal(array, weights[1][name])
    with pytest.raises(ArgumentError, match="patience is 0; allowed: at least 1, or None"):
        EarlyStopping(0)


def test_a_run_that_keeps_its_best_epoch_goes_on(tmp_path: Path) -> None:
    def run(name: str, epochs: int, **settings: Any) -> dict[str, Any]:
        callbacks = [EarlyStopping(None)]
        trainer = hg.Trainer(
            problem.model(), out=tmp_path / name, progress="off", callbacks=callbacks
        )
        summary = trainer.fit(problem.data(), epochs=epochs, **settings).summary
        assert summary is not None
        return summary

    run("two", 2)
    continued, whole = run("two", 5, resume=True), run("one", 5)
    for name in ("test_loss", "kept_epoch", "macro_f1", "remarks"):
        assert continued[name] == whole[name]
