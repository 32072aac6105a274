"""A table of texts, dates and empty cells, from the command line alone."""

from __future__ import annotations

import pandas as pd

import handgrad as hg
from tests.data.people import people


def test_one_command_trains_and_others_answer(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 300)
    result = handgrad("train", path, "--epochs", 20)
    assert result.exit_code == 0, result.output
    trained = hg.load("runs/people")
    frame = pd.read_csv(path)
    expected = trained.predict(frame)
    assert (expected == frame["outcome"].to_numpy()).mean() > 0.95

    frame.drop(columns=["outcome", "id", "same"]).to_csv("new.csv", index=False)
    answers = handgrad("predict", "runs/people", "new.csv", "--csv").stdout.splitlines()[1:]
    assert [line.split(",")[1] for line in answers] == expected.tolist()

    own = handgrad("evaluate", "runs/people").stdout
    assert ", 60 examples" in own
    assert "test accuracy" in own
    other = people(tmp_path / "others.csv", 40)
    judged = handgrad("evaluate", "runs/people", "--data", other)
    assert judged.exit_code == 0, judged.output
    assert ", 40 examples" in judged.stdout


def test_a_column_that_is_missing_is_named(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    assert handgrad("train", path, "--epochs", 1).exit_code == 0
    pd.read_csv(path).drop(columns="city").to_csv("new.csv", index=False)
    result = handgrad("predict", "runs/people", "new.csv")
    assert result.exit_code == 2
    assert (
        "new.csv has no column 'city'; expected 'age, city, member, price, since'" in result.stderr
    )


def test_kinds_can_be_said(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    changes = ("--set", 'data.kinds={age="category", id="number"}', "--epochs", 1)
    assert handgrad("train", path, *changes).exit_code == 0
    (table, *_) = hg.load("runs/people").preprocessing.steps
    kinds = {column.name: column.kind for column in table.columns}
    assert (kinds["age"], kinds["id"]) == ("category", "number")
    wrong = handgrad("train", path, "--set", 'data.kinds={ages="category"}')
    assert wrong.exit_code == 2
    assert "kinds has 'ages': 'category'; allowed: number" in wrong.stderr
