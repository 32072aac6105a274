"""Lines that nobody means: each ends with exit code 0 or 2 and one sentence, and loses nothing."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from typer.testing import Result

from handgrad.cli.app import app
from tests.tolerances import HANGS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and signals")

#: Lines that are right and quick, of every command; the fixture makes what they name.
LINES: Final[dict[str, list[str]]] = {
    "train": ["t.csv", "--epochs", "1", "--out", "out"],
    "evaluate": ["run"],
    "predict": ["run", "t.csv"],
    "generate": ["run", "--length", "1"],
    "translate": ["run", "a text"],
    "export": ["run", "model.onnx"],
    "check": ["relu"],
    "derive": ["relu"],
    "notes": ["relu", "--out", "notes.html"],
    "exercise": ["1"],
    "exercises": [],
    "limit": ["nothing", "--examples", "2", "--networks", "1"],
    "lr": ["t.csv", "--steps", "10", "--out", "lr.html"],
    "ops": [],
    "info": [],
    "recipes": [],
    "zoo": [],
}
VALUES: Final = (
    *("", " ", "-", "--", "-1", "0", "1e400", "nan", "inf", "9" * 400, "0.5", "True", "None"),
    *("x" * 5000, "x/" * 2000, ".", "..", "/", "dir", "fifo", "null", "missing/x.csv", "empty.csv"),
    *("~nobody_here/x", "~", "garbage.bin", "t.csv", "run/config.toml", "link", "loop", "C:\\x"),
    *("\x1b]0;owned\x07", "a\nb", "\udcff", "ä𝒳", "%s{0}", "$(x)", "{}", "[1, 2", "null\t"),
    *("key=", "=value", "a=b=c", "optimizer.lr=", "optimizer.lr=x", "model.width=-3", "x=-1"),
    *("x=2,3", "x=", "x=9999999999999", "x=0", "relu:", "t.csv:f", "empty.py:f", "os:system"),
    *("handgrad.ops", "numpy:sum", "digits ", "Digits", "relu,tanh", "cuda", "jax", "../run"),
)
#: Options of which a large number is meant, and takes its time.
LONG: Final = ("--epochs", "--steps", "--networks", "--widths", "--examples", "--length", "--beam")


#: Options that no line ends with: --help by itself, --watch of a file that nobody changes.
ENDLESS: Final = ("--help", "--watch")


def options_of(command: str) -> list[tuple[str, bool]]:
    """The options of a command, and whether each is a flag."""
    found: Any = typer.main.get_command(app)
    parameters = found.commands[command].params
    return [
        (each.opts[-1], bool(each.is_flag))
        for each in parameters
        if each.param_type_name == "option" and each.opts[-1] not in ENDLESS
    ]


def hostile_lines() -> list[tuple[str, ...]]:
    """Every command with wrong values, settings that conflict, and too much or too little."""
    rng = random.Random(35)
    lines: list[tuple[str, ...]] = [("",), ("nonsense",), ("--version=1",), ("train", "train")]
    for command, right in LINES.items():
        options = options_of(command)
        lines += [(command, *right, "surplus", "x" * 300), (command, "--nonsense", "1")]
        lines += [(command, *right, f"--{command}=")]
        for value in rng.sample(VALUES, 8 if right else 3):
            lines.append((command, value, *right[1:]))
        for name, is_flag in options:
            if is_flag:
                other = rng.choice(options)[0]
                lines += [(command, *right, name, name), (command, *right, name, other, "json")]
                continue
            values = [v for v in VALUES if name not in LONG or len(v) != 400]
            lines += [(command, *right, name, value) for value in rng.sample(values, 4)]
            lines.append((command, *right, name))
    return list(dict.fromkeys(lines))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, handgrad: Any) -> Iterator[Path]:
    """A folder with a table, a run, and what only looks like a file."""
    folder = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = "".join(f"{i},{i * 7 % 5},{'ab'[i % 2]}\n" for i in range(30))
        (folder / "t.csv").write_text("a,b,label\n" + rows)
        (folder / "empty.csv").touch()
        (folder / "empty.py").touch()
        (folder / "dir").mkdir()
        (folder / "garbage.bin").write_bytes(bytes(range(256)) * 8)
        (folder / "link").symlink_to("missing")
        (folder / "loop").symlink_to("loop")
        os.mkfifo(folder / "fifo")
        try:
            os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except OSError:  # it takes the rights of an administrator
            (folder / "null").symlink_to(os.devnull)
        assert handgrad("train", "t.csv", "--epochs", "1", "--out", "run").exit_code == 0
        yield folder


def kept(folder: Path) -> dict[str, Any]:
    """What has to be there after every line, as it was."""
    files = [*("t.csv", "garbage.bin", "empty.py", "empty.csv"), *map(str, folder.glob("run/*"))]
    kinds = {name: stat.S_IFMT(os.lstat(folder / name).st_mode) for name in os.listdir(folder)}
    mine = {name: kinds.get(name) for name in ("dir", "fifo", "null", "link", "loop")}
    contents = {name: (folder / name).read_bytes() for name in files if (folder / name).is_file()}
    return {**mine, **contents}


def out_of_time(number: int, frame: object) -> None:
    raise TimeoutError(f"not done in {HANGS} s")


def judge(line: tuple[str, ...], result: Result) -> str:
    """A fault of what a line came to; nothing where it is as it should be."""
    if result.exit_code not in (0, 1, 2) or (result.exit_code == 1 and line[0] != "check"):
        return f"exit code {result.exit_code}"
    said = result.stderr.strip()
    if result.exit_code == 2 and (not said or "Traceback" in said):
        return f"no sentence: {said[-300:]!r}"
    if result.exit_code == 2 and not said.startswith("Usage") and "\n" in said:
        sentences = [each for each in said.splitlines() if "Warning" not in each]
        if len(sentences) > 1 and line[0] not in ("check", "train", "lr"):
            return f"several lines: {said[:300]!r}"
    if any(ord(letter) < 32 and letter not in "\n\t\r\x1b" for letter in said):
        return f"control characters: {said!r}"
    return "an escape of the user's" if "\x1b]0;" in said + result.stdout else ""


@pytest.mark.slow
def test_hostile_lines_are_one_sentence(place: Path, handgrad: Callable[..., Result]) -> None:
    lines = hostile_lines()
    assert len(lines) >= 300
    before, faults = kept(place), []
    usual = signal.signal(signal.SIGALRM, out_of_time)
    try:
        for line in lines:
            signal.alarm(HANGS)
            try:
                found = judge(line, handgrad(*line))
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            signal.alarm(0)
            if kept(place) != before:
                found += " and something was lost"
                before = kept(place)
            if found:
                faults.append((line, found))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, usual)
    assert not faults, "\n".join(f"{' '.join(line)[:120]!r}: {found}" for line, found in faults)


#: Lines for processes of their own: what the shell or the system does to them.
PROCESSES: Final[dict[str, tuple[list[bytes], dict[str, str], str]]] = {
    "closed stdout": ([b"info"], {}, ">&-"),
    "closed stderr": ([b"train", b"nothing"], {}, "2>&-"),
    "all closed": ([b"recipes"], {}, "<&- >&- 2>&-"),
    "a full device": ([b"ops"], {}, ">/dev/full"),
    "bytes that are no text": ([b"train", b"\xff\xfe"], {}, ""),
    "an ASCII locale": ([b"check", "ä".encode()], {"LC_ALL": "C", "PYTHONUTF8": "0"}, ""),
    "a locale that is none": ([b"ops", b"relu"], {"LC_ALL": "xx_YY"}, ""),
    "no home": ([b"train", b"~/x.csv"], {"HOME": ""}, ""),
    "a home that is none": ([b"info"], {"HOME": "/nonexistent"}, ""),
    "no temporary folder": ([b"check", b"relu"], {"TMPDIR": "/nonexistent"}, ""),
    "an unknown engine": ([b"info"], {"HANDGRAD_ENGINE": "x\x1b[31m"}, ""),
    "an unknown engine before a path": (
        [b"train", b"t.csv", b"--out", b"out"],
        {"HANDGRAD_ENGINE": "x"},
        "",
    ),
    "threads that are none": (
        [b"predict", b"run", b"t.csv"],
        {"HANDGRAD_THREADS": "1e9"},
        "",
    ),
    "no width": ([b"ops"], {"COLUMNS": "-1"}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_hostile_surroundings_are_one_sentence(name: str, place: Path) -> None:
    arguments, more, redirected = PROCESSES[name]
    script = f'exec "$0" -m handgrad "$@" {redirected}'
    command = [b"sh", b"-c", script.encode(), os.fsencode(sys.executable), *arguments]
    done = subprocess.run(
        command, env={**os.environ, **more}, capture_output=True, check=False, timeout=HANGS
    )
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    assert done.stderr.count(b"\n") <= 1
    assert b"\x1b[31m" not in done.stderr
