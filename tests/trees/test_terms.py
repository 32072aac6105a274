"""Additive terms add up to the gradient they were taken from."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import trees
from handgrad.dispatch import engine
from handgrad.ops import layer_norm
from tests.ops.cases import ORDINARY_CASES, Case, each
from tests.tolerances import assert_close


def _trace(case: Case) -> trees.Trace:
    arguments = case.arguments(case.arrays())
    with engine("reference"):
        y, cache = case.module.forward(*arguments.args, **arguments.kwargs)
    dy = case.random_like(y, "dy")
    return trees.trace(trees.read(case.module.backward), dy, cache)


@each([case for case in ORDINARY_CASES if not case.row.large])
@pytest.mark.parametrize("depth", [1, 3])
def test_terms_add_up(case: Case, depth: int) -> None:
    run = _trace(case)
    results = run.result if len(case.gradient_names) > 1 else (run.result,)
    for expression, gradient in zip(trees.gradient_expressions(run), results, strict=True):
        if gradient is not None:
            terms = trees.additive_terms(run, expression, depth=depth)
            total = sum(term.value(run.environment) for term in terms)
            assert_close(total, gradient, "float64", f"{case.id} at depth {depth}")


def test_terms_carry_the_names_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    x, gamma, beta = rng.standard_normal((4, 5)), rng.standard_normal(5), rng.standard_normal(5)
    with engine("reference"):
        _, cache = layer_norm.forward(x, gamma, beta)
    run = trees.trace(trees.read(layer_norm.backward), rng.standard_normal((4, 5)), cache)
    dx = trees.gradient_expressions(run)[0]
    assert [term.label for term in trees.additive_terms(run, dx)] == [
        "dx̂",
        "−mean(dx̂)",
        "−x̂ mean(dx̂ x̂)",
    ]
