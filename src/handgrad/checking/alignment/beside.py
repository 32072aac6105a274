"""What a change of the source says, beside what the search by formulas has found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from handgrad.checking.alignment.told import Told
from handgrad.checking.report import Fault

#: Kinds that say where a gradient is wrong, or that it is, and not by what.
_NO_CAUSES: Final = ("unknown", "some rows", "masked rows")
#: Kinds that describe a wrong gradient by its numbers, of which a change is the cause.
_NUMBERS: Final = ("scaled", "term doubled", "term scaled")
#: Those that say no more than a change does, the second where it names no term.
_ZERO: Final = "gradient is zero"
_COTANGENT: Final = "activation derivative forgotten"
#: Words of a change that may put right by chance what is described.
_CONTRIVED: Final = 4.5
#: The most that a change is trusted where formulas name another line.
_UNSURE: Final = 0.6


def _line(fault: Fault) -> int:
    """The line that a fault names, in its field or in its sentence; 0 if none."""
    found = re.search(r"\(line (\d+)\)", fault.message)
    return fault.line or (int(found[1]) if found else 0)


def joined(known: Sequence[Fault], changed: Sequence[Told]) -> list[Fault]:
    """The known faults; one that a change of the source puts right gains its line and its diff.

    Where nothing was known, or another line, the change is the cause, for it was run. Else what was
    known keeps its words, and the report shows the change beside them. One change that puts right
    several gradients is the cause of them all. Several that put right one together are all told.
    """
    changes: dict[str, list[Told]] = {}
    for told in changed:
        changes.setdefault(told.fault.gradient, []).append(told)
    places = {(told.fault.kind, told.fault.line) for told in changed}
    is_one = len(known) > 1 and len(places) == 1 and all(f.gradient in changes for f in known)
    found: list[Fault] = []
    for fault in known:
        several = changes.get(fault.gradient, [])
        if len(several) > 1:
            found += [told.fault for told in several]
        else:
            found += [_both(fault, told, is_one=is_one) for told in several] or [fault]
    return found


def _both(known: Fault, told: Told, *, is_one: bool) -> Fault:
    """One gradient's fault. is_one: one change puts right all that is wrong."""
    line, fault = _line(known), told.fault
    if fault.kind == "unknown":
        message = f"{known.message}; {fault.message}"
        return replace(known, message=message, line=fault.line) if line == 0 else known
    if known.kind in _NO_CAUSES:
        return fault
    if not line and (known.kind == _ZERO or (known.kind, known.term) == (_COTANGENT, "")):
        return replace(fault, alternatives=((known.kind, known.term), *fault.alternatives))
    if not line and known.kind in _NUMBERS and told.words < _CONTRIVED:
        cause = fault.message.removeprefix(f"d{fault.gradient}: ")
        message = f"{known.message}: {cause}"
        changed = replace(known, message=message, line=fault.line, diff=fault.diff)
        return replace(changed, alternatives=((fault.kind, fault.term), *known.alternatives))
    if not line:
        return replace(known, line=fault.line, diff=fault.diff)
    if line in told.near:
        return replace(known, line=line, diff=told.near[line])
    if known.confidence == 1.0 and not is_one:  # it holds on every draw, and nothing else does
        return known
    other = ((known.kind, known.term),)
    sure = fault.confidence if is_one else min(fault.confidence, _UNSURE)
    return replace(fault, confidence=sure, alternatives=other)
