"""Edits change one thing each, run, and leave the original as it was."""

from __future__ import annotations

import numpy as np

from handgrad import trees
from handgrad.dispatch import engine
from handgrad.ops import layer_norm, linear, rnn


def _layer_norm() -> tuple[trees.Function, trees.Trace, np.ndarray, object]:
    rng = np.random.default_rng(0)
    x, gamma, beta = rng.standard_normal((4, 5)), rng.standard_normal(5), rng.standard_normal(5)
    with engine("reference"):
        _, cache = layer_norm.forward(x, gamma, beta)
    dy = rng.standard_normal((4, 5))
    function = trees.read(layer_norm.backward)
    return function, trees.trace(function, dy, cache), dy, cache


def _gradient(function: trees.Function, dy: np.ndarray, cache: object) -> np.ndarray:
    gradient: np.ndarray = trees.run(function, dy, cache)[0]
    return gradient


def test_a_flipped_sign_changes_one_term_twice_over() -> None:
    function, run, dy, cache = _layer_norm()
    (flipped,) = (
        edit
        for edit in trees.edits(function, run)
        if edit.kind == "wrong sign" and edit.part == "−mean(dx̂)"
    )
    terms = trees.additive_terms(run, trees.gradient_expressions(run)[0])
    expected = run.result[0] - 2.0 * terms[1].value(run.environment)
    np.testing.assert_allclose(_gradient(flipped.function, dy, cache), expected, rtol=1e-12)
    np.testing.assert_array_equal(_gradient(function, dy, cache), run.result[0])


def test_kinds_are_the_listed_ones_and_lines_are_those_of_the_source() -> None:
    function, run, _, _ = _layer_norm()
    found = trees.edits(function, run)
    assert {edit.kind for edit in found} <= set(trees.KINDS)
    assert {edit.kind for edit in found} >= {
        "term missing",
        "wrong sign",
        "factor missing",
        "sum for mean",
        "mean for sum",
        "wrong axis",
        "not reduced",
        "stale variable",
    }
    code = layer_norm.backward.reference.__code__
    assert all(edit.line > code.co_firstlineno for edit in found)


def test_products_lose_their_transpose_and_exchange_their_operands() -> None:
    rng = np.random.default_rng(0)
    with engine("reference"):
        _, cache = linear.forward(rng.standard_normal((3, 3)), rng.standard_normal((3, 3)))
    function = trees.read(linear.backward)
    run = trees.trace(function, rng.standard_normal((3, 3)), cache)
    found = {(edit.kind, edit.part) for edit in trees.edits(function, run)}
    assert ("transpose missing", "rows_dyᵀ") in found
    assert ("operands swapped", "dy @ weight") in found
    assert ("transposed", "weight") in found
    assert ("gradients swapped", "dx and dweight") in found


def test_a_statement_in_a_loop_is_edited_once() -> None:
    rng = np.random.default_rng(0)
    with engine("reference"):
        (y, h), cache = rnn.forward(*(rng.standard_normal(s) for s in ((2, 4, 3), (5, 3), (5, 5))))
    function = trees.read(rnn.backward)
    found = trees.edits(function, trees.trace(function, (y, h), cache))
    bodies = [edit.function.body for edit in found if edit.part == "dh"]
    assert bodies
    assert len(set(bodies)) == len(bodies)
