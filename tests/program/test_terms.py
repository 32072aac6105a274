"""The terms of a gradient add up to it."""

from __future__ import annotations

import numpy as np

from handgrad.ops import batch_norm, group_norm, layer_norm
from handgrad.program import Node, Program, trace
from handgrad.program.terms import additive_terms

RNG = np.random.default_rng(0)


def program_of_layer_norm() -> Program:
    x, gamma, beta, dy = (RNG.standard_normal(shape) for shape in ((4, 5), (5,), (5,), (4, 5)))
    _, cache = layer_norm.forward.reference(x, gamma, beta)  # type: ignore[attr-defined]
    return trace(layer_norm.backward, dy, cache)


def gradient(program: Program, number: int) -> Node:
    node = program.result[number]
    assert isinstance(node, Node)
    return node


def test_the_terms_of_layer_norm() -> None:
    program = program_of_layer_norm()
    dx = gradient(program, 0)
    terms = additive_terms(dx)
    assert [each.label for each in terms] == ["dx̂", "−mean_dx̂", "−x̂ mean_dx_hat_x̂"]
    values = [each.value(program, dx) for each in terms]
    np.testing.assert_allclose(sum(values), dx.value, rtol=0, atol=1e-12)
    by_name = {node.name: node.value for node in program.nodes}
    expected = np.broadcast_to(-by_name["mean_dx_hat"] * by_name["inv_std"], dx.value.shape)
    np.testing.assert_allclose(values[1], expected, rtol=1e-12)


def test_terms_of_another_depth_add_up_too() -> None:
    program = program_of_layer_norm()
    for node in program.result:
        for depth in (1, 2, 3):
            values = [each.value(program, node) for each in additive_terms(node, depth=depth)]
            np.testing.assert_allclose(sum(values), node.value, rtol=0, atol=1e-12)


def test_terms_of_batch_norm_add_up() -> None:
    x, dy = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3))
    gamma, beta = RNG.standard_normal(3), RNG.standard_normal(3)
    mean, var = np.zeros(3), np.ones(3)
    (_, *_), cache = batch_norm.forward.reference(  # type: ignore[attr-defined]
        x, gamma, beta, mean, var, training=True
    )
    program = trace(batch_norm.backward, dy, cache)
    for node in program.result:
        values = [each.value(program, node) for each in additive_terms(node, depth=2)]
        np.testing.assert_allclose(sum(values), node.value, rtol=0, atol=1e-12)


def test_terms_that_are_broadcast_before_a_reshape_add_up() -> None:
    x, dy = RNG.standard_normal((2, 6, 3)), RNG.standard_normal((2, 6, 3))
    gamma, beta = RNG.standard_normal(6), RNG.standard_normal(6)
    _, cache = group_norm.forward.reference(  # type: ignore[attr-defined]
        x, gamma, beta, num_groups=2
    )
    program = trace(group_norm.backward, dy, cache)
    for node in program.result:
        for depth in (1, 2, 3):
            values = [each.value(program, node) for each in additive_terms(node, depth=depth)]
            np.testing.assert_allclose(sum(values), node.value, rtol=0, atol=1e-12)
