"""The drawing of a layer that is written part by part."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from handgrad import models
from handgrad.documents.document import Document, Equation, Figure, opened
from handgrad.documents.formulas.formula import parts_in
from handgrad.equations.models import overview
from handgrad.equations.models.drawing import (
    Box,
    FrameBox,
    Polyline,
    Words,
    spoken,
    text_width,
)
from handgrad.equations.models.flow import Fork, Group, Node, flow_of, nodes_of
from handgrad.equations.models.layout import pages
from handgrad.equations.models.model import model_document
from handgrad.equations.models.plan import DataFlow
from handgrad.layers import TransformerBlock, TransformerEncoder
from tests.equations import test_whole
from tests.equations.test_drawing import boxes, overlap, texts
from tests.equations.test_whole import F64, Case, chained, normal, tokens

#: The room that a phone of 390 pixels has.
PHONE = 350

CASES = [
    Case(
        "gpt",
        lambda rng: models.GPT(11, context=9, width=6, heads=2, blocks=3, rng=rng, dtype=F64),
        (tokens(11, 4, 5),),
    ),
    Case(
        "llama",
        lambda rng: models.Llama(
            11, context=9, width=8, heads=2, blocks=2, hidden=9, rng=rng, dtype=F64
        ),
        (tokens(11, 4, 5),),
    ),
    Case(
        "encoder",
        lambda rng: TransformerEncoder(3, 6, 2, 7, rng=rng, dtype=F64),
        (normal(4, 5, 6),),
    ),
    Case(
        "post-norm-block",
        lambda rng: TransformerBlock(6, 2, 7, rng=rng, norm="post", dtype=F64),
        (normal(4, 5, 6),),
    ),
]


def planned(case: Case) -> DataFlow:
    _, chain, steps, _ = chained(case)
    return overview.plan(chain, [step for _, step in reversed(steps)])


def named(name: str) -> Case:
    return next(each for each in test_whole.CASES if each.name == name)


def inside(parts: Any) -> Any:
    for part in parts:
        yield part
        if isinstance(part, Fork):
            yield from inside((*part.inner, *part.skip))
        elif isinstance(part, Group):
            yield from inside(part.parts)


def written(case: Case) -> Document:
    model = case.make(np.random.default_rng(0))
    return model_document(model, title=case.name, input_shape=case.inputs[0].shape[1:])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_block_has_a_line_past_each_sub_layer(case):
    forks = [part for part in inside(planned(case).parts) if isinstance(part, Fork)]
    groups = [part for part in inside(planned(case).parts) if isinstance(part, Group)]
    written_blocks = max(len(groups), 1)
    assert len(forks) == 2 * written_blocks
    assert all(not fork.skip and fork.inner for fork in forks)


def test_alike_blocks_are_drawn_once():
    (group,) = [part for part in planned(CASES[0]).parts if isinstance(part, Group)]
    plan = planned(CASES[0])
    assert (spoken(group.title), group.times) == ("Block l", 3)
    names = [spoken(plan.values[each].symbol) for each in (group.taken, group.start, group.end)]
    assert names == ["x(0)", "x(l−1)", "x(l)"]
    assert spoken(plan.values[group.number].symbol) == "x(3)"
    (frame,) = [
        shape
        for page in pages(plan, ("input",), ("output",))
        for shape in page.shapes
        if isinstance(shape, FrameBox)
    ]
    assert (spoken(frame.title), frame.times) == ("Block l", "× 3")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_symbol_of_the_drawing_is_on_the_page(case):
    said = {
        part
        for block in opened(written(case).blocks)
        if isinstance(block, Equation)
        for part in parts_in(block.formula)
    }
    said_in_words = {spoken(each) for each in said}
    plan = planned(case)
    for value, each in plan.values.items():
        if value:
            assert each.symbol in said_in_words or spoken(each.symbol) in said_in_words


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_overlaps_and_a_phone_shows_it(case):
    for figure in (block for block in written(case).blocks if isinstance(block, Figure)):
        drawing = ElementTree.fromstring(figure.svg)
        width, height = float(drawing.get("width")), float(drawing.get("height"))
        assert 0.75 * width <= PHONE  # it shrinks no further
        placed, words = boxes(drawing), [place for place, _ in texts(drawing)]
        for one, other in itertools.combinations(placed, 2):
            assert not overlap(one, other)
        for one, other in itertools.combinations(words, 2):
            assert not overlap(one, other)
        for left, top, right, bottom in (*placed, *words):
            assert left >= 0 <= top
            assert right <= width
            assert bottom <= height


def test_a_box_says_what_it_takes_and_gives():
    plan = planned(CASES[0])
    titles = {
        node.number: plan.texts[node.number][0]
        for node in inside(plan.parts)
        if isinstance(node, Node)
    }
    assert list(titles.values()) == [
        "Embedding",
        "Positions",
        "Normalisation",
        "Attention",
        "Normalisation",
        "Feed-forward",
        "Normalisation",
        "Output",
    ]


def boxes_of(plan: DataFlow, parts: Any) -> list[str]:
    return [plan.texts[node.number][0] for node in nodes_of(parts) if node.number in plan.texts]


def test_an_encoder_and_a_decoder_stand_side_by_side():
    plan = planned(named("transformer"))
    (encoder,) = plan.before
    assert not plan.behind
    (block,) = [part for part in encoder.parts if isinstance(part, Group)]
    (taken,) = [node for node in nodes_of(plan.parts) if node.aside]
    assert plan.texts[taken.number][0] == "Cross-attention"
    assert taken.aside == (block.number,)
    assert not [node for node in nodes_of(encoder.parts) if node.aside]


def test_a_decoder_over_time_takes_both_columns_at_every_step():
    plan = planned(named("seq2seq-additive-gru"))
    (source,), (target,) = plan.before, plan.behind
    assert boxes_of(plan, source.parts) == ["Source embedding", "Encoder", "Attention"]
    assert boxes_of(plan, target.parts)[0] == "Target embedding"
    (encoder,) = [
        node for node in nodes_of(source.parts) if plan.texts[node.number][0] == "Encoder"
    ]
    assert plan.givers[plan.start] == encoder.number  # its last state begins the decoder
    (steps,) = [part for part in plan.parts if isinstance(part, Group)]
    assert (spoken(steps.title), steps.times) == ("Step t", 4)
    (fork,) = [part for part in steps.parts if isinstance(part, Fork)]
    assert boxes_of(plan, steps.parts) == ["Attention", "Cell"]
    assert fork.join.number in plan.texts
    (attention,) = fork.inner
    assert set(attention.aside) == {last(source.parts), last(target.parts)}


def last(parts: Any) -> int:
    return parts[-1].number


def test_a_box_may_take_what_a_line_past_others_carries():
    plan = planned(named("cls-encoder"))
    assert boxes_of(plan, plan.parts) == ["Standardisation", "Product", "Softmax", "Product"]
    first, fork = plan.parts
    assert fork.join.number in plan.texts
    assert not plan.values[first.number].is_trained  # the class token comes in behind it
    assert not fork.join.aside


@pytest.mark.parametrize("name", [each.name for each in test_whole.CASES])
def test_lines_between_columns_cross_no_box(name):
    plan = planned(named(name))
    for page in pages(plan, ("input",), ("output",)):
        placed = [each for each in page.shapes if isinstance(each, Box)]
        words = [box_of(each) for each in page.shapes if isinstance(each, Words)]
        for one, other in itertools.combinations(words, 2):
            assert not overlap(one, other)
        for line in (each for each in page.shapes if isinstance(each, Polyline)):
            for (x, y), (to, end) in itertools.pairwise(line.corners):
                left, right, top, bottom = min(x, to), max(x, to), min(y, end), max(y, end)
                assert 0 <= left <= right <= page.width
                assert 0 <= top <= bottom <= page.height
                for box in placed:
                    inside = box.x < right and left < box.x + box.width
                    assert not (inside and box.y < bottom and top < box.y + box.height)
                for place in words:
                    assert not overlap(place, (left, top, right, bottom))


def box_of(words: Words) -> tuple[float, float, float, float]:
    width = text_width(words.label)
    x = words.x - (width if words.anchor == "end" else 0)
    return x, words.y - 10, x + width, words.y + 3


def test_layers_that_come_again_in_their_order_are_framed():
    model = models.CNN((1, 12, 12), (2, 3), 4, rng=np.random.default_rng(0))
    plan = overview.layers(flow_of(model, (1, 12, 12)))
    groups = [part for part in plan.parts if isinstance(part, Group)]
    assert [spoken(each.title) for each in groups] == ["Block 1", "Block 2"]
    layers = [[type(part.layer).__name__ for part in group.parts] for group in groups]
    assert layers == [["Conv2d", "MaxPool2d"]] * 2
    network = models.MLP((4, 3, 3, 2), rng=np.random.default_rng(0))
    assert not [
        part for part in overview.layers(flow_of(network, (4,))).parts if isinstance(part, Group)
    ]
