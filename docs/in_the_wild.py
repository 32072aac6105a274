"""Check the backward passes of docs/in_the_wild.toml, and write docs/in-the-wild.md.

    python -m docs.in_the_wild --checkouts FOLDER [--limit SECONDS]

FOLDER holds the projects as OWNER/NAME, each at the commit of the list. Their code is run. Exit
code 1 where a checkout is missing, or a backward is not found wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
LIST: Final = ROOT / "docs" / "in_the_wild.toml"
PAGE: Final = ROOT / "docs" / "in-the-wild.md"

#: Seconds that one check may take, on a machine that does nothing else.
_LIMIT: Final = 60.0

#: Parts of sentences that say where or how much a gradient is wrong, and not why.
_NO_CAUSE: Final = (
    "no explanation",
    " has shape ",
    "is right except",
    "is not linear in",
    "a second call",
)

_HEAD: Final = """\
# In the wild

Backward passes of public projects that are not the gradient of their forward, as `handgrad check`
reports them: by differences, with no word to it about what to look for, and with nothing written
around the code. The projects are good to learn from, and most of what they compute is right; a
gradient that is a little wrong still trains. Left out is what may be meant: slopes at a kink, a
loss that is averaged on one side only, a derivative that its caller completes, arguments that are
written to.

`python -m docs.in_the_wild --checkouts FOLDER` writes this page from a list of projects, commits
and settings, `docs/in_the_wild.toml`, and from checkouts that the reader lays; nothing of their
code is here. A change is one of the source that was run and puts the gradient right. Seconds are
those of the whole command.

"""


@dataclass(frozen=True)
class Case:
    """A backward that is wrong: where it is, how it is made, and what is wrong in one sentence."""

    project: str
    commit: str
    licence: str
    file: str
    symbol: str
    options: tuple[str, ...]
    wrong: str

    @property
    def place(self) -> str:
        """The cells of the table that say which one it is."""
        name = f"[{self.project}](https://github.com/{self.project}/tree/{self.commit})"
        blob = f"https://github.com/{self.project}/blob/{self.commit}/{self.file}"
        return (
            f"{name} | [{self.file}]({blob.replace(' ', '%20')}) | `{self.symbol}` | {self.wrong}"
        )


@dataclass(frozen=True)
class Found:
    """The report of one check: its verdict, its best sentence, the line, the seconds it took."""

    verdict: str
    says: str
    line: int
    seconds: float
    #: A change of the source was run that puts it right.
    has_change: bool = False

    @property
    def is_named(self) -> bool:
        """Return whether the sentence has a cause."""
        is_told = self.has_change or "a gradient belongs where" in self.says
        return is_told or not any(part in self.says for part in _NO_CAUSE)

    @property
    def cells(self) -> str:
        says = self.says.replace("|", "\\|").replace("\n", " ")
        change = "✓" if self.has_change else "–"
        return f"`{says}` | {self.line or '–'} | {change} | {self.seconds:.1f}"


def cases() -> list[Case]:
    """The list, in its order."""
    listed = tomllib.loads(LIST.read_text("utf-8"))["project"]
    return [
        Case(
            project["name"],
            project["commit"],
            project["licence"],
            each["file"],
            each["symbol"],
            tuple(_options(each)),
            each["wrong"],
        )
        for project in listed
        for each in project["case"]
    ]


def _options(case: dict[str, Any]) -> Iterator[str]:
    for name in ("set", "shape", "option", "wrt"):
        for value in case.get(name, ()):
            yield from (f"--{name}", value)


def checked(case: Case, checkout: Path, limit: float = _LIMIT) -> Found:
    """Run `handgrad check` in a checkout. Raises RuntimeError where it says nothing."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "handgrad", "check", f"{case.file}:{case.symbol}", "--json"]
    done = subprocess.run(
        [*command, *case.options],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    seconds = time.perf_counter() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{case.project} {case.symbol}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    judged = [fault for fault in report["faults"] if fault["judged"]]
    best = max(judged, key=_telling, default=None)
    if best is None:
        return Found(report["verdict"], "", 0, seconds)
    return Found(report["verdict"], best["message"], best["line"], seconds, bool(best["diff"]))


def _telling(fault: dict[str, Any]) -> tuple[bool, bool, bool, float]:
    """The order of faults by what they say: of a gradient, with a cause, with a line."""
    sure = fault["confidence"]
    return bool(fault["gradient"]), sure > 0, bool(fault["line"]), sure


def page(rows: Sequence[tuple[Case, Found]]) -> str:
    """The page: totals, and a row for each case."""
    table = [f"| {case.place} | {found.cells} |" for case, found in rows]
    projects: dict[str, str] = {case.project: case.licence for case, _ in rows}
    licences = [f"{name} ({licence})" for name, licence in projects.items()]
    return (
        f"{_HEAD}{totals(rows)}\n\n"
        "| project | file | symbol | wrong is | handgrad says | line | change | s |\n"
        f"| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "\n".join(table)
        + f"\n\nLicences: {', '.join(licences)}.\n"
    )


def totals(rows: Sequence[tuple[Case, Found]]) -> str:
    """The sentence of the figures."""
    named = sum(found.is_named for _, found in rows)
    lines = sum(bool(found.line) for _, found in rows)
    projects = len({case.project for case, _ in rows})
    return (
        f"**{len(rows)} wrong backwards in {projects} projects**: all are found wrong, for {named} "
        f"handgrad names a cause, for {lines} a line."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=_LIMIT, metavar="SECONDS")
    given = parser.parse_args(arguments)
    rows, failed = [], False
    for case in cases():
        try:
            found = checked(case, given.checkouts / case.project, given.limit)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"not checked: {error}")
            failed = True
            continue
        print(
            f"{case.project} {case.symbol}: {found.verdict}: {found.says} ({found.seconds:.1f} s)"
        )
        failed |= found.verdict != "wrong"
        rows.append((case, found))
    if not failed:
        PAGE.write_text(page(rows), "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
