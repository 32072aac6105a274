"""Pages that step through their run: what is in them, and how they act in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from handgrad.documents import alive
from handgrad.documents.labels import LABELS
from handgrad.equations.notes import notes
from tests.documents.test_browser import BROWSER, measured

#: The most that the script may weigh.
BYTES = 150_000

#: What the tests in a browser do to a page.
HANDS = """
  const view = frame.contentWindow;
  const all = (selector) => [...page.querySelectorAll(selector)];
  const one = (selector) => page.querySelector(selector);
  const text = (selector) => one(selector).textContent.replace(/\\s+/g, " ").trim();
  const press = (key, target = page.body) =>
    target.dispatchEvent(new view.KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const point = (target) => target.dispatchEvent(
    new view.PointerEvent("pointerover", {pointerType: "mouse", bubbles: true}));
  const lit = () => all("td.lit").map((each) => each.textContent);
"""


def page_of(target: str, lang: str = "en") -> str:
    return notes(target, numbers=True, alive=True, lang=lang, measure=None).to_html()


def told(page: str):
    found = re.search(r'<script type="application/json" id="handgrad-story">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


def acted(page: str, doing: str, folder: Path, width: int = 1400) -> dict[str, object]:
    """What a browser gives after it has done something on a page."""
    expression = f"await (async () => {{{HANDS}{doing}}})()"
    return measured(page, expression, folder, width)


def test_the_script_is_small_and_fetches_nothing():
    script = alive.script() + alive.style()
    assert len(script.encode()) < BYTES
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|\bimport\b|fetch\(|url\(", script)


def test_the_data_ends_no_element_of_the_page():
    page = page_of("softmax")
    assert page.count("</script>") == 2
    data = told(page)
    assert data["steps"][0]["formula"].startswith("<math")
    assert [each["phase"] for each in data["steps"]][-1] == "backward"


@pytest.mark.parametrize("lang", LABELS)
def test_the_script_has_the_words_of_the_language(lang):
    words = told(page_of("softmax", lang))["words"]
    used = set(re.findall(r"words\.(\w+)", alive.script()))
    assert used <= words.keys()
    assert all(words[key] == LABELS[lang][key] for key in used)


def test_numbers_that_are_not_finite_are_data_too():
    written = notes("relu", np.array([-np.inf, 2.0]), alive=True, measure=None)
    assert told(written.to_html())["quantities"][0]["values"] == ["-Infinity", 2]


def slow(test):
    """A test in a browser, where one is installed."""
    missing = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
    return pytest.mark.slow(missing(test))


@slow
def test_keys_step_forward_and_then_back(tmp_path):
    found = acted(
        page_of("attention"),
        """
        const at = () => [one(".equation.current").id, one(".handgrad-stage").dataset.phase];
        const first = at();
        for (let i = 0; i < 3; i += 1) press("ArrowRight");
        const fourth = at();
        press("ArrowLeft");
        const third = at();
        press(" ", one(".handgrad-stage"));
        const again = at();
        for (let i = 0; i < 20; i += 1) press("ArrowRight");
        return {first, fourth, third, again, last: at(), spoken: text(".spoken"),
                marked: all("[aria-current=step]").length, next: one(".next").disabled};
        """,
        tmp_path,
    )
    assert found == {
        "first": ["eq-1", "forward"],
        "fourth": ["eq-4", "backward"],
        "third": ["eq-3", "forward"],
        "again": ["eq-4", "backward"],
        "last": ["eq-10", "backward"],
        "spoken": "Backward, step 10 of 10, Equation 10: dk",
        "marked": 1,
        "next": True,
    }


@slow
@pytest.mark.parametrize("target", ["attention", "block"])
def test_the_keyboard_reaches_what_scrolls_and_no_landmark_is_twice(target, tmp_path):
    """Such a page has none of the two faults that axe-core found before."""
    found = acted(
        page_of(target),
        """
        const scrolls = (each) => view.getComputedStyle(each).overflowX === "auto"
          && each.clientWidth > 0 && each.scrollWidth > each.clientWidth;
        const unreached = (each) =>
          each.tabIndex < 0 && !each.matches(".flow") && !each.querySelector("a, [tabindex]");
        const wide = all("*").filter(scrolls);
        const found = wide.filter(unreached).map((each) => each.outerHTML.slice(0, 90));
        return {wide: wide.length > 0, unreached: found,
                landmarks: all("[role=region]").length};
        """,
        tmp_path,
        width=390,
    )
    assert found == {"wide": True, "unreached": [], "landmarks": 0}


@slow
def test_pointing_at_a_gradient_lights_its_row_and_its_column(tmp_path):
    found = acted(
        page_of("ffn"),
        """
        while (!text(".spoken").endsWith("dW2")) press("ArrowRight");
        point(all(".result td")[6]);
        const result = {lit: lit(), terms: all(".term .numbers").map((each) => each.textContent),
                        total: text(".total")};
        point(one(".operand td"));
        return {...result, goes: text(".opened p"), reached: all(".result td.lit").length};
        """,
        tmp_path,
    )
    assert found["lit"] == ["2", "2", "0", "5", "2", "1"]
    assert found["terms"] == ["2 · 5", "2 · 2", "0 · 1"]
    assert found["total"] == "= 14"
    assert found["reached"] == 4
    assert "4" in str(found["goes"])


@slow
def test_a_number_that_is_changed_changes_all_that_follows(tmp_path):
    found = acted(
        page_of("ffn"),
        """
        const cell = one(".operand td.given");
        cell.focus();
        press("Enter", cell);
        const input = one("td input");
        input.value = "3";
        press("Enter", input);
        const row = () => all(".result td").slice(0, 3).map((each) => each.textContent);
        const [product, note] = [row(), !one(".note").hidden];
        one(".reset").click();
        return {product, note, reset: row()};
        """,
        tmp_path,
    )
    # Two more of the first row of W₁, which is 1 0 1.
    assert found == {"product": ["5", "1", "3"], "note": True, "reset": ["3", "1", "1"]}


@slow
def test_cells_are_walked_with_the_arrows_and_speak(tmp_path):
    found = acted(
        page_of("linear"),
        """
        const cell = one(".result td");
        cell.focus();
        press("ArrowRight", cell);
        const next = page.activeElement;
        return {column: next.dataset.column, label: next.getAttribute("aria-label"),
                still: text(".where"), stops: all(".result td[tabindex='0']").length,
                roles: all(".result table")[0].getAttribute("role"),
                unnamed: all("button, input, table, section").filter((each) =>
                  !each.getAttribute("aria-label") && !each.textContent.trim()).length};
        """,
        tmp_path,
    )
    assert found["column"] == "1"
    assert str(found["label"]).startswith("row 1, column 2: ")
    assert str(found["still"]).startswith("Forward 1/")
    assert found["stops"] == 1
    assert found["roles"] == "grid"
    assert found["unnamed"] == 0


@slow
@pytest.mark.parametrize("target", ["attention", "lstm", "conv2d", "cross_entropy", "max_pool2d"])
def test_every_step_is_drawn_on_a_phone_that_never_scrolls_sideways(target, tmp_path):
    page = page_of(target)
    found = acted(
        page,
        """
        let wide = 0;
        let numbers = 0;
        const steps = Number(one("input[type=range]").max);
        for (let i = 0; i < steps; i += 1) {
          numbers += all(".result td").length;
          const root = page.documentElement;
          const body = one(".handgrad-stage .body");
          wide += root.scrollWidth > root.clientWidth || body.scrollWidth > body.clientWidth;
          press("ArrowRight");
        }
        return {steps, wide, numbers, colour: view.getComputedStyle(one(".handgrad-stage")).color};
        """,
        tmp_path,
        width=390,
    )
    assert found["steps"] == len(told(page)["steps"])
    assert found["wide"] == 0
    assert found["numbers"]


@slow
def test_on_paper_the_page_is_as_before(tmp_path):
    page = page_of("softmax").replace("@media print", "@media screen")
    shown = 'return {stage: view.getComputedStyle(one(".handgrad-stage")).display};'
    assert acted(page, shown, tmp_path) == {"stage": "none"}


@slow
def test_a_step_measures_no_block_again_until_the_window_changes(tmp_path):
    found = acted(
        page_of("lstm"),
        """
        let counted = 0;
        const own = view.Element.prototype.getBoundingClientRect;
        view.Element.prototype.getBoundingClientRect = function () {
          counted += this.matches(".shape");
          return own.call(this);
        };
        press("ArrowRight");
        press("ArrowRight");
        const stepping = counted;
        view.dispatchEvent(new view.Event("resize"));
        return {stepping, resized: counted > 0, links: all(".links path").length > 0};
        """,
        tmp_path,
    )
    assert found == {"stepping": 0, "resized": True, "links": True}
