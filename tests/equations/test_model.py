from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from handgrad import losses, optimizers, recipes
from handgrad.documents import html, markdown, tex
from handgrad.documents.document import (
    Document,
    Equation,
    Figure,
    Heading,
    Link,
    Paragraph,
    Table,
    opened,
)
from handgrad.documents.formulas.formula import FormulaRow, Script, gradient_of
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.formulas.numbers import matrix
from handgrad.documents.labels import label
from handgrad.equations.models.flow import flow_of
from handgrad.equations.models.model import model_document, recipe_document
from handgrad.equations.models.names import parameters_of
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers import BatchNorm, Conv2d, Dense, Sequential
from handgrad.models import Seq2Seq
from tests.documents.formulas import contains, parts
from tests.equations.models import F64, MODELS, mlp, of_data, residual


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def document(model, rng, **options):
    return model_document(
        model.make(rng), title=model.name, input_shape=model.input_shape, loss=model.loss, **options
    )


def equations(found: Document, start: str, end: str = ""):
    """The formulas from one anchor to another."""
    inside, formulas = False, []
    for block in found.blocks:
        if isinstance(block, Heading) and block.anchor:
            inside = block.anchor == start or (inside and block.anchor != end)
        elif inside and isinstance(block, Equation):
            formulas.append(block.formula)
    return formulas


def mentions(formula, symbol) -> bool:
    """Whether a numbered symbol stands in the formula, also transposed or with an index."""
    return any(
        isinstance(part, Script)
        and part.base == symbol.base
        and (
            part.sub == symbol.sub
            or (isinstance(part.sub, FormulaRow) and part.sub.parts[0] == symbol.sub)
        )
        for part in parts(formula)
    )


def spoken(found: Document) -> str:
    return markdown.render(found)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_parameter_is_used_has_a_gradient_and_is_updated(model, rng):
    found = document(model, rng)
    forward = equations(found, "forward", "backward")
    backward = equations(found, "backward", "update")
    update = [block for block in found.blocks if isinstance(block, Paragraph)][-1]
    for node in flow_of(model.make(rng), model.input_shape).nodes:
        for symbol in parameters_of(node).values():
            assert any(mentions(each, symbol) for each in forward)
            gradient = gradient_of(symbol)
            assert any(
                isinstance(each, FormulaRow) and each.parts[0] == gradient for each in backward
            )
            assert symbol in update.content


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_value_and_its_gradient_have_an_equation(model, rng):
    found = document(model, rng)
    forward = equations(found, "forward", "backward")
    backward = equations(found, "backward", "update")
    flow = flow_of(model.make(rng), model.input_shape)
    for number in range(1, flow.output + 1):
        left = f"h_{{{number}}} = "
        assert any(to_latex(each).startswith(left) for each in forward)
        gradient = rf"\frac{{\partial L}}{{\partial h_{{{number}}}}}"
        has = any(to_latex(each).startswith(gradient) for each in backward)
        assert has == (number in flow.needed)


@pytest.mark.parametrize("lang", ["en", "ro"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_notes_are_written_in_every_format(model, lang, rng):
    found = document(model, rng, lang=lang)
    assert found.lang == lang
    assert "None" not in spoken(found)
    assert html.page(found).startswith("<!DOCTYPE html>")
    assert tex.render(found).rstrip().endswith(r"\end{document}")
    anchors = [block.anchor for block in found.blocks if isinstance(block, Heading)]
    assert len(anchors) == len(set(anchors))


def test_the_table_has_a_row_for_every_node_and_links_to_its_equations(rng):
    found = model_document(residual(rng), title="residual")
    (table,) = (block for block in opened(found.blocks) if isinstance(block, Table))
    anchors = {block.anchor for block in found.blocks if isinstance(block, Heading)}
    links = [row[0] for row in table.rows[:-1]]
    assert [each.text for each in links] == ["1", "2", "3", "4", "5"]
    assert all(isinstance(each, Link) and each.target[1:] in anchors for each in links)
    assert table.rows[-1][3].text == "61"


def test_equations_are_numbered_through(rng):
    found = model_document(residual(rng), title="residual", loss=losses.CrossEntropy())
    numbers = [block.number for block in found.blocks if isinstance(block, Equation)]
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


def test_the_numbers_of_the_transformer_notes_come_out():
    """A position-wise feed-forward network as a model: notes 001, section 4."""
    x = np.array([[1, 0, 2, 1], [0, 1, 1, 0]], dtype=F64)
    w1 = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]], dtype=F64)
    w2 = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=F64)
    target = np.array([[1, 0, 0, 1], [0, 0, 1, 1]], dtype=F64)
    rng = np.random.default_rng(0)
    model = Sequential(
        Dense(4, 3, rng=rng, activation="relu", dtype=F64), Dense(3, 4, rng=rng, dtype=F64)
    )
    model.update_parameters(
        {
            "0.weight": w1.T,
            "0.bias": np.array([0.0, 1.0, 0.0]),
            "1.weight": w2.T,
            "1.bias": np.array([0.0, 0.0, 1.0, 0.0]),
        }
    )
    loss = losses.SquaredError(reduction="half_sum")
    found = model_document(model, x, title="ffn", numbers=True, loss=loss, target=target)
    shown = [block.formula for block in found.blocks if isinstance(block, Equation)]
    for values in (
        [[3, 1, 1], [1, 1, 1]],  # X W₁ ...
        [[3, 2, 1], [1, 2, 1]],  # V
        [[4, 2, 5, 2], [2, 2, 3, 2]],  # Y
        [[3, 2, 5, 1], [2, 2, 2, 1]],  # ∂L/∂Y
        [[8, 3, 8], [4, 3, 4]],  # ∂L/∂V
        np.array([[11, 8, 17, 4], [10, 8, 14, 4], [5, 4, 7, 2]]).T,  # ∂L/∂W₂, (out, in)
        [5, 4, 7, 2],  # ∂L/∂b₂
    )[1:]:
        assert any(contains(each, matrix(np.array(values))) for each in shown)
    assert any(to_latex(each).endswith("= 26 \\end{aligned}") for each in shown)


