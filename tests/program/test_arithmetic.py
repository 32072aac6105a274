"""The table of operators is Python's own."""

from __future__ import annotations

import ast

from handgrad.program.arithmetic import BINARY, COMPARISONS, SIGNS, UNARY


def test_every_sign_is_written_as_its_syntax() -> None:
    for sign in SIGNS:
        before, after = ("", " 3") if sign in UNARY else ("7 ", " 2")
        expression = ast.parse(f"{before}{sign.text}{after}", mode="eval").body
        match expression:
            case ast.BinOp(op=found) | ast.UnaryOp(op=found) | ast.Compare(ops=[found]):
                assert type(found) is sign.syntax


def test_every_function_is_that_of_the_sign() -> None:
    for sign in (*BINARY, *COMPARISONS):
        if sign.name != "matmul":
            assert sign.function(7, 2) == eval(f"7 {sign.text} 2")
    for sign in UNARY:
        assert sign.function(7) == eval(f"{sign.text}7")
    values = [1, 2]
    assert next(each for each in BINARY if each.name == "add").in_place(values, [3]) is values
