"""Events of the system during a command: signals, closed pipes, full disks, names, terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from handgrad.training import Interrupted
from tests.cli.test_train import SMALL
from tests.tolerances import HANGS
from tests.training.test_resume import assert_same_run

#: Every test here starts other processes.
pytestmark = pytest.mark.slow

HERE = [sys.executable, "-m", "handgrad"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and names of POSIX")


#: `handgrad` in a process that, once it has printed the line of an epoch, waits for a line or sends
#: itself the signal that the first argument says. What is done to it from here could come too late.
HALTED = """
import io, os, sys
from handgrad.cli import main
what = sys.argv.pop(1)

class Halted(io.TextIOWrapper):
    printed, begun = "", False

    def write(self, text):
        written = super().write(text)
        self.printed += text
        if "\\nepoch" in self.printed and text.endswith("\\n") and not self.begun:
            self.begun = True
            self.flush()
            sys.stdin.readline() if what == "wait" else os.kill(os.getpid(), int(what))
        return written

sys.stdout = Halted(sys.stdout.detach(), encoding="utf-8")
main()
"""


@contextmanager
def started(*command: str, **settings) -> Iterator[subprocess.Popen[str]]:
    """A process of Python that ends with the block, whatever happens in it."""
    pipe = subprocess.PIPE
    settings = {"stdout": pipe, "stderr": pipe, "text": True, **settings}
    with subprocess.Popen([sys.executable, *command], **settings) as process:
        try:
            yield process
        finally:
            process.kill()


def signalled(number: int, *arguments: str, before) -> tuple[int, str]:
    """The exit code and the errors of a command that gets a signal behind its first epoch."""
    with started(
        *("-c", HALTED, str(int(number)), *arguments),
        preexec_fn=lambda: signal.signal(number, before),
    ) as process:
        _, stderr = process.communicate(timeout=HANGS)
    return process.returncode, stderr


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of `handgrad` in a shell of POSIX, in this folder."""
    return subprocess.run(
        ["sh", "-c", f'"$PYTHON" -m handgrad {command}'],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@posix
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_saves_and_says_how_to_resume(handgrad, tmp_path, name, code):
    arguments = ["train", "digits", "--epochs", "3", *SMALL]
    folder = tmp_path / "stopped"
    found, stderr = signalled(
        getattr(signal, name), *arguments, "--out", str(folder), before=signal.SIG_DFL
    )
    assert found == code, stderr
    assert "Traceback" not in stderr
    assert f"handgrad train --resume {folder}" in stderr
    assert ("interrupted in epoch" if name == "SIGINT" else f"stopped by {name} in") in stderr
    for command in (["train", "--resume", folder], [*arguments, "--out", tmp_path / "whole"]):
        result = handgrad(*command)
        assert result.exit_code == 0, result.output
    assert_same_run(folder, tmp_path / "whole")


LISTENING = """
import sys
from handgrad import cli
class Interrupts(cli.Interrupts):
    def heed(self):
        super().heed()
        print("listening", flush=True)
cli.Interrupts = Interrupts
cli.main()
"""


@posix
@pytest.mark.parametrize(
    ("command", "delay"),
    [
        *(("train digits --epochs 9999 --out run", delay) for delay in (0.0, 0.1, 0.6, 1.5)),
        *(("check all", delay) for delay in (0.02, 0.3)),
    ],
)
def test_a_burst_of_ctrl_c_is_one_line(tmp_path, command, delay):
    with started(
        *("-c", LISTENING, *command.split()),
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout.readline() == "listening\n"
        time.sleep(delay)
        for _ in range(40):
            process.send_signal(signal.SIGINT)
            time.sleep(0.002)
        _, stderr = process.communicate(timeout=HANGS)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert stderr.strip().count("\n") == 0, stderr


SWALLOWING = """
import signal
from handgrad.cli.interrupts import Interrupts
Interrupts().heed()
try:
    signal.raise_signal(signal.SIGINT)
except BaseException:
    pass
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    signal.raise_signal(signal.SIGINT)
    try:
        raise ImportError
    except ImportError:
        signal.raise_signal(signal.SIGINT)
    print("raised again, and once")
"""


@posix
def test_a_ctrl_c_that_is_lost_does_not_hide_the_next():
    """As one in the import of an extension, which may take it for an error of its own."""
    result = subprocess.run(
        [sys.executable, "-c", SWALLOWING],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (result.stdout, result.stderr) == ("raised again, and once\n", "")


@posix
def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As SIGHUP under nohup."""
    arguments = ["train", "digits", "--epochs", "3", *SMALL, "--out", str(tmp_path / "run")]
    found, stderr = signalled(signal.SIGHUP, *arguments, before=signal.SIG_IGN)
    assert found == 0, stderr


def test_exit_codes_of_signals():
    assert Interrupted("x").exit_code == 130
    assert Interrupted("x", 15).exit_code == 143


@posix
def test_a_closed_pipe_saves_the_run(handgrad, tmp_path):
    arguments = ["train", "digits", "--epochs", "3", *SMALL, "--out"]
    command = ("-c", HALTED, "wait", *arguments, str(tmp_path / "run"))
    with started(*command, stdin=subprocess.PIPE) as process:
        for line in process.stdout:
            if line.startswith("epoch"):
                break
        process.stdout.close()
        process.stdin.close()
        stderr = process.stderr.read()
        assert process.wait(timeout=HANGS) == 2
    assert stderr.startswith("handgrad: progress cannot be written to standard output: Broken pipe")
    assert f"saved. Continue with: handgrad train --resume {tmp_path / 'run'}" in stderr
    assert stderr.count("\n") == 1
    for command in (["train", "--resume", tmp_path / "run"], [*arguments, tmp_path / "whole"]):
        assert handgrad(*command).exit_code == 0
    assert_same_run(tmp_path / "run", tmp_path / "whole")


@posix
def test_a_reader_that_has_seen_enough_is_no_error():
    with started("-m", "handgrad", "recipes", "show", "digits") as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=HANGS)) == ("", 141)


COMMANDS = ("info", "--help", "recipes", "train digits --epochs 1", "notes relu --format md -o -")


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_closed_streams_end_a_command_without_its_output(tmp_path, command):
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"):
        found = shell(f"{command} {closed}", tmp_path)
        assert (found.returncode, found.stderr) == (0, ""), closed
        assert (found.stdout != "") == (">&-" not in closed.replace("2>&-", "")), closed


@posix
def test_an_error_without_a_place_to_say_it_is_code_2(tmp_path):
    for command in ("evaluate nothing", "frobnicate"):
        for closed in ("2>&-", ">&- 2>&-", "2>/dev/full"):
            found = shell(f"{command} {closed}", tmp_path)
            assert (found.returncode, found.stdout, found.stderr) == (2, "", "")


@posix
def test_a_closed_stream_is_no_file_of_the_run(tmp_path):
    """Its descriptor would be the next file's, and the output of libraries would go there."""
    done = shell("train digits --epochs 1 --out run >&- 2>&- <&-", tmp_path)
    assert done.returncode == 0
    assert shell("evaluate run", tmp_path).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_behind_a_stream(tmp_path, command):
    full = shell(f"{command} >/dev/full", tmp_path)
    assert full.returncode in (1, 2)
    assert "Traceback" not in full.stderr
    assert "No space left" in full.stderr
    assert full.stderr.count("\n") == 1
    assert shell(f"{command} 2>/dev/full", tmp_path).returncode == 0
    assert shell(f"{command} >/dev/full 2>/dev/full", tmp_path).returncode in (1, 2)


@posix
@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_a_folder_whose_name_is_not_utf8(tmp_path, encoding):
    folder = os.fsencode(tmp_path) + b"/caf\xe9 \xff"
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "COLUMNS": "80"}
    found = subprocess.run(
        [*map(os.fsencode, [*HERE, "train", "digits", "--epochs", "1", *SMALL, "--out"]), folder],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert found.returncode == 0, found.stderr.decode(errors="replace")
    report = Path(os.fsdecode(folder), "report.html").read_bytes()
    report.decode("utf-8")
    for command in ("evaluate", "train --resume"):
        again = subprocess.run(
            [*map(os.fsencode, [*HERE, *command.split()]), folder],
            capture_output=True,
            env=environment,
            check=False,
        )
        assert again.returncode == 0, again.stderr.decode(errors="replace")


@posix
def test_data_whose_path_is_not_utf8_are_one_sentence(tmp_path):
    data = os.fsencode(tmp_path) + b"/caf\xe9.npz"
    x, y = np.zeros((20, 4), np.float32), np.arange(20) % 2
    np.savez(tmp_path / "x.npz", x=x, y=y)
    os.rename(tmp_path / "x.npz", data)
    (tmp_path / "r.toml").write_text(
        '[data]\nname = "mine"\n[optimizer]\ntype = "sgd"\n[training]\nepochs = 1\n'
        '[model]\nlayers = [{type = "dense", features = 2}]\n'
    )
    found = subprocess.run(
        [*map(os.fsencode, [*HERE, "train", str(tmp_path / "r.toml"), "--data"]), data],
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    stderr = found.stderr.decode(errors="replace")
    assert found.returncode == 2, stderr
    assert "Traceback" not in stderr
    assert "not Unicode" in stderr
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode(tmp_path, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    for arguments in (["--help"], ["train", "--help"], ["recipes"], ["info"], ["notes", "softmax"]):
        found = subprocess.run(
            [*HERE, *arguments], capture_output=True, env=environment, cwd=tmp_path, check=False
        )
        assert b"Traceback" not in found.stderr, arguments
        assert found.returncode == 0, (arguments, found.stderr)


#: A locale in which Python takes ASCII for files and streams.
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@posix
@pytest.mark.parametrize("locale", [C_LOCALE, {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}])
def test_files_are_utf8_and_terminals_get_what_they_can_show(tmp_path, locale):
    source = "import numpy as np\ndef f(x):\n    σ = np.tanh(x)\n    return σ * x\n"
    (tmp_path / "f.py").write_text(source, encoding="utf-8")
    written = shell("derive f.py:f --shape x=N --out σ.py", tmp_path, **locale)
    assert written.returncode == 0, written.stderr
    assert "σ = np.tanh" in (tmp_path / "σ.py").read_text("utf-8")
    assert written.stdout.isascii()
    printed = shell("derive f.py:f --shape x=N", tmp_path, **locale)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "\\u03c3 = np.tanh" in printed.stdout
    missing = shell("evaluate τ", tmp_path, **{**locale, "PYTHONIOENCODING": "ascii"})
    assert missing.returncode == 2
    assert missing.stderr.startswith(
        ("handgrad: \\u03c4: no run here (config.toml is missing)", "handgrad: \\udc")
    )


def test_a_name_of_300_characters_is_one_sentence(refused):
    assert "File name too long" in refused("train", "digits", "--out", "x" * 300)
    assert "no run here" in refused("evaluate", "x" * 300)
    assert "no run here" in refused("train", "--resume", "x" * 300)


def test_the_help_tells_the_exit_codes(handgrad):
    text = " ".join(handgrad("--help").output.split())
    for code in ("0 done", "2 an error", "129, 130, 143"):
        assert code in text


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&"


def test_names_from_data_are_escaped_in_the_report(handgrad, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.normal(size=(40, 4)), y=np.arange(40) % 2)
    (tmp_path / "r.toml").write_text(
        f"[data]\nname = 'mine'\nclasses = [{json.dumps(HOSTILE)}, \"b<i>\"]\n"
        '[optimizer]\ntype = "sgd"\n[training]\nepochs = 1\n'
        '[model]\nlayers = [{type = "dense", features = 2}]\n'
    )
    folder = tmp_path / "<b onclick=x>run"
    arguments = ["--data", tmp_path / "d.npz", "--out", folder]
    result = handgrad("train", tmp_path / "r.toml", *arguments)
    assert result.exit_code == 0, result.output
    page = (folder / "report.html").read_text("utf-8")
    for raw in ("<img src=x", "</script>", "<b onclick", "b<i>"):
        assert raw not in page
    assert "&lt;img src=x" in page


def test_tokens_and_texts_are_escaped_in_the_report(handgrad, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text((f"a {HOSTILE} b\n") * 200, encoding="utf-8")
    changes = [
        *("--set", "model.width=8", "--set", "model.heads=2", "--set", "model.blocks=1"),
        *("--set", "data.block=16", "--set", "data.blocks=24", "--epochs", "1"),
    ]
    folder = tmp_path / "run"
    result = handgrad("train", "text", "--data", text, "--out", folder, *changes)
    assert result.exit_code == 0, result.output
    page = (folder / "report.html").read_text("utf-8")
    assert "<img src=x" not in page
    assert "</script>" not in page


@posix
@pytest.mark.parametrize("command", ["ops", "zoo", "recipes", "info"])
def test_a_closed_pipe_ends_a_command_without_a_word(command):
    read, write = os.pipe()
    os.close(read)
    with started("-m", "handgrad", command, stdout=write) as process:
        os.close(write)
        assert process.stderr.read() == ""
        assert process.wait(timeout=HANGS) == 141
