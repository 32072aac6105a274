"""Causes found by formulas and changes of the source, told together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import handgrad as hg
from handgrad.checking.alignment.beside import is_open, joined
from handgrad.checking.alignment.budget import Budget
from handgrad.checking.report import Fault
from tests.checking.alignment.passes import PLANTED, inputs, module, source

CHANGED = Fault(
    "x", "wrong sign", "b", "dx: term b has the wrong sign (line 4)", 1.0, line=4, diff="d"
)


def test_what_is_known_for_certain_keeps_its_words_and_gains_the_diff() -> None:
    known = Fault("x", "scaled", "", "dx: is −1 times what it should be", 1.0)
    assert is_open(known)
    (fault,) = joined([known], [CHANGED])
    assert (fault.kind, fault.line, fault.diff) == ("scaled", 4, "d")
    assert fault.message == "dx: is −1 times what it should be (line 4)"


def test_what_is_unknown_is_told_by_the_change_and_others_stay() -> None:
    unknown = Fault("x", "unknown", "", "dx: wrong", 0.0)
    other = Fault("w", "transposed", "x", "dw: x is transposed (line 9)", 1.0)
    assert joined([unknown, other], [CHANGED]) == [CHANGED, other]
    assert is_open(unknown)
    assert not is_open(other)


def test_another_line_is_told_beside_that_of_what_is_known() -> None:
    known = Fault("x", "term missing", "a", "dx: term a is missing (line 7)", 0.5)
    (fault,) = joined([known], [CHANGED])
    assert (fault.kind, fault.line, fault.diff) == ("term missing", 4, "d")
    assert fault.message == f"{known.message}; a change of line 4 puts it right"


def test_searches_of_one_check_share_their_seconds() -> None:
    budget = Budget(1.0)
    with budget.spent() as seconds:
        assert seconds == 1.0
        sum(range(10**6))
    assert 0.0 < budget.left < 1.0


def test_the_report_shows_the_line_that_goes_and_the_one_that_comes(tmp_path: Path) -> None:
    (planted,) = [each for each in PLANTED if each.wrong.startswith("np.sin(rows[i])")]
    made = module(source(planted), tmp_path)
    arrays = inputs(planted.name, np.random.default_rng(3))
    report = hg.check((made.forward, made.backward), *arrays)
    (fault,) = [each for each in report.faults if each.gradient == "table"]
    before, after = fault.diff.split("\n")[1:]
    assert before.lstrip("- ").startswith("drows[i] = np.sin(rows[i])")
    assert after.lstrip("+ ").startswith("drows[i] = np.cos(rows[i])")
    assert before in str(report)
    assert after in str(report)
    assert json.loads(report.to_json())["faults"][0]["diff"] == fault.diff
