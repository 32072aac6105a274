"""What the reader reads, and what it refuses with the line it stands on."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import trees
from handgrad.ops import layer_norm
from handgrad.trees import nodes


def test_a_dispatched_op_is_read_as_its_reference() -> None:
    tree = trees.read(layer_norm.forward)
    assert [(each.name, each.shape) for each in tree.parameters] == [
        ("x", "*batch D"),
        ("gamma", "D"),
        ("beta", "D"),
        ("eps", ""),
    ]
    assert tree.doc.startswith("Layer normalisation")
    assert isinstance(tree.body[-1], nodes.Return)


def test_alternatives_of_a_shape_stay_in_order() -> None:
    def forward(x: Float[Array, "C"] | Float[Array, "N C"]) -> None:
        return x

    assert trees.read(forward).parameters[0].shape == "C or N C"


def test_sums_and_products_are_flat_and_brackets_nest() -> None:
    def function(a, b, c):  # type: ignore[no-untyped-def]
        return a - b + c * (a - b) / 2

    (returned,) = trees.read(function).body
    assert isinstance(returned, nodes.Return)
    assert isinstance(returned.value, nodes.Sum)
    assert [term.sign for term in returned.value.terms] == [1, -1, 1]
    product = returned.value.terms[2].value
    assert isinstance(product, nodes.Product)
    assert [factor.inverse for factor in product.factors] == [False, False, True]


def test_a_check_stays_out() -> None:
    def function(a):  # type: ignore[no-untyped-def]
        if a.ndim != 2:
            raise ValueError("two axes")
        assert a.size > 0
        return -a

    assert len(trees.read(function).body) == 1


def _writes(dy):  # type: ignore[no-untyped-def]
    dy[0] = 0.0
    return dy


def _loops(dy):  # type: ignore[no-untyped-def]
    while dy > 1:
        dy = dy / 2
    return dy


def _compares(dy):  # type: ignore[no-untyped-def]
    return 0 < dy < 1


@pytest.mark.parametrize(
    ("function", "what"),
    [(_writes, r"assigning to dy\[0\]"), (_loops, "While"), (_compares, "`0 < dy < 1`")],
)
def test_what_cannot_be_read_is_named_with_its_line(function, what) -> None:  # type: ignore[no-untyped-def]
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(trees.TreeError, match=rf"{function.__name__}, line {line}: .*{what}"):
        trees.read(function)


def test_a_function_without_source_is_named() -> None:
    with pytest.raises(trees.TreeError, match="source cannot be read"):
        trees.read(np.exp)


def test_loops_collect_what_each_step_makes() -> None:
    def function(x, u):  # type: ignore[no-untyped-def]
        h, states = x[0], ()
        for step in range(3):
            h = np.tanh(h * u + x[step])
            states = (*states, h)
        return np.stack(states)

    x, u = np.random.default_rng(0).standard_normal((2, 3, 4))
    np.testing.assert_array_equal(trees.run(trees.read(function), x, u), function(x, u))


def backward_half(dy, cache):  # type: ignore[no-untyped-def]
    total = dy * cache
    half = total / 2
    return half, cache


def _in_parts(dy, cache):  # type: ignore[no-untyped-def]
    half, kept = backward_half(dy, cache)
    return half + kept


def _in_parts_with_a_name_of_both(dy, cache):  # type: ignore[no-untyped-def]
    total = dy + cache
    half, kept = backward_half(dy, cache)
    return total + half + kept


def _in_parts_with_other_arguments(dy, x):  # type: ignore[no-untyped-def]
    half, kept = backward_half(dy, x)
    return half + kept


def test_a_backward_in_parts_is_read_as_one() -> None:
    tree = trees.read(_in_parts)
    names = [each.target for each in tree.body if isinstance(each, nodes.Assign)]
    assert names == [nodes.Name("total"), nodes.Name("half"), nodes.Name("kept")]
    lines = [each.line for each in tree.body if isinstance(each, nodes.Assign | nodes.Return)]
    start = backward_half.__code__.co_firstlineno
    assert lines == [start + 1, start + 2, start + 3, _in_parts.__code__.co_firstlineno + 2]


@pytest.mark.parametrize(
    "function", [_in_parts, _in_parts_with_a_name_of_both, _in_parts_with_other_arguments]
)
def test_parts_give_what_the_function_gives(function) -> None:  # type: ignore[no-untyped-def]
    dy, cache = np.random.default_rng(0).standard_normal((2, 3))
    np.testing.assert_array_equal(trees.run(trees.read(function), dy, cache), function(dy, cache))
