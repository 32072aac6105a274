"""The program of every op gives the op's own bits, and gives them again when it is run again."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from handgrad.ops import OPS
from handgrad.ops.samples import forward_arguments, sample_inputs
from handgrad.program import Node, Program, mapped, recorded, rerun


def bits(nested: Any) -> Any:
    """The bytes of all arrays and nodes, in order."""
    found = []

    def look(value: Any) -> None:
        value = value.value if isinstance(value, Node) else value
        if isinstance(value, np.ndarray | np.generic):
            found.append(np.asarray(value).tobytes())

    mapped(look, nested)
    return found


def check(program: Program, expected: Any) -> None:
    assert bits(program.result) == bits(expected)
    again = rerun(program.nodes, {n: n.value for n in program.nodes if n.function is None})
    assert [n for n in program.nodes if bits(again.get(n, n.value)) != bits(n.value)] == []


@pytest.mark.parametrize("op", OPS)
def test_programs_of_ops(op: str) -> None:
    module = import_module(f"handgrad.ops.{op}")
    rng = np.random.default_rng(0)
    for sample in sample_inputs(op, rng):
        args, kwargs = forward_arguments(op, sample)
        y, cache = module.forward.reference(*args, **kwargs)
        args, kwargs = forward_arguments(op, sample)
        check(recorded(module.forward, *args, **kwargs), (y, cache))

        def cotangent(value: Any) -> Any:
            return np.asarray(rng.standard_normal(np.shape(value)))

        dy = mapped(cotangent, y)
        check(recorded(module.backward, dy, cache), module.backward.reference(dy, cache))
