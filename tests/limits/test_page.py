"""A model's limit on paper: every vector of its program has a line."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.limit_networks import CASES, IMAGES, SEQUENCES, convolution, recurrent
from handgrad import limits, recipes
from handgrad.cli.app import app
from handgrad.documents.formulas.latex import to_latex
from handgrad.errors import HandgradError
from handgrad.limits.equations import Equations
from handgrad.limits.figures import NamedCurve, lines, shades
from handgrad.limits.page import limit_notes
from tests.rows import rows


def latex(model, x, **settings) -> list[str]:
    program = limits.program(model, x, **settings)
    return [to_latex(line.definition) for line in Equations(program.variables).lines()]


@rows("name", CASES)
def test_every_line_is_printed(name: str) -> None:
    """No two lines have one name, and every parameter that is drawn has a number."""
    case = CASES[name]
    program = limits.program(case.make(2)(8, 1), case.x, lengths=case.lengths)
    equations = Equations(program.variables)
    found = equations.lines()
    assert found
    names = [to_latex(line.definition).partition(" = ")[0] for line in found]
    assert len(set(names)) == len(names)
    assert {line.kind for line in found} <= {"G", "H"}
    printed = {*equations.weights, *equations.biases}
    assert {each.partition("[")[0] for each in printed} <= set(program.drawn)


def test_a_recurrent_network_as_the_paper_writes_it() -> None:
    found = latex(recurrent("rnn", 1)(8, 1), SEQUENCES)
    assert found[0] == (
        r"g_{t}^{(1)} = W^{(1)} x_{t} + W^{(2)} h_{t - 1}^{(1)} + b^{(1)} + b^{(2)}"
    )
    assert found[1] == r"h_{t}^{(1)} = \tanh (g_{t}^{(1)})"


def test_a_convolution_is_a_sum_over_offsets_and_flattening_one_over_positions() -> None:
    found = latex(convolution(1, "flatten")(8, 1), IMAGES)
    assert found[0] == r"g_{p}^{(1)} = \sum_{o} W_{o}^{(1)} x_{p + o} + b^{(1)}"
    assert found[-1] == r"g^{(2)} = \sum_{p} W_{p}^{(2)} h_{p}^{(1)} + b^{(2)}"


def test_pictures_have_words_and_survive_what_has_no_size() -> None:
    drawn = shades(np.zeros((0, 0)), "", "Nothing.")
    assert 'aria-label="Nothing."' in drawn.svg
    many = shades(np.eye(200), "", "Many.")
    assert many.svg.count("<rect") < 48**2 + 1
    line = lines([NamedCurve("a", [1, 2], [0.0, np.nan])], "", "A.", x_label="x", y_label="y")
    assert "<svg" in line.svg
    assert "tikzpicture" in line.tikz


@pytest.mark.slow
def test_the_page_of_a_recipe(tmp_path) -> None:
    out = tmp_path / "digits.html"
    arguments = ["limit", "digits", "--networks", "2", "--widths", "8,16", "-o", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--examples", "6"])
    assert result.exit_code == 0, result.output
    page = out.read_text("utf-8")
    assert "Measured slope" in page
    assert page.count("<svg") == 4


@pytest.mark.slow
@pytest.mark.parametrize("format", ["tex", "md", "pdf"])
def test_every_format(format: str) -> None:
    if format == "pdf":
        pytest.importorskip("typst")
    layers = "[{type = 'flatten'}, {type = 'dense', features = 10}]"
    recipe = recipes.read("digits", [f"model.layers={layers}"])
    notes = limit_notes(recipe, examples=4, widths=(4, 8), networks=1)
    assert notes.rendered(format)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["limit", "text"], "allowed"),
        (["limit", "digits", "--widths", "8,x"], "--widths is '8,x'"),
        (["limit", "digits", "-o", "page.doc"], "page.doc"),
        (["limit", "nothing"], "nothing is no recipe"),
        (["limit", "digits", "--examples", "1"], "examples is 1"),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_convergence_needs_several_widths() -> None:
    case = CASES["relu"]
    with pytest.raises(HandgradError, match="1 widths"):
        limits.convergence(lambda width: case.make(1)(width, width), case.x, widths=(8,))
