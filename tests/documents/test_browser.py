"""Pages as a browser lays them out, where one is installed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from handgrad.equations.notes import notes
from tests.tolerances import HANGS

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed"),
]

#: A page in a frame of some width; what is measured in it is the title of the page around it.
FRAME = """<!DOCTYPE html><iframe id="frame" width="{width}" height="800" srcdoc="{page}"></iframe>
<script>
const frame = document.getElementById("frame");
frame.onload = async () => {{
  const page = frame.contentDocument;
  await page.fonts.ready;
  const height = (selector) => page.querySelector(selector).getBoundingClientRect().height;
  document.title = JSON.stringify({measured});
}};
</script>"""


def measured(page: str, expression: str, folder: Path, width: int = 360) -> dict[str, object]:
    """The value of an expression of JavaScript on a page, which it knows as `page`.

    The page is as wide as a phone, or `width`.
    """
    file = folder / "phone.html"
    framed = FRAME.format(page=html.escape(page), measured=expression, width=width)
    file.write_text(framed, "utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    options = [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, *options, file.as_uri()], capture_output=True, check=True, timeout=HANGS
    )
    title = re.search("<title>(.*?)</title>", done.stdout.decode())
    assert title, done.stdout[:1000]
    found: dict[str, object] = json.loads(html.unescape(title[1]))
    return found


@pytest.mark.parametrize("target", ["attention", "ffn", "digits"])
def test_a_page_never_scrolls_sideways_on_a_phone(target: str, tmp_path: Path) -> None:
    page = notes(target, numbers=target == "ffn", lang="ro").to_html()
    widths = "{page: page.documentElement.scrollWidth, window: page.documentElement.clientWidth}"
    found = measured(page, widths, tmp_path)
    assert found["page"] == found["window"]


def test_no_figure_and_no_equation_is_split_on_paper(tmp_path: Path) -> None:
    expression = """Object.fromEntries(["figure", ".equation", "tr"].map((each) =>
      [each, frame.contentWindow.getComputedStyle(page.querySelector(each)).breakInside]))"""
    page = notes("digits").to_html().replace("@media print", "@media screen")
    found = measured(page, expression, tmp_path)
    assert found == {"figure": "avoid", ".equation": "avoid", "tr": "avoid"}


def test_the_font_is_its_own_and_fences_grow(tmp_path: Path) -> None:
    """The brackets of a matrix are as high as its rows, on a machine without such a font."""
    expression = """{
      font: [...page.fonts].map((font) => `${font.family} ${font.status}`),
      matrix: height("mo[form=prefix] + mtable"),
      fence: height("mo[form=prefix]:has(+ mtable)"),
    }"""
    found = measured(notes("ffn", numbers=True).to_html(), expression, tmp_path)
    assert found["font"] == ["handgrad math loaded"]
    assert found["fence"] == pytest.approx(found["matrix"], rel=0.15)


@pytest.mark.parametrize("target", ["attention", "lstm", "layer_norm", "gpt"])
def test_every_slide_fits_a_screen(target: str, tmp_path: Path) -> None:
    page = notes(target).to_slides()
    tall = "[...page.querySelectorAll('section')].filter(each => each.offsetHeight > 801).length"
    wide = "[...page.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    found = measured(page, f"{{tall: {tall}, wide: {wide}}}", tmp_path, width=1280)
    assert found == {"tall": 0, "wide": 0}
