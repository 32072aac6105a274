"""The pytest fixture `gradcheck`: `hg.check` that fails the test with its report.

It stands outside `handgrad.checking` so that pytest, which loads every plugin at its start, imports
neither NumPy nor the checker for tests that do not use it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from handgrad.checking import CheckReport


@pytest.fixture
def gradcheck(request: pytest.FixtureRequest) -> Callable[..., CheckReport]:
    """`gradcheck(target, *inputs, ...)`, with the arguments of `hg.check`; returns the report.

    Without `seed=`, it is drawn from the test's node id: other tests see other random numbers, the
    same test always sees the same. Raises CheckError with the report where something is wrong.
    """

    def check(target: Any, *inputs: Any, seed: int | None = None, **settings: Any) -> CheckReport:
        __tracebackhide__ = True
        import handgrad as hg
        from handgrad.checking import CheckError
        from handgrad.errors import HandgradError

        if seed is None:
            seed = zlib.crc32(request.node.nodeid.encode())
        try:
            report = hg.check(target, *inputs, seed=seed, **settings)
            report.assert_ok()
        except (CheckError, HandgradError) as error:
            raise error.with_traceback(None) from None
        return report

    return check
