"""The story of a run: every opened number, computed again from its parts."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

import handgrad as hg
from handgrad.documents.formulas.latex import to_latex
from handgrad.documents.story import Story
from handgrad.equations.alive.entries import Closed, Entries, leaf, made, value_of
from handgrad.equations.notes import notes
from handgrad.equations.operation import document
from handgrad.equations.topics import op_topic, pair_topic, worked_topic
from handgrad.equations.worked import WORKED
from handgrad.errors import ArgumentError
from handgrad.ops import OPS
from tests.tolerances import assert_close

#: Pages whose numbers can be changed, because all of them follow from those that are given.
EDITABLE = (
    *("attention", "layer_norm", "conv2d", "lstm", "softmax", "cross_entropy", "ffn", "gru"),
    *("dense", "rms_norm", "swiglu", "gelu", "squared_error", "relu", "batch_norm", "rotary"),
)

CALCULATED = {
    "/": np.divide,
    "^": np.power,
    "max": max,
    "min": min,
    ">": np.greater,
    "<": np.less,
    "≥": np.greater_equal,
    "≤": np.less_equal,
    "=": np.equal,
    "≠": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "abs": np.abs,
    "erf": special.erf,
    "+": lambda *parts: math.fsum(parts),
    "*": lambda *parts: math.prod(parts),
    "if": lambda test, yes, no: yes if test else no,
}


def topic_of(name: str):
    return worked_topic(name, "en") if name in WORKED else op_topic(name, (), {}, "en")


def story_of(topic) -> Story:
    story = document(topic, alive=True).story
    assert story is not None
    return story


def calculated(tree, indices, values):
    """The value of a tree, by nothing but what the page has."""
    if isinstance(tree, int):
        return values[tree][next(indices)]
    if len(tree) == 1:
        return tree[0]
    op, *parts = tree
    found = [calculated(each, indices, values) for each in parts]
    with np.errstate(all="ignore"):
        return float(CALCULATED.get(op, getattr(np, op, None))(*found))


def computed(story: Story, given: dict[int, list[float]]) -> dict[int, list[float]]:
    """Every array of a story, from those that are given."""
    values = dict(given)
    for step in story.steps:
        for result in step.results:
            values[result.quantity] = [
                calculated(result.trees[tree], iter(indices), values)
                for tree, *indices in result.elements
            ]
    return values


@pytest.mark.parametrize("name", sorted({*OPS, *WORKED}))
def test_every_opened_number_is_what_it_is_made_of(name):
    story = story_of(topic_of(name))
    values = {i: list(each.values) for i, each in enumerate(story.quantities)}
    opened = 0
    for step in story.steps:
        for result in step.results:
            found = [
                calculated(result.trees[tree], iter(indices), values)
                for tree, *indices in result.elements
            ]
            if found:
                assert_close(found, values[result.quantity], "float64", str(step.target))
            opened += len(found)
            read = {leaf for tree in result.trees for leaf in leaves(tree)}
            assert read <= set(step.operands)
    assert opened
    assert {step.phase for step in story.steps} == {"forward", "backward"}


def leaves(tree):
    if isinstance(tree, int):
        return {tree}
    return set().union(*map(leaves, tree[1:])) if len(tree) > 1 else set()


@pytest.mark.parametrize("name", EDITABLE)
def test_other_inputs_give_the_numbers_of_their_own_run(name):
    """Editing is right: the trees of one run on the inputs of another give all of its numbers."""
    rng = np.random.default_rng(7)
    topic = topic_of(name)
    story = story_of(topic)
    assert story.editable
    arrays = {
        key: array + rng.uniform(-0.1, 0.1, array.shape) if array.dtype.kind == "f" else array
        for key, array in ((key, np.asarray(each)) for key, each in topic.subject.arrays.items())
    }
    other = story_of(replace(topic, subject=replace(topic.subject, arrays=arrays)))
    made = {result.quantity for step in story.steps for result in step.results}
    given = {i: list(q.values) for i, q in enumerate(other.quantities) if i not in made}
    found = computed(story, given)
    for i, quantity in enumerate(other.quantities):
        assert_close(found[i], quantity.values, "float64", quantity.name)


def block(rng):
    return hg.TransformerBlock(4, 2, 4, rng=rng), (1, 3, 4), None


def perceptron(rng):
    first = hg.Dense(3, 2, activation="tanh", rng=rng)
    return hg.Sequential(first, hg.Dense(2, 2, rng=rng)), (2, 3), hg.losses.SquaredError()


def recurrent(rng):
    return hg.Sequential(hg.LSTM(2, 2, rng=rng)), (1, 3, 2), None


@pytest.mark.parametrize("build", [block, perceptron, recurrent])
def test_a_model_is_one_story(build):
    """What one op gives is what the next takes, so that another input changes all that follows."""
    rng = np.random.default_rng(3)
    model, shape, loss = build(rng)
    one, other = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    settings = {"alive": True, "measure": None, "loss": loss}
    first, second = (notes(model, each, **settings).document.story for each in (one, other))
    assert first is not None
    assert second is not None
    assert first.editable
    assert [each.formula for each in first.steps] == [each.formula for each in second.steps]
    made = {result.quantity for step in first.steps for result in step.results}
    given = {i: list(q.values) for i, q in enumerate(second.quantities) if i not in made}
    parameters = sum(array.size for array in model.parameters.values())
    # Beside the parameters come in x, and a gradient or a target; states of zeros as well.
    assert parameters + one.size < sum(map(len, given.values())) <= parameters + 5 * one.size
    found = computed(first, given)
    for i, quantity in enumerate(second.quantities):
        assert_close(found[i], quantity.values, "float32", quantity.name)


def test_a_model_that_is_too_large_is_refused():
    model = hg.Sequential(hg.Dense(300, 300, rng=np.random.default_rng(0)))
    with pytest.raises(ArgumentError, match="alive is given for a model with"):
        notes(model, alive=True)


def test_a_gradient_of_weights_is_the_row_and_the_column_it_is_made_of():
    story = story_of(topic_of("ffn"))
    by_name = {each.name: i for i, each in enumerate(story.quantities)}
    (result,) = (r for s in story.steps for r in s.results if r.quantity == by_name["dW2"])
    rows, columns = story.quantities[by_name["dW2"]].shape
    shared = story.quantities[by_name["V"]].shape[0]
    for i in range(rows):
        for j in range(columns):
            kind, *indices = result.elements[i * columns + j]
            product = ["*", by_name["V"], by_name["dY"]]
            assert result.trees[kind] == ["+", *([product] * shared)]
            pairs = [(n * rows + i, n * columns + j) for n in range(shared)]
            assert list(zip(indices[::2], indices[1::2], strict=True)) == pairs


def test_a_gradient_stands_beside_what_it_is_the_gradient_of():
    story = story_of(topic_of("attention"))
    beside = {
        each.name: story.quantities[each.beside].name
        for each in story.quantities
        if each.beside is not None
    }
    pairs = ["dy y", "da_kept a", "dv v", "ds s", "dbias bias", "dq q", "dk k"]
    assert beside == dict(each.split() for each in pairs)


def test_the_gradient_of_a_copy_stands_beside_what_forks():
    model, shape, _ = block(np.random.default_rng(3))
    x = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    story = notes(model, x, alive=True, measure=None).document.story
    assert story is not None
    copies = [
        to_latex(story.quantities[each.beside].symbol)
        for each in story.quantities
        if each.beside is not None and "rightarrow" in to_latex(each.symbol)
    ]
    # The norm's output goes into q, k and v; the sum behind the attention into the next norm.
    assert sorted(copies) == ["x", *[r"z_{\text{attn}}"] * 3]


def test_time_runs_forward_and_then_back():
    story = story_of(topic_of("lstm"))
    moments = [to_latex(each.moment) for each in story.steps if each.moment is not None]
    assert list(dict.fromkeys(moments)) == ["t = 1", "t = 2"]
    assert moments[-1] == "t = 1"
    last = [to_latex(each.formula) for each in story.steps if each.phase == "backward"]
    carried = r"\frac{\partial L}{\partial c_{1}} = \frac{\partial L}{\partial c_{2}} \odot f_{2}"
    assert carried in last


def test_every_step_of_the_page_has_its_equation_there():
    written = document(topic_of("layer_norm"), alive=True)
    anchors = [each.target for each in written.blocks if hasattr(each, "target")]
    assert written.story is not None
    assert [each.target for each in written.story.steps if each.target] == [
        each for each in anchors if each
    ][: len(written.story.steps)]


def test_a_function_of_ones_own_that_decides_is_shown_and_not_opened():
    def forward(x):
        y = x * float(x.sum() > 0)
        return y, (x,)

    def backward(dy, cache):
        dx = np.asarray([each if each > 0 else 0.0 for each in dy]) * 1.0
        return dx

    inputs = (np.array([1.0, 2.0]),)
    story = story_of(pair_topic((forward, backward), "mine", inputs, {}))
    assert not story.editable


def test_elements_compute_like_numbers():
    values = np.random.default_rng(5).normal(size=(2, 3))
    x = np.empty((2, 3), dtype=object)
    for place in np.ndindex(2, 3):
        x[place] = leaf(0, 3 * place[0] + place[1], values[place])
    x = x.view(Entries)
    functions = (
        lambda a: np.where(a > 0, a, -2 * a),
        lambda a: np.max(a, axis=-1, keepdims=True) - a.mean(axis=0),
        lambda a: np.exp(a - np.maximum(a, 0)) / np.sqrt(np.square(a) + 1),
        lambda a: np.einsum("ij,kj->ik", a, a**2),
        lambda a: np.stack([a[0], a[1, ::-1]]).T @ np.abs(a),
        lambda a: np.tanh(np.clip(np.pad(a, 1), -1, None)[1:-1]),
    )
    for function in functions:
        found = np.asarray(function(x))
        assert found.dtype == object
        assert_close(np.vectorize(value_of)(found).astype(float), function(values), "float64")


def test_an_element_decides_nothing():
    with pytest.raises(Closed):
        bool(leaf(0, 0, 1.0) > 0)


def test_an_element_of_very_many_parts_is_not_opened():
    whole = leaf(0, 0, 1.0)
    for _ in range(8):
        whole = made("*", made("tanh", whole), made("tanh", whole))
    with pytest.raises(Closed):
        made("*", made("tanh", whole), made("tanh", whole))


def test_notes_are_alive_only_where_that_is_asked_for():
    plain = notes("softmax", measure=None)
    alive = notes("softmax", alive=True, measure=None)
    assert plain.document.story is None
    assert "<script" not in plain.to_html()
    assert plain.document.blocks == alive.document.blocks
    assert inspect.signature(notes).parameters["alive"].default is False
