from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import handgrad as hg
from handgrad import data
from handgrad.errors import HandgradWarning
from handgrad.training import start_run


def test_evaluate_says_what_the_summary_says(handgrad, digits_run):
    result = handgrad("evaluate", digits_run)
    assert result.exit_code == 0, result.output
    summary = json.loads((digits_run / "summary.json").read_text())
    assert f"test accuracy {100 * summary['test_accuracy']:.2f} %" in result.stdout
    assert f"test loss {summary['test_loss']:.4f}" in result.stdout


def test_evaluate_on_other_data(handgrad, digits_run, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "noise.npz"
    np.savez(path, x=rng.integers(0, 17, (50, 8, 8), dtype=np.uint8), y=np.arange(50) % 10)
    result = handgrad("evaluate", digits_run, "--data", path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("noise: ")


def _table(path, rows):
    path.write_text("\n".join(["x,kind", *(f"{x},{kind}" for x, kind in rows)]))
    return path


@pytest.mark.slow
def test_classes_of_other_data_go_by_their_names(handgrad, refused, tmp_path):
    rows = [(-1, "a"), (0, "b"), (1, "c")]
    table, run = _table(tmp_path / "own.csv", rows * 30), tmp_path / "run"
    assert handgrad("train", table, "--epochs", 40, "--out", run).exit_code == 0
    fewer = _table(tmp_path / "fewer.csv", rows[1:] * 10)
    found = handgrad("evaluate", run, "--data", fewer).stdout
    assert "accuracy 100.00 %" in found
    assert "20 examples" in found
    assert "18 examples" in handgrad("evaluate", run, "--data", table).stdout
    others = _table(tmp_path / "others.csv", [(0, "b"), (1, "c"), (5, "d")] * 10)
    assert "has the class 'd'; allowed: a, b, c" in refused("evaluate", run, "--data", others)


def test_image_files_keep_their_own_scale(handgrad, digits_run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    digits = data.load("digits", seed=3)
    for label in range(10):
        folder = tmp_path / "scans" / str(label)
        folder.mkdir(parents=True)
        for i, scan in enumerate(digits.x_train[digits.y_train == label][:20]):
            image.fromarray(np.uint8(255 * scan[0])).save(folder / f"{i}.png")
    result = handgrad("evaluate", digits_run, "--data", tmp_path / "scans")
    assert result.exit_code == 0, result.output
    assert float(result.stdout.split("accuracy ")[1].split()[0]) > 50


def test_data_of_another_size_is_refused(refused, digits_run, tmp_path):
    path = tmp_path / "large.npz"
    np.savez(path, x=np.zeros((20, 9, 9), np.uint8), y=np.arange(20) % 10)
    message = refused("evaluate", digits_run, "--data", path)
    assert "data.shape is [1, 8, 8], 64 values; allowed: 81 values" in message


def test_a_folder_without_a_run(refused, tmp_path):
    assert "no run here" in refused("evaluate", tmp_path)
    assert "no run here" in refused("evaluate", tmp_path / "missing")


def test_a_run_that_is_not_finished(refused, digits_run, tmp_path):
    shutil.copy(digits_run / "config.toml", tmp_path)
    message = refused("evaluate", tmp_path)
    assert "is not finished, and has no checkpoint yet" in message
    assert f"handgrad train --resume {tmp_path}" in message


def test_a_run_that_is_not_finished_is_judged_as_far_as_it_came(handgrad, digits_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(digits_run, run)
    (run / "summary.json").unlink()
    with pytest.warns(HandgradWarning, match=f"model of its last checkpoint.*--resume {run}"):
        result = handgrad("evaluate", run)
    assert result.stdout == handgrad("evaluate", digits_run).stdout


def test_a_run_of_a_program(refused, tmp_path):
    start_run(tmp_path, "[trainer]\nepochs = 1\n").close()
    message = refused("evaluate", tmp_path)
    assert "is not finished" in message
    assert "the same program, with fit(..., resume=True)" in message


def test_a_finished_run_of_a_program(handgrad, refused, tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, (40, 2)) for m in (-3, 3)])
    names = np.repeat(["low", "high"], 40)
    model = hg.Sequential(hg.Dense(None, 8, activation="relu"), hg.Dense(None, 2))
    trainer = hg.Trainer(model, lr=0.05, out=tmp_path / "run", progress="off")
    trainer.fit(x, names, epochs=10)
    table = tmp_path / "new.csv"
    rows = [f"{a},{b},{name}" for (a, b), name in zip(x, names, strict=True)]
    table.write_text("\n".join(["a,b,kind", *rows]))
    result = handgrad("evaluate", tmp_path / "run", "--data", table, "--target", "kind")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("new: test accuracy 100.00 %, cross entropy 0.")
    assert ", 16 examples\n" in result.stdout
    assert re.search(r"^low +8 +1\.000 +1\.000 +1\.000 *$", result.stdout, re.M)
    assert re.search(r"^baseline: 50\.00 % of the test part are 'high'$", result.stdout, re.M)
    assert "expected --data PATH" in refused("evaluate", tmp_path / "run")


def test_a_damaged_run(refused, digits_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(digits_run, run)
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    assert "model.safetensors" in refused("evaluate", run)
    (run / "config.toml").write_text("[data")
    assert "config.toml is damaged" in refused("evaluate", run)
    (run / "config.toml").write_bytes(b"\xff")
    assert "config.toml is damaged" in refused("evaluate", run)


def test_an_edited_config_says_how_to_change_a_setting(refused, digits_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(digits_run, run)
    config = run / "config.toml"
    config.write_text(config.read_text().replace("features = 128", "features = 127"))
    message = refused("evaluate", run)
    assert "config.toml is damaged or was changed" in message
    assert f"handgrad train --resume {run} --set KEY=VALUE" in message
