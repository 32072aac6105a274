"""Loops over time for XLA: a reference whose `for` over steps is a `jax.lax.scan`.

XLA compiles every step of a Python loop anew, which takes minutes for a hundred steps of an LSTM.
The references write such loops in one way: a body of assignments over `range` or
`reversed(range)`, which changes some names and puts an array of every step into tuples, which are
stacked afterwards. So the loop can be read from the source, and nothing is written a second time.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import jax

_SCAN: Final = "_scan"
_STACK: Final = "_stack"


@functools.cache
def scanned(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its loops over steps scanned; the function itself where it has none."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(reference))).body[0]
    if not isinstance(definition, ast.FunctionDef) or not any(map(_over_steps, definition.body)):
        return reference
    known = {argument.arg for argument in (*definition.args.args, *definition.args.kwonlyargs)}
    stacks: dict[str, tuple[str, str]] = {}
    body: list[ast.stmt] = []
    for number, statement in enumerate(definition.body):
        if _over_steps(statement):
            assert isinstance(statement, ast.For)
            body += _scan_of(statement, known, f"_step{number}", stacks)
        else:
            body.append(_Stacking(stacks).visit(statement))
        known |= set(_assigned(statement))
    definition.body, definition.decorator_list = body, []
    return _compiled(definition, reference)


def _compiled(definition: ast.FunctionDef, reference: Callable[..., Any]) -> Callable[..., Any]:
    """The function of this definition, which finds in its module what the reference finds there."""
    make = ast.parse(f"def make({_SCAN}, {_STACK}):\n    return {definition.name}").body[0]
    assert isinstance(make, ast.FunctionDef)
    make.body.insert(0, definition)
    module = ast.fix_missing_locations(ast.Module([make], type_ignores=[]))
    made: dict[str, Any] = {}
    # Annotations are not evaluated, as in this file: compile takes over its `from __future__`.
    exec(compile(module, inspect.getfile(reference), "exec"), reference.__globals__, made)
    found: Callable[..., Any] = made["make"](_scan, _stack)
    return found


def _over_steps(node: ast.stmt) -> bool:
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
        return False
    return ast.unparse(node.iter).startswith(("range(", "reversed(range("))


def _scan_of(
    loop: ast.For, known: set[str], name: str, stacks: dict[str, tuple[str, str]]
) -> list[ast.stmt]:
    """The definition of one step and the scan; `stacks` gets the parts of each tuple behind it."""
    backwards = ast.unparse(loop.iter).startswith("reversed")
    steps: list[str] = []
    kept: list[str] = []
    names: list[str] = []
    for statement in loop.body:
        found = _kept(statement, backwards)
        if found is None:
            steps += ast.unparse(statement).splitlines()
            names += _assigned(statement)
        else:
            whole, value = found
            kept.append(f"{name}_{whole}")
            steps.append(f"{kept[-1]} = {ast.unparse(value)}")
            stacks[whole] = (kept[-1], whole) if backwards else (whole, kept[-1])
    carried = "".join(f"{each}, " for each in dict.fromkeys(names) if each in known)
    values = "".join(f"{each}, " for each in kept)
    lines = [
        f"def {name}({name}_carried, {ast.unparse(loop.target)}):",
        f"    ({carried}) = {name}_carried",
        *(f"    {step}" for step in steps),
        f"    return ({carried}), ({values})",
        f"({carried}), ({values}) = {_SCAN}({name}, ({carried}), {ast.unparse(loop.iter)})",
    ]
    return ast.parse("\n".join(lines)).body


def _kept(statement: ast.stmt, backwards: bool) -> tuple[str, ast.expr] | None:
    """The tuple and the array of a step that it takes in; None for other statements.

    That is `hs = (*hs, h)`, or `das = (da_t, *das)` where steps run backwards: either way the tuple
    is in the order of time.
    """
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Tuple):
        return None
    name, parts = ast.unparse(statement.targets[0]), statement.value.elts
    if len(parts) != 2:
        return None
    value, rest = parts if backwards else reversed(parts)
    return (name, value) if ast.unparse(rest) == f"*{name}" else None


class _Stacking(ast.NodeTransformer):
    """`xp.stack(hs, axis=1)` of a tuple that a loop filled, as the stack of its parts."""

    def __init__(self, stacks: dict[str, tuple[str, str]]) -> None:
        self._stacks = stacks

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not ast.unparse(node.func).endswith(".stack"):
            return node
        parts = self._stacks.get(ast.unparse(node.args[0]))
        if parts is None:
            return node
        node.func = ast.Name(_STACK, ast.Load())
        node.args = [ast.Name(part, ast.Load()) for part in parts]
        return node


def _assigned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _scan(
    step: Callable[[Any, Any], tuple[Any, Any]], carried: Any, indices: Iterable[int]
) -> tuple[Any, tuple[Any, ...]]:
    """What the steps change, after the last, and the arrays they keep, in the order of time."""
    backwards = not isinstance(indices, range)
    times = jax.numpy.arange(len(list(indices)))
    found: tuple[Any, tuple[Any, ...]] = jax.lax.scan(step, carried, times, reverse=backwards)
    return found


def _stack(*parts: Any, axis: int) -> Any:
    """Tuples of arrays, and arrays with time first, as one with time as this axis."""
    xp = jax.numpy
    arrays = [
        xp.stack(part, axis=axis) if isinstance(part, tuple) else xp.moveaxis(part, 0, axis)
        for part in parts
        if not isinstance(part, tuple) or part
    ]
    return xp.concatenate(arrays, axis=axis)
