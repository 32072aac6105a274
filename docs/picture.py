"""Draw the README's pictures, in docs/images, from what handgrad itself writes.

    python -m docs.picture

`docs/moving.py` draws the one that moves. For the other this trains the recipe `digits`, prints the
notes of layer normalisation, and checks the wrong backward of docs/find-the-bug.md; Chromium lays
the three out side by side.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console, Group
from rich.syntax import Syntax
from rich.text import Text

from docs import moving

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "handgrad.png"
WIDTH, HEIGHT, DENSITY = 1200, 560, 1.5
COLUMNS = 57
CHECK: Final = "check my_layer_norm.py --shape x=5,7 --shape gamma=7 --shape beta=7"

#: Each panel: what is typed, its page, and its width, scale and how far it is scrolled.
PANELS: Final = (
    ("train digits", "digits/report.html", 700, 0.53, 345),
    ("notes layer_norm", "notes.html", 640, 0.58, 2055),
    ("check my_layer_norm.py", "check.html", 373, 1.0, 0),
)
PAGE: Final = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; display: flex; gap: 18px; padding: 22px; background: #e9edf2;
  font: 13px "Liberation Mono", monospace; }}
figure {{ margin: 0; width: 373px; height: 516px; background: white; border-radius: 10px;
  box-shadow: 0 2px 12px #0003; overflow: hidden; }}
figcaption {{ background: #22303f; color: white; padding: 10px 14px;
  position: relative; z-index: 1; }}
iframe {{ border: 0; transform-origin: 0 0; }}
</style>{panels}"""
PANEL: Final = """<figure><figcaption>$ handgrad {command}</figcaption><iframe src="{page}"
style="width: {width}px; height: 3000px; transform: scale({scale}) translateY(-{scroll}px)">
</iframe></figure>"""


CHECKED: Final = """<!doctype html><meta charset="utf-8"><style>
pre {{ margin: 10px; font: 10.2px/1.4 "DejaVu Sans Mono", monospace; }}
</style><pre>{code}</pre>"""


def handgrad(arguments: str, folder: Path) -> str:
    """The output of a command, in colour."""
    command = [sys.executable, "-m", "handgrad", *arguments.split()]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "FORCE_COLOR": "1",
        "COLUMNS": "80",
    }
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    return run.stdout


def paragraphs(report: Text) -> list[Text]:
    """The report's lines, those that were one sentence together again."""
    found: list[Text] = []
    for line in report.split():
        line.rstrip()
        if not found or re.match("[┏┃┡│└✗✓]|wrong:|right|does not", line.plain):
            found.append(line)
        else:
            found[-1] = Text.assemble(found[-1], " ", line)
    return found


def verdict(folder: Path) -> str:
    """The wrong lines and the report on them, as a page."""
    page = (ROOT / "docs" / "find-the-bug.md").read_text("utf-8")
    (source,) = re.findall(r"^```python my_layer_norm.py\n(.*?)^```$", page, re.M | re.S)
    (folder / "my_layer_norm.py").write_text(source, "utf-8")
    start = source.index("def backward")
    first = source[:start].count("\n") + 1
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    console.print(
        Syntax(
            source[start:].rstrip(),
            "python",
            theme="xcode",
            line_numbers=True,
            start_line=first,
            word_wrap=True,
        ),
        Group(*paragraphs(Text.from_ansi(handgrad(CHECK, folder)))),
        sep="\n",
    )
    return console.export_html(code_format=CHECKED, inline_styles=True)


def main() -> None:
    moving.main()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        handgrad("train digits --out digits", folder)
        handgrad("notes layer_norm --out notes.html", folder)
        (folder / "check.html").write_text(verdict(folder), "utf-8")
        panels = [
            PANEL.format(command=command, page=page, width=width, scale=scale, scroll=scroll)
            for command, page, width, scale, scroll in PANELS
        ]
        (folder / "picture.html").write_text(PAGE.format(panels="".join(panels)), "utf-8")
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if chromium is None:
            sys.exit("docs.picture: chromium is missing; expected chromium or google-chrome")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=3000"]
        size = [
            f"--window-size={WIDTH},{HEIGHT}",
            f"--force-device-scale-factor={DENSITY}",
            f"--screenshot={PICTURE}",
        ]
        page = (folder / "picture.html").as_uri()
        subprocess.run([chromium, *options, *size, page], check=True, capture_output=True)


if __name__ == "__main__":
    main()
