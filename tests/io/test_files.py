"""Files and folders that hold no model, or one that nobody should trust, end in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError, HandgradWarning, RunError
from handgrad.inference.preprocessing import Preprocessing, Scale, Standardization
from handgrad.io.checkpoint import save_arrays
from handgrad.io.files import description


def trained() -> hg.TrainedModel:
    model = hg.Sequential(hg.Dense(3, 2, activation="relu"), hg.Dropout(0.1), seed=0)
    steps = Preprocessing((Scale(255), Standardization((0.0,), (2.0,))))
    return hg.TrainedModel(
        model, "classification", ("a", "b"), (3,), steps, columns=("x", "y", "z")
    )


def written(path: Path, change: Any) -> Path:
    """A file with a right checksum, whose description was changed."""
    whole = trained()
    entries = json.loads(description(whole))
    change(entries)
    save_arrays(path, whole.model.parameters, {"handgrad": json.dumps(entries)})
    return path


def test_everything_comes_back(tmp_path: Path) -> None:
    whole = trained()
    whole.save(tmp_path / "m.safetensors")
    found = hg.load(tmp_path / "m.safetensors")
    for name in ("task", "classes", "input_shape", "preprocessing", "columns", "targets"):
        assert getattr(found, name) == getattr(whole, name)
    x = np.uint8([[0, 100, 200], [255, 3, 90]])
    np.testing.assert_array_equal(found.predict_proba(x), whole.predict_proba(x))


def _dense(entries: Any) -> Any:
    return entries["model"]["settings"]["*layers"][0]


def _deep(entries: Any) -> None:
    for _ in range(100):
        entries["model"] = {"class": "Sequential", "settings": {"*layers": [entries["model"]]}}


HOSTILE = {
    "another class": (
        lambda e: _dense(e).update({"class": "os.system"}),
        "expected a layer or model",
    ),
    "a base class": (lambda e: _dense(e).update({"class": "Layer"}), "is no Layer|expected"),
    "a large size": (
        lambda e: _dense(e)["settings"].update(in_features=10**9, out_features=10**9),
        "that the arrays have room for",
    ),
    "sizes of a large product": (
        lambda e: _dense(e)["settings"].update(in_features=2**20, out_features=2**20),
        "more parameters than its file",
    ),
    "constants": (
        lambda e: _dense(e)["settings"].update(
            in_features=2**20,
            out_features=2**20,
            initializer={"initializer": "constant", "settings": {"value": 1.0}},
        ),
        "more parameters than its file|does not fit",
    ),
    "many layers": (
        lambda e: e["model"].update(
            {
                "class": "TransformerEncoder",
                "settings": {"blocks": 2**20, "d_model": 2, "heads": 1, "hidden": 2},
            }
        ),
        "more parameters than its file",
    ),
    "a deep nest": (_deep, "more than 64 layers in one another"),
    "an unknown setting": (lambda e: _dense(e)["settings"].update(size=3), "size is unknown"),
    "a generator": (lambda e: _dense(e)["settings"].update(rng=3), "expected no generator"),
    "an open size": (lambda e: _dense(e)["settings"].update(in_features=None), "size that is null"),
    "an unknown initializer": (
        lambda e: _dense(e)["settings"].update(
            initializer={"initializer": "__import__", "settings": {}}
        ),
        "expected one of xavier_uniform",
    ),
    "another model": (lambda e: _dense(e)["settings"].update(out_features=1), "does not fit"),
    "an unknown step": (
        lambda e: e.update(preprocessing=[{"step": "exec", "code": "1"}]),
        "expected a step of table, scale",
    ),
    "a wrong step": (
        lambda e: e.update(preprocessing=[{"step": "scale", "maximum": 0}]),
        "maximum is 0; allowed: above 0",
    ),
    "a wrong task": (lambda e: e.update(task="magic"), "task of its description is damaged"),
    "wrong classes": (lambda e: e.update(classes=[1]), "classes of its description is damaged"),
    "no steps": (lambda e: e.pop("preprocessing"), "preprocessing of its description is damaged"),
    "another format": (lambda e: e.update(format=9), "format of its description is 9; expected 1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_description_is_one_sentence(name: str, tmp_path: Path) -> None:
    change, message = HOSTILE[name]
    with pytest.raises(HandgradError, match=message) as refused:
        hg.load(written(tmp_path / "m.safetensors", change))
    assert "m.safetensors" in str(refused.value)
    assert len(str(refused.value)) < 500


def test_what_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(HandgradError, match="does not exist; expected the folder of a run or a"):
        hg.load(tmp_path / "missing.safetensors")
    with pytest.raises(HandgradError, match=r"no run here \(config.toml is missing\)"):
        hg.load(tmp_path)
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(HandgradError, match="not a readable safetensors file"):
        hg.load(tmp_path / "text.safetensors")
    save_arrays(tmp_path / "arrays.safetensors", {"w": np.zeros(3)})
    with pytest.raises(HandgradError, match="holds no description of a model; expected a file of"):
        hg.load(tmp_path / "arrays.safetensors")
    with pytest.raises(RunError, match="cannot be written"):
        trained().save(tmp_path / "nowhere" / "m.safetensors")


class _Stop(hg.training.Callback):
    """Stops in the middle of the second epoch, as a crash does."""

    def on_step(self, trainer: hg.Trainer) -> None:
        if trainer.step == 6:
            raise ZeroDivisionError


def test_a_run_that_was_stopped_is_loaded_from_its_checkpoint(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    model = hg.Sequential(hg.Dense(None, 2), seed=0)
    trainer = hg.Trainer(
        *(model, "cross_entropy", "sgd"),
        out=tmp_path / "run",
        progress="off",
        batch_size=16,
        checkpoint_steps=1,
        callbacks=[_Stop()],
    )
    with pytest.raises(ZeroDivisionError):
        trainer.fit(x, np.where(x[:, 0] > 0, "up", "down"), epochs=5)
    sentence = "not finished: .* after step 5, in epoch 2; to finish it: the same program"
    with pytest.warns(HandgradWarning, match=sentence):
        found = hg.load(tmp_path / "run")
    assert found.classes == ("down", "up")
    assert set(found.predict(x)) <= {"down", "up"}
    (tmp_path / "run" / "checkpoint" / "latest.safetensors").unlink()
    with pytest.raises(RunError, match="not finished, and has no checkpoint yet; expected one"):
        hg.load(tmp_path / "run")


def test_weights_of_another_model_change_nothing(tmp_path: Path) -> None:
    trained().save(tmp_path / "m.safetensors")
    other = hg.Sequential(hg.Dense(4, 2), seed=1)
    before = other.parameters["0.weight"].copy()
    with pytest.raises(
        HandgradError, match=r"does not fit its model: .*'0.weight' has shape \(2, 3\)"
    ):
        other.load_weights(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(other.parameters["0.weight"], before)
    double = hg.Sequential(hg.Dense(3, 2, dtype=np.float64), seed=1)
    with pytest.raises(HandgradError, match=r"0\.bias is of float32; expected float64"):
        double.load_weights(tmp_path / "m.safetensors")
