"""The build backend: scikit-build-core, and the reference alone where the kernels do not compile.

pip hides what a build prints as long as it succeeds, and an installation without kernels is such a
success. So the compiler's error goes to the terminal past pip, and into the package, where the
first import and every command repeat it (`handgrad.kernels`). How far the compiler is goes to the
terminal too, with the time that is left.

Where HANDGRAD_BUILD says what to compile, or a wheel is built for others (CIBUILDWHEEL), a build
that fails is an error. HANDGRAD_BUILD=none asks for the reference alone.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scikit_build_core import build as backend
from scikit_build_core.build import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, list[str] | str] | None

#: pyproject.toml has this file installed beside the kernels.
_FAILURE = Path("build/failure.txt")
_REFERENCE_ONLY = {"wheel.cmake": "false", "wheel.py-api": "py3", "wheel.platlib": "false"}


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _build(backend.build_wheel, wheel_directory, config_settings)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    return _build(backend.build_editable, wheel_directory, config_settings)


def _build(build: Callable[[str, Settings], str], directory: str, settings: Settings) -> str:
    asked = os.environ.get("HANDGRAD_BUILD", "")
    _write_failure("")
    if asked != "none":
        try:
            progress = Progress(_to_terminal)
            with _copied_output(progress.read) as output:
                return build(directory, settings)
        except SystemExit:
            if asked or os.environ.get("CIBUILDWHEEL"):
                raise
            error = last_error(output.decode(errors="replace"))
            reason = f"their build failed with: {error}"
            _tell(
                f"\nhandgrad: the kernels did not compile: {error}\n"
                "handgrad: installed instead is the reference alone, in Python, which is far "
                "slower; pip install -v shows the whole output, the README compilers that work\n"
            )
    else:
        reason = "handgrad was installed with HANDGRAD_BUILD=none"
    _write_failure(reason)
    return build(directory, {**(settings or {}), **_REFERENCE_ONLY})


def last_error(output: str) -> str:
    """The error that ended a build, in one line: a compiler's, a linker's, otherwise CMake's."""
    # The first of a compiler's errors: others often follow from it.
    compiler = r"^(?:.*[/\\])?([^/\\\n]+?: (?:fatal )?error: .*)"
    for pattern in (compiler, r"(undefined reference to .*)"):
        found = re.search(pattern, output, re.MULTILINE)
        if found and not found[1].startswith(("collect2:", "ninja:")):
            return found[1].strip()
    found = re.search(r"^CMake Error(?::| at .*\n)((?:.*\n)*?.*\.)$", output, re.MULTILINE)
    if found:
        return " ".join(found[1].split()).rstrip(".")
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


class Progress:
    """Say how far Ninja is at the first file, then at each quarter that takes 5 s or more."""

    def __init__(
        self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tell = tell
        self.clock = clock
        self.began: float | None = None
        self.told = 0.0
        self.quarter = 0

    def read(self, output: bytes) -> None:
        steps = re.findall(rb"^\[(\d+)/(\d+)\] ", output, re.MULTILINE)
        done, all_files = map(int, steps[-1]) if steps else (0, 0)
        if all_files < 10:  # CMake's own tests of the compiler
            return
        now = self.clock()
        if self.began is None:
            self.began = self.told = now
            self.tell(f"\nhandgrad: compiling {all_files} files on {os.cpu_count()} processors\n")
        elif done * 4 // all_files > self.quarter and now - self.told >= 5:
            self.quarter, self.told = done * 4 // all_files, now
            spent = now - self.began
            rest = f", about {spent / done * (all_files - done):.0f} s left"
            ending = rest if done < all_files else ""
            self.tell(f"\nhandgrad: {done} of {all_files} compiled after {spent:.0f} s{ending}\n")


@contextmanager
def _copied_output(read: Callable[[bytes], None]) -> Iterator[bytearray]:
    """Everything that is written to stdout and stderr meanwhile, by child processes too."""
    copy = bytearray()
    sys.stdout.flush()
    sys.stderr.flush()
    source, write = os.pipe()
    saved = {number: os.dup(number) for number in (1, 2)}

    def pass_on() -> None:
        while part := os.read(source, 1 << 16):
            copy.extend(part)
            os.write(saved[1], part)
            read(part)

    thread = threading.Thread(target=pass_on)
    thread.start()
    try:
        for number in saved:
            os.dup2(write, number)
        yield copy
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, before in saved.items():
            os.dup2(before, number)
        os.close(write)
        thread.join()
        for number in (source, *saved.values()):
            os.close(number)


def _write_failure(reason: str) -> None:
    _FAILURE.parent.mkdir(exist_ok=True)
    # It is read as a template, in which a dollar begins a name.
    _FAILURE.write_text(reason.replace("$", "$$"), encoding="utf-8")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
    _to_terminal(text)


def _to_terminal(text: str) -> None:
    with (
        suppress(OSError),
        open("CONOUT$" if os.name == "nt" else "/dev/tty", "w", encoding="utf-8") as terminal,
    ):
        terminal.write(text)
