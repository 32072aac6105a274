"""Run a check again whenever a Python file of its project is saved."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

#: Seconds between two looks at the files, and how many are looked at.
_PAUSE: Final = 0.3
_FILES: Final = 5000


def watch(folder: Path, arguments: Sequence[str], rounds: int | None = None) -> None:
    """Run `handgrad` with these arguments in a process of its own, now and after every change.

    Modules are imported anew that way. It ends with Ctrl-C, or after so many rounds.
    """
    done = 0
    while rounds is None or done < rounds:
        before = _stamps(folder)
        subprocess.run([sys.executable, "-m", "handgrad", *arguments], check=False)
        done += 1
        while (rounds is None or done < rounds) and _stamps(folder) == before:
            time.sleep(_PAUSE)


def _stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """The time and size of every Python file below a folder."""
    found = {}
    for path in islice(folder.rglob("*.py"), _FILES):
        try:
            known = path.stat()
        except OSError:  # it is being written, or was removed
            continue
        found[path] = (known.st_mtime_ns, known.st_size)
    return found
