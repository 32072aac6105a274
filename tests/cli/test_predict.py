from __future__ import annotations

import re

import numpy as np
import pytest

from handgrad import data


def test_arrays(handgrad, digits_run, tmp_path):
    digits = data.load("digits", seed=3)
    np.save(tmp_path / "x.npy", digits.x_train.values[:100])
    result = handgrad("predict", digits_run, tmp_path / "x.npy")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    found = [re.fullmatch(r".*x\.npy\[(\d+)\]  (\d) ([\d.]+) %", line) for line in lines]
    assert [int(match[1]) for match in found] == list(range(100))
    right = sum(int(match[2]) == label for match, label in zip(found, digits.y_train, strict=False))
    assert right > 50


def test_the_most_probable_classes_first(handgrad, digits_run, tmp_path):
    np.save(tmp_path / "x.npy", data.load("digits").x_train[:1])
    result = handgrad("predict", digits_run, tmp_path / "x.npy", "--top", 10)
    shares = [float(share) for share in re.findall(r"([\d.]+) %", result.stdout)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1)


def test_images_and_dark_ink(handgrad, digits_run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    scan = data.load("digits").x_train[0][0]
    light, dark = np.uint8(scan * 255), np.uint8(255 - np.uint8(scan * 255))
    image.fromarray(light).resize((40, 40)).save(tmp_path / "light.png")
    image.fromarray(dark).resize((40, 40)).convert("RGB").save(tmp_path / "dark.png")
    first = handgrad("predict", digits_run, tmp_path / "light.png")
    second = handgrad("predict", digits_run, "--invert", tmp_path / "dark.png")
    assert first.exit_code == 0, first.output
    assert first.stdout.split()[1:2] == second.stdout.split()[1:2]


def test_what_cannot_be_read_is_one_sentence_and_code_2(refused, digits_run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 5)))
    (tmp_path / "x.png").write_bytes(b"no image")
    assert "has shape (3, 5)" in refused("predict", digits_run, tmp_path / "x.npy")
    assert "y.npy is missing" in refused("predict", digits_run, tmp_path / "y.npy")
    assert "x.png" in refused("predict", digits_run, tmp_path / "x.png")
    assert "no run here" in refused("predict", tmp_path, tmp_path / "x.npy")


def test_series_are_standardized_as_they_were_for_training(handgrad, tmp_path):
    vectors = data.load("vectors")
    out = tmp_path / "run"
    result = handgrad("train", "series-encoder", "--epochs", 3, "--out", out, "--set", VECTORS)
    assert result.exit_code == 0, result.output
    np.save(tmp_path / "x.npy", vectors.x_test)
    lines = handgrad("predict", out, tmp_path / "x.npy").stdout.splitlines()
    found = [line.split("  ")[1].rpartition(" ")[0].rpartition(" ")[0] for line in lines]
    right = np.mean(
        [vectors.classes.index(name) == y for name, y in zip(found, vectors.y_test, strict=True)]
    )
    judged = handgrad("evaluate", out).stdout
    assert f"test accuracy {100 * right:.2f} %" in judged


VECTORS = "data.name=vectors"
