"""Sizes of the CPU's caches, from which the kernels compute their block sizes.

They are read from the system, or taken from HANDGRAD_CACHE, such as `l1:32K,l2:1M`: to compute as
on another CPU. A level may have its ways too, as in `l1:48K:12`. A cache that processors share
counts in equal parts.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from handgrad.errors import EngineError


class CpuCache(NamedTuple):
    """One level: bytes, ways, and processors that share it."""

    bytes: int
    ways: int = 8
    shared: int = 1

    def __str__(self) -> str:
        size = f"{self.bytes >> 20} MB" if self.bytes >= 1 << 20 else f"{self.bytes >> 10} KB"
        return size if self.shared == 1 else f"{size} shared by {self.shared}"


#: Assumed where a system does not say; most CPUs have as much.
DEFAULTS: Final = {"l1": CpuCache(32 << 10), "l2": CpuCache(512 << 10), "l3": CpuCache(4 << 20, 16)}
LINE: Final = 64

_LEVEL = re.compile(r"(l[123]):(\d+)([KM])(?::(\d+))?")
_SYSTEM: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_SYSCTL: Final = {"l1": b"hw.perflevel0.l1dcachesize", "l2": b"hw.perflevel0.l2cachesize"}


def known_caches() -> Mapping[str, CpuCache]:
    """The three levels. Raises EngineError for a HANDGRAD_CACHE that is none."""
    return {**DEFAULTS, **_of_system(), **_asked(os.environ.get("HANDGRAD_CACHE", ""))}


def _asked(text: str) -> dict[str, CpuCache]:
    levels = {}
    for each in filter(None, text.split(",")):
        found = _LEVEL.fullmatch(each)
        if found is None or int(found[2]) == 0 or found[4] == "0":
            raise EngineError(
                f"HANDGRAD_CACHE is {text!r}; allowed: sizes of levels such as l1:32K,l2:1M, each "
                "with its ways if need be, as in l1:48K:12"
            )
        size = int(found[2]) << (10 if found[3] == "K" else 20)
        levels[found[1]] = CpuCache(size, int(found[4] or DEFAULTS[found[1]].ways))
    return levels


def _of_system() -> dict[str, CpuCache]:
    try:
        return _of_darwin() if sys.platform == "darwin" else _of_linux(_SYSTEM)
    except (OSError, ValueError, AttributeError):
        return {}


def _of_linux(folder: Path) -> dict[str, CpuCache]:
    levels = {}
    for index in sorted(folder.glob("index*")):
        read = {
            name: (index / name).read_text().strip()
            for name in ("level", "type", "size", "ways_of_associativity", "shared_cpu_list")
        }
        level = f"l{read['level']}"
        if read["type"] != "Instruction" and level in DEFAULTS and read["size"].endswith("K"):
            size, ways = int(read["size"][:-1]) << 10, int(read["ways_of_associativity"])
            if size > 0 and ways > 0:
                levels[level] = CpuCache(size, ways, _count(read["shared_cpu_list"]))
    return levels


def _count(cpus: str) -> int:
    """The number of processors in a list such as 0-3,8."""
    ranges = [each.partition("-") for each in cpus.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _of_darwin() -> dict[str, CpuCache]:
    ask = ctypes.CDLL(None).sysctlbyname
    levels = {}
    for level, name in _SYSCTL.items():
        found, size = ctypes.c_int64(0), ctypes.c_size_t(8)
        failed = ask(name, ctypes.byref(found), ctypes.byref(size), None, ctypes.c_size_t(0))
        if not failed and found.value > 0:
            levels[level] = CpuCache(found.value)
    return levels
