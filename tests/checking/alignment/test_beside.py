"""Causes found by formulas and changes of the source, told together."""

from __future__ import annotations

import json
from dataclasses import replace
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
TOLD = Told(CHANGED, {4: CHANGED.diff})


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
    assert (fault.kind, fault.line, fault.diff) == ("scaled", 4, CHANGED.diff)
    assert fault.alternatives == (("wrong sign", "b"),)


def test_what_is_unknown_is_told_by_the_change_and_others_stay() -> None:
    unknown = Fault("x", "unknown", "", "dx: wrong", 0.0)
    other = Fault("w", "transposed", "x", "dw: x is transposed (line 9)", 1.0)
    assert joined([unknown, other], [TOLD]) == [CHANGED, other]


def test_a_change_of_the_line_that_is_known_stands_beside_it() -> None:
    known = Fault("x", "term missing", "a", "dx: term a is missing (line 7)", 1.0)
    (fault,) = joined([known], [Told(CHANGED, {4: CHANGED.diff, 7: "@@ -7,1 +7,1 @@\n-c\n+d"})])
    assert (fault.kind, fault.line, fault.diff.splitlines()[-1]) == ("term missing", 7, "+d")
    assert fault.confidence == known.confidence


def test_a_change_of_another_line_is_the_cause_and_less_sure() -> None:
    sure = Fault("x", "term missing", "a", "dx: term a is missing (line 7)", 1.0)
    assert joined([sure], [TOLD]) == [sure]
    known = replace(sure, confidence=0.8)
    (fault,) = joined([known], [TOLD])
    assert (fault.kind, fault.line, fault.message) == ("wrong sign", 4, CHANGED.message)
    assert fault.alternatives == (("term missing", "a"),)
    assert fault.confidence < CHANGED.confidence


def test_one_change_of_several_gradients_is_the_cause_of_each() -> None:
    unknown = Fault("x", "unknown", "", "dx: wrong", 0.0)
    sure = Fault("w", "stale variable", "g", "dw: g belongs there (line 7)", 1.0)
    other = Told(replace(CHANGED, gradient="w"), TOLD.near)
    found = joined([unknown, sure], [TOLD, other])
    assert [(fault.kind, fault.line) for fault in found] == [("wrong sign", 4)] * 2
    assert found[1].confidence == CHANGED.confidence
    elsewhere = Told(replace(CHANGED, gradient="w", line=5), {5: CHANGED.diff})
    assert joined([unknown, sure], [TOLD, elsewhere])[1] == sure


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
