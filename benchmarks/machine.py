"""The machine that a result was measured on, and its load."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import libraries, library_version

#: A load average above this means that something else was running in the last minute.
QUIET_LOAD: Final = 0.3

_CPU: Final = Path("/sys/devices/system/cpu/cpu0")


def describe(peers: list[str]) -> dict[str, Any]:
    """CPU, caches, governor, memory, system and versions; nothing that names the machine itself."""
    found: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "governor": _text(_CPU / "cpufreq/scaling_governor") or "not visible",
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name in ("numpy", *libraries(peers)):
        found[name] = library_version(name)
    if "torch-compile" in peers:
        found["compiler"] = _compiler()
    return found


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load() -> float:
    """The load average of the last minute; 0 where the system has none."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def warning(load: float) -> str | None:
    if load <= QUIET_LOAD:
        return None
    return (
        f"the load average is {load:.2f}, above {QUIET_LOAD}: something else is or was running, "
        "and these figures are not to be quoted"
    )


class Stolen:
    """The share of CPU time that the hypervisor gave to others since this was made."""

    def __init__(self) -> None:
        self._first = self._read()

    @staticmethod
    def _read() -> list[int]:
        line = _text(Path("/proc/stat")).partition("\n")[0]
        return [int(value) for value in line.split()[1:9]]

    def share(self) -> float:
        passed = [now - then for now, then in zip(self._read(), self._first, strict=True)]
        return round(passed[7] / sum(passed), 4) if passed and sum(passed) else 0.0


def slug(cpu: str) -> str:
    """A file name's part from a CPU's name: `intel-xeon-processor`."""
    plain = re.sub(r"\((r|tm)\)|@.*", "", cpu.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def resident_bytes() -> int:
    """The bytes that this process holds in memory now; 0 where the system does not say."""
    found = re.search(r"VmRSS:\s+(\d+) kB", _text(Path("/proc/self/status")))
    return int(found[1]) * 1024 if found else 0


def peak_bytes() -> int:
    """The most that this process has held in memory, interpreter and libraries included."""
    found = re.search(r"VmHWM:\s+(\d+) kB", _text(Path("/proc/self/status")))
    if found:
        return int(found[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def pin(threads: int) -> None:
    """Keep this process on the first so many of its cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _compiler() -> str:
    """The C++ compiler that torch.compile finds."""
    path = shutil.which("g++")
    if path is None:
        return "none"
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.partition("\n")[0]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


def _cpu_name() -> str:
    text = _text(Path("/proc/cpuinfo"))
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    numbers = [
        re.search(rf"^{key}\s*: (\d+)$", text, re.MULTILINE) for key in ("cpu family", "model")
    ]
    if name is None:
        return platform.processor() or platform.machine()
    family, model = (found[1] if found else "?" for found in numbers)
    return f"{name[1]} (family {family}, model {model})"


def _caches() -> list[str]:
    """The caches of the first core, such as `L1d 48K`."""
    found = []
    for folder in sorted((_CPU / "cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_text(folder / "type"), "")
        found.append(f"L{_text(folder / 'level')}{kind} {_text(folder / 'size')}")
    return found


def _memory_gib() -> float | None:
    if not hasattr(os, "sysconf"):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
