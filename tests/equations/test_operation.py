from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest

from handgrad.documents.document import (
    Details,
    Document,
    Equation,
    Figure,
    Heading,
    List,
    Mono,
    Paragraph,
    Table,
    opened,
    spans,
)
from handgrad.documents.formulas.formula import Matrix
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.numbers import matrix
from handgrad.documents.html import page
from handgrad.documents.labels import label
from handgrad.documents.markdown import render as to_markdown
from handgrad.documents.tex import render as to_tex
from handgrad.equations import docstrings
from handgrad.equations.equations import derive
from handgrad.equations.measured import Measured, measure
from handgrad.equations.notes import notes
from handgrad.equations.subject import Subject
from handgrad.equations.written import with_numbers
from handgrad.ops import OPS, attention, lstm, samples
from tests.documents.formulas import contains, parts
from tests.tolerances import assert_close


def said(content) -> str:
    """The words of a text."""
    return "".join(
        span if isinstance(span, str) else getattr(span, "text", "$") for span in spans(content)
    )


def headings(document: Document) -> list[str]:
    return [
        said(b.content) for b in opened(document.blocks) if isinstance(b, Heading) and b.level == 1
    ]


def under(document: Document, anchor: str) -> list:
    """The blocks of one part."""
    blocks = list(opened(document.blocks))
    starts = [i for i, b in enumerate(blocks) if isinstance(b, Heading) and b.level == 1]
    (start,) = (i for i in starts if blocks[i].anchor == anchor)
    end = next((i for i in starts if i > start), len(blocks))
    return blocks[start + 1 : end]


def equations(blocks) -> list[str]:
    return [to_latex(block.formula) for block in blocks if isinstance(block, Equation)]


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("numbers", [False, True])
def test_every_op_has_notes_in_every_format(op, numbers):
    for lang in ("en", "ro"):
        document = notes(op, numbers=numbers, lang=lang).document
        assert "<math" in page(document)
        assert r"\begin{document}" in to_tex(document)
        assert "$$" in to_markdown(document)


def test_the_parts_of_an_op():
    document = notes("layer_norm").document
    assert document.title == "layer_norm"
    assert headings(document) == [
        "Forward",
        "Backward",
        "Kept for the backward pass",
        "At kinks and edges",
        "Checked against finite differences",
        "Symbols",
        "Sources",
    ]
    words = [said(block.content) for block in document.blocks if isinstance(block, Paragraph)]
    assert words[0].startswith("Layer normalisation: every row to mean 0")
    assert said(under(document, "sources")[0].items[0]).startswith("Gulino, ")
    assert any(each.startswith("Shapes: x, y (..., D)") for each in words)
    assert said(under(document, "edges")[0].content) == (
        "A constant row gives β as long as eps > 0."
    )
    assert said(under(document, "cache")[0].content).startswith("The normalised rows and 1/√")


@pytest.mark.parametrize("op", ["layer_norm", "lstm", "attention", "cross_entropy", "softmax"])
def test_a_page_opens_with_a_sentence_and_a_picture(op):
    sentence, picture, *_ = notes(op, measure=None).document.blocks
    assert isinstance(sentence, Paragraph)
    assert isinstance(picture, Figure)
    width = float(re.search(r'width="([\d.]+)"', picture.svg)[1])
    assert width <= 340  # a phone's, less its margins
    xs = [float(x) for x in re.findall(r'(?:\bx=|[MLH])"?([-\d.]+)', picture.svg)]
    assert min(xs) >= 0
    assert max(xs) <= width
    assert {"forward", "backward"} <= set(re.findall(r'<path [^>]*class="(\w+)"', picture.svg))


@pytest.mark.parametrize(("op", "count"), [("conv2d", 3), ("cross_entropy", 1), ("matmul", 2)])
def test_the_gradients_that_an_op_gives_are_boxed(op, count):
    found = notes(op)
    equations = [each for each in found.document.blocks if isinstance(each, Equation)]
    lefts = [to_latex(each.formula).partition("=")[0] for each in equations if each.boxed]
    assert len(set(lefts)) == len(lefts) == count
    assert found.to_html().count('class="equation boxed"') >= count
    assert found.to_latex().count(r"\boxed{") >= count
    assert all(r"\partial" in left for left in lefts)


def test_the_gradients_of_a_sequence_are_boxed():
    """Those of the first states are what the first step gives."""
    blocks = notes("lstm").document.blocks
    assert sum(isinstance(each, Equation) and each.boxed for each in blocks) == 5


def test_guards_are_an_aside():
    blocks = notes("softmax", measure=None).document.blocks
    shown = [to_latex(b.formula) for b in blocks if isinstance(b, Equation)]
    assert shown[1] == r"e = \exp (x - m)"
    assert not any("infty" in each for each in shown)
    (aside,) = (b for b in blocks if isinstance(b, Details) and not b.level)
    assert "infty" in str([to_latex(b.formula) for b in aside.blocks if isinstance(b, Equation)])


