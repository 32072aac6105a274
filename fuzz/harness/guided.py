"""The coverage-guided mode: libFuzzer, by way of atheris, on a surface that has `guided(data)`.

It instruments the Python of handgrad that the surface imports. There is no separate libFuzzer
program for C++: no kernel parses anything, they get arrays whose shapes and types Python has
checked, and `fuzz/ops.py` gives those to them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fuzz.harness.surface import MEMORY, PATIENCE, SEEDS, load
from fuzz.harness.watchdog import environment, patience_factor


def watch_guided(surface: str, seed: int, seconds: float, out: Path) -> int:
    """Run until the time is up or the first fault, which is left under `out`; libFuzzer's code."""
    found = out / surface
    found.mkdir(parents=True, exist_ok=True)
    job = json.dumps([surface, seed, int(seconds), str(found)])
    command = [sys.executable, "-m", "fuzz.harness.guided", job]
    return subprocess.run(command, env=environment()).returncode


def _run(surface: str, seed: int, seconds: int, out: str) -> None:
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["handgrad", f"fuzz.{surface}"]):
        module = load(surface)
    corpus = Path(out) / "corpus"
    corpus.mkdir(exist_ok=True)
    seeds = SEEDS / surface
    options = [
        f"-seed={seed + 1}",  # 0 is libFuzzer's word for any
        f"-max_total_time={seconds}",
        f"-timeout={int(getattr(module, 'PATIENCE', PATIENCE) * patience_factor())}",
        f"-rss_limit_mb={getattr(module, 'MEMORY', MEMORY) + 2048}",
        f"-artifact_prefix={out}/",
        str(corpus),
        *([str(seeds)] if seeds.is_dir() else []),
    ]
    atheris.Setup([surface, *options], module.guided)
    atheris.Fuzz()


if __name__ == "__main__":
    _run(*json.loads(sys.argv[1]))
