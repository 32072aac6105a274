"""Write the saved figures into benchmarks/results/README.md and docs/scikit-learn.md.

    python -m benchmarks.readme [--check]

README.md gets one line of them, and the pictures are drawn too. Nothing in these tables is typed by
hand; with --check nothing is written, and the exit code is 1 where a file is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import geometric_mean
from textwrap import fill
from typing import Any, Final

from benchmarks import picture, results
from benchmarks.machine import warning
from benchmarks.tables import best_peer, tables, threads

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- figures: begin -->"
END: Final = "<!-- figures: end -->"
NONE_YET: Final = "No results have been saved yet; `python -m benchmarks --save` does it."


def section(result: dict[str, Any]) -> str:
    """One result: where and when, its picture, then its tables."""
    machine = result["machine"]
    others = [name for name in ("numpy", "torch", "jax", "sklearn") if name in machine]
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", *others))
    about = (
        f"{result['date']}, {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['system']}; {versions}."
    )
    noise = warning(result["load"])
    lines = [about, *([f"Not quiet: {noise}."] if noise else [])]
    if picture.drawn(result):
        lines.append(f"![{picture.LABEL}]({results.file_name(result)}.svg)")
    return "\n\n".join([*lines, *(table.markdown() for table in tables(result))])


def headline(found: list[dict[str, Any]]) -> str:
    """README.md's line: the ratios to the best peer of the latest result with workloads."""
    measured = [result for result in found if picture.drawn(result)]
    if not measured:
        return NONE_YET
    result = measured[0]
    steps = result["sections"]["steps"].values()
    best = [one["ratios"][peer]["median"] for one in steps if (peer := best_peer(one))]
    return fill(
        f"A training step of the fastest among PyTorch, compiled PyTorch, JAX and scikit-learn "
        f"takes {geometric_mean(best):.1f} times as long as handgrad's: the geometric mean over "
        f"{len(best)} networks, from {min(best):.2f} to {max(best):.2f} times (float32, "
        f"{threads(result['sections']['steps'])}, {result['machine']['cpu']}, {result['date']}).",
        width=100,
        break_on_hyphens=False,
        break_long_words=False,
    )


def page(found: list[dict[str, Any]]) -> str:
    """benchmarks/results/README.md: the latest result of every CPU."""
    intro = (
        "# Results\n\nWritten by `python -m benchmarks.readme` from the JSON files beside it; "
        "see [docs/benchmarks.md](../../docs/benchmarks.md) for what is compared and how."
    )
    parts = [f"## {result['machine']['cpu']}\n\n{section(result)}" for result in found]
    return "\n\n".join([intro, *(parts or [NONE_YET])]) + "\n"


def of_estimators(found: list[dict[str, Any]]) -> str:
    """The part of docs/scikit-learn.md: the latest result that has fits."""
    for result in found:
        fits = {**result, "sections": {"sklearn": result["sections"].get("sklearn")}}
        if fits["sections"]["sklearn"]:
            return section(fits)
    return "No results have been saved yet; `python -m benchmarks.sklearn --save` does it."


def with_figures(readme: str, text: str) -> str:
    """The README with `text` between the two comments."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def written() -> dict[Path, str]:
    """The files as they should be."""
    found = results.newest()
    readme = ROOT / "README.md"
    drawings = {
        results.FOLDER / f"{results.file_name(result)}.svg": picture.svg(result)
        for result in found
        if picture.drawn(result)
    }
    estimators = ROOT / "docs" / "scikit-learn.md"
    return {
        **drawings,
        estimators: with_figures(estimators.read_text("utf-8"), of_estimators(found)),
        readme: with_figures(readme.read_text("utf-8"), headline(found)),
        results.FOLDER / "README.md": page(found),
    }


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    old = []
    for path, text in written().items():
        if not path.exists() or path.read_text("utf-8") != text:
            old.append(path)
            if not check:
                path.write_text(text, "utf-8")
    for path in old:
        print(f"{path.relative_to(ROOT)} {'is out of date' if check else 'written'}")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