def test_symbols_are_explained_where_they_are_first():
    forward = under(notes("layer_norm", measure=None).document, "forward")
    explained = [said(b.content) for b in forward if isinstance(b, Paragraph)]
    assert explained[0] == "Layer normalisation over the last axis."
    assert explained[1].startswith("γ and β are there because")
    assert explained[2] == "Given: $ $, $ $, $ $."
    assert explained[3].startswith("where $ $")


def test_equations_are_numbered_through():
    document = notes("layer_norm").document
    numbers = [block.number for block in document.blocks if isinstance(block, Equation)]
    assert numbers == [str(i + 1) for i in range(12)]


def test_every_symbol_has_its_name_in_the_code_and_its_shape():
    (table,) = (b for b in under(notes("layer_norm").document, "symbols") if isinstance(b, Table))
    rows = {said(row[1]): row for row in table.rows}
    assert {"x", "gamma", "beta", "inv_std", "dx_hat", "mean_dx_hat_x_hat", "dx"} <= set(rows)
    assert to_latex(rows["gamma"][2]) == "(D ,)"
    assert to_latex(rows["eps"][2]) == "= 10^{-5}"


def test_what_is_computed_again_is_not_written_again():
    blocks = under(notes("silu").document, "backward")
    assert said(blocks[0].content) == "$ again, as in (1)."
    assert len(equations(blocks)) == 2


def test_other_settings_show_what_differs():
    blocks = under(notes("gelu").document, "variants")
    titles = [said(block.content) for block in blocks if isinstance(block, Heading)]
    assert titles == ["approximate='tanh'"]
    assert equations(blocks)[0] == r"u = \sqrt{\frac{2}{\pi}} (x + 0.044715 x^{3})"
    assert r"y = x \odot \Phi" not in equations(blocks)


def test_other_settings_of_every_loss():
    blocks = under(notes("cross_entropy").document, "variants")
    titles = [said(block.content) for block in blocks if isinstance(block, Heading)]
    assert {"reduction='sum'", "reduction='none'", "weight", "target.dtype=float64"} <= set(titles)
    assert r"q = w \odot ((1 - s) t + u)" in equations(blocks)


def test_what_is_dropped_has_a_gradient_of_its_own():
    of_kept, of_all = (rf"\frac{{\partial L}}{{\partial {a}}}" for a in (r"a_{\text{kept}}", "a"))
    product = r"\frac{\partial L}{\partial y} v^{\top}"
    usual, other = (under(notes("attention").document, part) for part in ("backward", "variants"))
    assert f"{of_all} = {product}" in equations(usual)
    assert not any(of_kept in each for each in equations(usual))
    assert f"{of_kept} = {product}" in equations(other)
    assert any(each.startswith(f"{of_all} = ") and of_kept in each for each in equations(other))


def test_settings_are_those_of_the_heading():
    blocks = under(notes("attention").document, "variants")
    at = next(
        i
        for i, block in enumerate(blocks)
        if isinstance(block, Heading) and "dropout_p=0.4" in said(block.content)
    )
    items = next(block for block in blocks[at:] if isinstance(block, List)).items
    (rate,) = (each for each in items if Mono("dropout_p") in each)
    assert to_latex(rate[-1]) == "= 0.4"


@pytest.mark.parametrize(
    ("op", "settings"),
    [
        ("avg_pool2d", {"paddings": 0, "kernel": 2, "kernel_h": 2, "stride_w": 2}),
        ("max_pool2d", {"paddings": 0, "kernel": 2}),
        ("avg_pool1d", {"paddings": 0, "kernel": 2}),
        ("conv2d", {"paddings": 0}),
    ],
)
def test_a_setting_is_no_size(op, settings):
    symbols = next(b for b in under(notes(op).document, "symbols") if isinstance(b, Table))
    meanings = {row[1]: row[2] for row in symbols.rows}
    for name, value in settings.items():
        assert to_latex(meanings[Mono(name)]) == f"= {value}"


def test_an_axis_of_a_fixed_size_is_no_sum_of_letters():
    document = notes("max_pool2d").document
    symbols = next(b for b in under(document, "symbols") if isinstance(b, Table))
    (shape,) = (row[2] for row in symbols.rows if row[1] == Mono("won"))
    assert to_latex(shape).endswith("W_{O}, 4)")
    assert not any("N - 2" in each for each in equations(document.blocks))


