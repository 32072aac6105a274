"""Print the changes of a release: `python .ci/release_notes.py v0.2.0`.

Exit code 1 and one sentence where the tag is not the version of the package and of CITATION.cff, or
where CHANGELOG.md has no dated section for it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version(root: Path = ROOT) -> str:
    """The version that pyproject.toml takes from the package."""
    text = (root / "src/handgrad/__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)[0]


def cited(root: Path = ROOT) -> tuple[str, str]:
    """The version and the date of CITATION.cff."""
    text = (root / "CITATION.cff").read_text("utf-8")
    return tuple(re.findall(r"^(?:version|date-released): (.*)$", text, re.MULTILINE))


def sections(root: Path = ROOT) -> dict[str, tuple[str, str]]:
    """The changelog's sections by their version: date and text."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    heading = re.compile(r"^## \[(.+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
    _, *parts = heading.split(text)
    return {
        name: (date or "", body.strip())
        for name, date, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def fault(tag: str, root: Path = ROOT) -> str | None:
    """A sentence on why a tag cannot be released, or None."""
    expected = f"v{version(root)}"
    if tag != expected:
        return f"release: the tag is {tag!r}; expected {expected!r}, the version of the package"
    date, text = sections(root).get(version(root), ("", ""))
    if not date or not text:
        return f"release: CHANGELOG.md has no dated section {version(root)} with changes"
    if cited(root) != (version(root), date):
        found = " of ".join(cited(root))
        return f"release: CITATION.cff has {found}; expected {version(root)} of {date}"
    return None


if __name__ == "__main__":
    found = fault(sys.argv[1])
    if found is not None:
        sys.exit(found)
    print(sections()[version()][1])
