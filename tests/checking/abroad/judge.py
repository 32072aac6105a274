"""Runs the checker on a program and says how much of each planted fault its report names."""

from __future__ import annotations

import inspect
import re
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import handgrad as hg
from tests.checking.abroad.case import Program, Wrong
from tests.checking.abroad.verify import WRONG, departures, plain, run

LIMIT = 60  # seconds of this process that a call of the checker may take, whatever its neighbours do
SURE = 0.9

FACTOR = r"factor|times what|scale|multipl|divid|divisor"
MISSING = r"missing|forgotten|left out|never|not added|lacks|dropped|should be added|add "
SCALED = r"what it should|should be (multiplied|divided|a mean|a sum)|should be .*[*/]"
#: Sentences that name a cause, for the causes that come up again and again.
SAID: dict[str, tuple[str, ...]] = {
    "sign": (r"sign|negat|minus|−1|-1 ",),
    "factor missing": (rf"({FACTOR}).*({MISSING})", rf"({MISSING}).*({FACTOR})", SCALED),
    "factor extra": (rf"({FACTOR}).*(extra|not belong|too (many|often)|twice)", SCALED),
    "factor wrong": (FACTOR,),
    "term missing": (MISSING,),
    "term extra": (r"extra|not belong|too many|should not",),
    "name": (
        r"instead of|in place of|should be|not .* but|wrong (value|name|operand)|belongs there",
        MISSING,
    ),
    "transpose": (r"transpos|swapped|order of",),
    "axis": (r"axis|axes|summed over|rows|columns",),
    "sum for mean": (r"mean|sum|1/|times what|divi",),
    "keepdims": (r"keepdims|broadcast|shape",),
    "local derivative": (r"derivative|slope|factor|should be|instead of|1 [−-]",),
    "accumulate": (r"accumul|\+=|overwrit|added up|sum over|every|steps?\b|missing|earlier",),
    "carry": (r"carried|next|step|later|recurren|missing|dropped|accumul",),
    "order": (r"order|revers|before|after|earlier|later",),
    "index": (r"index|offset|shift|slice|elements?|columns|rows|step",),
    "mask": (r"mask|where|zero|elements|kink|clip|compar|condition|branch|right except",),
    "swapped": (r"swap|other'?s place|order|exchang|instead of",),
    "exponent": (r"power|exponent|squar|root|factor|cub",),
    "eps": (r"eps|1e-|epsilon",),
    "stale": (r"stale|overwrit|changed|written|earlier|before|in place|copy",),
    "state": (r"state|twice|earlier call|second|last call|accumul|left from|zero",),
    "duplicates": (r"duplicate|repeated|same index|twice|np\.add\.at|accumul",),
    "writes": (r"writ|in place|changed|modif|alias|copy",),
    "layout": (r"layout|memory|contiguous|order|stride",),
    "cast": (r"cast|float32|float16|precision|dtype|round|integer|int",),
    "zero": (r"missing|zero|None|constant|detach|not passed|never",),
    "einsum": (r"einsum|letters|transpos|axis|swapped|should be",),
}


