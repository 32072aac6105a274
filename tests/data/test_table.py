"""Tables in CSV: their columns, targets and errors."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from handgrad import data
from handgrad.data.unlabelled import read_rows
from handgrad.errors import ArgumentError, DataError

TABLE = [f"{i},{i / 2},{'ab'[i % 2]}" for i in range(10)]


@pytest.mark.parametrize(
    ("lines", "classes"),
    [
        (TABLE, ("a", "b")),
        (["height,width,kind", *TABLE], ("a", "b")),
        (["label,height,width", *(f"{i % 3},{i},{i}" for i in range(15))], ("0", "1", "2")),
    ],
)
def test_csv_finds_its_labels(tmp_path, lines, classes):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    found = data.load("mine", path)
    assert found.classes == classes
    assert found.input_shape == (2,)
    rows = np.concatenate([found.x_train, found.x_test])
    labels = np.concatenate([found.y_train, found.y_test])
    np.testing.assert_array_equal(rows[:, 0] % len(classes), labels)


def test_csv_in_gz(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\n".join(TABLE).encode()))
    assert len(data.load("mine", path).x_train) == 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no table"),
        (b"1\n2\n", "has no table"),
        (b"a,b,label\n", "has a header and no rows"),
        (b"1,2,a\n1,a\n", "row 2 has 2 columns; expected 3"),
        (b"x,y,label\n1,2,a\n1,oops,b\n", "has 2 rows of 2 classes, which leaves none to test"),
        (b"1,2,\xc2\xb2\n" * 5 + b"1,\xc2\xb2,3\n", "row 6 has '²'; expected a number"),
        (b"1,2,a\n1,nan,b\n", "row 2 has 'nan'; expected a number that float32 holds"),
        (b"1,2,a\n1,1e39,b\n", "row 2 has '1e39'; expected a number that float32 holds"),
        (b"1,2,a\n1,2,\n", "row 2 has no target"),
        (b"1,2,a\n1,\x002,b\n", "line 2 has a zero byte"),
        (b'1,2,a\n1,"2,b\n' * 3, "cannot be read behind row"),
        (b'1,2,a\n"1"2,3,b\n', "cannot be read behind row 1"),
        (b"label,x,label\n1,2,3\n", "its header has label twice"),
        (b"x,x,label\n1,2,3\n", "its header has x twice; expected a name of its own"),
        (b",label\n1,a\n", "has no column with a name beside the target 'label'"),
        (b"x,label\n1,a\n2,a\n", "has the target 'a' in every row; expected two different"),
        (b"x,label\n1,a\n2,b\n", "has 2 rows of 2 classes, which leaves none to test with"),
        (b"1,2,a\n" + b"1" * 200_000 + b",2,b\n", "field larger than field limit"),
        (b"1," * 3_000_000, "line 1 has 4,194,304 characters or more"),
        (b"a,b\n\xff\xfe\x00", "byte 0xff in line 1 or later, which is not UTF-8; .* CSV in UTF-8"),
        (b"\xff\xfe\x00", "byte 0x00 in line 1 or later, which is not UTF-16"),
    ],
)
def test_csv_that_is_wrong_names_the_row(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.load("mine", path)


@pytest.mark.parametrize(
    ("content", "classes"),
    [
        (b"\xef\xbb\xbflabel,x\n" + b"a,1\nb,2\n" * 5, ("a", "b")),
        (b"1,a\r2,b\r" * 5, ("a", "b")),
        (b"1,1.0\n2,0.0\n" * 5, ("0.0", "1.0")),
        ("1,²\n2,³\n".encode() * 5, ("²", "³")),
        (b"1,-1\n2,1\n" * 5, ("-1", "1")),
        (b"1,99999999999999999999\n2,3\n" * 5, ("3", "99999999999999999999")),
    ],
)
def test_csv_of_other_programs(tmp_path, content, classes):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    found = data.load("mine", path)
    assert found.classes == classes
    assert len(found.x_train) == 8


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("table.tsv", ["height\twidth\tkind", *(line.replace(",", "\t") for line in TABLE)]),
        ("table.csv", ["height;width;kind", *(line.replace(",", ";") for line in TABLE)]),
        ("table.csv", [line.replace(",", ";").replace(".", ",") for line in TABLE]),
        ("table.CSV", ['"height, in m","width",kind', *TABLE]),
        ("table.csv", [",height,width,kind", *(f"{i},{line}" for i, line in enumerate(TABLE))]),
        ("table.csv", ["height,width,kind,", *(f"{line}," for line in TABLE), ",,,"]),
    ],
)
def test_tables_as_spreadsheets_and_frames_write_them(tmp_path, name, lines):
    path = tmp_path / name
    path.write_text("\n".join(lines))
    found = data.load("mine", path, target="kind" if "kind" in lines[0] else None)
    assert found.classes == ("a", "b")
    rows = np.concatenate([found.x_train, found.x_test])
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], [[i, i / 2] for i in range(10)])


@pytest.mark.parametrize(
    "above",
    [
        "# measured in May\nheight,width,kind",
        "\n# in cm, by hand\n#\nheight,width,kind",
        "# made by a program\n# height,width,kind",
        "#height,width,kind",
        "height,width,kind,",
        "height,width,kind,,",
    ],
)
def test_lines_above_the_table_and_commas_too_many(tmp_path, above):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([above, *TABLE]))
    found = data.load("mine", path)
    assert (found.columns, found.classes) == (("height", "width"), ("a", "b"))
    rows = np.concatenate([found.x_train, found.x_test])
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], [[i, i / 2] for i in range(10)])
    np.testing.assert_array_equal(
        read_rows(written(tmp_path, [above, "1,2,a"]), 2, ["width", "height"]), [[2, 1]]
    )


PEOPLE = ["name,age,height,kind", *(f"n{i},{i or ''},{i / 2},{'ab'[i % 2]}" for i in range(10))]


def test_columns_that_are_no_numbers_can_be_dropped(tmp_path):
    path = written(tmp_path, PEOPLE)
    with pytest.raises(
        DataError, match=r"row 2 has 'n0' in column 'name'.*drop=\['name', 'age'\]$"
    ):
        data.load("people", path, maximum=255)
    found = data.load("people", path, drop=["name", "age"])
    assert found.columns == ("height",)
    assert data.load("people", path, drop=("age", "name")).columns == ("height",)
    for wrong in ("Name", "kind"):
        with pytest.raises(DataError, match=f"no column '{wrong}' to drop beside the target; exp"):
            data.load("people", path, drop=[wrong])
    with pytest.raises(DataError, match="has no header; expected one with the column 'a'"):
        data.load("mine", written(tmp_path, TABLE), drop="a")
    with pytest.raises(ArgumentError, match=r"drop is \('a',\); allowed: with a \.csv file"):
        data.load("digits", __file__.replace("test_table.py", ""), drop="a")


def test_csv_of_several_blocks_keeps_its_order(tmp_path, monkeypatch):
    monkeypatch.setattr("handgrad.data.blocks._BLOCK", 16)
    path = tmp_path / "table.csv"
    path.write_text("".join(f"{i},{2 * i},{'ab'[i % 2]}\n" for i in range(50)))
    found = data.load("mine", path)
    for x, y in ((found.x_train, found.y_train), (found.x_test, found.y_test)):
        np.testing.assert_array_equal(x[:, 0] % 2, y)
        np.testing.assert_array_equal(x[:, 1], 2 * x[:, 0])
        assert (np.diff(x[:, 0]) > 0).all()


def test_csv_of_long_labels_is_no_wide_array(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{i},{i}" for i in range(20_000)] + ["1," + "x" * 100_000]
    path.write_text("\n".join(rows))
    with pytest.raises(DataError, match="the test part is empty"):  # as an array it is 8 GB
        data.load("mine", path, numbers=False)


HOUSES = ["rooms,price,area", *(f"{i % 5},{1000.5 + i},{i * 2}" for i in range(30))]


def written(tmp_path, lines):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_target_is_a_column_by_name(tmp_path):
    found = data.load("houses", written(tmp_path, HOUSES), target="Price")
    assert found.columns == ("rooms", "area")
    assert found.classes == ()
    assert found.y_train.dtype == np.float32
    whole = np.concatenate([found.x_train[:, 1] / 2, found.x_test[:, 1] / 2])
    targets = np.concatenate([found.y_train, found.y_test])
    np.testing.assert_array_equal(targets, np.float32(1000.5 + whole))


@pytest.mark.parametrize(
    ("targets", "classes"),
    [
        ([i % 3 for i in range(30)], 3),
        ([i % 3 - 1.0 for i in range(30)], 3),
        (list(range(0, 60, 2)), 0),
        ([i % 3 / 2 for i in range(30)], 0),
        (["ab"[i % 2] for i in range(30)], 2),
    ],
)
def test_few_whole_numbers_are_classes(tmp_path, targets, classes):
    found = data.load("mine", written(tmp_path, ["x,of", *(f"1,{t}" for t in targets)]))
    assert len(found.classes) == classes


def test_the_kind_of_target_can_be_said(tmp_path):
    path = written(tmp_path, ["x,of", *(f"1,{i % 3}" for i in range(30))])
    assert data.load("mine", path, numbers=True).y_train.dtype == np.float32
    path = written(tmp_path, ["x,of", *(f"1,{i / 2}" for i in range(0, 60, 2) for _ in "ab")])
    assert len(data.load("mine", path, numbers=False).classes) == 30


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (HOUSES, {"target": "cost"}, "no column 'cost'; expected one of rooms, price, area"),
        (HOUSES[1:], {"target": "price"}, "has no header; expected one with the column 'price'"),
        (
            [*HOUSES, "1,2,"],
            {"target": "price", "maximum": 9},
            "row 32 has '' in column 'area'; expected a",
        ),
        ([*HOUSES, "1,?,3"], {"target": "price"}, "row 32 has the target '\\?'; expected numbers"),
        (["a,b", "1,", "2, NA"], {"target": "b"}, "no value of the target 'b' in any row"),
        (["2019,2020,y", "1,2,3", "4,5,6", "7,8,9"], {}, "row 1 ends with 'y', and all others"),
        (["x,x,y", *("1,2,3",) * 3], {"drop": "y"}, "no column 'y' to drop beside the target"),
    ],
)
def test_wrong_targets_name_row_and_column(tmp_path, lines, settings, message):
    with pytest.raises(DataError, match=message):
        data.load("mine", written(tmp_path, lines), **settings)


def test_rows_without_a_target_are_left_out_and_said(tmp_path):
    lines = ["x,y", "oops,", *(f"{i},{i / 2}" for i in range(3, 33)), "7,NA", "8,nan"]
    found = data.load("mine", written(tmp_path, lines), target="y")
    assert len(found.x_train) + len(found.x_test) == 30
    assert found.note == "3 rows without a target are left out, the first of them row 2"
    assert min(np.concatenate([found.origins["train"], found.origins["test"]])) == 3
    found = data.load("mine", written(tmp_path, lines[:-2]), target="y")
    assert found.note == "a row without a target is left out, row 2"
    assert data.load("mine", written(tmp_path, HOUSES), target="price").note == ""
    with pytest.raises(DataError, match="row 34 has 'b' in column 'x'"):
        data.load("mine", written(tmp_path, [*lines[:-1], "b,2"]), target="y", maximum=9)


def test_a_header_of_numbers_is_one_where_a_column_of_it_is_asked_for(tmp_path):
    lines = ["2019,2020,y", *(f"{i % 5},{i},{i % 2}" for i in range(0, 90, 3))]
    found = data.load("mine", written(tmp_path, lines), target="y")
    assert found.columns == ("2019", "2020")
    assert data.load("mine", written(tmp_path, lines), use="2020").columns == ("2020",)


def test_columns_of_one_name_can_be_dropped(tmp_path):
    lines = ["x,x,z,y", *(f"1,2,{i % 7},{i % 2}" for i in range(30))]
    with pytest.raises(DataError, match=r"has x twice; .* that is not left out by drop="):
        data.load("mine", written(tmp_path, lines))
    assert data.load("mine", written(tmp_path, lines), drop="x").columns == ("z",)
    assert data.load("mine", written(tmp_path, lines), use="z").columns == ("z",)


def test_a_target_belongs_to_a_table():
    with pytest.raises(ArgumentError, match=r"target is 'a'; allowed: with a \.csv file"):
        data.load("digits", __file__.replace("test_table.py", ""), target="a")
    with pytest.raises(ArgumentError, match=r"digits: use is \('a',\); allowed: with a \.csv file"):
        data.load("digits", use="a")


@pytest.mark.parametrize("key", ["use", "drop"])
@pytest.mark.parametrize("given", [3, [3], None])
def test_columns_are_given_by_name(tmp_path, key, given):
    path = written(tmp_path, TABLE)
    with pytest.raises(ArgumentError, match=f"mine: {key} is .*; allowed: names of columns"):
        data.load("mine", path, **{key: given})


def test_rows_to_predict_find_their_columns(tmp_path):
    path = written(tmp_path, ["name,area,rooms", "a,2,1", "b,4,3"])
    np.testing.assert_array_equal(read_rows(path, 2, ["rooms", "area"]), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(read_rows(written(tmp_path, ["1,2", "3,4"]), 2), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(read_rows(written(tmp_path, ["a,b", "3,4"]), 2), [[3, 4]])


@pytest.mark.parametrize(
    ("lines", "columns", "message"),
    [
        (["rooms", "1"], ["rooms", "area"], "has no column 'area'; expected rooms, area"),
        (["height,age", "1,2"], ["rooms", "area"], "has no column 'rooms'"),
        (["area,rooms,area", "1,2,3"], ["rooms", "area"], "its header has area twice"),
        (["1,2,3"], [], "row 1 has 3 columns; expected 2, as many as the model learned from"),
        (["1,2", "1"], [], "row 2 has 1 columns; expected 2"),
        (["rooms,area", "1,"], ["rooms", "area"], "row 2 has '' in column 'area'"),
        (["rooms,area"], ["rooms", "area"], "has no rows; expected one example a row"),
        (["1,x"], [], "row 1 has 'x'; expected a number"),
    ],
)
def test_wrong_rows_to_predict_are_named(tmp_path, lines, columns, message):
    with pytest.raises(DataError, match=message):
        read_rows(written(tmp_path, lines), 2, columns)


@pytest.mark.parametrize(
    ("above", "sign", "row"),
    [
        ("", ";", "{large};{small};{kind}"),
        ("", ";", "{large} €;{small} %;{kind}"),
        ("sep=;\n", ";", "{large};{small};{kind}"),
        ("sep=;\n", ";", '"{large}";"{small}";{kind}'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_of_spreadsheets_with_decimal_commas(tmp_path, above, sign, row, encoding):
    """Numbers below and above a thousand, of which only these have a sign for it."""
    numbers = [7.5 + 313.25 * i for i in range(30)]
    lines = [f"large{sign}small{sign}kind"]
    for i, number in enumerate(numbers):
        large = f"{number:,.2f}".translate(str.maketrans(",.", ".,"))
        lines.append(row.format(large=large, small=f"{i / 4}".replace(".", ","), kind="ab"[i % 2]))
    path = tmp_path / "table.csv"
    path.write_text(above + "\n".join(lines), encoding)
    found = data.load("mine", path)
    rows = np.concatenate([found.x_train, found.x_test])
    expected = [[number, i / 4] for i, number in enumerate(numbers)]
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], expected)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "{i},Paris,yes",
            "first row has 'Paris', as rows below it have in this column; expected a",
        ),
        ("{i},{i},yes", None),
        ("{i},c{i},yes", "the first row has 'yes', as rows below it have"),
        ("c{i},{i}.5,1{i}.5", "first row has '0.5', which is a number; expected a header with the"),
    ],
)
def test_a_row_is_not_taken_for_the_header(tmp_path, row, message):
    lines = [row.format(i=i) for i in range(20)]
    other = row.replace("yes", "no").replace("Paris", "Lyon")
    lines += [f for i in range(20, 40) for f in (row.format(i=i), other.format(i=i + 20))]
    path = written(tmp_path, lines)
    if message is None:
        assert data.load("mine", path).columns == ()
        return
    with pytest.raises(DataError, match=message):
        data.load("mine", path)
    assert data.load("mine", path, target=lines[0].split(",")[-1]).columns  # asked for, it is one


@pytest.mark.parametrize(
    ("above", "message"),
    [
        (
            "Report;;\n",
            "'Report'; expected the names of the columns in the first row, and no title",
        ),
        ("Report\n", "has no table in its first row, 'Report'; expected rows"),
    ],
)
def test_a_title_above_the_table_is_named(tmp_path, above, message):
    path = tmp_path / "table.csv"
    path.write_text(above + "\n".join(["a;b;y", *(f"{i};{i % 5};{i % 2}" for i in range(20))]))
    with pytest.raises(DataError, match=message):
        data.load("mine", path)


def test_columns_to_use_come_in_their_order(tmp_path):
    lines = ["a,b,y,c", *(f"{i},{i % 7},{i % 2},{i % 5}" for i in range(30))]
    found = data.load("mine", written(tmp_path, lines), target="y", use=("c", "a"))
    assert found.columns == ("c", "a")
    rows = np.concatenate([found.x_train, found.x_test])
    np.testing.assert_array_equal(rows[np.argsort(rows[:, 1])], [[i % 5, i] for i in range(30)])
