"""Edits change one thing each, in every round of a loop, and leave the program as it was."""

from __future__ import annotations

import numpy as np

from handgrad.checking.kinds import EDITS
from handgrad.dispatch import engine
from handgrad.ops import layer_norm, linear, rnn
from handgrad.program import Execution, Node, Program, recorded
from handgrad.program.arranging import is_transpose, turned
from handgrad.program.edits import Edit, edits, same_edit
from handgrad.program.planting import Planted
from handgrad.program.terms import additive_terms

RNG = np.random.default_rng(0)


def of_layer_norm() -> Program:
    x, gamma, beta = (RNG.standard_normal(shape) for shape in ((4, 5), (5,), (5,)))
    with engine("reference"):
        _, cache = layer_norm.forward(x, gamma, beta)
    return recorded(layer_norm.backward, RNG.standard_normal((4, 5)), cache)


def of_rnn() -> Program:
    arrays = (RNG.standard_normal(shape) for shape in ((2, 4, 3), (5, 3), (5, 5)))
    with engine("reference"):
        (y, h), cache = rnn.forward(*arrays)
    return recorded(
        rnn.backward, (RNG.standard_normal(y.shape), RNG.standard_normal(h.shape)), cache
    )


def the(program: Program, kind: str, part: str) -> Edit:
    (found,) = (each for each in edits(program) if (each.kind, each.part) == (kind, part))
    return found


def test_a_flipped_sign_changes_one_term_twice_over() -> None:
    program = of_layer_norm()
    run = Execution(program)
    dx = program.result[0]
    assert isinstance(dx, Node)
    right = dx.value.copy()
    flipped = the(program, "wrong sign", "−mean(dx̂)").results(run)[0]
    term = additive_terms(dx)[1].value(run)
    np.testing.assert_allclose(flipped, right - 2.0 * term, rtol=1e-12)
    np.testing.assert_array_equal(run.value(dx), right)


def test_kinds_are_the_listed_ones_and_lines_are_those_of_the_source() -> None:
    found = edits(of_layer_norm())
    assert {edit.kind for edit in found} <= set(EDITS)
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
    code = layer_norm.backward.reference.__code__  # type: ignore[attr-defined]
    assert any(edit.line > code.co_firstlineno for edit in found)


def test_products_lose_their_transpose_and_exchange_their_operands() -> None:
    with engine("reference"):
        _, cache = linear.forward(RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3)))
    program = recorded(linear.backward, RNG.standard_normal((3, 3)), cache)
    found = {(edit.kind, edit.part) for edit in edits(program)}
    assert ("transpose missing", "rows_dyᵀ") in found
    assert ("operands swapped", "dy @ weight") in found
    assert ("transposed", "weight") in found
    assert ("gradients swapped", "dx and dweight") in found


def transposes(dy, weight):  # type: ignore[no-untyped-def]
    a = dy @ weight.T
    b = dy @ np.transpose(weight)
    c = dy @ np.swapaxes(weight, -1, -2)
    d = dy @ np.moveaxis(weight, 0, 1)
    e = dy @ weight.transpose(1, 0)
    return a + b + c + d + e


def test_a_transpose_is_one_in_every_way_that_it_is_written() -> None:
    program = recorded(transposes, *RNG.standard_normal((2, 3, 3)))
    missing = [edit for edit in edits(program) if edit.kind == "transpose missing"]
    assert [edit.part for edit in missing] == ["weightᵀ"] * 5
    assert not [edit for edit in edits(program) if edit.part == "weight"]


def test_axes_that_are_turned_are_known() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        return x.T, x.transpose(2, 0, 1), np.moveaxis(x, 0, -1), np.rollaxis(x, 2), x.mT, x[0].T

    x = RNG.standard_normal((2, 3, 4))
    for node in recorded(forward, x).results:
        array = node.args[0].value
        order = turned(node)
        assert order is not None
        np.testing.assert_array_equal(node.value, np.transpose(array, order))
        assert is_transpose(node) == (order[-2:] == (array.ndim - 1, array.ndim - 2))


def test_an_operation_in_a_loop_is_edited_in_every_round() -> None:
    edit = the(of_rnn(), "term missing", "dh")
    assert [node.rounds[0].number for node in edit.changes] == [0, 1, 2, 3]


def test_edits_have_keys_of_their_own_by_which_another_run_has_them() -> None:
    program, other = of_rnn(), of_rnn()
    found = edits(program)
    assert len({edit.key for edit in found}) == len(found)
    for edit in found:
        same = same_edit(other, edit)
        assert same is not None
        assert (same.kind, same.part) == (edit.kind, edit.part)


def test_a_planted_edit_is_made_in_every_call() -> None:
    program = of_layer_norm()
    edit = the(program, "wrong sign", "−mean(dx̂)")
    dy, cache = (value for value in Execution(program).value(tuple(program.arguments.values())))
    for wrong, want in zip(
        Planted(layer_norm.backward, edit)(dy, cache), edit.results(Execution(program)), strict=True
    ):
        np.testing.assert_array_equal(wrong, want)
