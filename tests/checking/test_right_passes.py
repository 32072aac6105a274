"""Right backward passes in the styles people write are called right, and wrong twins wrong."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking import CheckReport
from tests.checking.right_passes import CASES
from tests.checking.right_passes.case import Case

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def report_of(case: Case, target: object) -> CheckReport:
    return hg.check(target, *case.inputs(np.random.default_rng(0)), wrt=case.wrt)


@each_case
def test_a_right_pass_is_called_right(case: Case) -> None:
    report = report_of(case, (case.forward, case.backward))
    assert report.verdict == "right", report


@pytest.mark.usefixtures("verdict_alone")
@each_case
def test_its_twin_is_called_wrong(case: Case) -> None:
    report = report_of(case, case.wrong())
    assert report.verdict == "wrong", report


@pytest.mark.slow
@each_case
def test_the_cause_of_its_twin_is_looked_for_to_the_end(case: Case) -> None:
    report = report_of(case, case.wrong())
    assert report.verdict == "wrong", report
