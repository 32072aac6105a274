"""What a change of the source says, beside what the search by formulas has found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from handgrad.checking.alignment.told import Told
from handgrad.checking.report import RIVAL, Fault

#: Kinds that say that a gradient is no array of numbers, which a change is told beside.
_OF_THE_FORM: Final = ("wrong type", "not finite", "wrong shape")
#: Words that say where a gradient is wrong, and not by what.
_WHERE: Final = "is right except"
#: Kinds that say what became of the whole gradient, in which a change is one line of many, with
#: those of changes that say it better.
_OF_THE_WHOLE: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("gradients swapped", "not reduced", "transposed"), ()),
    "other mask": ("wrong branch", "mask forgotten"),
}
#: Words of a change that may put right by chance what is described.
_CONTRIVED: Final = 4.5
_TIMES: Final = "what it should be"


def joined(known: Sequence[Fault], changed: Sequence[Told]) -> list[Fault]:
    """The known faults; one that a change of the source puts right is told by that change.

    It was run, and has a line. Where it is long, or what is known is of the whole gradient, that
    keeps its words, unless the change puts others right as well. Several that put right one
    gradient together are all told.
    """
    kinds = {fault.gradient: fault.kind for fault in known}
    others: dict[tuple[str, int, str], set[str]] = {}
    for told in changed:
        others.setdefault(_change(told), set()).add(kinds.get(told.fault.gradient, ""))
    changes: dict[str, list[Told]] = {}
    for told in changed:
        changes.setdefault(told.fault.gradient, []).append(told)
    found: list[Fault] = []
    for fault in known:
        several = changes.get(fault.gradient, [])
        if len(several) > 1:
            found += [told.fault for told in several]
        else:
            alone = all(others[_change(told)] == {fault.kind} for told in several)
            found += [_both(fault, told, alone=alone) for told in several] or [fault]
    return found


def _change(told: Told) -> tuple[str, int, str]:
    return told.fault.kind, told.fault.line, told.fault.term


def _both(known: Fault, told: Told, *, alone: bool) -> Fault:
    """alone: the change puts right gradients of this kind of fault and no others."""
    fault = told.fault
    if fault.kind == "unknown":
        return replace(known, message=f"{known.message}; {fault.message}", line=fault.line)
    if known.kind == "unknown" or _WHERE in known.message:
        return fault
    if known.kind in _OF_THE_FORM and fault.diff:
        message = f"{known.message}; {fault.message.removeprefix(f'd{fault.gradient}: ')}"
        return replace(known, message=message, line=fault.line, diff=fault.diff)
    is_of_whole = alone and fault.kind not in _OF_THE_WHOLE.get(known.kind, (fault.kind,))
    if is_of_whole or (known.term and told.words > _CONTRIVED):
        # A rival of what a change bears out is none.
        message, sure = known.message, max(known.confidence, fault.confidence)
        told_so = ((fault.kind, fault.message), *known.alternatives)
        changed = replace(known, line=fault.line, diff=fault.diff, alternatives=told_so)
        return replace(changed, message=message.partition(RIVAL)[0], confidence=sure)
    message = fault.message
    before, times, _ = known.message.partition(_TIMES)
    if times:
        message = f"{before}{times}: {message.removeprefix(f'd{fault.gradient}: ')}"
    other = (known.kind, known.term)
    return replace(fault, message=message, alternatives=(other, *fault.alternatives))