def test_inference_uses_the_running_statistics():
    blocks = under(notes("batch_norm").document, "variants")
    assert r"\tilde{x} = x - \mu_{\text{run}}" in equations(blocks)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_values_stand_behind_their_equations(op):
    document = notes(op, numbers=True).document
    example = samples.small_example(op)
    given = [block.formula for block in under(document, "given") if isinstance(block, Equation)]
    for name, array in example.arrays.items():
        value = np.asarray(array)
        first = value.reshape(-1, *value.shape[-2:])[0] if value.ndim > 2 else value
        step = value[:, 0] if value.ndim > 2 else value
        shown = (matrix(first), matrix(step))
        assert any(contains(formula, each) for formula in given for each in shown), name


def test_matrices_are_put_in_for_names():
    document = notes("linear", numbers=True).document
    (forward,) = (b.formula for b in under(document, "forward") if isinstance(b, Equation))
    arrays = samples.small_example("linear").arrays
    for array in (arrays["x"], arrays["weight"].T, arrays["bias"]):
        assert contains(forward, matrix(array))
    assert contains(forward, matrix(arrays["x"] @ arrays["weight"].T + arrays["bias"]))


def test_parameters_are_updated():
    document = notes("linear", numbers=True, eta=0.5).document
    lefts = [each.split("&")[0] for each in equations(under(document, "update"))]
    assert lefts == [r"\begin{aligned} W ", r"\begin{aligned} b "]
    assert "Update" not in headings(notes("tanh", numbers=True).document)


def test_what_was_measured_is_shown():
    found = [Measured("x", 3e-9, 4e-8, "central differences")]
    document = notes("tanh", measure=lambda subject: found).document
    (table,) = (block for block in under(document, "check") if isinstance(block, Table))
    ((gradient, error, bound, method, verdict),) = table.rows
    assert to_latex(gradient) == r"\frac{\partial L}{\partial x}"
    assert to_latex(error).startswith("3")
    assert to_latex(bound).startswith("4")
    assert (method, verdict) == ("central differences", "right")
    assert label("en", "finite_differences") not in headings(notes("tanh", measure=None).document)


def test_what_is_measured_has_the_settings_of_the_equations():
    found = []
    notes("gelu", approximate="tanh", measure=lambda subject: found.append(subject) or [])
    assert [each.options["approximate"] for each in found] == ["tanh"]


def test_settings_that_are_not_measured_are_named():
    *_, last = under(notes("gelu").document, "check")
    assert "Mono(text='handgrad check gelu')" in str(last)
    *_, last = under(notes("tanh").document, "check")
    assert isinstance(last, Table)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_every_gradient_is_within_its_bound(op):
    measured: list[Measured] = []

    def remember(subject):
        measured.extend(measure(subject))
        return measured

    notes(op, measure=remember)
    usual, *_ = samples.sample_inputs(op, np.random.default_rng(0))
    expected = set(samples.gradient_names(op)) & set(usual.arrays)
    assert {each.gradient for each in measured} == expected
    for each in measured:
        assert each.verdict == "right", each


def test_own_inputs_and_settings():
    x = [[1.0, 2.0], [3.0, 5.0]]
    document = notes("layer_norm", x, [1.0, 1.0], [0.0, 0.0], eps=0.25, numbers=True).document
    given = [block.formula for block in under(document, "given") if isinstance(block, Equation)]
    assert contains(given[0], matrix(np.array(x)))
    assert to_latex(given[-1]) == r"\varepsilon = \frac{1}{4}"


def of_step(document: Document, start: str) -> list:
    """The formulas that begin so, once their lines are lined up."""
    blocks = [block.formula for block in document.blocks if isinstance(block, Equation)]
    return [each for each in blocks if to_latex(each).startswith(r"\begin{aligned} " + start)]


def test_the_numbers_of_an_lstm_with_padding():
    """All gates are ½, as their weights are 0, and g is tanh x, ½ in every step that counts."""
    x = np.arctanh(0.5)
    pair = SimpleNamespace(
        forward=lstm.forward,
        backward=lstm.backward,
        INPUTS={
            "x": [[[x], [x]], [[x], [np.nan]]],
            "weight_ih": [[0], [0], [1], [0]],
            "weight_hh": [[0], [0], [0], [0]],
            "lengths": [2, 1],
        },
        COTANGENT=(np.zeros((2, 2, 1)), (np.zeros((2, 1)), np.ones((2, 1)))),
    )
    document = notes(pair, numbers=True, measure=None).document
    hidden = [np.tanh(1 / 4) / 2, np.tanh(3 / 8) / 2]
    expected = {
        "c_{1} &": [[1 / 4], [1 / 4]],
        r"c_{\text{new}, 2} &": [[3 / 8], [1 / 8]],
        "c_{2} &": [[3 / 8], [1 / 4]],
        "h_{2} &": [[hidden[1]], [hidden[0]]],
        r"\frac{\partial L}{\partial a_{g, 2}} &": [[3 / 8], [1 / 2]],
        r"\frac{\partial L}{\partial c_{1}} &": [[1 / 2], [1]],
        r"\frac{\partial L}{\partial a_{g, 1}} &": [[3 / 16], [3 / 8]],
        r"\frac{\partial L}{\partial c_{0}} &": [[1 / 4], [1 / 2]],
    }
    for start, value in expected.items():
        (formula,) = of_step(document, start)
        shown = [each.rows for each in parts(formula) if isinstance(each, Matrix)]
        assert [[number_of(cell) for cell in line] for line in shown[-1]] == [
            [pytest.approx(entry, abs=5e-5) for entry in line] for line in value
        ], start
    (formula,) = of_step(document, r"\frac{\partial L}{\partial W_{\text{ih}}} &")
    last = [each.rows for each in parts(formula) if isinstance(each, Matrix)][-1]
    assert number_of(last[2][0]) == pytest.approx(15 / 16 * x, abs=5e-5)


