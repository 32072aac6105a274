from __future__ import annotations

import stat
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import handgrad as hg
from handgrad.documents.document import (
    Alert,
    Emphasis,
    Equation,
    Figure,
    Heading,
    List,
    Mono,
    Paragraph,
    Strong,
    Table,
    opened,
    spans,
)
from handgrad.documents.formulas.formula import Symbol, gradient_of
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.labels import label
from handgrad.equations import docstrings
from handgrad.equations.measured import measure
from handgrad.equations.models.examples import MODELS, named_model
from handgrad.equations.notes import FORMATS, Notes, notes
from handgrad.equations.topics import pair_topic
from handgrad.errors import ArgumentError, HandgradError
from tests.equations.models import Doubled, Scaled


def square(x):
    y = x * x
    return y, (x,)


def square_backward(dy, cache):
    (x,) = cache
    dx = 2 * x * dy
    return dx


def doubled_backward(dy, cache):
    (x,) = cache
    dx = 4 * x * dy
    return dx


def relu(x):
    y = np.maximum(x, 0)
    return y, (x,)


def relu_backward(dy, cache):
    (x,) = cache
    dx = dy * (x > 0)
    return dx


def reversed_relu_backward(dy, cache):
    (x,) = cache
    dx = dy * (x < 0)
    return dx


X = np.array([[1.0, -2.0], [3.0, 0.5]])
RNG = np.random.default_rng(0)
KINKS = np.array([[0.0, -2.0], [3.0, 0.0]])

