"""A change is made in the tree and taken back, whatever the new node is made of."""

from __future__ import annotations

import ast

from handgrad.checking.alignment.changes import Change, Place


def test_a_place_takes_what_holds_it() -> None:
    """As where a + b stands for b: the tree stays a tree."""
    tree = ast.parse("y = a + b")
    statement = tree.body[0]
    assert isinstance(statement, ast.Assign)
    whole = statement.value
    change = Change(Place(whole, "right"), whole, "name", "b", "{}", statement)
    with change.made():
        assert ast.unparse(tree) == "y = a + (a + b)"
        compile(tree, "example", "exec")
    assert ast.unparse(tree) == "y = a + b"


def test_two_places_take_what_stands_in_the_other() -> None:
    tree = ast.parse("y = f(a, b)")
    statement = tree.body[0]
    assert isinstance(statement, ast.Assign)
    call = statement.value
    assert isinstance(call, ast.Call)
    first, second = call.args
    change = Change(
        Place(call, "args", 0),
        second,
        "name",
        "b",
        "{}",
        statement,
        ((Place(call, "args", 1), first),),
    )
    with change.made():
        assert ast.unparse(tree) == "y = f(b, a)"
    assert ast.unparse(tree) == "y = f(a, b)"
