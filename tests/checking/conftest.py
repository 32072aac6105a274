"""Every check of these tests tries all of its hypotheses: none of them raises."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from handgrad.checking import attempts, causes, entry
from handgrad.checking.report import Fault


@pytest.fixture(autouse=True)
def dropped(monkeypatch):
    """The exceptions of hypotheses; a test that causes them clears the list."""
    found = []

    @contextmanager
    def noted():
        with attempts.noted() as of_this:
            yield of_this
            found.extend(of_this)

    monkeypatch.setattr(entry, "noted", noted)
    yield found
    assert found == []


@pytest.fixture
def verdict_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cause is looked for: the verdict is there before, and costs a hundredth."""

    def unknown(*given: Any, **_: Any) -> list[Fault]:
        return [Fault(name, "unknown", "", f"d{name} is wrong", 0.0) for name in given[3]]

    monkeypatch.setattr(causes, "causes", unknown)
