"""Tables of texts, dates and empty cells: the kind of each column and the numbers it becomes."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import handgrad as hg
from handgrad import data
from handgrad.data.cells import date_of, number_of, text_of
from handgrad.data.encoding import (
    Column,
    TableEncoding,
    date_pattern,
    is_row_number,
    table_encoding,
)
from handgrad.errors import ArgumentError, DataError
from handgrad.inference.preprocessing import Preprocessing
from tests.data.people import ROWS, people


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("12", 12, 12),
        (" -1.5e3 ", -1500, None),
        ("1,234.50", 1234.5, None),
        ("1.234,50", None, 1234.5),
        ("1,234", 1234, 1.234),
        ("12,34,567", None, None),
        ("$1,200", 1200, 1.2),
        ("-€ 5", -5, -5),
        ("5 EUR", 5, 5),
        ("12 %", 12, 12),
        ("(3.10)", -3.1, None),
        ("(3", None, None),
        ("−4", -4, -4),
        ("1 234 567", 1234567, 1234567),
        ("1\u202f234", 1234, 1234),
        ("1'234", 1234, 1234),
        ("1e39", None, None),
        ("12a", None, None),
        ("nan", None, None),
        ("", None, None),
        ("1" * 50, None, None),
    ],
)
def test_numbers_as_people_write_them(cell, point, comma):
    assert number_of(cell, ".") == point
    assert number_of(cell, ",") == comma


@pytest.mark.parametrize(
    ("cells", "pattern"),
    [
        (["2026-01-31", "2025-12-01"], "%Y-%m-%d"),
        (["31/01/2026", "01/02/2026"], "%d/%m/%Y"),
        (["01/31/2026", "01/02/2026"], "%m/%d/%Y"),
        (["1.2.2026", "3.4.2026"], "%d.%m.%Y"),
        (["2026-01-31T10:20:00Z"], "%Y-%m-%dT%H:%M:%S"),
        (["2026-01-31 10:20:00+02:00"], "%Y-%m-%d %H:%M:%S"),
        (["Jan 5, 2026"], "%b %d, %Y"),
        (["rose"], ""),
    ],
)
def test_dates_as_people_write_them(cells, pattern):
    found, count = date_pattern(cells)
    assert (found, count) == (pattern, len(cells) if pattern else 0)
    assert not pattern or date_of(cells[0], found).year == 2026


def test_every_column_gets_its_kind_and_a_reason(tmp_path):
    found = data.load("people", people(tmp_path / "people.csv"))
    kinds = {column.name: (column.kind, column.use) for column in found.encoding.columns}
    assert kinds["id"] == ("left out", "left out: a running number")
    assert kinds["who"] == ("left out", "left out: a different text in nearly each row")
    assert kinds["same"] == ("left out", "left out: the same in each row")
    assert kinds["age"][0] == "number"
    assert "where missing" in kinds["age"][1]
    assert kinds["city"] == ("category", "one of 3")
    assert kinds["member"] == ("category", "yes or no")
    assert kinds["price"] == ("number", "number")
    assert kinds["since"] == ("date", "year, month, day, weekday")
    assert found.columns == ("age", "city", "member", "price", "since")
    assert found.encoding.names[:5] == (
        *("age", "age is missing", "city = Arad", "city = Cluj", "city = Iași"),
    )
    assert found.classes == ("no", "yes")


def test_the_numbers_are_those_of_the_cells(tmp_path):
    path = people(tmp_path / "people.csv")
    found = data.load("people", path)
    frame = pd.read_csv(path)
    rows = np.concatenate([found.x_train, found.x_test])
    at = {name: i for i, name in enumerate(found.encoding.names)}
    number = np.rint(rows[:, at["price"]] - 1000.5).astype(int)
    assert sorted(number) == list(range(ROWS))
    frame = frame.iloc[number].reset_index(drop=True)
    lacks = frame["age"].isna().to_numpy()
    np.testing.assert_array_equal(rows[:, at["age is missing"]], lacks)
    np.testing.assert_array_equal(rows[~lacks, at["age"]], frame["age"].to_numpy()[~lacks])
    median = np.median(rows[: len(found.x_train)][~lacks[: len(found.x_train)], at["age"]])
    np.testing.assert_array_equal(rows[lacks, at["age"]], median)
    np.testing.assert_array_equal(rows[:, at["city = Cluj"]], frame["city"] == "Cluj")
    np.testing.assert_array_equal(rows[:, at["member = t"]], frame["member"] == "t")
    days = pd.to_datetime(frame["since"], format="%d.%m.%Y")
    np.testing.assert_array_equal(rows[:, at["since month"]], days.dt.month)
    np.testing.assert_array_equal(rows[:, at["since weekday"]], days.dt.day_of_week)


def test_kinds_that_are_said_go_before_what_is_found():
    names, columns = ["code", "row"], [["1", "2", "3"] * 9, [str(i) for i in range(27)]]
    plan = table_encoding(names, columns, {"code": "category", "row": "number"})
    assert plan.names == ("code = 1", "code = 2", "code = 3", "row")
    for kinds, message in (
        ({"code": "text"}, "kinds has 'code': 'text'; allowed: number, category, date"),
        ({"other": "date"}, "kinds has 'other': 'date'; .* columns of the table: code, row"),
    ):
        with pytest.raises(ArgumentError, match=message):
            table_encoding(names, columns, kinds)
    with pytest.raises(DataError, match="column 'code' holds '1'; expected dates"):
        table_encoding(names, columns, {"code": "date"})
    with pytest.raises(DataError, match="no column has anything to learn from"):
        table_encoding(["a"], [["x"] * 5], {})


def test_rare_levels_are_one_and_unknown_ones_join_them():
    cells = [f"common {i % 40}" for i in range(400)] + [f"rare {i}" for i in range(9)]
    (column,) = table_encoding(["town"], [cells], {}).columns
    assert column.others
    assert len(column.levels) == 40
    numbers = column.numbers(["common 3", "rare 1", "never seen", ""])
    assert numbers.sum(axis=1).tolist() == [1, 1, 1, 0]
    assert (numbers[1] == numbers[2]).all()
    assert numbers[1, -1] == 1


def test_many_levels_are_numbered_for_a_network_that_learns_a_vector_for_each():
    cells = [f"town {i % 40}" for i in range(400)] + [f"rare {i}" for i in range(9)] + ["", "NA"]
    plan = table_encoding(["town", "n"], [cells, [str(i * i % 7) for i in range(411)]], {},
                          vectors=True)  # fmt: skip
    town, _ = plan.columns
    assert (len(town.levels), town.missing, town.vector) == (40, 2, 7)
    assert town.use == "one of 40 or another, as 7 learned numbers; 9 levels of one row are one"
    assert plan.names == ("town", "n")
    assert plan.vectors == {0: (42, 7)}
    texts = [" town 0 ", "town 39", "", "n/a", "rare 3", "never seen"]
    levels = sorted(f"town {i}" for i in range(40))
    expected = [levels.index("town 0") + 2, levels.index("town 39") + 2, 1, 1, 0, 0]
    assert town.numbers(texts)[:, 0].tolist() == expected
    described = json.loads(json.dumps(Preprocessing((plan,)).describe()))
    assert Preprocessing.parse(described).steps == (plan,)
    few = table_encoding(["kind"], [[f"kind {i % 30}" for i in range(90)]], {}, vectors=True)
    assert few.vectors == {}
    assert len(few.names) == 30


def test_a_few_odd_cells_of_a_number_are_missing_and_said():
    cells = [str(i * i % 17) for i in range(60)] + ["unknown"]
    (column,) = table_encoding(["size"], [cells], {}).columns
    assert (column.kind, column.missing) == ("number", 1)
    assert column.use.endswith("; the cell 'unknown' is read as missing")
    (column,) = table_encoding(["size"], [[*cells, "unsure"]], {}).columns
    assert column.use.endswith("; 2 cells such as 'unknown' are read as missing")


def test_one_text_in_many_cells_of_a_number_is_missing_and_said():
    cells = [str(i) if i % 4 else "unknown" for i in range(10, 130)]
    (column,) = table_encoding(["age"], [cells], {}).columns
    assert (column.kind, column.missing) == ("number", 30)
    assert column.use.endswith("; 30 cells such as 'unknown' are read as missing")
    for others in (
        [str(i % 9) if i % 4 else "unknown" for i in range(120)],  # few numbers may be codes
        [str(i) if i % 4 else f"B{i % 3}" for i in range(10, 130)],  # so may those of many texts
        [str(i) if i % 3 == 0 else "unknown" for i in range(10, 190)],
    ):
        fives = [str(i % 5) for i in range(len(others))]
        plan = table_encoding(["age", "five"], [others, fives], {}, vectors=True)
        assert plan.columns[0].kind != "number"


def test_what_was_not_to_be_expected_in_other_rows_is_said(tmp_path):
    plan = data.load("people", people(tmp_path / "people.csv", 120)).encoding
    frame = pd.read_csv(tmp_path / "people.csv")
    assert plan.doubts(plan.cells(frame)) == []
    frame = frame.astype(object)
    frame.loc[3:5, "age"] = "old"
    frame.loc[7, "city"], frame.loc[8, "city"] = "Brașov", None
    frame.loc[9, "since"] = "soon"
    assert plan.doubts(plan.cells(frame)) == [
        "column 'age' holds 'old' (and 2 others), which is no number, and read as missing",
        "column 'city' holds 'Brașov', which is in no row that was learned from",
        "column 'since' holds 'soon', which is no date, and read as missing",
    ]


def test_a_category_of_texts_that_all_differ_has_nothing_to_learn():
    cells = [f"{i}" for i in range(60)]
    plan = table_encoding(["a", "b"], [cells, cells], {"a": "category"}, used=["b"], vectors=True)
    assert plan.columns[0].use == "left out: a different text in each row"


def test_a_plan_is_kept_with_the_model_and_reads_other_rows_alike(tmp_path):
    found = data.load("people", people(tmp_path / "people.csv"))
    described = json.loads(json.dumps(Preprocessing((found.encoding,)).describe()))
    (again,) = Preprocessing.parse(described).steps
    assert again == found.encoding
    frame = pd.read_csv(tmp_path / "people.csv")
    frame["since"] = pd.to_datetime(frame["since"], format="%d.%m.%Y")
    rows = found.encoding(frame)
    assert set(map(tuple, rows)) == set(map(tuple, [*found.x_train, *found.x_test]))
    other = data.load("people", people(tmp_path / "more.csv", 200), kinds=found.encoding)
    assert other.encoding == found.encoding
    assert other.x_train.shape[1] == rows.shape[1]
    with pytest.raises(DataError, match="x has no column 'age'; expected age, city"):
        found.encoding(frame.drop(columns="age"))
    with pytest.raises(DataError, match=r"x has rows of shape \(2,\); expected the 5 columns"):
        found.encoding([["1", "2"]])
    described[0]["columns"][0]["kind"] = "odd"
    with pytest.raises(DataError, match="'id' has settings that do not fit together"):
        Preprocessing.parse(described)


def test_a_trainer_keeps_the_plan_of_the_table_that_it_learned(tmp_path):
    path = people(tmp_path / "people.csv", 200)
    found = data.load("people", path)
    layers = hg.Dense(None, 8, activation="relu"), hg.Dense(None, 2)
    network = hg.Sequential(*layers, seed=0)
    trainer = hg.Trainer(network, lr=0.02, preprocessing="standardize", progress="off")
    trainer.fit(found, epochs=20)
    frame = pd.read_csv(path)
    answers = trainer.trained.predict(frame)
    assert (answers == frame["outcome"]).mean() > 0.9
    trainer.trained.save(tmp_path / "people.safetensors")
    again = hg.load(tmp_path / "people.safetensors")
    assert again.columns == found.columns
    np.testing.assert_array_equal(again.predict(frame.iloc[:, ::-1]), answers)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({"kind": "number", "form": "x", "fill": (0.0,)}, None),
        ({"kind": "number", "form": "."}, None),
        ({"kind": "number", "form": ".", "fill": (float("nan"),)}, None),
        ({"kind": "date", "form": "%q", "fill": (0.0,) * 4}, None),
        ({"kind": "category", "levels": (1, 2)}, None),
        ({"kind": "category", "levels": ("a",), "vector": -1}, None),
        ({"kind": "category", "levels": ("a",), "vector": 10**9}, None),
        ({"kind": "number", "form": ".", "fill": (0.0,), "vector": 3}, None),
    ],
)
def test_columns_of_damaged_files_are_refused(settings, value):
    with pytest.raises(ArgumentError, match="settings that do not fit together"):
        Column("a", **settings)
    with pytest.raises(ArgumentError, match=r"no column is used|other settings"):
        TableEncoding(({"name": "a", "odd": value},))


def test_a_date_or_a_running_number_is_no_target_by_silence(tmp_path):
    path = tmp_path / "table.csv"
    for last in (lambda i: f"2026-01-{1 + i % 28:02d}", lambda i: str(7 + i)):
        path.write_text("a,last\n" + "".join(f"{i % 5},{last(i)}\n" for i in range(40)))
        with pytest.raises(DataError, match=r"the last column, 'last', holds .*expected target"):
            data.load("table", path)
    assert data.load("table", path, target="last").classes == ()


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("n", range(5, 45), True),
        ("n", range(0, 80, 2), False),
        ("n", range(1980, 2020), False),
        ("n", [*range(20), *range(20)], False),
        ("n", range(10), False),
        ("customer_id", range(900, 0, -7), True),
        ("customerID", range(900, 0, -7), True),
        ("ID", range(900, 0, -7), True),
        ("Index", range(900, 0, -7), True),
        ("paid", range(900, 0, -7), False),
        ("id", [1, 1, *range(90)], False),
        ("id", np.arange(40) + 0.5, False),
    ],
)
def test_numbers_of_rows_are_known_by_order_or_name(name, values, expected):
    assert is_row_number(name, np.array(values, float)) == expected


def test_a_running_number_among_numbers_alone_is_left_out_too(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("row,a,y\n" + "".join(f"{i},{i % 5},{i % 2}\n" for i in range(40)))
    found = data.load("table", path)
    assert found.columns == ("a",)
    assert found.target == "y"
    assert [column.note for column in found.encoding.columns] == ["a running number", ""]
    assert data.load("table", path, use=["row", "a"]).columns == ("row", "a")
    assert data.load("table", path, use="row").columns == ("row",)
    assert data.load("table", path, drop="a").columns == ("row",)
    assert data.load("table", path, maximum=40).encoding is None


def test_a_text_that_differs_in_each_row_is_no_target_by_silence(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,who\n" + "".join(f"{i % 5},n{i % 36}\n" for i in range(40)))
    with pytest.raises(DataError, match="the last column, 'who', holds a different text in nearly"):
        data.load("table", path)


def test_a_table_without_header_holds_numbers_alone(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,a\n3,x,b\n")
    with pytest.raises(DataError, match="row 2 has 'x'; expected a number"):
        data.load("table", path)


def test_text_of_cells_of_frames():
    values = [None, float("nan"), 3.0, 2.5, "x", np.float32(4), pd.Timestamp("2026-01-02"), True]
    assert list(map(text_of, values)) == [
        *("", "", "3", "2.5", "x", "4", "2026-01-02T00:00:00", "True"),
    ]


def test_targets_may_be_numbers_as_people_write_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,price\n" + "".join(f'{i % 7},"${1000 + i:,}.50"\n' for i in range(40)))
    found = data.load("table", path)
    assert found.classes == ()
    prices = np.concatenate([found.y_train, found.y_test])
    np.testing.assert_array_equal(np.sort(prices), 1000.5 + np.arange(40))
