"""The cost of a library before it computes: seconds of import, bytes on disk and of the wheel."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.bursts import ROOT, Spread
from benchmarks.peers import DISTRIBUTIONS


def measure(peers: Iterable[str], *, repeats: int, wheel: bool) -> dict[str, Any]:
    """Import time beyond NumPy's own (a fresh process each, in turn) and installed size.

    handgrad loads its parts when they are first used, so the time of all of them is taken too.
    """
    names = ["handgrad", *peers]
    statements = {name: f"import {name}" for name in names}
    statements["handgrad, all parts"] = "from handgrad import *"
    times: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(repeats):
        for name, statement in statements.items():
            times[name].append(_import_seconds(statement))
    return {
        "import": {name: asdict(Spread.of(times[name])) for name in sorted(times)},
        "installed_bytes": {name: _installed_bytes(name) for name in names},
        "wheel_bytes": _wheel_bytes() if wheel else None,
    }


def _import_seconds(statement: str) -> float:
    program = (
        "import time, numpy; began = time.perf_counter(); "
        f"{statement}; print(time.perf_counter() - began)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return float(found.stdout)


def _installed_bytes(name: str) -> int:
    """Its files without what it depends on; of a source tree, those of the package's folder."""
    try:
        parts = [distribution(part) for part in DISTRIBUTIONS.get(name, (name,))]
    except PackageNotFoundError:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        folder = Path(found.origin).parent
        files = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    else:
        files = [
            Path(str(file.locate()))
            for part in parts
            for file in part.files or ()
            if file.suffix != ".pyc"
        ]
    return sum(path.stat().st_size for path in files if path.is_file())


def _wheel_bytes() -> int:
    """Build the wheel from this repository, which takes as long as installing it does."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, "."]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("handgrad-*.whl")
        return wheel.stat().st_size
