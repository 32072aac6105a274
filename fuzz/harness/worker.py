"""The worker: runs cases of one surface in a process of its own, which may die of them.

What the watchdog reads is the beat (which case is being run, how many are done) in a small file
mapped into memory, and one JSON line per fault.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final, NamedTuple

from fuzz.harness.surface import MEMORY, Case, Fault, generator, load

BEAT: Final = struct.Struct("<qqq")  # the case being run, cases done, resident KiB at the start


class Job(NamedTuple):
    """The cases `first`, `first + stride`, ... below `stop`, until the time is up."""

    surface: str
    seed: int
    first: int
    stride: int
    stop: int
    seconds: float
    folder: str


def sanitized() -> bool:
    """Return whether the process runs under AddressSanitizer, which is slow and maps terabytes."""
    return "asan" in os.environ.get("LD_PRELOAD", "")


def peak_kib() -> int:
    """The most memory this process had resident since it was last reset."""
    with open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1])
    return 0


def _bound_memory(mebibytes: int) -> None:
    """Bound the address space, as a last line of defence for the machine."""
    if not sanitized():
        with open("/proc/self/statm", "rb") as statm:
            pages = int(statm.read().split()[0])
        limit = pages * resource.getpagesize() + 8 * (mebibytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _record(number: int, where: str, kind: str, message: str, program: str) -> dict[str, Any]:
    return {"number": number, "where": where, "kind": kind, "message": message, "program": program}


def attempt(case: Case, number: int) -> dict[str, Any] | None:
    """Run one case; a record of what is wrong, or None."""
    try:
        case.run()
    except Fault as fault:
        return _record(number, case.where, fault.kind, fault.message, case.program())
    except Exception as error:
        text = traceback.format_exc(limit=-8)
        kind = f"raw {type(error).__name__}"
        return _record(number, case.where, kind, text, case.program())
    return None


def run(job: Job) -> None:
    """Run the job's cases, and write what is found beside the beat."""
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    folder = Path(job.folder)
    module = load(job.surface)
    bound = getattr(module, "MEMORY", MEMORY)
    seen: dict[tuple[str, str], int] = {}
    with (
        open(folder / "beat", "r+b") as file,
        mmap.mmap(file.fileno(), BEAT.size) as beat,
        open(folder / "faults", "a", encoding="utf-8") as faults,
    ):
        _bound_memory(bound)

        def write(found: dict[str, Any]) -> None:
            key = found["kind"], found["where"]
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:  # the first is written in full, the others are counted
                found = {**found, "message": "", "program": ""}
            faults.write(json.dumps(found) + "\n")
            faults.flush()

        end = time.monotonic() + job.seconds
        start_kib = peak_kib()
        done = 0
        number = job.first
        while number < job.stop and time.monotonic() < end:
            BEAT.pack_into(beat, 0, number, done, start_kib)
            case = module.draw(generator(job.surface, job.seed, number))
            found = attempt(case, number)
            if found is not None:
                write(found)
            done += 1
            if done % 64 == 1:
                grown = peak_kib() - start_kib
                if grown > bound << 10 and not sanitized():
                    message = f"the worker grew by {grown >> 10} MiB; allowed: {bound} MiB"
                    write(_record(number, case.where, "memory", message, case.program()))
                    gc.collect()
                    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
                    start_kib = max(start_kib, peak_kib())
            number += job.stride
        BEAT.pack_into(beat, 0, -1, done, start_kib)


def describe(surface: str, seed: int, number: int) -> None:
    """Print a case as JSON without running it, for one that ended its worker."""
    case = load(surface).draw(generator(surface, seed, number))
    print(json.dumps({"where": case.where, "program": case.program()}))


if __name__ == "__main__":
    if sys.argv[1] == "describe":
        describe(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        run(Job(*json.loads(sys.argv[2])))
