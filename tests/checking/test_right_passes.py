"""Right backward passes in the styles people write are called right, and wrong twins wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import CheckReport, checker
from handgrad.checking.report import Fault
from tests.checking.right_passes import CASES
from tests.checking.right_passes.case import Case

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def report_of(case: Case, target: object) -> CheckReport:
    return hg.check(target, *case.inputs(np.random.default_rng(0)), wrt=case.wrt)


@each_case
def test_a_right_pass_is_called_right(case: Case) -> None:
    report = report_of(case, (case.forward, case.backward))
    assert report.verdict == "right", report


@each_case
def test_its_twin_is_called_wrong(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict alone, which is there before the cause is looked for."""

    def unknown(*given: Any, **_: Any) -> list[Fault]:
        return [Fault(name, "unknown", "", f"d{name} is wrong", 0.0) for name in given[3]]

    monkeypatch.setattr(checker, "causes", unknown)
    report = report_of(case, case.wrong())
    assert report.verdict == "wrong", report


@pytest.mark.slow
@each_case
def test_the_cause_of_its_twin_is_looked_for_to_the_end(case: Case) -> None:
    report = report_of(case, case.wrong())
    assert report.verdict == "wrong", report
