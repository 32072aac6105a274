"""Changed functions are the user's code: their loops end, and what they print is not repeated."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.alignment import bounded
from handgrad.checking.alignment.bounded import LoopLines
from handgrad.checking.alignment.memory import bounded_memory
from tests.checking.functions import normal


def repeated(x):
    y, left = x, 3
    while left > 0:
        y, left = np.tanh(1.1 * y), left - 1
    return y, x


def repeated_backward(dy, x):
    kept, left = [x], 3
    while left > 0:
        kept.append(np.tanh(1.1 * kept[-1]))
        left -= 1
    while left < 3:
        dy = dy * (1.0 - kept[3 - left] ** 2) * 1.2
        left += 1
    return dy


def test_a_changed_loop_that_does_not_end_is_left():
    report = hg.check((repeated, repeated_backward), normal(3, 4))
    assert not report.ok
    assert {fault.gradient for fault in report.faults} == {"x"}


def talking(x):
    return np.sin(x), x


def talking_backward(dy, x):
    print("in backward")
    return dy * np.sin(x)


def test_what_changed_functions_print_is_not_repeated(capsys):
    report = hg.check((talking, talking_backward), normal(3, 4))
    assert not report.ok
    assert capsys.readouterr().out.count("in backward") < 100


def rows_squared(x):
    return np.array([row**2 for row in x]), x


def with_a_list(dy, x):
    """A row that is left out of a product: a change may put the list into itself."""
    rows = []
    for each, row in zip(dy, x, strict=True):
        drow = each * row
        rows.append(drow)
    return np.array(rows)


def with_lists_that_are_joined(dy, x):
    """`rows + rows` for `rows + [row]` doubles the list in every round."""
    rows, row = [], [0.0]
    for i in range(len(x)):
        row = [dy[i] * x[i]]
        rows = rows + row
    return np.array(rows)


def test_a_change_may_put_a_list_into_itself_or_double_it():
    x = np.random.default_rng(0).normal(size=(40, 3))
    for backward in (with_a_list, with_lists_that_are_joined):
        report = hg.check((rows_squared, backward), x)
        assert "2" in report.faults[0].message


def grown_by_a_list_in_itself():
    rows: list[object] = [0.0]
    for _ in range(2):
        rows.append(rows)
        rows.append(rows)
    return len(rows)


def grown_by_doubling_a_list():
    rows = [0.0]
    for _ in range(200):
        rows = rows + rows
    return len(rows)


def grown_by_joining_arrays():
    array = np.ones(1000)
    for _ in range(200):
        array = np.concatenate([array, array])
    return array.size


def grown_by_broadcasting():
    return (np.ones((100_000, 1)) * np.ones(100_000)).size


@pytest.mark.skipif(sys.platform != "linux", reason="the system keeps no limit of memory")
@pytest.mark.parametrize(
    "grown", [grown_by_doubling_a_list, grown_by_joining_arrays, grown_by_broadcasting]
)
def test_what_takes_too_much_memory_is_refused(grown):
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with bounded_memory(1000), pytest.raises(MemoryError):
        grown()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the system keeps no limit of memory")
def test_searches_of_two_threads_leave_the_limit_as_the_first_has_found_it():
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    first, second = bounded_memory(8), bounded_memory(8)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) != before
    second.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.parametrize(
    "grown", [grown_by_a_list_in_itself, grown_by_doubling_a_list, grown_by_joining_arrays]
)
def test_without_a_limit_of_the_system_loops_are_watched(grown, monkeypatch):
    monkeypatch.setattr(bounded, "_WATCHES_MEMORY", True)
    monkeypatch.setattr(bounded, "_BESIDES", 10_000)
    lines = LoopLines()
    with lines.counted():
        repeated(np.ones(2))
    with pytest.raises(MemoryError), lines.bounded():
        grown()
