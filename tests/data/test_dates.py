from __future__ import annotations

import datetime
import sys

import pytest

from handgrad.data import dates, load_pairs
from handgrad.errors import ArgumentError, DataError

SIZES = {"train": 300, "validation": 50, "test": 50}


@pytest.fixture
def babel():
    return pytest.importorskip("babel")


@pytest.mark.parametrize("ascii", [False, True])
def test_no_text_is_two_days(babel, ascii):
    styles = [style for ways in dates.styles(dates.LOCALES, ascii) for style in ways]
    seen = {}
    for month in range(1, 13):
        for day in (3, month, 12, 13):
            date = datetime.date(1998, month, day)
            for style in styles:
                text = dates.write(date, style, ascii)
                assert text is None or seen.setdefault(text, date) == date, text


def test_what_could_be_another_day_is_not_written(babel):
    (ways,) = dates.styles(["en_GB"])
    numeric = next(way for way in ways if way.swappable)
    assert dates.write(datetime.date(1998, 5, 13), numeric) == "13/05/1998"
    assert dates.write(datetime.date(1998, 5, 5), numeric) == "05/05/1998"
    assert dates.write(datetime.date(1998, 5, 3), numeric) is None
    swedish = [dates.write(datetime.date(1998, 5, 3), way) for way in dates.styles(["sv"])[0]]
    assert "1998-05-03" in swedish


def test_two_figure_years_are_not_written(babel):
    date = datetime.date(1998, 5, 20)
    for ways in dates.styles(dates.LOCALES):
        assert all("1998" in dates.write(date, way) for way in ways)


def test_parts_have_no_day_in_common_and_depend_on_the_seed_alone(babel):
    data = load_pairs("dates", **SIZES)
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [300, 50, 50]
    days = [{target for _, target in part.rows} for part in parts]
    assert not days[0] & days[1]
    assert not days[0] & days[2]
    assert not days[1] & days[2]
    for text, iso in data.train.rows:
        day = datetime.date.fromisoformat(iso)
        assert dates.FIRST_DAY <= day <= dates.LAST_DAY
        assert str(day.year) in text
    assert dates.load(0, **SIZES).train.rows == data.train.rows
    assert dates.load(1, **SIZES).train.rows != data.train.rows


def test_ascii_takes_accents_away_and_leaves_other_scripts_out(babel):
    data = dates.load(0, **SIZES, ascii=True)
    assert all(text.isascii() for text, _ in data.train.rows)
    (ways,) = dates.styles(["fr"], ascii=True)
    written = {dates.write(datetime.date(1998, 2, 20), way, ascii=True) for way in ways}
    assert "20 fevrier 1998" in written
    with pytest.raises(DataError, match="no date of bg can be written in ASCII"):
        dates.load(0, **SIZES, locales=["bg"], ascii=True)


def test_spaces_are_plain_and_marks_of_direction_are_gone(babel):
    for text, _ in dates.load(0, **SIZES, locales=["ar", "ru", "he"]).train.rows:
        assert not {"\u202f", "\u00a0", "\u200f", "\u200e"} & set(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train": 0}, "train is 0; allowed: an integer from 1"),
        ({"locales": ["xx_YY"]}, "locale is 'xx_YY'; allowed: names that Babel knows"),
        ({"locales": ["?"]}, r"locale is '\?'"),
    ],
)
def test_settings_that_are_not_allowed(babel, settings, message):
    with pytest.raises(ArgumentError, match=message):
        dates.load(0, **settings)


def test_dates_come_from_no_file(tmp_path):
    with pytest.raises(ArgumentError, match="allowed: none, because it is generated"):
        load_pairs("dates", tmp_path)


def test_without_babel_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(DataError, match=r"pip install 'handgrad\[dates\]'"):
        load_pairs("dates")
