"""The pages of documentation, run as a reader would.

    ```python             lines that the reader types, all of a page in one namespace
    ```text               after these: what they print
    ```python name.py     a file that the reader writes
    ```diff name.py       lines of it that the reader changes
    ```console            `$ command` and its output

In an output `...` stands for any text, and a line of its own for any lines. A comment in the line
before a block says what else it is:

    <!-- source: PATH -->      a part of this file, which is not run
    <!-- raises: ShapeError --> its last line ends in this error, which is printed
`python -m tests.pages docs/PAGE.md` writes the outputs anew, except those with `...`.
"""

from __future__ import annotations

import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>source|raises): (?P<of>\S+) -->\n)?"
    r"```(?P<kind>python|text|diff|console)(?: (?P<name>\S+))?\n(?P<text>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A fenced block, with the heading it stands under."""

    section: str
    kind: str
    name: str | None
    text: str
    source: str | None = None
    raises: str | None = None

    @property
    def is_typed(self) -> bool:
        """True for Python that is neither a file of the reader's nor one of the repository's."""
        return self.kind == "python" and self.name is None and self.source is None

    @property
    def command(self) -> str:
        return self.text.partition("\n")[0].removeprefix("$ ")

    @property
    def output(self) -> str:
        return self.text.partition("\n")[2]


def blocks(page: str) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(page):
        section = re.findall(r"^#+ (.*)$", page[: match.start()], re.M)[-1]
        mark = {match["mark"]: match["of"]} if match["mark"] else {}
        found.append(Block(section, match["kind"], match["name"], match["text"], **mark))
    return found


def write(block: Block, folder: Path) -> None:
    """The file of a block, or the change to it."""
    assert block.name is not None
    path = folder / block.name
    if block.kind == "python":
        path.write_text(block.text, "utf-8")
        return
    before = "".join(line[1:] + "\n" for line in block.text.splitlines() if line[0] in " -")
    after = "".join(line[1:] + "\n" for line in block.text.splitlines() if line[0] in " +")
    text = path.read_text("utf-8")
    assert text.count(before) == 1, f"{block.name} has no\n{before}"
    path.write_text(text.replace(before, after), "utf-8")


def typed(block: Block, namespace: dict[str, Any]) -> str:
    """The output of Python in the namespace of its page."""
    printed = StringIO()
    file = f"<block {len(linecache.cache)} of the page>"
    # As a prompt does, so that `hg.check` and `hg.notes` can read the functions that it defines.
    linecache.cache[file] = (len(block.text), None, block.text.splitlines(True), file)
    with redirect_stdout(printed):
        try:
            exec(compile(block.text, file, "exec"), namespace)
        except Exception as error:
            if type(error).__name__ != block.raises:
                raise
            print(error)
        else:
            assert block.raises is None, f"{block.raises} was not raised"
    return printed.getvalue()


def run(command: str, folder: Path) -> str:
    """The output of a command."""
    program, *arguments = shlex.split(command)
    programs = {
        "handgrad": ["-P", "-m", "handgrad"],
        "pytest": ["-m", "pytest", "-p", "no:cacheprovider", "-p", "handgrad.pytest_plugin"],
        "python": [],
    }
    result = subprocess.run(
        [sys.executable, *programs[program], *arguments],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the same whether handgrad is installed or not
            "COLUMNS": "80",
            "NO_COLOR": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return result.stdout


def shows(output: str, printed: str) -> bool:
    """Return whether a page's output is what was printed, but for rounding errors and widths."""
    pattern = "".join(_pattern(_plain(line)) for line in output.splitlines())
    found = "".join(_plain(line) + "\n" for line in printed.splitlines())
    return re.fullmatch(pattern, found) is not None


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return re.escape(line).replace(re.escape("..."), ".*") + r"\n"


def _plain(line: str) -> str:
    line = re.sub(r"\d(\.\d+)?e[+-]\d+", "#", line)
    return re.sub(r"━+", "━", re.sub(r" +", " ", line)).rstrip()


def renewed(page: str) -> str:
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        namespace: dict[str, Any] = {"__name__": "page"}
        printed = ""

        def renew(match: re.Match[str]) -> str:
            nonlocal printed
            (block,) = blocks("# \n" + match[0])
            if block.is_typed:
                with chdir(folder):
                    printed = typed(block, namespace)
            elif block.kind == "text" and "..." not in block.text:
                return f"```text\n{printed}```"
            elif block.name is not None:
                write(block, Path(folder))
            elif block.kind == "console" and "..." not in block.output:
                lines = run(block.command, Path(folder)).splitlines()
                output = "".join(line.rstrip() + "\n" for line in lines)
                return f"```console\n$ {block.command}\n{output}```"
            return match[0]

        return _BLOCK.sub(renew, page)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        Path(argument).write_text(renewed(Path(argument).read_text("utf-8")), "utf-8")