@dataclass
class Outcome:
    """The worth of the report on one program, or on one wrong variant of it."""

    program: str
    variant: int | None
    causes: tuple[str, ...]
    verdict: str
    seconds: float
    #: "strictly", "loosely" or "not", of a wrong one that is caught.
    named: str = ""
    why: list[str] = field(default_factory=list)
    lines: list[list[int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    error: str = ""
    diff_used: int = 0

    @property
    def caught(self) -> bool:
        return self.verdict == "wrong"


class Late(BaseException):
    """The checker took longer than the limit."""


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def line_of(fault: Any) -> int | None:
    """The line a fault names, as a field or in its sentence."""
    if getattr(fault, "line", None):
        return int(fault.line)
    found = re.search(r"\bline (\d+)", fault.message)
    return int(found[1]) if found else None


def patched(text: str, diff: str) -> str | None:
    """`text` after a unified diff, or None where the diff does not fit."""
    for hunk in re.split(r"^@@.*@@.*$", diff, flags=re.M)[1:] or [diff]:
        rows = [row for row in hunk.splitlines() if row and not row.startswith(("---", "+++"))]
        old = "\n".join(row[1:] for row in rows if row[0] in " -")
        new = "\n".join(row[1:] for row in rows if row[0] in " +")
        if not old or old not in text:
            return None
        text = text.replace(old, new, 1)
    return text


class Judge:
    """Judges the reports on one program."""

    def __init__(self, program: Program, folder: Path, seconds: float | None = None) -> None:
        self.program, self.folder, self.seconds = program, folder, seconds

    def report(self, text: str) -> tuple[Any, float, str]:
        """The checker's report, the seconds it took, and the error that ended it."""
        try:
            scope = self.program.scope(text, self.folder)
            inputs = scope["inputs"](np.random.default_rng(3))
            options = dict(scope.get("OPTIONS", {}))
            if self.seconds and "seconds" in inspect.signature(hg.check).parameters:
                options["seconds"] = self.seconds
        except Exception as problem:
            return None, 0.0, f"{type(problem).__name__}: {problem}"
        begin = time.perf_counter()
        report, error = None, ""
        try:
            with alarm(LIMIT):
                report = hg.check(scope["TARGET"], *inputs, **options)
        except Late:
            error = f"longer than {LIMIT} s"
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        return report, time.perf_counter() - begin, error

    def right(self) -> Outcome:
        report, seconds, error = self.report(self.program.text)
        verdict = report.verdict if report else "error"
        said = [fault.message for fault in report.faults] if report else []
        return Outcome(str(self.program), None, (), verdict, seconds, said=said, error=error)

    def wrong(self, number: int) -> Outcome:
        faults = self.program.variants[number]
        text = self.program.planted(faults)
        report, seconds, error = self.report(text)
        outcome = Outcome(
            str(self.program),
            number,
            tuple(fault.cause for fault in faults),
            report.verdict if report else "error",
            seconds,
            lines=[sorted(self.program.lines(fault, faults)) for fault in faults],
            error=error,
        )
        if report is not None:
            outcome.said = [said_of(fault) for fault in report.faults]
            self.name(outcome, report, text, faults)
        return outcome

    def name(self, outcome: Outcome, report: Any, text: str, faults: tuple[Wrong, ...]) -> None:
        """Fill in whether the faults are named, and why not."""
        lines = set().union(*map(set, outcome.lines))
        told = [fault for fault in report.faults if getattr(fault, "judged", True)]
        both, either = [], False
        for planted, true in zip(faults, outcome.lines, strict=True):
            at = [fault for fault in told if line_of(fault) in true]
            caused = [fault for fault in told if self.causes(fault, planted)]
            mended = [
                fault for fault in at if len(faults) == 1 and self.mends(fault, text, faults)
            ]
            outcome.diff_used += len(mended)
            both.append(any(fault in caused for fault in at) or bool(mended))
            either = either or bool(at or caused)
        innocent = self.innocent(report, text, faults)
        blamed = sorted({fault.gradient for fault in told if plain(fault.gradient) in innocent})
        false = [
            fault.message
            for fault in told
            if fault.confidence >= SURE and line_of(fault) is not None and line_of(fault) not in lines
        ]
        outcome.why += [f"blames {name}, which is right" for name in blamed]
        outcome.why += [f"false and sure: {message}" for message in false]
        outcome.why += [] if all(both) else ["not every fault has its line and its cause"]
        outcome.named = "loosely" if either else "not"
        if not outcome.why:
            outcome.named = "strictly"

    def causes(self, fault: Any, planted: Wrong) -> bool:
        patterns = planted.says or SAID[planted.cause]
        return any(re.search(each, said_of(fault), re.I) for each in patterns)

    def mends(self, fault: Any, text: str, faults: tuple[Wrong, ...]) -> bool:
        """Return whether the suggested change, applied, gives the right program's gradients."""
        diff = getattr(fault, "diff", "")
        after = patched(text, diff) if diff else None
        if after is None:
            return False
        try:
            mended, how = run(self.program, after, self.folder, faults[0].at)
            right, _ = run(self.program, self.program.text, self.folder, faults[0].at)
            return all(worst < WRONG / 100 for worst in departures(mended, right, how).values())
        except Exception:
            return False

    def innocent(self, report: Any, text: str, faults: tuple[Wrong, ...]) -> set[str]:
        """Inputs of which the gradient is right, where exactly that is known."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                wrong, how = run(self.program, text, self.folder, faults[0].at)
                right, _ = run(self.program, self.program.text, self.folder, faults[0].at)
                worst = departures(wrong, right, how)
        except Exception:
            return set()
        departing = {plain(name) for name, value in worst.items() if value > WRONG}
        return {plain(name) for name in worst} - departing


def said_of(fault: Any) -> str:
    """The whole text of a fault, its kind and term included."""
    line = line_of(fault)
    where = f" (line {line})" if line and f"line {line}" not in fault.message else ""
    return f"{fault.gradient}: {fault.kind}: {fault.message}{where}"
