from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handgrad import cli

PLANTED = """
import sys
from handgrad.cli import info, main
class Panic(BaseException): pass
def fail(): raise {error}
info._facts = fail
sys.argv[1:] = ["info"]
main()
"""


def planted(error: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PLANTED.format(error=error)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        ("KeyError('weight')", "KeyError: 'weight'"),
        ("AssertionError", "AssertionError"),
        ("RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("Panic('of an extension')", "Panic: of an extension"),
    ],
)
def test_an_exception_is_one_line_and_a_report(reports, error, named):
    found = planted(error)
    assert (found.returncode, found.stdout) == (70, "")
    begin, _, name = found.stderr.removesuffix("\n").partition("; the report is in ")
    assert begin == f"handgrad: a fault of handgrad, {named}"
    report = Path(name)
    assert report.parent == reports
    text = report.read_text("utf-8")
    report.unlink()  # what is left there fails the test
    assert "in fail\n" in text
    assert "arguments: ['-c', 'info']" in text
    assert f"Python {sys.version}" in text
    assert "numpy " in text


def test_a_report_is_its_owners(reports):
    planted("KeyError(1)")
    (report,) = reports.iterdir()
    mode = stat.S_IMODE(report.stat().st_mode)
    report.unlink()
    if sys.platform != "win32":
        assert mode == 0o600


def test_a_report_that_cannot_be_written_is_said(monkeypatch, capsys, tmp_path):
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", fail)
    monkeypatch.setattr("handgrad.cli.info._facts", lambda: [][0])
    monkeypatch.setattr(sys, "argv", ["handgrad", "info"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 70
    assert capsys.readouterr().err == (
        "handgrad: a fault of handgrad, IndexError: list index out of range; "
        "no report could be written: Permission denied\n"
    )


def test_the_other_tests_would_see_it(handgrad, monkeypatch):
    monkeypatch.setattr("handgrad.cli.info._facts", lambda: [][0])
    with pytest.raises(IndexError):
        handgrad("info")
