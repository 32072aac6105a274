"""The playground: its Python side here, and the page itself in Chromium.

The page needs Playwright, a Chromium in the path, and a folder with Pyodide that HANDGRAD_PYODIDE
names: the version of `docs.playground.build.PYODIDE` with its wheel of NumPy.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from docs.playground.build import HERE, build, example
from docs.playground.page import compiled, session
from tests.browser import new_page, served

EXAMPLES = {path.stem: example(path) for path in sorted((HERE / "examples").glob("[!_]*.py"))}
FAULTS = {
    "attention": "the factor 1/√q.shape[1] is missing",
    "embedding": "dweight[tokens] is overwritten where a sum belongs",
    "layer_norm": "mean(dx̂) has the wrong sign",
    "linear": None,
}


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Send a message to the Python side; its answer."""
    monkeypatch.chdir(tmp_path)

    def send(tab: str, source: str, inputs: list) -> dict:
        message = {"tab": tab, "source": source, "inputs": inputs}
        return json.loads(session.answer(json.dumps(message)))

    return send


def test_every_example_has_its_verdict():
    assert EXAMPLES.keys() == FAULTS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_judged(name, ask):
    found = ask("check", EXAMPLES[name]["source"], EXAMPLES[name]["inputs"])
    messages = " ".join(fault["message"] for fault in found["report"]["faults"])
    assert found["report"]["verdict"] == ("wrong" if FAULTS[name] else "right")
    assert FAULTS[name] is None or FAULTS[name] in messages


def test_examples_one_after_another_are_judged_as_alone(ask):
    for name in EXAMPLES:
        test_an_example_is_judged(name, ask)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_notes_hold_the_numbers(name, ask):
    source, inputs = EXAMPLES[name]["source"], EXAMPLES[name]["inputs"]
    before = ask("notes", source, inputs)["page"]
    weight = inputs[-1]["values"]
    row = weight[0] if isinstance(weight[0], list) else weight
    row[0] += 38.0
    assert "<title>yours</title>" in before
    assert ">39<" not in before
    assert ">38<" not in before
    after = ask("notes", source, inputs)["page"]
    assert ">39<" in after or ">38<" in after


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_backward_is_derived_from_forward_alone(name, ask):
    forward = EXAMPLES[name]["source"].partition("def backward")[0]
    source = f"{forward}def backward(dy, cache):\n    return None\n"
    page = ask("derive", source, EXAMPLES[name]["inputs"])["page"]
    assert "the backward derived from the forward</title>" in page
    assert page.count('class="equation boxed"') == sum(
        each["kind"] == "float" for each in EXAMPLES[name]["inputs"]
    )


def test_every_tab_has_its_panel():
    index = (HERE / "page" / "index.html").read_text("utf-8")
    for tab in session.TABS:
        assert f'data-tab="{tab}"' in index
        assert f'<div id="{tab}" role="tabpanel"' in index


def test_an_edit_of_the_same_length_counts(ask):
    source, inputs = EXAMPLES["layer_norm"]["source"], EXAMPLES["layer_norm"]["inputs"]
    assert ask("check", source, inputs)["report"]["verdict"] == "wrong"
    assert ask("check", source.replace("+ mean -", "- mean -"), inputs)["report"]["ok"]


def test_other_parameters_are_asked_for(ask):
    found = ask("check", EXAMPLES["linear"]["source"], EXAMPLES["layer_norm"]["inputs"])
    assert found == {"parameters": ["x", "weight", "bias"], "printed": ""}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def forward(x):", "yours.py, line 1: "),
        ("1 / 0", "yours.py, line 1: ZeroDivisionError"),
        ("x = 3", "has no functions forward and backward"),
    ],
)
def test_an_error_is_a_sentence(source, sentence, ask):
    assert sentence in ask("check", source, [])["error"]


def test_the_session_goes_on_after_sys_exit(ask):
    source = (
        "import sys\ndef forward(x):\n    sys.exit(4)\ndef backward(dy, cache):\n    return dy\n"
    )
    inputs = [{"name": "x", "kind": "float", "values": [1.0, 2.0]}]
    assert ask("notes", source, inputs)["error"] == "SystemExit: 4"


