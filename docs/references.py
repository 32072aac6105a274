"""Write the last column of docs/references.md: the modules that cite each of its references.

Exit code 1 where a source is cited that the page does not list, or not as the page names it, and
where the page lists what nobody cites.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "references.md"
PACKAGE: Final = ROOT / "src" / "handgrad"

#: More authors than these are cited by the first one, "et al."
MOST_AUTHORS: Final = 3
SUFFIXES: Final = {".py", ".h", ".cpp"}

_INITIAL = re.compile(r"\b\w\.[- ]?")
_MARGIN = re.compile(r"\s*(?://|#:?)?\s*")


class Reference(NamedTuple):
    author: str
    title: str
    year: str
    where: str

    @property
    def citation(self) -> str:
        """Author, title and year as a `Source:` names them."""
        authors = [_INITIAL.sub("", each) for each in self.author.split(", ")]
        names = ", ".join(authors) if len(authors) <= MOST_AUTHORS else f"{authors[0]} et al."
        return f"{names}, {self.title} ({self.year})"

    def names(self, source: str) -> bool:
        """True for this reference, perhaps with a section or a remark after a comma."""
        return f"{source},".startswith(f"{self.citation},")

    def row(self, modules: list[str]) -> str:
        return f"| {' | '.join(self)} | {', '.join(modules)} |"


def listed(page: str) -> list[Reference]:
    """The rows of the page's table."""
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    return [Reference(*(cell.strip() for cell in row[:4])) for row in rows[2:]]


def sources(text: str) -> Iterator[str]:
    """Each source that a module's docstrings and comments name after `Source:`, in one line."""
    lines = iter(text.splitlines())
    for line in lines:
        _, found, paragraph = line.partition("Source: ")
        if not found:
            continue
        margin = _MARGIN.match(line)[0]  # type: ignore[index]
        while '"""' not in paragraph:
            line = next(lines, "")
            if not line.startswith(margin) or not line[len(margin) :].strip():
                break
            paragraph += f" {line[len(margin) :]}"
        yield from filter(None, paragraph.partition('"""')[0].strip().removesuffix(".").split("; "))


def citations(package: Path) -> dict[str, list[str]]:
    """The sources that a package names, each with the modules that do."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for path in package.rglob("*") if path.suffix in SUFFIXES):
        for source in dict.fromkeys(sources(path.read_text("utf-8"))):
            found.setdefault(source, []).append(path.relative_to(package).as_posix())
    return found


def faults(references: list[Reference], cited: Mapping[str, list[str]]) -> list[str]:
    """A sentence for each source that is not listed, and each reference that is not cited."""
    named = {source: [each for each in references if each.names(source)] for source in cited}
    used = {each for found in named.values() for each in found}
    return [
        f"{', '.join(cited[source])}: the source {source!r} is not one of {PAGE.name}"
        for source, found in named.items()
        if not found
    ] + [
        f"{PAGE.name}: {each.citation!r} is cited nowhere"
        for each in references
        if each not in used
    ]


def written(page: str, cited: Mapping[str, list[str]]) -> str:
    """The page with its last column filled in."""
    introduction = page.split("| --- |", 1)[0]
    rows = [
        each.row(sorted({m for s, found in cited.items() if each.names(s) for m in found}))
        for each in listed(page)
    ]
    return "\n".join([introduction + "| --- | --- | --- | --- | --- |", *rows, ""])


def main() -> int:
    page, cited = PAGE.read_text("utf-8"), citations(PACKAGE)
    found = faults(listed(page), cited)
    for each in found:
        print(each)
    PAGE.write_text(written(page, cited), "utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