def number_of(cell) -> float:
    """The number in a cell of a matrix."""
    words = to_latex(cell).replace(" ", "")
    if found := re.fullmatch(r"(-?)\\frac\{(\d+)\}\{(\d+)\}", words):
        return float(f"{found[1]}1") * int(found[2]) / int(found[3])
    return float(re.sub(r"\\phantom\{.*\}", "", words))


def test_the_numbers_of_causal_attention():
    """All scores are 0, so every query takes the mean of the values up to its own."""
    q, k, v = [[[0], [0], [0]]], [[[1], [2], [3]]], [[[6], [12], [0]]]
    subject = Subject(
        "attention",
        inspect.unwrap(attention.forward),
        inspect.unwrap(attention.backward),
        {name: np.asarray([each], dtype=float) for name, each in (("q", q), ("k", k), ("v", v))},
        {"causal": True, "scale": 1.0},
        np.asarray([[[[1.0], [2.0], [3.0]]]]),
        ("q", "k", "v"),
    )
    derivation = derive(subject)
    assert to_latex(derivation.forward[0].left) == "s_{t, i}"
    assert r"c q_{t} k_{i}^{\top} & \text{if } i \leq t" in to_latex(derivation.forward[0].right)
    expected = {
        "s": [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]],
        "a": [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]],
        "y": [[6], [9], [6]],
        "da_kept": [[6, 12, 0], [12, 24, 0], [18, 36, 0]],  # without dropout, ∂L/∂a
        "ds": [[0, 0, 0], [-3, 3, 0], [0, 6, -6]],
        "dq": [[0], [3], [-6]],
        "dk": [[0], [0], [0]],
        "dv": [[3], [2], [1]],
    }
    found = {each.name: each for each in (*derivation.forward, *derivation.backward)}
    for name, value in expected.items():
        assert_close(found[name].value[0, 0], np.asarray(value, dtype=float), "float64", name)
        assert contains(with_numbers(found[name]), matrix(found[name].value[0, 0]))


def test_a_loss_of_own_inputs_is_the_last_node():
    document = notes("squared_error", [1.0, 2.0], [0.0, 4.0], reduction="sum").document
    last = equations(under(document, "forward"))[-1]
    assert last == r"L = \sum_{n = 1}^{N} \Delta_{n}^{2}"
    (paragraph, *_) = under(document, "backward")
    assert said(paragraph.content) == label("en", "last_node")


@pytest.mark.slow
def test_gradients_of_sequences_arrive_for_every_step_and_for_the_last_state():
    (paragraph, *_) = under(notes("lstm", measure=None).document, "backward")
    assert said(paragraph.content) == "From the next node come $."
    symbols = next(each for each in paragraph.content if not isinstance(each, str))
    gradients = [rf"\frac{{\partial L}}{{\partial {of}}}" for of in ("y_{t}", "h_{T}", "c_{T}")]
    assert to_latex(symbols) == ", ".join(gradients)


def test_romanian_words():
    document = notes("tanh", lang="ro").document
    assert "Înainte" in headings(document)
    assert "Înapoi" in headings(document)
    assert Paragraph(("Tangenta hiperbolică.",)) in under(document, "forward")


def test_the_parts_of_a_docstring():
    found = docstrings.parse(
        """One sentence.

        Forward:  y = x
        Backward: dx = dy

        An edge with `code` in it.

        Shapes: x any, and
        y too.
        Raises ShapeError where it must.
        Source: somewhere.
        """
    )
    assert found.summary == "One sentence."
    assert found.conventions == ("An edge with `code` in it.",)
    assert found.shapes == "x any, and y too."
    assert found.source == "somewhere."
    assert docstrings.prose(found.conventions[0]) == ("An edge with ", Mono("code"), " in it.")
    assert docstrings.parse("") == docstrings.DocString()
