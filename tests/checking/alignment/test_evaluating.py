"""Expressions have the values that Python gives them, or none."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest

from handgrad.checking.alignment.changes import Place
from handgrad.checking.alignment.evaluating import evaluated
from handgrad.checking.alignment.pieces import Call
from handgrad.checking.alignment.replacing import of_expression
from handgrad.checking.alignment.scope import CallScope

X: Final = np.random.default_rng(0).standard_normal((3, 4))
NAMES: Final[dict[str, Any]] = {
    "x": X,
    "n": 3,
    "steps": [X, 2 * X],
    "layer": SimpleNamespace(w=X.T, sizes={"in": 4}),
}


def value(text: str, results: dict[str, Any] | None = None) -> Any:
    return evaluated(ast.parse(text, mode="eval").body, {"np": np}, NAMES, results or {})


@pytest.mark.parametrize(
    "text",
    [
        "-x + 2 * x ** 2 / n // 1 % 5",
        "x @ layer.w - np.outer(x[0, :3], x[:, 1])",
        "x[1:, ::-1][..., None]",
        "np.sum(x, axis=(0, 1), keepdims=True)",
        "x.reshape(-1, n).T.copy()",
        "steps[n - 2][not n]",
        "layer.sizes['in'] if 0 < n <= 3 != 4 else x",
        "[n, float(n), +n, ~n][n is not None]",
        "n in [1, 2, 3] and None",
        "0 < n > 7 < x",
        "(x > 0) & (x < 1) | (x == 2)",
    ],
)
def test_as_in_python(text: str) -> None:
    expected = None if " and " in text else eval(text, {"np": np}, NAMES)
    np.testing.assert_array_equal(value(text), expected)


@pytest.mark.parametrize(
    "text", ["print(n)", "x.sort()", "unknown + 1", "x @ x", "np.sum(*steps)", "np.sum(**layer)"]
)
def test_none_for_what_changes_something_or_is_not_known(text: str) -> None:
    before = X.copy()
    assert value(text) is None
    np.testing.assert_array_equal(X, before)


def test_the_result_of_a_call_is_that_which_it_gave() -> None:
    np.testing.assert_array_equal(value("2 * layer.run(x)", {"layer.run(x)": X}), 2 * X)


def test_a_list_is_never_told_to_hold_itself() -> None:
    function = ast.parse("def f(x, y, parts):\n    parts.append(x)").body[0]
    assert isinstance(function, ast.FunctionDef)
    line = function.body[0]
    assert isinstance(line, ast.Expr)
    assert isinstance(line.value, ast.Call)
    names = {"x": X, "y": X + 1, "parts": np.array([X, X])}
    scope = CallScope(function, Call(compile("0", "example", "eval"), names, {}))
    place = Place(line.value, "args", 0)
    new = [ast.unparse(each[0]) for each in of_expression(place, place.get(), scope)]
    assert "y" in new
    assert "parts" not in new
