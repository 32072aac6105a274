"""Rows: each runs, and each that fails is named."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

MODULE = """
    import pytest
    from tests.rows import rows

    @pytest.fixture(params=["one", "two"])
    def engine(request, number):
        assert number in ((1, 3), (2, 4))
        return request.param

    @rows("word", ["a", "b"])
    @rows("number", [1, 2, 3, 4], by=lambda number: "even" if number % 2 == 0 else "odd")
    def test_it(number, word, engine):
        if engine == "two" and word == "b":
            pytest.skip("no b")
        assert (number, word) not in [(2, "a"), (4, "a")]

    @rows(("length", "text"), [(1, "a"), pytest.param(2, "b", id="two"), (3, "c")])
    @rows("letter", "ab", ids=["first", "second"])
    @rows("factor", [1, 2], ids=lambda factor: f"by {factor}")
    def test_lengths(length, text, letter, factor):
        assert isinstance(letter, str)
        assert length == len(text), text
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    root = Path(__file__).parents[1]
    monkeypatch.syspath_prepend(root)
    pytester.makeconftest((root / "tests" / "conftest.py").read_text("utf-8"))
    pytester.makeini("[pytest]\nmarkers = rows: a column")
    pytester.makepyfile(test_module=MODULE)
    return pytester


def test_an_item_has_the_rows_of_a_group_and_names_those_that_fail(session) -> None:
    result = session.runpytest_inprocess("-p", "no:handgrad", "-n0")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*test_it?one-even?*",
            "*row 2-a; 2 of 4 rows fail: 2-a, 4-a",
            "*row 4-a:",
            "*row by 1-first-two; 8 of 12 rows fail: by 1-first-two, by 1-first-3-c, by 1-*",
        ]
    )


def test_one_row_can_be_chosen(session) -> None:
    session.runpytest_inprocess("-p", "no:handgrad", "-n0", "--row=3-").assert_outcomes(
        passed=2, skipped=2, failed=1
    )


def test_an_item_whose_rows_are_all_skipped_is_skipped(session) -> None:
    session.runpytest_inprocess("-p", "no:handgrad", "-n0", "--row=3-b").assert_outcomes(
        passed=1, skipped=4
    )


def test_all_rows_are_listed(session) -> None:
    result = session.runpytest_inprocess("-p", "no:handgrad", "-n0", "--collect-only", "--rows")
    listed = [line for line in result.outlines if line.startswith("row ")]
    assert len(set(listed)) == len(listed) == 28
