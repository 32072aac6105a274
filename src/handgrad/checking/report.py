"""The findings of a check: a table of gradients, the situations tried, one sentence per fault."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from handgrad.printing import html, terminal_text

#: Ends the sentence on a gradient without a known cause.
NO_CAUSE: Final = "no explanation that was tried fits"
#: Begins the sentence on another cause that does the same.
RIVAL: Final = " (or, with the same effect here: "


class CheckError(AssertionError):
    """The error of `CheckReport.assert_ok`; its text is the report's."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    `gradient` is the input whose gradient it is ("" for a fault of forward or of the whole call),
    `kind` one of `handgrad.checking.kinds.KINDS`, `term` the part of the formula concerned ("" if
    none), `message` one sentence, and `confidence` between 0 (wrong, cause unknown) and 1 (the
    cause reproduces the numbers on every draw, and nothing else that was tried does).
    `alternatives` is the kind and term of another cause with the same effect, which the message
    names too.
    """

    gradient: str
    kind: str
    term: str
    message: str
    confidence: float
    situation: str = "usual"
    alternatives: tuple[tuple[str, str], ...] = ()
    #: False where it says why the gradients could not be judged, not that one is wrong.
    judged: bool = True
    #: The line of the target's source that it concerns; 0 if unknown.
    line: int = 0
    #: The change of that source that was run and puts the gradient right, as a diff; "" if none.
    diff: str = ""


@dataclass(frozen=True)
class GradientRow:
    """A line of the table: the error found against the bound that rounding and method explain."""

    gradient: str
    error: float
    bound: float
    verdict: str
    method: str


@dataclass(frozen=True)
class TrialRow:
    """A situation that was tried: right, wrong, or "does not apply", with the reason."""

    situation: str
    verdict: str
    detail: str


@dataclass(frozen=True, repr=False)
class CheckReport:
    """The result of `hg.check`. Printing it shows the table and every fault."""

    target: str
    seed: int
    like: str | None
    gradients: tuple[GradientRow, ...]
    trials: tuple[TrialRow, ...]
    faults: tuple[Fault, ...]
    #: Remarks on gradients that are right, such as another type than the input's.
    remarks: tuple[Fault, ...] = ()
    #: Exceptions in the search for causes, each of which left out one hypothesis and no more.
    dropped: tuple[str, ...] = ()
    #: Arrays of the target that y depends on, and whose gradients are nowhere to be found.
    unjudged: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing that was tried is wrong, and every gradient found could be judged."""
        return not self.faults and not self.undecided

    @property
    def verdict(self) -> str:
        """ "right"; "wrong" if a gradient is; "undecided" if it could not be judged."""
        if any(fault.judged for fault in self.faults):
            return "wrong"
        return "right" if self.ok else "undecided"

    @property
    def undecided(self) -> tuple[str, ...]:
        """Gradients that could not be judged, because the bound of the differences is too wide."""
        return tuple(row.gradient for row in self.gradients if row.verdict == "undecided")

    def assert_ok(self) -> None:
        """Raise CheckError, with the report as its text, unless `ok`."""
        __tracebackhide__ = True  # pytest shows the caller's line
        if not self.ok:
            raise CheckError(f"\n{self}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, for JSON; infinities and NaN as text."""
        return {"ok": self.ok, "verdict": self.verdict, **_plain(asdict(self))}

    def to_json(self) -> str:
        """`to_dict` as a text in JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        return (
            f"<CheckReport of {self.target}: {self.verdict}, {len(self.gradients)} gradients in "
            f"{len(self.trials)} situations, {len(self.faults)} faults>"
        )

    def __str__(self) -> str:
        return terminal_text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.unjudged:
            yield self._unjudged()
        like = f" against {self.like}" if self.like and self.like != self.target else ""
        table = Table(title=f"{self.target}{like}", title_justify="left", title_style="bold")
        for column, justify in (("gradient", "left"), ("error", "right"), ("bound", "right")):
            table.add_column(column, justify=justify)  # type: ignore[arg-type]
        table.add_column("verdict")
        table.add_column("bound from", style="dim")
        for row in self.gradients:
            table.add_row(
                f"d{row.gradient}",
                f"{row.error:.1e}",
                f"{row.bound:.1e}",
                _coloured(row.verdict),
                row.method,
            )
        yield table if self.gradients else table.title or ""
        yield from self._situations()
        for message, fault in _said_once(self.faults):
            sure = f"sure to {fault.confidence:.0%}" if fault.confidence else "no cause found"
            if fault.judged:
                yield f"[red]✗[/red] {_literal(message)} [dim]({sure})[/dim]"
                yield from _changed(fault)
            else:
                yield f"[yellow]?[/yellow] could not be judged: {_literal(message)}"
        for name in self.undecided:
            yield f"[yellow]?[/yellow] d{name}: no verdict, forward is not smooth at these inputs"
        for remark in self.remarks:
            yield f"[dim]i {_literal(remark.message)}[/dim]"
        if self.dropped:
            count = len(self.dropped)
            what = f"{count} hypothes{'i' if count == 1 else 'e'}s on the cause"
            first = _literal(self.dropped[0])
            yield f"[dim]i {what} could not be tried: {first}[/dim]"
        if self.ok and not self.unjudged:
            yield "[green]✓[/green] every gradient is right"

    def _unjudged(self) -> str:
        """The first line: not every gradient of the target is in the table below it."""
        first = self.unjudged[0].rpartition(".")[2]
        several = len(self.unjudged) > 1
        names = _literal(", ".join(self.unjudged))
        left_out = (
            f"the gradient{'s' * several} of {names} {'were' if several else 'was'} not judged: y "
            f"depends on {'them' if several else 'it'}, but backward leaves none as d{first}, "
            f"grads['{first}'] or the like"
        )
        if not self.ok:
            return f"[yellow]?[/yellow] {left_out}"
        right = list(dict.fromkeys(f"d{row.gradient}" for row in self.gradients))
        are = "are" if len(right) > 1 else "is"
        return f"[green]✓[/green] {_literal(', '.join(right))} {are} right; {left_out}"

    def _situations(self) -> RenderResult:
        for verdict in ("wrong", "right", "undecided", "does not apply"):
            found = [row for row in self.trials if row.verdict == verdict]
            if found:
                listed = dict.fromkeys(
                    row.situation + (f" ({row.detail})" if row.detail else "") for row in found
                )
                label = _coloured(verdict)
                if verdict == "right" and self.faults:
                    # Gradients that are wrong already are not judged again on other inputs.
                    label = "[green]no other fault[/green]"
                yield f"{label}: {_literal(', '.join(listed))}"


def _said_once(faults: Sequence[Fault]) -> Iterator[tuple[str, Fault]]:
    """What is wrong, once for all gradients of which the same is said, and one of these faults."""
    alike: dict[tuple[str, Fault], list[str]] = {}
    for fault in faults:
        name = f"d{fault.gradient}: "
        said = fault.message.removeprefix(name)
        named = [name.removesuffix(": ")] if said != fault.message else []
        of_any = replace(fault, gradient="", message=said, situation="")
        alike.setdefault((said, of_any), []).extend(named)
    for (said, fault), names in alike.items():
        *first, last = names or [""]
        together = f"{', '.join(first)} and {last}" if first else last
        yield f"{together}: {said}" if together else said, fault


def _changed(fault: Fault) -> Iterator[str]:
    """The line that a change of the source takes away and the one that it puts there."""
    if fault.diff and f"line {fault.line}" not in fault.message:
        yield f"    [dim]line {fault.line}[/dim]"
    for line in fault.diff.splitlines()[1:]:
        colour = "red" if line.startswith("-") else "green"
        yield f"    [{colour}]{_literal(line)}[/{colour}]"


def _coloured(verdict: str) -> str:
    colour = {"right": "green", "wrong": "red", "undecided": "yellow"}.get(verdict, "dim")
    return f"[{colour}]{verdict}[/{colour}]"


def _literal(text: str) -> str:
    """Brackets in a message are not markup."""
    return text.replace("[", r"\[")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value
