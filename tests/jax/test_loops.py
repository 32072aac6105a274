"""References with their loops over time scanned: the same results, and the code of one step."""

from __future__ import annotations

from typing import Any

import pytest

from handgrad import ops
from handgrad.dispatch import engine
from handgrad.dispatch.translation import translating
from tests.ops.cases import ORDINARY_CASES, Case, each
from tests.ops.test_array_libraries import assert_outputs_close, expected_results
from tests.tolerances import assert_close

jax = pytest.importorskip("jax")
loops = pytest.importorskip("handgrad.jax.loops")

OPS = ("rnn", "leaky_rnn", "gru", "lstm", "ctc_loss")
CASES = [case for case in ORDINARY_CASES if case.op in OPS and not case.row.large]
ONE_PER_OP = tuple({case.op: case for case in reversed(CASES)}.values())


@each(ONE_PER_OP)
def test_the_results_are_those_of_the_reference(case: Case) -> None:
    dy, expected_y, expected = expected_results(case)

    @jax.jit
    def step(arrays: Any, dy: Any) -> Any:
        with engine("reference"), translating(loops.scanned):
            y, cache = case.forward(arrays)
            return y, case.backward(dy, cache)

    y, gradients = step(case.arrays(), dy)
    assert_outputs_close(y, expected_y)
    for name in case.differentiable:
        assert_close(gradients[name], expected[name], "other arrays", f"d{name}")


def test_a_function_without_loops_stays_as_it_is() -> None:
    for op in (ops.dense, ops.conv2d, ops.matmul):
        assert loops.scanned(op.forward.reference) is op.forward.reference


def test_a_loop_that_hangs_on_values_runs_as_it_is() -> None:
    def halved(x: Any) -> Any:
        for _ in range(3):
            if x.sum() > 1:
                x = x / 2
        return x

    halve = loops.scanned(halved)
    assert halve is not halved
    assert halve(jax.numpy.asarray([4.0, 8.0])).tolist() == [0.5, 1.0]


@each(CASES)
def test_all_loops_are_scanned(case: Case) -> None:
    """No case of several steps falls back on its loop as it is written."""
    arrays = {name: jax.numpy.asarray(array) for name, array in case.arrays().items()}

    def step(arrays: Any) -> Any:
        with engine("reference"), translating(loops.scanned):
            y, cache = case.forward(arrays)
            return case.backward(jax.tree.map(jax.numpy.ones_like, y), cache)

    scans = str(jax.make_jaxpr(step)(arrays)).count("scan[")
    assert scans >= 2 or arrays["x"].shape[1] == 1


@each(ONE_PER_OP)
def test_more_steps_are_no_more_code(case: Case) -> None:
    def code(steps: int) -> list[str]:
        arrays = {name: jax.numpy.asarray(array) for name, array in case.arrays().items()}
        batch, _, features = arrays["x"].shape
        arrays["x"] = jax.numpy.zeros((batch, steps, features))

        def step(arrays: Any) -> Any:
            with engine("reference"), translating(loops.scanned):
                y, cache = case.forward(arrays)
                return case.backward(jax.tree.map(jax.numpy.ones_like, y), cache)

        return str(jax.make_jaxpr(step)(arrays)).splitlines()

    assert len(code(4)) == len(code(40))
