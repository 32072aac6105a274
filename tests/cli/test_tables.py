"""A table of texts, dates and empty cells, from the command line alone."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import handgrad as hg
from handgrad.errors import DataError, HandgradWarning
from tests.data.people import HEADER, people


def test_one_command_trains_and_others_answer(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 300)
    result = handgrad("train", path, "--epochs", 20)
    assert result.exit_code == 0, result.output
    assert re.search(r"^who +left out +a different text in nearly", result.stdout, re.M)
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


@pytest.mark.parametrize("text", [None, "k"])
@pytest.mark.parametrize("kind", ["class", "number"])
def test_a_run_finds_its_columns_in_other_files(handgrad, refused, tmp_path, kind, text):
    """By their names, whatever stands between them, and the target too."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    if text is not None:
        frame[text] = rng.choice(["p", "q"], 200)
    value = frame["a"] - 2 * frame["b"]
    frame["z"] = np.where(value > 0, "hi", "lo") if kind == "class" else value
    frame.to_csv(tmp_path / "own.csv", index=False)
    turned = frame[frame.columns[::-1]].assign(more=1.0)
    turned.to_csv(tmp_path / "turned.csv", index=False)
    run = tmp_path / "run"
    result = handgrad("train", tmp_path / "own.csv", "--epochs", 5, "--drop", "c", "--out", run)
    assert result.exit_code == 0, result.output
    frame.to_csv(tmp_path / "same.csv", index=False)
    same, other = (
        handgrad("evaluate", run, "--data", tmp_path / f"{name}.csv").stdout
        for name in ("same", "turned")
    )
    assert same == other
    assert "200 examples" in other
    with pytest.warns(HandgradWarning, match="schedule"):
        assert handgrad("train", "--resume", run, "--epochs", 6).exit_code == 0
    turned.drop(columns="z").to_csv(tmp_path / "none.csv", index=False)
    assert "has no column 'z'" in refused("evaluate", run, "--data", tmp_path / "none.csv")


