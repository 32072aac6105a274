"""Write docs/mistakes.md; exit code 1 where a run does not bear the page out."""

from __future__ import annotations

import sys

from docs.mistakes.page import PAGE, judged, page


def main() -> int:
    found = judged()
    PAGE.write_text(page(found), "utf-8")
    unexpected = [each for each in found if not each.expected]
    for each in unexpected:
        print(f"{each.row.passage}: {each.form.formula} ({each.kind}): {each.verdict.text}")
    print(f"wrote docs/{PAGE.name}: {len(found)} formulas run")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
