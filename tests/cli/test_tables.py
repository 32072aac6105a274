"""A table of texts, dates and empty cells, from the command line alone."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

import handgrad as hg
from tests.data.people import people


def test_one_command_trains_and_others_answer(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 300)
    result = handgrad("train", path, "--epochs", 20)
    assert result.exit_code == 0, result.output
    assert re.search(r"^who +left out +left out: a different text in nearly", result.stdout, re.M)
    assert re.search(
        r"^age +number +\d+ +number, \d+ where missing, and whether", result.stdout, re.M
    )
    assert re.search(r"^baseline: 6\d\.\d\d % of the test part are 'no'$", result.stdout, re.M)
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
    assert "new.csv has no column 'city'; expected age, city, member, price, since" in result.stderr


def test_kinds_can_be_said(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    kinds = ("--kind", "age=category", "--kind", "id=number")
    assert handgrad("train", path, *kinds, "--epochs", 1).exit_code == 0
    (table, *_) = hg.load("runs/people").preprocessing.steps
    kinds = {column.name: column.kind for column in table.columns}
    assert (kinds["age"], kinds["id"]) == ("category", "number")
    assert "--kind age; allowed: NAME=KIND" in handgrad("train", path, "--kind", "age").stderr
    wrong = handgrad("train", path, "--set", 'data.kinds={ages="category"}')
    assert wrong.exit_code == 2
    assert "kinds has 'ages': 'category'; allowed: number" in wrong.stderr


def test_a_model_that_is_no_better_than_one_answer_is_said_to_be(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(200, 2)), rng.random(200) < 0.05
    lines = [f"{a:.2f},{b:.2f},{'yes' if c else 'no'}" for (a, b), c in zip(x, rare, strict=True)]
    (tmp_path / "rare.csv").write_text("\n".join(["a,b,bought", *lines]) + "\n")
    result = handgrad("train", "rare.csv", "--epochs", 1)
    assert "no better than answering 'no' each time" in result.stderr
