"""Gradients in the forms that people define them in: judged, without an adapter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checking.interfaces import INTERFACES
from tests.checking.interfaces.case import Interface
from tests.rows import rows

AVAILABLE = [each for each in INTERFACES if each.is_available]


def framework(interface: Interface) -> str:
    return ", ".join(interface.needs) or "numpy"


@rows("interface", AVAILABLE, by=framework)
def test_a_right_module_is_called_right(interface: Interface, tmp_path: Path) -> None:
    assert interface.outcome(None, tmp_path) in ("right", "said")


@pytest.mark.slow
@rows("interface", AVAILABLE, by=framework)
def test_another_spelling_of_it_is_called_right(interface: Interface, tmp_path: Path) -> None:
    for edit in interface.right:
        assert interface.outcome(edit, tmp_path) in ("right", "said"), edit


@pytest.mark.usefixtures("verdict_alone")
@rows("interface", AVAILABLE, by=framework)
def test_a_wrong_module_is_called_wrong(interface: Interface, tmp_path: Path) -> None:
    assert interface.outcome(interface.wrong[0], tmp_path).startswith("wrong")


@pytest.mark.slow
@rows("interface", AVAILABLE, by=framework)
def test_every_wrong_module_has_its_cause_looked_for(interface: Interface, tmp_path: Path) -> None:
    for edit in interface.wrong:
        assert interface.outcome(edit, tmp_path).startswith("wrong"), edit