@pytest.mark.parametrize(
    "model", [each for each in MODELS if each.input_shape == (4,)], ids=lambda model: model.name
)
def test_numbers_are_those_of_the_run(model, rng):
    """Every printed value of a forward equation is the value that the model computes."""
    layer = model.make(rng)
    x = np.random.default_rng(2).integers(-2, 4, (2, *model.input_shape)).astype(F64)
    y, _ = copy.deepcopy(layer).forward(x, training=True)
    found = model_document(layer, x, title="numbers", numbers=True, loss=model.loss)
    shown = equations(found, "forward", "backward")
    last = flow_of(layer, model.input_shape).output
    assert any(contains(each, matrix(x)) for each in equations(found, "given", "forward"))
    (output,) = (each for each in shown if f"h_{{{last}}} & =" in to_latex(each)[:40])
    assert contains(output, matrix(y))


def test_numbers_of_a_large_model_are_refused_in_a_sentence(rng):
    layer = Sequential(Dense(100, 3, rng=rng))
    found = model_document(layer, title="large", numbers=True)
    assert "`0.weight (3, 100) > 64`" in spoken(found)
    assert not equations(found, "given", "forward")
    deep = Sequential(*[Dense(2, 2, rng=rng) for _ in range(20)])
    assert "20 layers > 12" in spoken(model_document(deep, title="deep", numbers=True))


def test_the_model_is_not_changed_and_notes_repeat(rng):
    layer = of_data(rng)
    before = copy.deepcopy(layer)
    state = rng.bit_generator.state
    options = {"title": "same", "input_shape": (2, 3), "loss": losses.CrossEntropy()}
    first, second = (model_document(layer, **options) for _ in range(2))
    assert first == second
    assert rng.bit_generator.state == state
    for name, array in before.parameters.items():
        np.testing.assert_array_equal(layer.parameters[name], array)


def test_running_statistics_are_those_before_the_run(rng):
    layer = BatchNorm(2, dtype=F64)
    model_document(layer, title="norm", input_shape=(2, 3))
    np.testing.assert_array_equal(layer.running_mean, np.zeros(2))


def test_running_statistics_stand_on_the_board(rng):
    layer = BatchNorm(2, dtype=F64)
    layer.running_mean[...] = 5.0, 7.0
    found = model_document(layer, np.ones((3, 2)), title="norm", numbers=True)
    assert any(contains(each, matrix([5.0, 7.0])) for each in equations(found, "given", "forward"))


def test_what_backward_computes_again_is_said(rng):
    layer = Conv2d(1, 1, 2, rng=rng, dtype=F64)
    found = model_document(layer, title="conv", input_shape=(1, 3, 3))
    again = [each.content for each in found.blocks if isinstance(each, Paragraph)]
    (said,) = (each for each in again if isinstance(each, tuple) and " again, as in " in each)
    assert isinstance(said[2], Link)
    assert said[2].target in {
        f"#eq-{each.number}" for each in found.blocks if isinstance(each, Equation)
    }


def test_the_optimizer_says_how_parameters_are_updated(rng):
    found = model_document(mlp(rng), title="adam", optimizer=optimizers.Adam(0.01))
    headings = [block.content for block in found.blocks if isinstance(block, Heading)]
    assert headings[-2:] == ["Update: Adam", "Sources"]
    plain = model_document(mlp(rng), title="plain", optimizer=optimizers.SGD(0.3))
    (rule,) = equations(plain, "update")
    assert to_latex(rule) == (r"\theta \leftarrow \theta - \eta \frac{\partial L}{\partial \theta}")
    assert "\\eta = 0.3" in spoken(plain)


