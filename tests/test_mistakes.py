"""docs/mistakes.md: everything on it is run again, and says what stands there."""

from __future__ import annotations

import pytest

from docs.mistakes.page import PAGE, judged, page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return judged()


def test_only_what_is_printed_fails(found):
    unexpected = [(each.row.passage, each.form.formula) for each in found if not each.expected]
    assert unexpected == []


def test_every_mistake_is_run_as_printed_and_as_corrected(found):
    kinds = {each.row.passage: set() for each in found}
    for each in found:
        kinds[each.row.passage].add(each.kind)
    assert all({"printed", "right"} <= each for each in kinds.values())


def test_the_page_is_what_the_runs_say(found):
    assert PAGE.read_text("utf-8") == page(found)
