"""The folder of the playground: the page, its examples, and the Python packages it runs."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import handgrad

HERE: Final = Path(__file__).parent
#: The version of Pyodide that the page was tested with.
PYODIDE: Final = "https://cdn.jsdelivr.net/pyodide/v314.0.3/full/"
#: Beside handgrad, the packages that the tabs import and that Pyodide has not loaded.
PACKAGES: Final = ("array-api-compat", "rich")
#: The kinds of files of the page.
_OWN: Final = {".css", ".html", ".js", ".py"}
#: Compiled for this machine, or the source of that.
_LEFT_OUT: Final = {".so", ".pyd", ".cpp", ".h", ".pyc"}


def build(folder: Path, pyodide: str = PYODIDE) -> None:
    """Write the playground into a folder. `pyodide` is where the browser finds Pyodide."""
    shutil.copytree(
        HERE / "page", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    found = [example(path) for path in sorted((HERE / "examples").glob("[!_]*.py"))]
    settings = {"pyodide": pyodide, "version": handgrad.__version__, "examples": found}
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(f"{text}\n", "utf-8")
    with ZipFile(folder / "packages.zip", "w", ZIP_DEFLATED) as archive:
        for name, path in packages():
            # Without a file's own date, the same packages give the same bytes.
            archive.writestr(ZipInfo(name), path.read_bytes(), ZIP_DEFLATED)
    _write_service(folder, pyodide)


def _write_service(folder: Path, pyodide: str) -> None:
    """Say above the service worker what it keeps, with a version that changes with any file."""
    source = (HERE / "page" / "service.js").read_text("utf-8")
    names = [path.name for path in (HERE / "page").iterdir() if path.suffix in _OWN]
    files = sorted({*names, "settings.json", "packages.zip"} - {"service.js"})
    read = sha256(source.encode())
    for name in files:
        read.update((folder / name).read_bytes())
    built = {"version": read.hexdigest()[:16], "files": ["./", *files], "pyodide": pyodide}
    (folder / "service.js").write_text(f"const BUILT = {json.dumps(built)};\n{source}", "utf-8")


def example(path: Path) -> dict[str, Any]:
    """One example: its name, its title, the source without INPUTS, and these with their kinds."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    assigned = tree.body[-1]
    assert isinstance(assigned, ast.Assign)
    values = ast.literal_eval(assigned.value)
    functions = source.splitlines()[: assigned.lineno - 1]
    first = tree.body[1].lineno - 1
    return {
        "name": path.stem,
        "title": ast.get_docstring(tree),
        "source": "\n".join(functions[first:]).strip() + "\n",
        "inputs": [
            {"name": name, "kind": _kind(each), "values": each} for name, each in values.items()
        ],
    }


def packages() -> Iterator[tuple[str, Path]]:
    """Every file of the packages, with its place in the archive."""
    root = Path(handgrad.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix not in _LEFT_OUT:
            yield path.relative_to(root.parent).as_posix(), path
    for package in PACKAGES:
        for file in sorted(metadata.files(package) or (), key=str):
            if ".." not in file.parts and file.suffix not in _LEFT_OUT:
                yield file.as_posix(), Path(str(file.locate()))


def _kind(values: Any) -> str:
    """The name of the type of the numbers in nested lists."""
    while isinstance(values, list):
        values = values[0]
    return type(values).__name__
