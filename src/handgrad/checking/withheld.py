"""Values that backward asks for by a name which forward has and does not hand on."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any


def withheld(
    forward: Callable[..., Any],
    roles: Sequence[tuple[str, str | int]],
    inputs: Sequence[str],
) -> tuple[str, ...]:
    """One sentence for each argument of backward that stands for a variable of forward's own.

    `roles` are the names of backward's arguments with what they are given: the number of an input,
    or a word for what forward returned. A name of which forward has a value that it neither returns
    nor keeps was given something else.
    """
    function = inspect.unwrap(forward)
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    own = {*code.co_varnames[code.co_argcount + code.co_kwonlyargcount :], *code.co_cellvars}
    handed = _handed_on(function)
    found = []
    for name, role in roles:
        given = inputs[role] if isinstance(role, int) else "y" if role == "output" else ""
        if given and name in own and name not in (*inputs, *handed):
            found.append(
                f"backward asks for {name}, which forward makes and does not return: it was given "
                f"{given} in its place; allowed: (y, cache) with {name} in it"
            )
    return tuple(found)


def _handed_on(function: Callable[..., Any]) -> set[str]:
    """Names in what a function returns or stores in objects; all of them where it has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return {*getattr(function, "__code__").co_varnames}  # noqa: B009
    kept: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            whole = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            kept += [each for each in whole if not isinstance(each, ast.BinOp | ast.Call)]
        elif isinstance(node, ast.Assign) and not all(
            isinstance(e, ast.Name) for e in node.targets
        ):
            kept.append(node.value)
    return {each.id for part in kept for each in ast.walk(part) if isinstance(each, ast.Name)}
