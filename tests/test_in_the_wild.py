"""docs/in-the-wild.md: the saved page and the list agree, without the projects themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs import in_the_wild
from docs.in_the_wild import PAGE, Case, Found, cases, checked, page, totals

#: The cells behind the place: what is said, the line, the seconds.
_REPORTED = re.compile(
    r"`(?P<says>.+)` \| (?P<line>\d+|–) \| (?P<change>[✓–]) \| (?P<seconds>\d+\.\d)"
)


def saved() -> list[tuple[Case, Found]]:
    """The cases of the list with the findings that stand on the page."""
    table = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| [")]
    assert len(table) == len(cases())
    found = []
    for case, row in zip(cases(), table, strict=True):
        assert row.startswith(f"| {case.place} | ")
        cells = _REPORTED.fullmatch(row[len(case.place) + 5 : -2])
        assert cells is not None, row
        line = 0 if cells["line"] == "–" else int(cells["line"])
        says = cells["says"].replace("\\|", "|")
        found.append(
            (case, Found("wrong", says, line, float(cells["seconds"]), cells["change"] == "✓"))
        )
    return found


def test_the_page_is_what_its_rows_say() -> None:
    assert PAGE.read_text("utf-8") == page(saved())


def test_every_project_is_told_with_commit_and_licence() -> None:
    for case in cases():
        assert re.fullmatch(r"[0-9a-f]{40}", case.commit)
        assert case.licence
        assert case.wrong.endswith(".")
        assert len(case.wrong) < 100


def test_totals_count_rows_and_projects() -> None:
    case = cases()[0]
    named = Found("wrong", "dx: is twice what it should be", 3, 1.0)
    unnamed = Found("wrong", "dx: wrong by 1; no explanation that was tried fits", 0, 1.0)
    assert totals([(case, named), (case, unnamed)]) == (
        "**2 wrong backwards in 1 projects**: all are found wrong, for 1 handgrad names a cause, "
        "for 1 a line."
    )


def test_a_case_is_checked_in_its_checkout(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "layers.py").write_text(
        "def forward(x):\n    return x * x, x\n\n\ndef backward(dy, x):\n    return dy * x\n",
        "utf-8",
    )
    case = Case("a/b", "0" * 40, "MIT", "layers.py", "forward,backward", ("--shape", "x=5,3"), "")
    found = checked(case, tmp_path)
    assert (found.verdict, found.line, found.is_named) == ("wrong", 6, True), found.says
    with pytest.raises(RuntimeError, match="forwards"):
        checked(Case("a/b", "", "", "layers.py", "forwards", (), ""), tmp_path)
    monkeypatch.setattr(in_the_wild, "cases", lambda: [case])
    monkeypatch.setattr(in_the_wild, "PAGE", tmp_path / "page.md")
    assert in_the_wild.main(["--checkouts", str(tmp_path)]) == 1  # there is no a/b
    (tmp_path / "a").mkdir()
    subprocess.run(["ln", "-s", str(tmp_path), str(tmp_path / "a" / "b")], check=True)
    assert in_the_wild.main(["--checkouts", str(tmp_path)]) == 0
    assert "| `forward,backward` |" in (tmp_path / "page.md").read_text("utf-8")