def test_printed_text_comes_back(ask):
    source = f"print('here')\n{EXAMPLES['linear']['source']}"
    assert ask("check", source, EXAMPLES["linear"]["inputs"])["printed"] == "here\n"


def test_ragged_values_are_refused(ask):
    ragged = [{**each, "values": [[1.0], [1.0, 2.0]]} for each in EXAMPLES["linear"]["inputs"]]
    assert "rows of equal length" in ask("notes", EXAMPLES["linear"]["source"], ragged)["error"]


def test_the_folder_is_whole(tmp_path):
    build(tmp_path)
    with ZipFile(tmp_path / "packages.zip") as archive:
        names = archive.namelist()
    assert {"handgrad/checking/entry.py", "handgrad/__init__.pyi", "rich/console.py"} <= {*names}
    assert not [name for name in names if name.endswith((".so", ".cpp", ".pyc"))]
    settings = json.loads((tmp_path / "settings.json").read_text("utf-8"))
    assert settings["pyodide"].startswith("https://")
    first = (tmp_path / "packages.zip").read_bytes()
    build(tmp_path)
    assert first == (tmp_path / "packages.zip").read_bytes()


def test_the_memory_that_is_kept_has_modules_of_python_alone():
    found = compiled.modules()
    assert {"json", "inspect", "collections.abc"} <= {*found}
    assert not {"__main__", "numpy", "handgrad", "docs.playground.page.session"} & {*found}


def test_all_that_is_built_is_kept_for_the_next_visit(tmp_path, monkeypatch):
    def built() -> dict:
        line = (tmp_path / "service.js").read_text("utf-8").splitlines()[0]
        return json.loads(line.removeprefix("const BUILT = ").removesuffix(";"))

    build(tmp_path, "pyodide/")
    first = built()
    names = {path.name for path in tmp_path.iterdir()} - {"service.js"}
    assert set(first["files"]) == names | {"./"}
    build(tmp_path, "pyodide/")
    assert built() == first
    monkeypatch.setattr("handgrad.__version__", "0.0.0")
    build(tmp_path, "pyodide/")
    assert built()["version"] != first["version"]


# -- in Chromium -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of the playground, served with a local Pyodide."""
    pyodide = os.environ.get("HANDGRAD_PYODIDE")
    if pyodide is None:
        pytest.skip("HANDGRAD_PYODIDE names no folder with Pyodide")
    folder = tmp_path_factory.mktemp("playground")
    build(folder, "pyodide/")
    (folder / "pyodide").symlink_to(Path(pyodide).absolute(), target_is_directory=True)
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def page(address):
    """The page once handgrad has answered, and nothing was fetched from elsewhere."""
    with new_page() as opened:
        opened.set_default_timeout(120_000)
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on(
            "request",
            lambda request: (
                request.url.startswith((address, "data:", "about:", "blob:"))
                or faults.append(request.url)
            ),
        )
        opened.goto(address)
        opened.wait_for_selector("#check .verdict")
        yield opened
        assert not faults


def settled(page) -> None:
    """Wait until what was asked is answered; typing counts after a pause."""
    page.wait_for_timeout(500)
    page.wait_for_function("document.body.ariaBusy === 'false'")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["layer_norm", "attention", "embedding", "linear"])
def test_the_page_says_which_term_is_wrong(name, page):
    page.get_by_role("tab", name="Check").click()
    page.get_by_label("Example").select_option(name)
    settled(page)
    text = page.inner_text("#check")
    assert ("Every gradient is right" in text) == (FAULTS[name] is None)
    assert FAULTS[name] is None or FAULTS[name] in text


@pytest.mark.slow
def test_a_repair_is_seen(page):
    page.get_by_role("tab", name="Check").click()
    page.get_by_label("Example").select_option("layer_norm")
    settled(page)
    wrong = "dx = (dx_hat + mean - projection) * inv_std"
    source = page.input_value("#source")
    line = 1 + next(i for i, each in enumerate(source.splitlines()) if wrong in each)
    assert page.inner_text("#gutter .marked") == str(line)
    page.click(f"#check button:has-text('line {line}')")
    chosen = page.evaluate("[source.selectionStart, source.selectionEnd]")
    assert source[slice(*chosen)].strip() == wrong
    page.fill("#source", source.replace("+ mean -", "- mean -"))
    page.wait_for_selector("#check .verdict.right")
    assert page.locator("#gutter .marked").count() == 0


