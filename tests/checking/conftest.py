"""Every check of these tests tries all of its hypotheses: none of them raises."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from handgrad.checking import attempts, entry


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