#: A user's module, with shapes for one pair and inputs for the other.
MODULE = '''
from __future__ import annotations

from typing import NamedTuple

import numpy as np

INPUTS = {"x": [1, 2, 3], "w": [2, 0, 1]}
COTANGENT = [1, -1, 2]


class Cache(NamedTuple):
    """Both factors."""

    x: object
    w: object


def forward(x, w):
    """A product."""
    y = x * w
    return y, Cache(x, w)


def backward(dy, cache):
    x, w = cache
    dx = dy * w
    dw = dy * x
    return dx, dw


def other(x: Float[Array, "N D"]):
    y = np.tanh(x)
    return y, y


def other_backward(dy, y):
    dx = dy * (1 - y**2)
    return dx
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module of the user's, in the current directory."""
    (tmp_path / "mine_for_notes.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield "mine_for_notes"
    sys.modules.pop("mine_for_notes", None)
    sys.path[:] = [each for each in sys.path if each != str(tmp_path)]


def lines(found: Notes) -> list[str]:
    return [to_latex(b.formula) for b in found.document.blocks if isinstance(b, Equation)]


SQUARE = [
    r"y = x^{2}",
    r"\frac{\partial L}{\partial x} = 2 x \odot \frac{\partial L}{\partial y}",
]


@pytest.mark.parametrize(
    "target",
    [
        (square, square_backward),
        SimpleNamespace(forward=square, backward=square_backward),
        type("Square", (), {"forward": square, "backward": square_backward}),
    ],
)
def test_a_pair_of_functions(target):
    assert lines(notes(target, X)) == SQUARE


@pytest.mark.parametrize("target", ["layer_norm", hg.ops.layer_norm])
def test_an_op_by_name_or_module(target):
    assert notes(target).document.title == "layer_norm"


@pytest.mark.parametrize(
    ("model", "lang", "heading"),
    [
        (hg.MLP([3, 2], rng=RNG), "en", "Sources"),
        (hg.MLP([3, 2], rng=RNG), "ro", "Surse"),
    ],
)
def test_a_model_names_its_source(model, lang, heading):
    *_, above, found = notes(model, lang=lang).document.blocks
    assert isinstance(above, Heading)
    assert above.content == heading
    assert isinstance(found, List)
    names, title, *_ = spans(found.items[0])
    assert names == "Yamanishi, "
    assert title == Emphasis("DNN, CNN, RNN, LSTM, Attn, and Transformer")


@pytest.mark.parametrize(
    ("recipe", "title"), [("text", "GPT"), ("digits", "CNN on 8×8 handwritten digits")]
)
def test_the_page_of_a_recipe_has_its_models_name(recipe, title):
    assert notes(recipe).document.title == title


def test_a_model_without_a_source_names_none():
    first, *_ = notes(hg.Sequential(hg.Dense(2, 2, rng=RNG))).document.blocks
    assert isinstance(first, Figure)


@pytest.mark.parametrize(("lang", "word"), [("en", "Wrong:"), ("ro", "Greșit:")])
def test_a_wrong_gradient_is_said_first(lang, word):
    found = notes((square, doubled_backward), X, lang=lang)
    assert not found.ok
    first, *_ = found.document.blocks
    assert isinstance(first, Alert)
    assert first.content[:3] == (Strong(word), " ", gradient_of(Symbol("x")))
    assert f'<p class="alert" role="alert"><strong>{word}</strong> <math' in found.to_html()
    assert rf"{{\color[HTML]{{A3301C}}\textbf{{{word}}}" in found.to_latex()
    assert f"> [!CAUTION]\n> **{word}** $" in found.to_markdown()
    blocks = found.document.blocks
    at = next(i for i, each in enumerate(blocks) if getattr(each, "anchor", "") == "check")
    assert label(lang, "wrong") in str(blocks[at + 2])


class Half(hg.layers.Layer):
    """y = x/2, whose backward forgets the half, or not."""

    def __init__(self, factor):
        self.factor = factor

    def forward(self, x, *, training=False):
        return 0.5 * x, None

    def output_shape(self, shape):
        return shape

    def backward(self, dy, cache, *, gradients=None, input_gradient=True):
        return self.factor * dy, gradients or {}


@pytest.mark.parametrize(("factor", "wrong"), [(0.5, []), (1.0, ["x", "0.weight", "0.bias"])])
def test_a_wrong_layer_of_ones_own_is_said_first(factor, wrong):
    model = hg.Sequential(hg.Dense(3, 2, rng=RNG), Half(factor), hg.Dense(2, 1, rng=RNG))
    found = notes(model)
    assert found.ok == (not wrong)
    alerts = [block for block in found.document.blocks if isinstance(block, Alert)]
    named = [span.text for each in alerts for span in each.content if isinstance(span, Mono)]
    assert named == wrong
    *_, table = (each for each in opened(found.document.blocks) if isinstance(each, Table))
    assert [row[-1] for row in table.rows].count("right") == len(table.rows) - len(wrong)
    assert notes(model, measure=None).ok


def test_a_right_gradient_is_no_alert():
    found = notes((square, square_backward), X)
    assert found.ok
    assert not any(isinstance(block, Alert) for block in found.document.blocks)


@pytest.mark.parametrize(
    ("backward", "verdict"), [(relu_backward, "right"), (reversed_relu_backward, "wrong")]
)
def test_a_kink_is_judged_beside_it(backward, verdict):
    found = notes((relu, backward), KINKS)
    assert found.ok == (verdict == "right")
    assert "central differences, beside a kink" in found.to_markdown()


def absolute(x):
    y = np.abs(x) * 0
    return y / y, (x,)


def test_what_is_not_finite_decides_nothing():
    with np.errstate(all="ignore"):
        (found,) = measure(pair_topic((absolute, square_backward), "absolute", (X,), {}).subject)
    assert (found.method, found.verdict) == ("not finite", "undecided")


def test_a_module_with_inputs_beside(module):
    found = notes(module, numbers=True)
    assert lines(found)[:2] == [
        r"x = \left[ \begin{array}{rrr} 1 & 2 & 3 \end{array} \right]",
        r"w = \left[ \begin{array}{rrr} 2 & 0 & 1 \end{array} \right]",
    ]
    assert "Both factors." in found.to_markdown()


def test_an_object_of_a_module(module):
    found = notes(f"{module}:other,other_backward")
    assert lines(found)[0] == r"Y = \tanh X"


def test_every_format(tmp_path):
    found = notes("relu")
    assert found.to_html().startswith("<!DOCTYPE html>")
    assert found.to_latex().startswith(r"\documentclass")
    assert found.to_markdown().startswith("# relu")
    for suffix in ("html", "tex", "md"):
        file = found.save(tmp_path / f"relu.{suffix}")
        assert file.read_bytes() == found.rendered(suffix)
    slides = found.save(tmp_path / "relu.slides.html", "slides").read_text("utf-8")
    assert slides.count("<section>") > 2
    assert found.save(tmp_path / "relu.txt", "md").read_text("utf-8").startswith("# relu")


def test_pdf():
    pytest.importorskip("typst")
    found = notes("layer_norm", numbers=True)
    assert found.to_pdf().startswith(b"%PDF")
    assert found.rendered("slides", ".pdf").startswith(b"%PDF")


def test_what_a_notebook_shows():
    found = notes("tanh")
    assert "<math" in found._repr_html_()
    assert "<html" not in found._repr_html_()
    assert found._repr_latex_().startswith(r"$$ y = \tanh x $$")
    assert found._repr_markdown_() == found.to_markdown()
    assert repr(found) == "Notes('tanh')"


def test_a_saved_file_is_whole_and_readable(tmp_path):
    file = tmp_path / "relu.md"
    file.write_text("before")
    notes("relu").save(file)
    assert file.read_text("utf-8").startswith("# relu")
    assert stat.S_IMODE(file.stat().st_mode) & stat.S_IRUSR
    assert [each.name for each in tmp_path.iterdir()] == ["relu.md"]


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(ArgumentError, match=r"cannot be written \(No such file"):
        notes("relu").save(tmp_path / "nowhere" / "relu.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ArgumentError, match=r"folder.html cannot be written"):
        notes("relu").save(tmp_path / "folder.html")
    assert [each.name for each in tmp_path.iterdir()] == ["folder.html"]


no_source = eval("lambda x: (x * x, x)")


def wrong_shape(dy, cache):
    return dy[0]


@pytest.mark.parametrize(
    ("target", "inputs", "settings", "message"),
    [
        ("relu", (), {"lang": "fr"}, "notes: lang is 'fr'; allowed: en, ro"),
        ("relu", (), {"eta": float("nan")}, "notes: eta is nan; allowed: a number"),
        ("relu", (1, 2), {}, "notes: 2 inputs are given for relu; allowed: 1, x"),
        ("relu", (["a"],), {}, "notes: x is of <U1; allowed: an array of numbers"),
        ("ffnn", (), {}, "did you mean ffn?"),
        ("layer_nrm", (), {}, "did you mean layer_norm?"),
        ("no_such_module:pair", (), {}, "notes: 'no_such_module' is no"),
        (42, (), {}, "notes: int has no functions forward and backward; allowed: an op"),
        ((square, 3), (X,), {}, "has no functions forward and backward"),
        ((square, square_backward), (), {}, "notes: no inputs are given for square_backward"),
        ((square, square_backward), (X, X), {}, "2 inputs are given for square_backward"),
        ((square, square_backward), (X,), {"p": 1}, "notes: square fails on these inputs: TypeErr"),
        ((no_source, square_backward), (X,), {}, "the source of <lambda> cannot be read"),
        ((square, wrong_shape), (X,), {}, r"the gradient of x has shape (2,); allowed: (2, 2)"),
    ],
)
def test_what_cannot_be_printed_is_one_sentence(target, inputs, settings, message):
    with pytest.raises(HandgradError) as raised:
        notes(target, *inputs, **settings)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("format", ["docx", "HTML", ""])
def test_an_unknown_format(format, tmp_path):
    with pytest.raises(ArgumentError, match=f"allowed: {', '.join(FORMATS)}"):
        notes("relu").save(tmp_path / "relu.html", format)
    assert not list(tmp_path.iterdir())


def test_a_suffix_that_is_no_format(tmp_path):
    with pytest.raises(ArgumentError, match=r"relu.docx has no suffix of a format; allowed: .html"):
        notes("relu").save(tmp_path / "relu.docx")


@pytest.mark.parametrize("name", ["cnn", "encoder", "mlp"])
def test_a_model_by_its_name_alone(name):
    page = notes(name).document
    assert page.title == type(named_model(name, small=False).model).__name__
    _, first, *_ = page.blocks
    assert isinstance(first, Figure)


@pytest.mark.parametrize("name", MODELS)
def test_a_small_model_by_its_name_is_alive(name):
    document = notes(name, alive=True, measure=None).document
    assert document.story is not None
    steps = document.story.steps
    assert {each.phase for each in steps} == {"forward", "backward"}
    assert sum(each.phase == "backward" for each in steps) > 5
    assert any(isinstance(each, Equation) for each in document.blocks)


@pytest.mark.parametrize("name", MODELS)
def test_the_page_of_a_model_begins_with_a_sentence_on_it(name):
    first = notes(name).document.blocks[0]
    assert isinstance(first, Paragraph)
    words = "".join(each for each in first.content if isinstance(each, str))
    sentence = words.partition(". ")[0]
    assert sentence[0].isupper()
    assert " = " not in sentence
    assert "(" in words  # the year of its source


def test_the_sentence_on_a_users_model_is_its_classs_own():
    found = docstrings.introduction(Doubled)
    assert found.startswith("A user's layer that is its op twice over, and says")
    assert docstrings.introduction(Scaled) == "A user's layer without an op"