@pytest.mark.slow
def test_a_number_that_changes_changes_the_notes(page):
    page.get_by_label("Example").select_option("linear")
    page.get_by_role("tab", name="Notes").click()
    notes = page.frame_locator("#notes iframe")
    notes.locator("h1").wait_for()
    settled(page)
    assert notes.locator("mn", has_text="47").count() == 0
    page.get_by_label("bias[1]", exact=True).fill("47")
    notes.locator("mn", has_text="47").first.wait_for()


@pytest.mark.slow
def test_inputs_follow_forward(page):
    page.get_by_role("tab", name="Check").click()
    page.fill(
        "#source",
        "def forward(a, b):\n    return a * b, (a, b)\n\n\n"
        "def backward(dy, cache):\n    a, b = cache\n    return dy * b, dy * b\n",
    )
    page.wait_for_selector("#inputs legend:has-text('b')")
    settled(page)
    assert page.locator("#inputs legend").all_inner_texts() == ["a", "b"]
    assert "db: " in page.inner_text("#check .fault")
    page.get_by_label("shape of a").fill("4, 3")
    page.get_by_label("shape of a").press("Enter")
    settled(page)
    assert page.locator("input[type=number][aria-label^='a[']").count() == 12
    assert "a being (4, 3) and b (2, 3)" in page.inner_text("#check")


@pytest.mark.slow
def test_a_link_carries_the_functions(page):
    page.get_by_label("Example").select_option("embedding")
    page.get_by_role("tab", name="Derive").click()
    settled(page)
    page.get_by_role("button", name="Link to this").click()
    source, link = page.input_value("#source"), page.url
    page.get_by_label("Example").select_option("linear")
    page.goto("about:blank")
    page.goto(link)
    page.frame_locator("#derive iframe").locator("h1").wait_for()
    assert page.input_value("#source") == source


@pytest.mark.slow
def test_a_second_visit_needs_no_network(page, address):
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#check .verdict")
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("#check .verdict")
    page.context.set_offline(False)


#: Wait until the page keeps a memory of Python.
KEEPS = """async () => {
  const size = async () => (await (await fetch("memory.bin")).arrayBuffer()).byteLength;
  while (await size() < 1e6) await new Promise((done) => setTimeout(done, 100));
}"""


@pytest.mark.slow
def test_a_visit_begins_with_the_memory_of_another(page, address):
    def seed() -> str:
        """The seed of hashes, which each Python draws when it starts anew."""
        page.reload()
        page.wait_for_selector("#check .verdict")
        return page.inner_text("#printed")

    page.goto("about:blank")
    page.goto(address)
    page.get_by_role("tab", name="Check").click()
    page.fill("#source", page.input_value("#source") + "\nprint(hash('handgrad'))\n")
    page.wait_for_function("printed.textContent.trim()")
    page.get_by_role("button", name="Link to this").click()
    page.evaluate(KEEPS)
    first = seed()
    assert seed() == first
    # Memory that this Pyodide cannot begin with is made anew.
    page.evaluate("fetch('memory.bin', {method: 'PUT', body: 'of another'})")
    assert seed() != first
    page.evaluate(KEEPS)
    assert seed() == seed()


@pytest.mark.slow
def test_an_error_is_said_and_an_endless_backward_stopped(page):
    page.get_by_role("tab", name="Check").click()
    page.fill("#source", "def forward(a, b) return a")
    page.wait_for_selector("#error:has-text('yours.py, line 1')")
    page.fill("#source", "while True:\n    pass\n")
    page.get_by_role("button", name="Stop").click(timeout=20_000)
    page.get_by_label("Example").select_option("linear")
    page.wait_for_selector("#check .verdict.right")


@pytest.mark.slow
def test_a_phone_shows_it_all(page):
    page.get_by_label("Example").select_option("layer_norm")
    settled(page)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
