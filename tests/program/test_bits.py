"""The program of every op gives the op's own bits, and gives them again when it is run again."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from handgrad.ops import OPS
from handgrad.ops.samples import forward_arguments, sample_inputs
from handgrad.program import Node, Program, mapped, node, recorded
from handgrad.program.loops import rolled
from handgrad.program.run import run
from handgrad.program.sizes import Size
from handgrad.program.trace import Tracer, unwrap
from handgrad.program.trace import run as trace
from tests.program.rerunning import rerun
from tests.tolerances import assert_close


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


def traced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call by the interpreter, from the program that derivations are made of."""
    world = node.World()
    inputs: list[node.Node] = []

    def given(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        shape, kind = tuple(map(Size.of, value.shape)), value.dtype.kind.replace("u", "i")
        inputs.append(node.Node("input", (), {}, shape, kind, value, f"x{len(inputs)}"))
        return Tracer(inputs[-1])

    bound = inspect.signature(function).bind(*args, **kwargs)
    with node.within(world):
        world.events = []
        result = unwrap(trace(function, mapped(given, dict(bound.arguments))))
        made = [each for each in leaves(result) if isinstance(each, node.Node)]
        program = node.Program(inputs, rolled(made))
        found = iter(run(program, [each.value for each in inputs], world.lengths))
    return [next(found) if isinstance(each, node.Node) else each for each in leaves(result)]


def leaves(nested: Any) -> list[Any]:
    found: list[Any] = []
    mapped(found.append, nested)
    return found


@pytest.mark.parametrize("op", OPS)
def test_traced_programs_of_ops(op: str) -> None:
    module = import_module(f"handgrad.ops.{op}")
    forward, backward = module.forward.reference, module.backward.reference
    rng = np.random.default_rng(0)
    args, kwargs = forward_arguments(op, next(iter(sample_inputs(op, rng))))
    y, cache = forward(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    dy = mapped(lambda value: np.asarray(rng.standard_normal(np.shape(value))), y)
    found = [*traced(forward, *args, **kwargs), *traced(backward, dy, cache)]
    for one, other in zip(found, leaves(((y, cache), backward(dy, cache))), strict=True):
        if isinstance(other, np.ndarray):
            assert_close(one, other, "other arrays")
