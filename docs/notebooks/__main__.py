"""Write every notebook beside its cells."""

from __future__ import annotations

from docs.notebooks.cells import SOURCES, notebook


def main() -> None:
    for source in SOURCES:
        target = source.with_suffix(".ipynb")
        target.write_text(notebook(source.read_text("utf-8")), "utf-8")
        print(target.name)


if __name__ == "__main__":
    main()
