"""Write the playground: python -m docs.playground FOLDER [--pyodide URL]."""

from __future__ import annotations

import argparse
from pathlib import Path

from docs.playground.build import PYODIDE, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="written to; made where it is missing")
    parser.add_argument("--pyodide", default=PYODIDE, help="a URL, which may be relative")
    arguments = parser.parse_args()
    build(arguments.folder, arguments.pyodide)
    print(f"{arguments.folder / 'index.html'}")


if __name__ == "__main__":
    main()