def test_rows_unlike_those_that_were_learned_from_are_said(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    assert handgrad("train", path, "--epochs", 1).exit_code == 0
    frame = pd.read_csv(path).astype(object)
    frame.loc[2, "city"], frame.loc[4, "age"] = "Brașov", "old"
    frame.to_csv("new.csv", index=False)
    with pytest.warns(HandgradWarning, match="column") as said:
        assert handgrad("predict", "runs/people", "new.csv").exit_code == 0
    assert [str(each.message) for each in said] == [
        "column 'age' holds 'old', which is no number, and read as missing",
        "column 'city' holds 'Brașov', which is in no row that was learned from",
    ]


def test_kinds_can_be_said(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    kinds = ("--categorical", "age,price", "--number", "id", "--date", "since")
    result = handgrad("train", path, *kinds, "--epochs", 1)
    assert result.exit_code == 0, result.output
    (table, *_) = hg.load("runs/people").preprocessing.steps
    kinds = {column.name: column.kind for column in table.columns}
    assert (kinds["age"], kinds["id"], kinds["since"]) == ("category", "number", "date")


def test_columns_to_use_can_be_said(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = people(tmp_path / "people.csv", 100)
    for options, used in (
        (("--use", "city, age"), {"city", "age"}),
        (("--use", "id", "--use", "city,outcome"), {"id", "city"}),
        (("--drop", "city,price", "--drop", "since"), {"age", "member"}),
        (("--use", "city,age", "--drop", "age"), {"city"}),
    ):
        result = handgrad("train", path, "--target", "outcome", *options, "--epochs", 1)
        assert result.exit_code == 0, result.output
        run = result.stdout.split("report: ")[1].removesuffix("/report.html\n")
        assert set(hg.load(run).columns) == used
        assert handgrad("evaluate", run).exit_code == 0
    odd = tmp_path / "odd.csv"
    odd.write_text('"last, first",b,y\n' + "".join(f"{i % 5},{i % 3},{i % 2}\n" for i in range(60)))
    assert handgrad("train", odd, "--use", '"last, first"', "--epochs", 1).exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--use", "agee"), "has no column 'agee' to use beside the target; expected one of id, "),
        (("--use", "agee"), "since, same; did you mean age?"),
        (("--drop", "outcome"), "no column 'outcome' to drop beside the target"),
        (("--date", "sinc"), "no column 'sinc' to read as date beside the target"),
        (("--date", "city"), "column 'city' holds 'Iași'; expected dates"),
        (("--use", "age", "--number", "id"), "column 'id' is not among those to use"),
        (("--number", "id", "--date", "id"), "'id' is given twice, to --number too; allowed: one"),
        (("--use", "a,,b"), "--use 'a,,b'; allowed: names of columns, such as age,city"),
        (("--use", ""), "--use ''; allowed: names of columns"),
        (("--target", " "), "--target ' '; allowed: a column's name"),
        (("--target", "outcom"), "did you mean outcome?"),
        (("--use", "outcome"), "no column with a name beside the target 'outcome'"),
        (("--drop", ",".join(HEADER.split(",")[:-1])), "no column with a name beside the target"),
    ],
)
def test_columns_that_are_not_there_are_named(refused, tmp_path, options, message):
    assert message in refused("train", people(tmp_path / "people.csv"), *options)


def test_hints_speak_the_language_of_the_place(handgrad, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,when\n" + "".join(f"{i % 5},2026-01-{1 + i % 28}\n" for i in range(40)))
    said = handgrad("train", path).stderr
    assert "holds dates and would be the target; expected --target with the name" in said
    with pytest.raises(DataError, match="expected target= with the name"):
        hg.data.load("table", path)
    said = handgrad("train", path, "--set", "data.maximum=9", "--target", "a").stderr
    assert "to leave out the columns with others: --drop when" in said
    with pytest.raises(DataError, match=r"drop=\['when'\]"):
        hg.data.load("table", path, maximum=9, target="a")


def test_a_model_that_is_no_better_than_one_answer_is_said_to_be(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(200, 2)), rng.random(200) < 0.05
    lines = [f"{a:.2f},{b:.2f},{'yes' if c else 'no'}" for (a, b), c in zip(x, rare, strict=True)]
    (tmp_path / "rare.csv").write_text("\n".join(["a,b,bought", *lines]) + "\n")
    result = handgrad("train", "rare.csv", "--epochs", 1)
    assert "no better than answering 'no' each time" in result.stderr


def test_a_rare_class_is_found_with_weights_and_a_threshold(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rare = np.arange(300) % 12 == 0
    x = rng.normal(size=300) + 1.0 * rare
    lines = [
        f"{a:.3f},{i % 5},{'odd' if c else 'fine'}"
        for i, (a, c) in enumerate(zip(x, rare, strict=True))
    ]
    (tmp_path / "rare.csv").write_text("\n".join(["a,b,verdict", *lines]) + "\n")

    def recall(*options: str) -> float:
        result = handgrad("train", "rare.csv", "--epochs", 10, "--out", "run", *options)
        assert result.exit_code == 0, result.output
        judged = handgrad("evaluate", "run").stdout
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert f"test accuracy {100 * summary['test_accuracy']:.2f} %" in judged
        answers = handgrad("predict", "run", "rare.csv", "--csv").stdout.splitlines()[1:]
        found = [line.split(",")[1] == "odd" for line in answers]
        shutil.rmtree(tmp_path / "run")
        return np.mean(np.array(found)[rare])

    plain = recall()
    assert plain < 0.5
    assert recall("--class-weights", "balanced") > plain + 0.2
    assert recall("--class-weights", "odd=11") > plain + 0.2
    assert recall("--threshold", "0.08") > plain + 0.2
    assert recall("--threshold", "0.999") == 0
    for wrong in ("a=b", "odd", "odd=1,odd=2", "odd=-1"):
        refused = handgrad("train", "rare.csv", "--class-weights", wrong)
        assert refused.exit_code == 2
        assert "allowed: " in refused.stderr
    assert handgrad("train", "rare.csv", "--epochs", 1, "--out", "run").exit_code == 0
    late = handgrad("train", "--resume", "run", "--class-weights", "balanced")
    assert "--resume together with --class-weights; allowed" in late.stderr


def test_a_column_of_many_texts_is_learned_as_vectors(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    streets = {f"Str. {i}": rng.normal() for i in range(50)}
    names = rng.choice(list(streets), 800)
    areas = rng.normal(size=800)
    rents = [streets[name] + 0.3 * area for name, area in zip(names, areas, strict=True)]
    lines = [f"{n},{a:.3f},{r:.4f}" for n, a, r in zip(names, areas, rents, strict=True)]
    (tmp_path / "rent.csv").write_text("\n".join(["street,area,rent", *lines]) + "\n")
    constant = ("--set", 'schedule={type="constant"}')
    result = handgrad("train", "rent.csv", "--out", "run", "--epochs", 30, *constant)
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^street +category +one of 50 or another, as 8 learned num", result.stdout, re.M
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["r2"] > 0.9
    assert max(summary["importances"], key=summary["importances"].get) == "street"
    trained = hg.load("run")
    assert trained.preprocessing.steps[1].mean[0] == 0.0
    assert trained.preprocessing.steps[1].std[0] == 1.0
    # An unseen text has the row 0, an empty cell the row 1.
    vectors = trained.model.layers["0"].layers["0"].weight
    assert vectors.shape == (52, 8)
    answers = trained.predict([["nowhere", 0.0], ["somewhere", 0.0], ["", 0.0], ["Str. 3", 0.0]])
    assert answers[0] == answers[1]
    assert len(set(answers.tolist())) == 3
    assert handgrad("evaluate", "run").stdout.count("R² ") == 1
    more = handgrad("train", "--resume", "run", "--epochs", 31)
    assert more.exit_code == 0, more.output


def test_a_few_rows_leave_none_to_judge_epochs_by(handgrad, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.csv").write_text("a,b\n1,2.5\n2,3.5\n3,4.7\n4,5.1\n")
    result = handgrad("train", "tiny.csv", "--epochs", 2)
    assert result.exit_code == 0, result.output
    assert "kept_epoch" not in json.loads((tmp_path / "runs/tiny/summary.json").read_text())
