"""Run the fuzzers: `python -m fuzz --minutes 2`, from the project's root.

Every surface (a module `fuzz/<surface>.py`; `fuzz/harness/surface.py` says how one is written) gets
a fair share of the time, in worker processes under a watchdog: a case that does not end, a process
that dies, memory out of bounds, a raw exception or a wrong value is a fault. Each is written as a
Python file that shows it. Exit code 0: nothing found; 1: something was; 2: wrong arguments.

`--guided` lets coverage choose the inputs of surfaces that have `guided(data)`; it needs atheris.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fuzz.harness.guided import watch_guided
from fuzz.harness.surface import generator, load, surfaces
from fuzz.harness.watchdog import watch, write
from fuzz.harness.worker import attempt

_ENDLESS = 10**15


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--minutes", type=float, help="for all surfaces together")
    amount.add_argument("--hours", type=float, help="the same in hours")
    amount.add_argument("--calls", type=int, help="cases of each surface")
    amount.add_argument("--case", type=int, help="run this one case of one surface here")
    amount.add_argument("--list", action="store_true", help="print the surfaces")
    parser.add_argument("--guided", action="store_true", help="coverage-guided, with atheris")
    parser.add_argument("--only", nargs="+", metavar="SURFACE", default=surfaces())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="workers at a time")
    parser.add_argument("--out", type=Path, default=Path("fuzz-found"), help="where faults go")
    arguments = parser.parse_args(given)
    unknown = sorted(set(arguments.only) - set(surfaces()))
    if unknown:
        parser.error(f"--only is {', '.join(unknown)}; allowed: {', '.join(surfaces())}")
    if arguments.guided:
        if find_spec("atheris") is None:
            parser.error("--guided needs atheris; install it with pip install atheris")
        if arguments.only == surfaces():
            arguments.only = [name for name in surfaces() if hasattr(load(name), "guided")]
        unguided = [name for name in arguments.only if not hasattr(load(name), "guided")]
        if unguided or arguments.calls is not None or arguments.case is not None:
            parser.error("--guided takes --minutes or --hours, and surfaces that have guided(data)")
    for name in ("minutes", "hours", "calls", "jobs"):
        value = getattr(arguments, name)
        if value is not None and not value > 0:
            parser.error(f"--{name} is {value}; allowed: more than 0")
    if arguments.seed < 0:
        parser.error(f"--seed is {arguments.seed}; allowed: 0 or more")
    if arguments.case is not None and len(arguments.only) != 1:
        parser.error("--case runs a case of one surface; say which with --only")
    return arguments


def _run_here(name: str, seed: int, number: int) -> int:
    """Run one case in this process, and print what it is."""
    case = load(name).draw(generator(name, seed, number))
    print(f"# {case.where}\n{case.program()}", flush=True)
    found = attempt(case, number)
    print("# nothing found" if found is None else f"# {found['kind']}: {found['message']}")
    return 0 if found is None else 1


def main(given: Sequence[str] | None = None) -> int:
    arguments = _arguments(sys.argv[1:] if given is None else given)
    if arguments.list:
        for name in surfaces():
            print(f"{name}: {(load(name).__doc__ or '').splitlines()[0]}")
        return 0
    if arguments.case is not None:
        return _run_here(arguments.only[0], arguments.seed, arguments.case)
    minutes = arguments.minutes if arguments.hours is None else 60 * arguments.hours
    seconds = _ENDLESS if minutes is None else 60 * minutes / len(arguments.only)
    calls = _ENDLESS if arguments.calls is None else arguments.calls
    found = 0
    for name in arguments.only:
        if arguments.guided:
            found += watch_guided(name, arguments.seed, seconds, arguments.out) != 0
            continue
        tally = watch(name, arguments.seed, seconds, calls, arguments.jobs)
        print(tally.line(), flush=True)
        for path in write(tally, arguments.out):
            print(f"  {path}", flush=True)
        found += len(tally.found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
