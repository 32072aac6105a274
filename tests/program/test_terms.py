"""The terms of a gradient add up to it."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from handgrad.checking.trial import random_like
from handgrad.ops import OPS, batch_norm, layer_norm
from handgrad.ops.samples import forward_arguments, sample_inputs
from handgrad.program import Execution, Node, Program, recorded
from handgrad.program.terms import additive_terms
from tests.rows import rows
from tests.tolerances import assert_close

RNG = np.random.default_rng(0)


def program_of_layer_norm() -> Program:
    x, gamma, beta, dy = (RNG.standard_normal(shape) for shape in ((4, 5), (5,), (5,), (4, 5)))
    _, cache = layer_norm.forward.reference(x, gamma, beta)  # type: ignore[attr-defined]
    return recorded(layer_norm.backward, dy, cache)


def gradient(program: Program, number: int) -> Node:
    node = program.result[number]
    assert isinstance(node, Node)
    return node


def test_the_terms_of_layer_norm() -> None:
    program = program_of_layer_norm()
    dx = gradient(program, 0)
    terms = additive_terms(dx)
    assert [each.label for each in terms] == ["dx̂", "−mean(dx̂)", "−x̂ mean(dx̂ x̂)"]
    values = [each.value(Execution(program)) for each in terms]
    np.testing.assert_allclose(sum(values), dx.value, rtol=0, atol=1e-12)
    by_name = {node.name: node.value for node in program.nodes}
    mean = -by_name["mean_dx_hat"] * by_name["inv_std"]
    np.testing.assert_allclose(values[1], np.broadcast_to(mean, dx.value.shape), rtol=1e-12)


def test_terms_of_another_depth_add_up_too() -> None:
    program = program_of_layer_norm()
    for node in program.result:
        for depth in (1, 2, 3):
            values = [
                np.broadcast_to(each.value(Execution(program)), node.value.shape)
                for each in additive_terms(node, depth=depth)
            ]
            np.testing.assert_allclose(sum(values), node.value, rtol=0, atol=1e-12)


@rows("op", OPS)
def test_terms_of_every_gradient_add_up(op: str) -> None:
    module = import_module(f"handgrad.ops.{op}")
    for sample in sample_inputs(op, RNG):
        if sample.situation not in ("usual", "option"):
            continue  # large terms that cancel
        args, kwargs = forward_arguments(op, sample)
        y, cache = module.forward.reference(*args, **kwargs)
        program = recorded(module.backward, random_like(y, RNG), cache)
        run = Execution(program)
        results = program.result if isinstance(program.result, tuple) else (program.result,)
        for node in results:
            for depth in (1, 3):
                if isinstance(node, Node) and np.size(node.value):
                    terms = additive_terms(node, depth=depth)
                    total = sum(each.value(run) for each in terms)
                    assert_close(total, node.value, "float64", f"{op}, {sample.label} at {depth}")


def test_terms_of_batch_norm_add_up() -> None:
    x, dy = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 3))
    gamma, beta = RNG.standard_normal(3), RNG.standard_normal(3)
    mean, var = np.zeros(3), np.ones(3)
    (_, *_), cache = batch_norm.forward.reference(  # type: ignore[attr-defined]
        x, gamma, beta, mean, var, training=True
    )
    program = recorded(batch_norm.backward, dy, cache)
    for node in program.result:
        values = [each.value(Execution(program)) for each in additive_terms(node, depth=2)]
        np.testing.assert_allclose(sum(values), node.value, rtol=0, atol=1e-12)
