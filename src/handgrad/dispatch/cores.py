"""The default number of threads of the kernels: as many as the process may use cores.

`HANDGRAD_THREADS` decides; without it the first number of `OMP_NUM_THREADS`, where that is a whole
number from 1; without that the least of the cores this process may run on (sched_getaffinity,
looked at again once a second) and what its control group may use of them (cgroup v1 and v2, rounded
up).
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

from handgrad.errors import ArgumentError

#: The largest number of threads.
MOST_THREADS: Final = 1024

ALLOWED: Final = f"allowed: a whole number from 1 to {MOST_THREADS}"


def default_threads() -> tuple[int, bool]:
    """The number of threads of calls that set none, and whether it is only an upper bound.

    A bound holds beside the number of cores the process may run on; 0 is none. Raises ArgumentError
    for a HANDGRAD_THREADS that is no number of threads.
    """
    asked = os.environ.get("HANDGRAD_THREADS")
    if asked is not None:
        number = _number(asked)
        if number is None:
            raise ArgumentError(f"HANDGRAD_THREADS is {asked!r}; {ALLOWED}")
        return number, False
    number = _number(os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip())
    if number is not None:
        return number, False
    return _quota(Path("/")), True


def _number(text: str) -> int | None:
    """The number of threads that the text says; None if it is not an allowed one."""
    # Digits beyond those of the largest would take a while to read.
    if not (text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= 4):
        return None
    number = int(text)
    return number if 1 <= number <= MOST_THREADS else None


def _quota(root: Path) -> int:
    """Cores that the control groups of this process allow it, rounded up; 0 where none says.

    A group is limited by those it lies in. In a container its own may be mounted as the outermost.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return 0
    least = math.inf
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        mounts = (controllers, "cpu") if controllers else ("", "unified")
        for mount in mounts:
            top = root / "sys/fs/cgroup" / mount
            group = top / path.lstrip("/")
            for folder in (group, *group.parents):
                if folder.is_relative_to(top):
                    least = min(least, _limit(folder, "" if controllers else "cpu.max"))
    return math.ceil(least) if least < math.inf else 0


def _limit(group: Path, file: str) -> float:
    """Cores that this control group alone allows; infinity where it says nothing."""
    try:
        if file:
            quota, period = (group / file).read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        cores = int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # "max" among them
        return math.inf
    return cores if cores > 0 else math.inf
