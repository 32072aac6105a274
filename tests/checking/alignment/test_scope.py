"""The values and the definitions that changes of a function are made from."""

from __future__ import annotations

import ast

import numpy as np

from handgrad.checking.alignment.pieces import Call
from handgrad.checking.alignment.scope import CallScope
from handgrad.checking.alignment.wording import mark_modules, said

TEXT = """
def backward(dy, states):
    m = dy.mean(0)
    other = dy
    dy = dy + m
    for t in range(2):
        n = dy * states[0]
        n = n - m
    return n
"""


def scope() -> CallScope:
    function = ast.parse(TEXT).body[0]
    assert isinstance(function, ast.FunctionDef)
    dy = np.random.default_rng(0).standard_normal((3, 4))
    names = {"dy": dy, "states": [dy, 2 * dy], "t": 1, "m": dy.mean(0), "n": dy}
    return CallScope(function, Call(compile("0", "example", "eval"), names, {}))


def test_an_element_of_a_list_whose_name_holds_that_of_the_step_is_at_hand() -> None:
    found = {ast.unparse(node): value for node, value in scope().atoms}
    np.testing.assert_array_equal(found["states[t]"], 2 * found["dy"])


def test_a_term_that_is_a_variable_set_once_is_told_with_what_it_is() -> None:
    own = scope()
    assert own.explained("m") == "m = mean(dy)"
    assert own.explained("−m") == "−m = −mean(dy)"
    assert [own.explained(part) for part in ("n", "dy", "other", "dy m")] == [
        *("n", "dy", "other", "dy m")
    ]


def test_a_function_of_a_module_is_read_by_its_arguments() -> None:
    function = ast.parse("def f(xp, x):\n    return xp.sum(x, 0), x.sum(0)").body[0]
    mark_modules(function, {"xp": np, "x": np.zeros(2)})
    found = [said(node) for node in ast.walk(function) if isinstance(node, ast.Call)]
    assert found == ["sum(x)", "sum(x)"]
