"""Every layer of `cases.py`: gradients, where they are written, shapes and the report's table."""

from __future__ import annotations

import math

import numpy as np

from tests.layers.cases import CASES, Case
from tests.layers.gradients import check_destinations, check_gradients
from tests.rows import rows

IDS = [case.name for case in CASES]


@rows("case", CASES, ids=IDS)
@rows("training", [False, True])
def test_gradients_match_differences(case: Case, training: bool) -> None:
    layer = case.make(np.random.default_rng(3))
    check_gradients(layer, case.batch(), training=training)


@rows("case", CASES, ids=IDS)
def test_gradients_go_where_they_are_sent(case: Case) -> None:
    check_destinations(case.make(np.random.default_rng(3)), case.batch(), training=True)


@rows("case", CASES, ids=IDS)
def test_output_shape_is_that_of_forward(case: Case) -> None:
    layer = case.make(np.random.default_rng(3))
    y, _ = layer.forward(case.batch())
    assert layer.output_shape(case.shape[1:]) == y.shape[1:]


@rows("case", CASES, ids=IDS)
def test_summary_counts_every_parameter_and_all_flops(case: Case) -> None:
    layer = case.make(np.random.default_rng(3))
    rows = layer.rows(case.shape[1:])
    parameters = layer.parameters.values()
    assert sum(row.parameters for row in rows) == sum(math.prod(p.shape) for p in parameters)
    assert sum(row.flops for row in rows) == layer.flops(case.shape[1:])
