"""The tree of every op gives the op's own result, bit for bit: what is printed is what runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from handgrad import trees
from handgrad.dispatch import engine
from handgrad.ops import OPS
from tests.ops.cases import CASES, Case, each


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def _assert_same_bits(actual: Any, expected: Any) -> None:
    for ours, theirs in zip(_flat(actual), _flat(expected), strict=True):
        if isinstance(theirs, np.ndarray):
            assert ours.dtype == theirs.dtype
            assert ours.shape == theirs.shape
            assert ours.tobytes() == theirs.tobytes()
        else:
            np.testing.assert_equal(ours, theirs)


@each([case for case in CASES if not case.row.large])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tree_is_the_op(case: Case, dtype: str) -> None:
    forward, backward = trees.read(case.module.forward), trees.read(case.module.backward)
    arrays = case.arrays(dtype)
    arguments = case.arguments(arrays)
    with engine("reference"):
        y, cache = case.module.forward(*arguments.args, **arguments.kwargs)
    again = case.arguments(arrays)
    _assert_same_bits(trees.run(forward, *again.args, **again.kwargs), (y, cache))
    dy = case.random_like(y, "dy", dtype)
    gradients = case.module.backward(dy, cache)
    _assert_same_bits(trees.run(backward, dy, cache), gradients)


def test_every_op_has_a_case() -> None:
    assert {case.op for case in CASES} == set(OPS)


def test_a_definition_holds_at_the_end_of_the_run() -> None:
    def function(x):  # type: ignore[no-untyped-def]
        h = x
        for _ in range(3):
            before = h
            h = before * x
            total = before + h
        return total

    run = trees.trace(trees.read(function), 2.0)
    total = run.definition("total")
    assert total is not None
    assert trees.evaluate(total, run.environment) == run.result == 24.0
    assert run.definition("before") is None, "h has moved on since"
    assert run.definition("x") is None
