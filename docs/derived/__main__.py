"""Write docs/derived.md; exit code 1 where a derived backward is wrong."""

from __future__ import annotations

import sys

from docs.derived.page import PAGE, page, rows


def main() -> int:
    found = rows()
    PAGE.write_text(page(found), "utf-8")
    same = sum(each.has_same_terms for each in found)
    print(f"wrote docs/{PAGE.name}: {len(found)} ops, {same} with the terms by hand")
    return 0 if all(each.is_right for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
