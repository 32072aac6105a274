"""The checker's figures on this corpus: `python -m tests.checking.abroad`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.checking.abroad.case import HERE, STYLES, Program, programs
from tests.checking.abroad.judge import Judge, Outcome
from tests.checking.abroad.verify import verify

HEADER = (
    f"{'style':11} {'wrong':>5} {'caught':>6} {'strict':>6} {'loose':>6} {'missed':>6} {'errors':>6}"
    f" | {'right':>5} {'alarms':>6} {'other':>5} | {'median':>7} {'worst':>7}"
)


def parsed(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.checking.abroad", description=__doc__)
    parser.add_argument("--style", type=int, choices=range(1, len(STYLES) + 1))
    parser.add_argument("--case", help="programs of which the name contains this")
    parser.add_argument("--only", choices=("right", "wrong"))
    parser.add_argument("--every", type=int, default=1, help="every so many-th program alone")
    parser.add_argument("--failures", action="store_true", help="show what is not as it should be")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, help="the checker's budget for each")
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--verify", action="store_true", help="compare with central differences")
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> Iterator[Program]:
    style = STYLES[options.style - 1] if options.style else None
    every = list(programs(options.folder, style))
    for program in every[:: options.every]:
        if options.case and options.case not in str(program):
            continue
        if any(importlib.util.find_spec(each) is None for each in program.needs):
            print(f"{program}: left out, {program.needs[0]} is not installed", file=sys.stderr)
            continue
        yield program


def outcomes(options: argparse.Namespace, folder: Path) -> Iterator[Outcome]:
    for program in chosen(options):
        judge = Judge(program, folder, options.seconds)
        if options.only != "wrong":
            yield judge.right()
        if options.only != "right":
            for number in range(len(program.variants)):
                yield judge.wrong(number)


def row(name: str, found: list[Outcome]) -> str:
    wrong = [each for each in found if each.variant is not None]
    right = [each for each in found if each.variant is None]
    named = [each.named for each in wrong if each.caught]
    seconds = [each.seconds for each in found] or [0.0]
    alarms = sum(each.verdict == "wrong" for each in right)
    return (
        f"{name:11} {len(wrong):5} {len(named):6} {named.count('strictly'):6}"
        f" {named.count('loosely'):6} {len(wrong) - len(named):6}"
        f" {sum(bool(each.error) for each in found):6}"
        f" | {len(right):5} {alarms:6} {sum(each.verdict != 'right' for each in right) - alarms:5}"
        f" | {statistics.median(seconds):6.2f}s {max(seconds):6.2f}s"
    )


def failure(each: Outcome) -> str | None:
    """One outcome that is not as it should be, in words."""
    if each.variant is None:
        if each.verdict == "right":
            return None
        return f"{each.program} right, called {each.verdict}: {each.error or each.said}"
    if each.caught and each.named == "strictly":
        return None
    state = f"named {each.named}" if each.caught else f"not caught ({each.verdict})"
    return (
        f"{each.program} {each.variant} {'; '.join(each.causes)} (lines {each.lines}): {state}"
        f" {each.error}\n    " + "\n    ".join([*each.why, *(f"said: {s}" for s in each.said)])
    )


def main(words: list[str] | None = None) -> int:
    options = parsed(words)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if options.verify:
            complaints, count = [], 0
            for program in chosen(options):
                count += 1
                try:
                    complaints += verify(program, folder)
                except Exception as problem:
                    complaints.append(f"{program}: {type(problem).__name__}: {problem}")
            print(*complaints, f"{count} programs, {len(complaints)} complaints", sep="\n")
            return bool(complaints)
        found: list[Outcome] = []
        for each in outcomes(options, folder):
            found.append(each)
            if options.failures and not options.json and (text := failure(each)):
                print(text, flush=True)
    if options.json:
        rows: list[dict[str, Any]] = [asdict(each) for each in found]
        print(json.dumps(rows, indent=1))
        return 0
    print(HEADER)
    for style in STYLES:
        own = [each for each in found if each.program.startswith(f"{style}/")]
        if own:
            print(row(style, own))
    print(row("all", found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
