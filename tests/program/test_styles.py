"""Programs of code as people write it: loops, stores, views, classes, closures, comprehensions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from handgrad.program import Node, Recorder, mapped, recorded, values_of
from tests.program import styles
from tests.program.rerunning import rerun
from tests.program.test_bits import bits, check

RNG = np.random.default_rng(0)


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


RNN: Any = some(2, 3, 4), some(4, 5), some(5, 5), some(5)
_, RNN_CACHE = styles.rnn(*RNN)  # type: ignore[no-untyped-call]
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (styles.rnn, RNN),
    (styles.rnn_back, (some(2, 3, 5), RNN_CACHE)),
    (styles.net, (some(3, 4), some(4, 4))),
    (styles.views, (some(4, 4),)),
    (styles.lists, (some(3, 4),)),
    (styles.control, (some(4, 4),)),
    (styles.closure, (some(3, 4),)),
    (styles.inherit, (some(3, 4),)),
    (styles.bound_methods, (some(3, 4),)),
]
each_style = pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)


@each_style
def test_the_bits_are_those_of_the_function(case: Any) -> None:
    function, args = case
    expected = function(*copy.deepcopy(args))
    check(recorded(function, *copy.deepcopy(args)), expected)


@each_style
def test_on_other_values_it_computes_what_the_function_computes(case: Any) -> None:
    function, args = case
    program = recorded(function, *copy.deepcopy(args))
    other = mapped(lambda each: each + 0.1 * np.sin(each), args)
    given: dict[Node, Any] = {}

    def take(node: Any, value: Any) -> None:
        if isinstance(node, Node):
            given[node] = value
        elif isinstance(node, tuple):
            for each in zip(node, value, strict=True):
                take(*each)

    for node, value in zip(program.arguments.values(), other, strict=False):
        take(node, value)
    found = rerun(program.nodes, given)
    assert bits(values_of(program.result, found)) == bits(function(*copy.deepcopy(other)))


def test_names_lines_and_rounds() -> None:
    program = recorded(styles.rnn, *copy.deepcopy(RNN))
    sums = [node for node in program.nodes if node.name == "a"]
    assert [node.op for node in sums] == ["add", "add", "add"]
    assert [[each.number for each in node.rounds] for node in sums] == [[0], [1], [2]]
    assert len({node.line for node in sums}) == 1
    assert sums[0].site is not None
    assert sums[0].site.text == "x[:, t] @ wx + h[:, t] @ wh + b"
    assert {each.name for each in program.inputs} == {"x", "wx", "wh", "b"}
    assert all(node.frame.name == "rnn" for node in program.nodes)


def test_helper_functions_are_followed() -> None:
    program = recorded(styles.control, some(4, 4))
    (product,) = (n for n in program.nodes if n.op == "matmul" and n.frame.name == "helper")
    assert product.frame.caller is program.frame
    assert product.frame.site is not None
    assert product.frame.site.text.startswith("g(")
    assert any(each.name == "W0" for each in program.inputs)


def test_a_function_that_calls_itself_is_followed() -> None:
    program = recorded(styles.summed, ((some(2), some(2)), some(2)))
    assert [node.op for node in program.nodes if node.op == "multiply"] == ["multiply"] * 3
    assert {node.frame.name for node in program.nodes} == {"summed"}


def test_properties_and_attributes_by_name_are_read() -> None:
    halves = styles.Halves(some(4, 3))
    program = recorded(halves.forward, some(5, 2))
    (product,) = (node for node in program.nodes if node.op == "matmul")
    part = product.args[1]
    assert part.op == "getitem"
    assert part.args[0].value is halves.w


def test_a_backward_uses_the_nodes_of_its_forward() -> None:
    recorder = Recorder()
    forward = recorder.run(styles.rnn, *copy.deepcopy(RNN))
    y, cache = values_of(forward.result)
    backward = recorder.run(styles.rnn_back, np.ones_like(y), cache)
    assert [each.name for each in backward.inputs] == ["dy"]
    assert set(backward.arguments["cache"]) <= set(forward.nodes)


def test_what_a_branch_hangs_on() -> None:
    program = recorded(styles.control, some(4, 4), mode="b")
    tests = {each.site.text: each.taken for each in program.branches}
    assert tests['mode == "a"'] is False
    assert all(each.node is None for each in program.branches if each.site.text == "k < 3")


def test_errors_are_passed_on() -> None:
    with pytest.raises(ValueError, match="matmul"):
        recorded(styles.rnn, some(2, 3, 4), some(3, 5), some(5, 5), some(5))
