"""Every file that users get is written whole or not at all, and replaces nothing but a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

import handgrad as hg
from handgrad.data import Bytes
from handgrad.data.stream import write_array
from handgrad.training.learning_rates import LearningRates
from handgrad.writing import write_atomically, write_file, write_new

posix = pytest.mark.skipif(os.name != "posix", reason="the system has no such files")

#: Functions that write a file for a user, by the name of the file.
WRITERS: dict[str, Callable[[Path], object]] = {
    "derived.py": lambda path: hg.derive("relu").to("numpy", path),
    "derived.html": lambda path: hg.derive("relu").notes(path),
    "notes.md": lambda path: hg.notes("relu").save(path),
    "model.safetensors": lambda path: hg.Dense(2, 3, rng=np.random.default_rng(0)).save(path),
    "tokens.json": lambda path: Bytes().save(path),
    "array.npy": lambda path: write_array(path, [np.zeros(1000)]),
    "rates.svg": lambda path: LearningRates(*np.ones((3, 4)), None).save(path),
}

FULL = """
import resource, sys
from pathlib import Path
from handgrad.streams import sentence_of
from tests.test_writing import WRITERS
resource.setrlimit(resource.RLIMIT_FSIZE, (2, 2))
for path in map(Path, sys.argv[1:]):
    try:
        WRITERS[path.name](path)
    except (OSError, ValueError, RuntimeError) as error:
        said = sentence_of(error) if isinstance(error, OSError) else str(error)
        print(path.name, "File too large" in said, path.name in said)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits of Linux")
def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    for name in WRITERS:
        (tmp_path / name).write_text("mine")
    paths = [str(tmp_path / name) for name in WRITERS]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *paths], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"{name} True True" for name in WRITERS]
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == dict.fromkeys(
        WRITERS, "mine"
    )


@posix
@pytest.mark.parametrize("name", WRITERS)
def test_a_link_stays_and_is_written_through(name: str, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    target, link = tmp_path / "inside" / "target", tmp_path / name
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("inside/target")
    WRITERS[name](link)
    assert link.is_symlink()
    assert target.read_bytes() != b"old"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(target.parent.iterdir()) == [target]


def test_nothing_else_in_the_package_opens_files_to_write() -> None:
    """One function does, so that no file is half written; the report of a fault is a new one."""
    package = Path(hg.__file__).parent
    own = {"writing.py", "io/checksums.py", "cli/predict.py", "unforeseen.py"}
    pattern = re.compile(
        r"""write_text\(|write_bytes\(|open\([^()]*["'][wax]b?["']|os\.replace\("""
    )
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        if pattern.search(file.read_text(encoding="utf-8"))
    }
    assert found <= own


@posix
def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@posix
def test_a_device_stays_one(tmp_path: Path) -> None:
    (tmp_path / "nothing").symlink_to("/dev/null")
    write_file(tmp_path / "nothing", b"gone")
    assert (tmp_path / "nothing").is_symlink()
    assert Path("/dev/null").is_char_device()


@posix
def test_a_pipe_is_written_to_where_somebody_reads(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        write_file(path, b"nobody")
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(end, True)
    content = b"x" * 200_000  # more than a pipe holds
    writer = threading.Thread(target=write_file, args=(path, content), daemon=True)
    writer.start()
    found, alive = b"", True
    while alive:  # it reads nothing before the writer has opened the pipe
        alive = writer.is_alive()
        found += os.read(end, len(content))
    os.close(end)
    assert found == content
    assert path.is_fifo()


@posix
@pytest.mark.parametrize("name", ["folder", "socket"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    import socket

    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as server:
        if name == "folder":
            path.mkdir()
        else:
            with chdir(tmp_path):  # the names of sockets are short
                server.bind(name)
        for write in (write_file, write_atomically):
            with pytest.raises(OSError, match="not a regular file"):
                write(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(tmp_path / "a", b"new")


@posix
@pytest.mark.slow
def test_standard_output_in_the_place_of_a_file_keeps_what_was_printed(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from handgrad.writing import write_file; "
        "print('before', flush=True); write_file(Path('/dev/stdout'), b'page\\n'); print('after')"
    )
    with open(tmp_path / "printed", "w", encoding="utf-8") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "printed").read_text() == "before\npage\nafter\n"


def test_an_error_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(TypeError, match="bytes-like"):
        write_file(path, b"half", "no bytes")  # type: ignore[arg-type]
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_takes_no_others_place(tmp_path: Path) -> None:
    write_new(tmp_path / "file", b"mine")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"other")
    assert (tmp_path / "file").read_bytes() == b"mine"
