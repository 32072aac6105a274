from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from handgrad import data
from handgrad.cli.app import app


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


def test_arguments_in_the_other_order_are_turned_round(refused, digits_run, photographs, tmp_path):
    picture = photographs / "dark.png"
    message = refused("predict", picture, digits_run)
    assert f"{picture} is no run, and {digits_run} is one; allowed: the run first, as in" in message
    assert f"handgrad predict {digits_run} {photographs}" in refused(
        "predict", photographs, digits_run
    )
    message = refused("predict", picture, photographs)
    assert "is no run; allowed: the folder of a run, or a .safetensors file, and then" in message


@pytest.fixture
def photographs(tmp_path):
    """The same digit, light on dark and dark on light, in a folder."""
    image = pytest.importorskip("PIL.Image")
    scan = np.uint8(data.load("digits").x_train[0][0] * 255)
    folder = tmp_path / "photographs"
    folder.mkdir()
    image.fromarray(scan).resize((40, 40)).save(folder / "light.png")
    image.fromarray(255 - scan).resize((90, 90)).convert("RGB").save(folder / "dark.png")
    return folder


def test_pictures_of_either_polarity(handgrad, digits_run, photographs):
    result = handgrad("predict", digits_run, photographs)
    assert result.exit_code == 0, result.output
    dark, light = (line.split()[1:] for line in result.stdout.splitlines())
    assert dark[0] == light[0]


def test_pictures_in_folders_of_a_folder(handgrad, digits_run, photographs):
    result = handgrad("predict", digits_run, photographs.parent)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 2


def test_show_writes_the_pictures_as_the_model_sees_them(
    handgrad, digits_run, photographs, tmp_path
):
    image = pytest.importorskip("PIL.Image")
    result = handgrad("predict", digits_run, photographs, "--show", tmp_path / "seen")
    assert "dark.png: 90 × 90 pixels, dark and light swapped, cut to" in result.stderr
    seen = np.asarray(image.open(tmp_path / "seen" / "dark.png"))
    assert seen.shape == (256, 256)
    assert np.median(seen[0]) < 128


def test_a_picture_of_something_else_gets_a_warning(handgrad, digits_run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    board = np.add.outer(np.arange(60), np.arange(60)) // 10 % 2
    image.fromarray(np.uint8(255 * board)).save(tmp_path / "board.png")
    result = handgrad("predict", digits_run, tmp_path / "board.png")
    assert result.exit_code == 0, result.output
    assert "Warning: " in result.stderr
    assert "board.png may show none of these" in result.stderr


def test_answers_as_csv_and_json(handgrad, digits_run, photographs):
    plain = handgrad("predict", digits_run, photographs, "--top", 2).stdout.splitlines()
    rows = list(
        csv.reader(
            handgrad("predict", digits_run, photographs, "--top", 2, "--csv").stdout.splitlines()
        )
    )
    assert rows[0] == ["example", "class", "probability", "class", "probability"]
    records = json.loads(handgrad("predict", digits_run, photographs, "--top", 2, "--json").stdout)
    for line, row, record in zip(plain, rows[1:], records, strict=True):
        assert line.split()[:2] == row[:2] == [record["example"], record["classes"][0]["class"]]
        assert float(row[2]) == pytest.approx(record["classes"][0]["probability"])
    assert records[0]["done"][0] == "90 × 90 pixels"


def test_csv_and_json_exclude_each_other(refused, digits_run, photographs):
    assert "--csv together with --json" in refused(
        "predict", digits_run, photographs, "--csv", "--json"
    )


def test_a_folder_without_images_is_refused(refused, digits_run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "has no images" in refused("predict", digits_run, tmp_path / "empty")


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


def test_a_table_of_standard_input_is_called_so(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * 7 % 5},{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text("a,b,label\n" + rows)
    runner, out = CliRunner(), str(tmp_path / "run")
    train = ["train", str(tmp_path / "t.csv"), "--epochs", "1", "--out", out, "-q"]
    assert runner.invoke(app, train).exit_code == 0
    for text, said in {
        "": "standard input has no rows; expected",
        "x,y\n1,2\n": "standard input has no column 'b'; expected",
        "a,b\n1\n": "standard input: row 2 has",
    }.items():
        result = runner.invoke(app, ["predict", out, "-"], input=text)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"handgrad: {said}")