def test_numbers_end_with_the_parameters_after_a_step(rng):
    model, x = mlp(rng), np.array([[1.0, 2, 3, 4], [0, 1, 0, 1]])
    loss, target = losses.SquaredError(), np.ones((2, 2))
    for optimizer in (optimizers.SGD(0.1), optimizers.AdamW(0.1)):
        found = model_document(
            model, x, title="step", numbers=True, loss=loss, target=target, optimizer=optimizer
        )
        twin = copy.deepcopy(model)
        y, cache = twin.forward(x, training=True)
        _, gradients = twin.backward(loss.backward(loss.forward(y, target)[1]), cache)
        optimizer.step(twin.parameters, gradients)
        shown = equations(found, "update")
        for parameter in twin.parameters.values():
            assert any(contains(each, matrix(parameter)) for each in shown)


def test_whole_numbers_and_lists_are_a_batch(rng):
    found = model_document(mlp(rng), [[1, 2, 3, 4], [0, 1, 0, 1]], title="list", numbers=True)
    assert contains(equations(found, "given", "forward")[0], matrix([[1, 2, 3, 4], [0, 1, 0, 1]]))


def test_mistakes_are_named(rng):
    with pytest.raises(ArgumentError, match="shape of one example is not known"):
        model_document(Conv2d(2, 3, 3, rng=rng), title="conv")
    with pytest.raises(ShapeError, match=r"allowed: \(\.\.\., 4\)"):
        model_document(mlp(rng), np.zeros((2, 3)), title="mlp")
    for x in ([[1, 2], [3]], "text", 3.0, np.zeros((0, 4))):
        with pytest.raises(ArgumentError, match=r"notes: x is .*; allowed: "):
            model_document(mlp(rng), x, title="mlp")
    with pytest.raises(ArgumentError, match="lang 'de' is not known"):
        model_document(mlp(rng), title="mlp", lang="de")


def test_a_recipe_brings_its_loss_and_optimizer(tmp_path: Path):
    recipe = recipes.read("digits")
    recipe = recipes.completed(recipe, recipes.load_task(recipe))
    found = recipe_document(recipe, recipes.build_model(recipe), title="digits")
    assert found.blocks[0] == Paragraph("CNN on 8×8 handwritten digits, carried in the package.")
    headings = [block.content for block in found.blocks if isinstance(block, Heading)]
    assert headings.count("CrossEntropy") == 2
    assert headings[-2:] == ["Update: AdamW", "Sources"]
    assert sum(isinstance(block, Figure) for block in found.blocks) == 2
    assert r"h_{1} = \operatorname{relu} (a_{1})" in spoken(found)


#: What the data of recipes that need a download tell.
TOLD = {
    "cifar-cnn": {"shape": [3, 32, 32], "classes": list("0123456789")},
    "fashion-cnn": {"shape": [1, 28, 28], "classes": list("0123456789")},
    "mnist-cnn": {"shape": [1, 28, 28], "classes": list("0123456789")},
    "mnist-mlp": {"shape": [1, 28, 28], "classes": list("0123456789")},
    "mnist-mlp-adam": {"shape": [1, 28, 28], "classes": list("0123456789")},
    "mnist-rows-lstm": {"shape": [28, 28], "classes": list("0123456789")},
    "mnist-rows-lstm-sgd": {"shape": [28, 28], "classes": list("0123456789")},
    "pictures": {"shape": [3, 48, 48], "classes": ["cat", "dog"], "mean": [0.0], "std": [1.0]},
    "table": {"shape": [6], "classes": [], "mean": [0.0], "std": [1.0]},
    "dates": {"vocabularies": [40, 16]},
    "pronounce": {"vocabularies": [30, 42]},
    "translate": {"vocabularies": [50, 50]},
    "vowels": {"shape": [9, 12], "classes": list("012345678"), "mean": [0.0], "std": [1.0]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in recipes.names() if name != "finetune-text"])
def test_every_recipe_is_written_whole(name):
    """All but the one whose model is in a folder of the user's."""
    recipe = recipes.read(name)
    if name in TOLD:
        recipe = recipe.changed("data", **TOLD[name])
    else:
        recipe = recipes.completed(recipe, recipes.load_task(recipe))
    found = recipe_document(recipe, recipes.build_model(recipe), title=name)
    assert Paragraph(label("en", "model_opaque")) not in found.blocks
    assert equations(found, "forward", "backward")
    assert equations(found, "backward", "update")


def test_inputs_of_several_kinds_go_by_their_names(rng):
    model = Seq2Seq(7, 5, embedding=2, hidden=1, rng=rng, dtype=F64)
    sources, inputs = np.array([[1, 2, 3], [4, 5, 0]]), np.array([[1, 2], [3, 0]])
    given = sources, np.array([3, 2]), inputs, np.array([2, 1])
    found = model_document(model, given, title="pairs", numbers=True)
    (first, *_) = equations(found, "given", "forward")
    assert to_latex(first).startswith(r"x_{\text{src}, 0} = ")
    assert contains(first, matrix(sources))
