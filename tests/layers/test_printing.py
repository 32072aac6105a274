"""Layers as text: the call that makes them, and their summary as a table."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import handgrad as hg
from handgrad import models
from handgrad.errors import ShapeError
from tests.layers.cases import CASES, Case
from tests.rows import rows

NAMES = {
    "hg": hg,
    "np": np,
    "partial": partial,
    **{name: getattr(models, name) for name in models.__all__},
    **{name: getattr(hg.layers, name) for name in dir(hg.layers)},
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@rows("case", CASES, ids=[case.name for case in CASES])
def test_a_layer_is_printed_as_the_call_that_makes_it(case: Case) -> None:
    layer = case.make(np.random.default_rng(0))
    again = eval(repr(layer), NAMES)
    assert repr(again) == repr(layer)
    made = again.build(case.shape[1:])
    shapes = {name: array.shape for name, array in layer.parameters.items()}
    assert {name: array.shape for name, array in made.parameters.items()} == shapes


def test_layers_in_layers_are_indented(rng: np.random.Generator) -> None:
    inner = hg.Sequential(hg.Dense(4, 4, rng=rng, activation="relu"), hg.Dropout(0.2, rng=rng))
    model = hg.Sequential(hg.Flatten(), hg.Residual(inner), last=hg.Dense(4, 2, rng=rng))
    assert repr(model) == (
        "Sequential(\n"
        "    Flatten(),\n"
        "    Residual(\n"
        "        Sequential(\n"
        '            Dense(4, 4, activation="relu"),\n'
        "            Dropout(p=0.2),\n"
        "        ),\n"
        "    ),\n"
        "    last=Dense(4, 2),\n"
        ")"
    )


def test_settings_are_printed_as_code(rng: np.random.Generator) -> None:
    normal = partial(hg.initializers.normal, std=0.1)
    assert repr(hg.Dense(4, 2, rng=rng, initializer=normal, dtype=np.float64)) == (
        "Dense(4, 2, initializer=partial(hg.initializers.normal, std=0.1), dtype=np.float64)"
    )
    assert repr(hg.MLP([4, 3, 2], rng=rng)) == "MLP((4, 3, 2))"
    assert repr(hg.Dense(None, 3)) == "Dense(None, 3)"


def test_a_layer_of_ones_own_is_printed_too() -> None:
    class Twice(hg.layers.Layer):
        def __init__(self, factor: float = 2.0) -> None:
            self.factor = factor

    assert repr(Twice()) == "Twice()"
    assert repr(Twice(3.0)) == "Twice(factor=3.0)"


def test_a_summary_is_a_table(rng: np.random.Generator) -> None:
    model = hg.Sequential(hg.Flatten(), hg.Dense(64, 10, rng=rng))
    summary = model.summary((1, 8, 8))
    assert (summary.parameters, summary.parameter_bytes, summary.flops) == (650, 2600, 1290)
    text = repr(summary)
    for part in ("1", "Dense", "(10,)", "650", "1,290", "input (1, 8, 8)", "2,600 bytes"):
        assert part in text
    assert [row.output_shape for row in summary.rows] == [(64,), (10,)]
    without = model.summary()
    assert (without.parameters, without.flops, without.input_shape) == (650, 0, None)
    assert "output" not in repr(without)
    with pytest.raises(ShapeError, match=r"Dense: an example has shape \(63,\); allowed: "):
        model.summary((7, 9))


@rows("case", CASES, ids=[case.name for case in CASES])
def test_every_layer_has_a_summary_without_a_shape(case: Case) -> None:
    layer = case.make(np.random.default_rng(0))
    expected = sum(array.size for array in layer.parameters.values())
    assert layer.summary().parameters == expected


def test_a_notebook_shows_the_call_and_the_table(rng: np.random.Generator) -> None:
    html = hg.Sequential(hg.Dense(6, 10, rng=rng, activation="relu"))._repr_html_()
    assert "&quot;relu&quot;" in html
    assert "70" in html
    assert "<script" not in html
    assert "Dense(None, 3)" in hg.Dense(None, 3)._repr_html_()
