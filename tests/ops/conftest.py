"""Engines as fixtures; both need the test's column `case`, whose rows are of one op."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handgrad import kernels
from handgrad.dispatch import engine
from tests.ops.cases import Case


def _skip_without_kernel(cases: tuple[Case, ...]) -> None:
    if kernels.native is None:
        pytest.skip(kernels.reason)
    if not kernels.has(cases[0].op):
        pytest.skip(f"{cases[0].op} has no kernel")


@pytest.fixture(params=("reference", "kernels"))
def on_engine(request: pytest.FixtureRequest, case: tuple[Case, ...]) -> Iterator[str]:
    """The test runs once on each engine."""
    if request.param == "kernels":
        _skip_without_kernel(case)
    with engine(request.param):
        yield request.param


@pytest.fixture
def on_kernels(case: tuple[Case, ...]) -> Iterator[None]:
    """The test runs on the kernels, and is skipped where there are none."""
    _skip_without_kernel(case)
    with engine("kernels"):
        yield
