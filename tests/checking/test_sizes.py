"""Operands that do not fit are reported with their shapes."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.sizes import misfit
from tests.checking.functions import W, X, forward, normal


def raised(function, *arguments):
    with pytest.raises(ValueError, match=r".") as caught:
        function(*arguments)
    return caught.value


def product(a, b):
    return 2.0 * (a.T @ b[0]) + 1.0


# fmt: off
def total(a, b):
    return a[:, 0] + (
        b * 2.0
    )
# fmt: on


def test_a_product_of_matrices():
    found = misfit(raised(product, normal(5, 3), normal(2, 4, 6)))
    assert found == "a.T @ b[0] cannot be computed, a.T being (3, 5) and b[0] (4, 6)"


def test_a_sum_over_several_lines():
    found = misfit(raised(total, normal(5, 3), normal(4)))
    assert found == "a[:, 0] + b * 2.0 cannot be computed, a[:, 0] being (5,) and b * 2.0 (4,)"


def test_a_vector_and_a_number():
    assert "being () and b[0] (4,)" in str(misfit(raised(product, normal()[()], normal(2, 4))))


def test_operands_that_call_a_function_are_not_computed_again():
    calls = []

    def called(a):
        calls.append(a)
        return a

    def function(a, b):
        return called(a) + b

    assert misfit(raised(function, normal(3), normal(4))) is None
    assert len(calls) == 1


def test_other_exceptions_have_their_own_words():
    def refuses(a, b):
        raise ValueError("not today")

    assert misfit(raised(refuses, 1, 2)) is None
    assert misfit(TypeError("without a traceback")) is None


def test_the_report_has_the_shapes_and_the_line():
    def wrong(dy, cache):
        x, w, y = cache
        da = dy * (1.0 - y * y)
        return da @ w, x.T @ da

    (fault,) = hg.check((forward, wrong), X, W).faults[:1]
    assert fault.kind == "raises"
    expected = "backward raises ValueError: da @ w cannot be computed, da being (5, 4) and w (3, 4)"
    assert fault.message.startswith(expected)
    assert f"(line {wrong.__code__.co_firstlineno + 3} of test_sizes.py)" in fault.message


def test_an_exception_without_a_source_is_none():
    code = compile("def function(a, b):\n    return a @ b\n", "<nowhere>", "exec")
    names = {}
    exec(code, names)
    assert misfit(raised(names["function"], np.ones(2), np.ones(3))) is None


def test_a_cell_of_a_notebook_has_a_line(monkeypatch):
    source = "def backward(dy, cache):\n    x, w, y = cache\n    return dy @ w, x.T @ dy\n"
    entry = (len(source), None, source.splitlines(keepends=True), "<cell>")
    monkeypatch.setitem(linecache.cache, "<cell>", entry)
    names = {}
    exec(compile(source, "<cell>", "exec"), names)
    (fault,) = hg.check((forward, names["backward"]), X, W).faults[:1]
    assert fault.message.endswith("dy being (5, 4) and w (3, 4) (line 3)")
