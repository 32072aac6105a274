"""Run the quick tests of what a commit touches: `python .ci/touched.py`, as Git's pre-commit hook.

The tests of `src/handgrad/<folder>/` are in `tests/<folder>/`, those of `src/handgrad/<name>.py` in
`tests/test_<name>.py`. Where nothing is staged, nothing is run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Files of no folder of tests, and the tests that read them.
OTHERS = {
    "README.md": "test_readme.py",
    "docs": "test_readme.py",
    ".ci": "test_repository.py",
    "pyproject.toml": "test_repository.py",
}


def tests(changed: Iterable[str]) -> list[str]:
    """The folders and files of tests for these files, both relative to the repository."""
    found = set()
    for name in changed:
        match Path(name).parts:
            case ("src", "handgrad", module) | ("tests", module):
                found.add(f"test_{module.removeprefix('test_')}")
            case ("src", "handgrad", folder, *_) | ("tests", folder, *_):
                found.add(folder)
            case (first, *_) if first in OTHERS:
                found.add(OTHERS[first])
    return sorted(f"tests/{name}" for name in found if (ROOT / "tests" / name).exists())


def staged() -> list[str]:
    command = ["git", "diff", "--cached", "--name-only", "--diff-filter=d", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split("\0")[:-1]


if __name__ == "__main__":
    chosen = tests(staged())
    if not chosen:
        sys.exit(0)
    # Git tells its hooks where its repository is, which would mislead tests that run Git.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", "auto", *chosen]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    sys.exit(0 if code == 5 else code)  # 5: all tests there are slow
