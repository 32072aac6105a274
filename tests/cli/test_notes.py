from __future__ import annotations

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_notes_stand_in_a_file_of_the_targets_name(handgrad, here):
    result = handgrad("notes", "relu")
    assert (result.exit_code, result.stdout) == (0, "relu.html\n")
    assert (here / "relu.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "file", "begins"),
    [
        (("-o", "mine.md"), "mine.md", "# relu"),
        (("-o", "mine.tex"), "mine.tex", r"\documentclass"),
        (("-o", "mine.txt", "--format", "md"), "mine.txt", "# relu"),
        (("--format", "tex"), "relu.tex", r"\documentclass"),
        (("--format", "slides"), "relu.slides.html", "<!DOCTYPE html>"),
    ],
)
def test_formats(handgrad, here, arguments, file, begins):
    result = handgrad("notes", "relu", *arguments)
    assert result.exit_code == 0, result.output
    assert (here / file).read_text("utf-8").startswith(begins)


def test_a_page_that_is_alive(handgrad, here):
    result = handgrad("notes", "linear", "--numbers", "--alive")
    assert result.exit_code == 0, result.output
    page = (here / "linear.html").read_text("utf-8")
    assert 'id="handgrad-story"' in page
    assert page.count("<script") == 2


def test_stdout(handgrad, here):
    result = handgrad("notes", "relu", "-o", "-", "--format", "md")
    assert result.stdout.startswith("# relu\n")
    assert not list(here.iterdir())


def test_numbers_in_romanian(handgrad, here):
    result = handgrad("notes", "ffn", "--numbers", "--lang", "ro", "--eta", 0.5, "-o", "ffn.md")
    assert result.exit_code == 0, result.output
    text = (here / "ffn.md").read_text("utf-8")
    for words in ("## Înainte", "## Actualizare", r"\frac{1}{2}"):
        assert words in text


def test_functions_of_a_file(handgrad, here):
    (here / "mine.py").write_text(
        "INPUTS = {'x': [1, 2]}\n\n\ndef forward(x):\n    y = x * x\n    return y, (x,)\n\n\n"
        "def backward(dy, cache):\n    (x,) = cache\n    dx = 2 * x * dy\n    return dx\n"
    )
    result = handgrad("notes", "mine.py:forward,backward", "--format", "md")
    assert (result.exit_code, result.stdout) == (0, "mine_forward_backward.md\n")
    assert "y = x^{2}" in (here / "mine_forward_backward.md").read_text("utf-8")


@pytest.mark.parametrize("out", ["-", "mine.md"])
def test_a_wrong_gradient_is_exit_code_1(handgrad, here, out):
    (here / "mine.py").write_text(
        "INPUTS = {'x': [1, 2]}\n\n\ndef forward(x):\n    y = x * x\n    return y, (x,)\n\n\n"
        "def backward(dy, cache):\n    (x,) = cache\n    dx = x * dy\n    return dx\n"
    )
    result = handgrad("notes", "mine.py", "--format", "md", "-o", out)
    assert result.exit_code == 1
    assert result.stderr == "handgrad: notes: mine.py has a wrong gradient\n"
    text = result.stdout if out == "-" else (here / out).read_text("utf-8")
    assert "> **Wrong:** $" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("layer_nrm",), "did you mean layer_norm?"),
        (("relu", "--lang", "fr"), "notes: lang is 'fr'; allowed: en, ro"),
        (
            ("relu", "--format", "docx"),
            "notes: format is 'docx'; allowed: html, tex, md, pdf, slides",
        ),
        (
            ("relu", "--alive", "-o", "relu.md"),
            "--alive is given with the format md",
        ),
        (("digits", "--alive"), "alive is given for a model with"),
        (("relu", "-o", "relu.docx"), "notes: relu.docx has no suffix of a format"),
        (("relu", "-o", "nowhere/relu.html"), "nowhere/relu.html cannot be written"),
        (("mine.py:forward",), "mine.py does not exist"),
    ],
)
def test_mistakes_are_one_sentence(refused, here, arguments, message):
    assert message in refused("notes", *arguments)
    assert not list(here.iterdir())
