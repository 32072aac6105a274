"""Causes found by formulas and changes of the source, told together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import handgrad as hg
from handgrad.checking.alignment.beside import joined
from handgrad.checking.alignment.told import Told
from handgrad.checking.report import CheckReport, Fault
from tests.checking.alignment.passes import PLANTED, inputs, module, source

CHANGED = Fault(
    "x",
    "wrong sign",
    "b",
    "dx: term b has the wrong sign (line 4)",
    0.9,
    line=4,
    diff="@@ -4,1 +4,1 @@\n-a\n+b",
)
TOLD = Told(CHANGED, 2.0)


def shown(fault: Fault) -> CheckReport:
    """A report with this fault alone."""
    return CheckReport("target", 0, None, (), (), (fault,))


def test_what_is_known_for_certain_keeps_its_words_and_gains_the_diff() -> None:
    known = Fault("x", "transposed", "", "dx: is transposed", 1.0)
    (fault,) = joined([known], [TOLD])
    assert (fault.kind, fault.line, fault.diff) == ("transposed", 4, CHANGED.diff)
    assert (fault.message, fault.confidence) == (known.message, 1.0)
    (row,) = [each.strip() for each in str(shown(fault)).splitlines() if "line 4" in each]
    assert row == "line 4"


def test_a_change_is_the_cause_of_numbers_that_are_described() -> None:
    known = Fault("x", "scaled", "", "dx: is −1 times what it should be", 1.0)
    (fault,) = joined([known], [TOLD])
    assert fault.message == f"{known.message}: term b has the wrong sign (line 4)"
    assert (fault.kind, fault.line, fault.diff) == ("wrong sign", 4, CHANGED.diff)
    assert fault.alternatives == (("scaled", ""),)


def test_what_is_unknown_is_told_by_the_change_and_others_stay() -> None:
    unknown = Fault("x", "unknown", "", "dx: wrong", 0.0)
    other = Fault("w", "transposed", "x", "dw: x is transposed (line 9)", 1.0)
    assert joined([unknown, other], [TOLD]) == [CHANGED, other]


def test_a_change_that_was_run_is_told_before_what_formulas_say() -> None:
    known = Fault("x", "factor missing", "a", "dx: the factor a is missing", 1.0)
    (fault,) = joined([known], [TOLD])
    assert (fault.kind, fault.line, fault.message) == ("wrong sign", 4, CHANGED.message)
    assert fault.alternatives == (("factor missing", "a"),)


def test_a_long_change_keeps_the_words_of_a_term() -> None:
    known = Fault("x", "factor missing", "a", "dx: the factor a is missing", 1.0)
    (fault,) = joined([known], [Told(CHANGED, 6.0)])
    assert (fault.kind, fault.message) == (known.kind, known.message)
    assert (fault.line, fault.diff) == (4, CHANGED.diff)


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
