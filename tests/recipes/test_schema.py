from __future__ import annotations

import pytest

from handgrad.errors import RecipeError
from handgrad.recipes.schema import (
    AxisSizes,
    Either,
    Flag,
    Integer,
    Key,
    Real,
    Several,
    String,
    check_table,
    check_typed,
)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Integer(1), [1, 7], [0, 1.0, True, "1", [1]]),
        (Integer(0, 3), [0, 3], [4, -1]),
        (Real(0), [0, 0.5, 3], [-0.1, float("inf"), float("nan"), True, "0"]),
        (Real(0, 1), [0, 1], [1.1]),
        (Real(above=0, least=None), [1e-9], [0]),
        (Real(0, below=1), [0, 0.99], [1]),
        (Real(None), [-5], ["x"]),
        (String(), ["", "a"], [1]),
        (String(("a", "b")), ["a"], ["c"]),
        (Flag(), [True, False], [0, 1, "true"]),
        (Several(Integer(1)), [[], [1, 2]], [1, [0], "12"]),
        (Several(Integer(1), (2,)), [[1, 2]], [[1], [1, 2, 3]]),
        (AxisSizes(1), [3, [3], [3, 5]], [0, [0, 1], [1, 2, 3], []]),
        (Either(AxisSizes(1), String(("global",))), [2, "global"], ["local", 0]),
    ],
)
def test_a_kind_takes_what_it_says(kind, good, bad):
    assert all(kind.fits(value) for value in good)
    assert not any(kind.fits(value) for value in bad)
    assert kind.allowed


KEYS = {"size": Key(Integer(1), required=True), "mode": Key(String(("fast", "slow")))}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"size": 1, "sise": 2}, "top.sise is an unknown key; allowed: size, mode; .*mean size?"),
        ({"size": 1, "zzz": 2}, "top.zzz is an unknown key; allowed: size, mode$"),
        ({"size": 0}, "top.size is 0; allowed: an integer of at least 1"),
        ({"size": "many"}, 'top.size is "many"; allowed'),
        ({"size": True}, "top.size is true; allowed"),
        ({}, "top.size is missing; allowed: an integer of at least 1"),
        ({"size": 1, "mode": "fst"}, 'top.mode is "fst"; allowed: fast, slow; did you mean fast?'),
        ([1], r"top is \[1\]; allowed: a table"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(table, message):
    with pytest.raises(RecipeError, match=message):
        check_table("top", table, KEYS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "top.type is missing; allowed: a, b"),
        ({"type": 3}, "top.type is 3; allowed: a, b"),
        ({"type": "c"}, 'top.type is "c"; allowed: a, b'),
        ({"type": "b", "size": 1}, "top.size is an unknown key; allowed: type$"),
        ("a", 'top is "a"; allowed: a table with a type'),
    ],
)
def test_a_type_decides_which_keys_there_are(table, message):
    with pytest.raises(RecipeError, match=message):
        check_typed("top", table, {"a": KEYS, "b": {}})


def test_a_right_table_comes_back():
    assert check_typed("top", {"type": "a", "size": 2}, {"a": KEYS}) == ("a", {"size": 2})


@pytest.mark.parametrize("value", [2**63, 10**400], ids=["64 bits", "large"])
def test_integers_beyond_63_bits_are_refused(value):
    assert not Integer(1).fits(value)


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), float("inf"), float("nan")], ids=["large", "small", "inf", "nan"]
)
def test_numbers_that_no_float_holds_are_refused(value):
    assert not Real(None).fits(value)
