"""What a change of the source says, beside what the search by formulas has found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from handgrad.checking.report import Fault

_UNSURE: Final = 0.9


def _line(fault: Fault) -> int:
    """The line that a fault names, in its field or in its sentence; 0 if none."""
    found = re.search(r"\(line (\d+)\)", fault.message)
    return fault.line or (int(found[1]) if found else 0)


def is_open(fault: Fault) -> bool:
    """Return whether a fault has no cause, no line, or a cause that may be another."""
    return fault.kind == "unknown" or fault.confidence < _UNSURE or not _line(fault)


def joined(known: Sequence[Fault], changed: Sequence[Fault]) -> list[Fault]:
    """The known faults; one that a change of the source puts right gains its line and its diff.

    Where nothing was known, the change is the cause; else what was known keeps its words.
    """
    changes = {fault.gradient: fault for fault in changed}
    return [
        _both(fault, changes[fault.gradient]) if fault.gradient in changes else fault
        for fault in known
    ]


def _both(known: Fault, changed: Fault) -> Fault:
    if known.kind == "unknown":
        return changed
    message, line = known.message, _line(known)
    if not line:
        message += f" (line {changed.line})"
    elif line != changed.line:
        message += f"; a change of line {changed.line} puts it right"
    return replace(known, message=message, line=changed.line, diff=changed.diff)
