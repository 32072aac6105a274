"""Count what the checker makes of the collection: `python -m tests.checking.interfaces`."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.checking.interfaces import INTERFACES


def main(names: list[str]) -> None:
    """Print every outcome that is not the wanted one, and the counts."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for interface in INTERFACES:
            if (names and interface.name not in names) or not interface.is_available:
                continue
            for edits, is_right in (((None, *interface.right), True), (interface.wrong, False)):
                for number, edit in enumerate(edits):
                    found = interface.outcome(edit, Path(folder))
                    kind = f"{'right' if is_right else 'wrong'} -> {found.partition(':')[0]}"
                    counts[kind] += 1
                    wanted = ("right", "said") if is_right else ("wrong",)
                    if names or found.partition(":")[0] not in wanted:
                        print(f"{interface.name} {number} {kind}: {found}"[:300], flush=True)
    for kind, number in sorted(counts.items()):
        print(f"{kind}: {number}")


if __name__ == "__main__":
    main(sys.argv[1:])
