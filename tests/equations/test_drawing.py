from __future__ import annotations

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from handgrad.documents import svg
from handgrad.documents.document import Figure
from handgrad.documents.formulas.formula import Number, Script, Symbol
from handgrad.equations.models.drawing import Box, Polyline, Words, drawn, text_width
from handgrad.equations.models.extents import BOX_HEIGHT
from handgrad.equations.models.flow import flow_of
from handgrad.equations.models.overview import drawings, layers
from handgrad.equations.models.tikz import tikz
from handgrad.layers import Activation, Sequential
from tests.equations.models import MODELS, dense, nested, of_data, residual

SVG = "{http://www.w3.org/2000/svg}"

#: Below a heading and above a caption of A4.
PAGE = 840


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def figure_blocks(model, shape, loss=None):
    blocks = drawings(layers(flow_of(model, shape)), loss, "en")
    return [each for each in blocks if isinstance(each, Figure)]


def figures(model, shape, loss=None):
    return [ElementTree.fromstring(each.svg) for each in figure_blocks(model, shape, loss)]


def boxes(drawing):
    found = []
    for each in drawing.iter(f"{SVG}rect"):
        if each.get("stroke-dasharray"):
            continue  # a frame
        x, y, width, height = (float(each.get(key)) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def texts(drawing):
    """The place of every text, as wide as it is guessed to be, and what it says."""
    found = []
    for each in drawing.iter(f"{SVG}text"):
        words = "".join(each.itertext())
        sizes = [(part.text or "", float(part.get("font-size", 13))) for part in each.iter()]
        tails = [(part.tail or "", 13.0) for part in each]
        width = sum(text_width(said, size) for said, size in (*sizes, *tails))
        x, y = float(each.get("x")), float(each.get("y"))
        x -= {"start": 0, "middle": width / 2, "end": width}[each.get("text-anchor")]
        found.append(((x, y - 10, x + width, y + 3), words))
    return found


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def lines(drawing, kind):
    return [each for each in drawing.iter() if each.get("class") == kind]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_nothing_overlaps_or_sticks_out(model, rng):
    for drawing in figures(model.make(rng), model.input_shape, model.loss):
        width, height = float(drawing.get("width")), float(drawing.get("height"))
        assert height <= PAGE
        assert drawing.get("viewBox") == f"0 0 {width:g} {height:g}"
        placed = boxes(drawing)
        written = [place for place, _ in texts(drawing)]
        for one, other in itertools.combinations(placed, 2):
            assert not overlap(one, other)
        for one, other in itertools.combinations(written, 2):
            assert not overlap(one, other)
        for left, top, right, bottom in (*placed, *written):
            assert left >= 0
            assert top >= 0
            assert right <= width
            assert bottom <= height
        for place in written:
            touching = [box for box in placed if overlap(place, box)]
            inside = [box for box in touching if box[0] <= place[0] and place[2] <= box[2]]
            assert touching == inside


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_node_is_drawn_once_and_described(model, rng):
    layer = model.make(rng)
    flow = flow_of(layer, model.input_shape)
    drawn = figures(layer, model.input_shape, model.loss)
    starts = [words.split()[0] for each in drawn for _, words in texts(each)]
    for node in flow.nodes:
        if not node.is_sum:
            assert starts.count(str(node.number)) >= 1
    sums = sum(
        1
        for each in drawn
        for circle in each.iter(f"{SVG}circle")
        if circle.get("class") == "forward" and float(circle.get("r")) > 5
    )
    assert sums == sum(node.is_sum for node in flow.nodes)
    for each in drawn:
        assert each.find(f"{SVG}title").text
        assert each.find(f"{SVG}desc").text


def test_gradients_meet_where_a_value_forks(rng):
    (drawing,) = figures(residual(rng), (4,))
    gradients = [words for _, words in texts(drawing) if words.startswith("∂L")]
    expected = [f"∂L/∂h{number}" for number in "12345"]
    assert sorted(gradients) == sorted([*expected, "∂L/∂h1(2)"])
    pluses = [each for each in lines(drawing, "backward") if each.tag == f"{SVG}circle"]
    assert sorted(float(each.get("r")) for each in pluses) == [1.5, 8.0]
    assert all(
        each.get("stroke-dasharray")
        for each in lines(drawing, "backward")
        if each.tag == f"{SVG}path" and each.get("stroke-linejoin")
    )


def test_data_gets_no_gradient(rng):
    (drawing,) = figures(of_data(rng), (2, 3))
    gradients = [words for _, words in texts(drawing) if words.startswith("∂L")]
    assert sorted(gradients) == ["∂L/∂h4", "∂L/∂h5", "∂L/∂h6"]


def test_a_long_model_goes_over_several_pages(rng):
    model = Sequential(*[dense(rng, 4, 4) for _ in range(40)])
    drawn = figures(model, (4,))
    assert len(drawn) == 5
    heights = [float(each.get("height")) for each in drawn]
    assert max(heights) - min(heights) <= 2 * BOX_HEIGHT + 100
    for before, after in itertools.pairwise(drawn):
        last, first = texts(before)[-1][1], texts(after)[0][1]
        assert last == first
        assert last.startswith("h")


def test_long_names_are_cut_to_their_box(rng):
    class AVeryLongNameOfALayerOfSomebodyElse(Activation):
        pass

    model = Sequential(dense(rng, 4, 4), AVeryLongNameOfALayerOfSomebodyElse("tanh"))
    (drawing,) = figures(model, (4,))
    assert any(words.endswith("…") for _, words in texts(drawing))


def test_two_drawings_share_a_page(rng):
    """No ids, so that nothing on a page is found twice."""
    drawn = [*figures(residual(rng), (4,)), *figures(nested(rng), (4,))]
    assert not [each for drawing in drawn for each in drawing.iter() if each.get("id")]


def test_shapes_are_escaped_and_coloured():
    shapes = [
        Box(1, 1, 50, 20, ("<a & b>",)),
        Polyline("forward", ((0, 0), (0, 10))),
        Words("backward", 5, 30, "start", Script(Symbol("gamma"), Number("2"))),
    ]
    drawing = ElementTree.fromstring(drawn(shapes, 60, 40, title="<t>", description='"d" & e'))
    assert [words for _, words in texts(drawing)] == ["<a & b>", "γ2"]
    assert drawing.find(f"{SVG}desc").text == '"d" & e'
    for kind in ("forward", "backward"):
        for each in lines(drawing, kind):
            assert each.get("fill" if each.tag == f"{SVG}text" else "stroke").startswith("#")


def test_a_line_hops_over_what_it_crosses():
    straight = drawn([Polyline("forward", ((0, 5), (40, 5)))], 40, 10, title="t", description="d")
    hops = drawn(
        [Polyline("forward", ((0, 5), (40, 5)), over=(20,))], 40, 10, title="t", description="d"
    )
    assert "a5 5" not in straight
    assert "H15a5 5 0 0 1 10 0L40 5" in hops


def test_tikz_says_what_the_drawing_says(rng):
    """Each box, line and sum of the SVG is in the picture for LaTeX, at the same place."""
    (figure,) = figure_blocks(residual(rng), (4,))
    drawing = ElementTree.fromstring(figure.svg)
    for x, y, *_ in boxes(drawing):
        assert f"({x:g},{y:g}) rectangle" in figure.tikz
    for kind, colour in svg.COLOURS.items():
        assert rf"\definecolor{{{kind}}}{{HTML}}{{{colour[1:].upper()}}}" in figure.tikz
    assert figure.tikz.count(r"\node") == len(texts(drawing))
    assert figure.tikz.count("->") == len(heads(drawing))
    assert figure.tikz.count("circle[radius=8]") == 2
    assert r"\(\partial L / \partial h_{1}^{(2)}\)" in figure.tikz


def heads(drawing):
    """The arrowheads: paths of two strokes."""
    paths = [each for each in drawing.iter(f"{SVG}path") if not each.get("stroke-linejoin")]
    return [each for each in paths if each.get("d").count("L") == 2]


def test_tikz_escapes_texts_and_hops():
    shapes = [
        Box(1, 1, 50, 20, ("50 % <a_b>", Script(Symbol("gamma"), Number("2")))),
        Polyline("backward", ((40, 5), (0, 5)), over=(20,)),
    ]
    picture = tikz(shapes)
    assert r"50 \% \textless{}a\_b\textgreater{}" in picture
    assert r"\(\gamma_{2}\)" in picture
    assert "(40,5) -- (25,5) arc[start angle=360, end angle=180, radius=5] -- (0,5)" in picture
