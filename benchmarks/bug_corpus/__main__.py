"""Check every bug of the corpus and its right sibling, and say who was caught and named.

    python -m benchmarks.bug_corpus [--only attention,softmax] [--missed]

A bug is caught if its report is not ok. It is named rightly if a fault of a wrong gradient has a
kind, and where the label has one a term, of its handwritten label, and if no gradient is blamed
that is right.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain

from rich.console import Console
from rich.table import Table

from benchmarks.bug_corpus import EXERCISES
from benchmarks.bug_corpus.judge import Outcome, false_alarms, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default="", help="words in the names of exercises, with commas")
    parser.add_argument("--missed", action="store_true", help="print only what was not named")
    given = parser.parse_args()
    words = given.only.split(",")
    chosen = [each for each in EXERCISES if any(word in each.name for word in words)]
    if not chosen:
        names = ", ".join(each.name for each in EXERCISES)
        sys.exit(f"bug_corpus: --only has {given.only!r}; allowed: words in {names}")
    console = Console(soft_wrap=True, highlight=False, markup=False)
    found = list(chain.from_iterable(map(outcomes, chosen)))
    for outcome in found:
        if not (given.missed and outcome.named):
            console.print(_words(outcome))
    console.print(_table(found))
    alarms = [(each, *alarm) for each in chosen for alarm in false_alarms(each)]
    console.print(f"right backwards: {len(chosen)}; false alarms: {len(alarms)}")
    for exercise, with_like, fault in alarms:
        console.print(f"  {exercise.name}{_mode(with_like)}: {fault.message}")


def _mode(with_like: bool) -> str:
    return ", with like" if with_like else ""


def _words(outcome: Outcome) -> str:
    bug = outcome.bug
    verdict = "named " if outcome.named else "caught" if outcome.caught else "MISSED"
    lines = [
        f"{verdict}  {bug.name}{_mode(outcome.with_like)}: {bug.what}",
    ]
    if outcome.caught:
        fault = outcome.fault
        lines.append(f"        reported: {fault.kind}: {fault.message}")
    if not outcome.named:
        terms = f" ({' or '.join(bug.terms)})" if bug.terms else ""
        wanted = f"{' or '.join(sorted(bug.kinds))}{terms}"
        lines.append(f"        wanted {wanted}, of {', '.join(bug.gradients) or 'the call'}")
        blamed = {each.gradient for each in outcome.report.faults} - {*bug.gradients, ""}
        if blamed:
            lines.append(f"        blamed too: {', '.join(sorted(blamed))}")
    return "\n".join(lines)


def _table(found: list[Outcome]) -> Table:
    table = Table(title="Wild bugs", title_justify="left")
    table.add_column("")
    for column in ("bugs", "caught", "named rightly"):
        table.add_column(column, justify="right")
    for title, several in (
        ("without like", [each for each in found if not each.with_like]),
        ("with like", [each for each in found if each.with_like]),
        ("in all", found),
    ):
        caught = sum(each.caught for each in several)
        named = sum(each.named for each in several)
        table.add_row(title, str(len(several)), str(caught), str(named))
    return table


if __name__ == "__main__":
    main()
