"""The constructs that a forward contains, read from its source and that of its helpers."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from handgrad.program.functions import comes_from_library
from handgrad.targets import pair_of

#: Functions that are read; strangers' helpers call helpers.
_MOST: Final = 60
#: A number of a source that is no more than this is there against a division by 0.
_TINY: Final = 1e-6


def contents(target: Any) -> frozenset[str]:
    """The names of functions that are called and kinds of syntax, such as "argmax" and "index".

    Of a target whose source cannot be read, as of compiled code, nothing.
    """
    found: set[str] = set()
    try:
        for tree, _ in _sources(_forwards(target)):
            for node in ast.walk(tree):
                found |= set(_of_node(node))
    except Exception:  # a stranger's objects may raise as they are asked for an attribute
        return frozenset(found)
    return frozenset(found)


def guard_of(target: Any) -> float:
    """The largest of the tiny numbers that keep forward or backward from dividing by 0.

    At most 1e-6, as the 1e-7 in log(p + 1e-7); 0.0 where there is none.
    """
    found: list[Any] = [0.0]
    try:
        pair = pair_of(target)
        for tree, function in _sources([*_forwards(target), *(pair or ())]):
            known = function.__globals__
            for node in ast.walk(tree):
                match node:
                    case ast.Constant(value=value):
                        found.append(value)
                    case ast.Name(id=name):
                        found.append(known.get(name))
                    case ast.Attribute(value=ast.Name(id=name), attr=attr):
                        owner = getattr(target, "__dict__", {}) if name == "self" else {}
                        found.append(owner.get(attr, getattr(known.get(name), attr, None)))
    except Exception:  # a stranger's objects may raise as they are asked for an attribute
        return 0.0
    return max(each for each in found if isinstance(each, float) and 0.0 <= each <= _TINY)


def _of_node(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            yield name
        case ast.Subscript(slice=index) if _is_of_values(index):
            yield "index"
        case ast.BinOp(op=ast.MatMult()):
            yield "matmul"
        case ast.BinOp(op=ast.Pow()):
            yield "power"
        case ast.Compare():
            yield "compare"
        case ast.For() | ast.While() | ast.comprehension():
            yield "loop"


def _is_of_values(index: ast.expr) -> bool:
    """Return whether an index may be an array: it names something, outside of its slices."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(each, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Compare)
        for each in parts
    )


def _sources(functions: Sequence[Any]) -> Iterator[tuple[ast.Module, Any]]:
    """The syntax of functions and of those that they call, each once, with the function."""
    waiting: list[tuple[Any, Any]] = [(each, None) for each in functions]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        function, owner = waiting.pop(0)
        owner = getattr(function, "__self__", owner)
        function = inspect.unwrap(getattr(function, "__func__", function))
        if not inspect.isfunction(function) or id(function) in seen:
            continue
        seen.add(id(function))
        if comes_from_library(function):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError, ValueError):
            continue
        yield tree, function
        waiting += [(each, owner) for each in _called(tree, function, owner)]


def _forwards(target: Any) -> list[Callable[..., Any]]:
    target = getattr(target, "function", target)  # arguments in structures
    target = getattr(target, "fun", target)  # a function of JAX with rules of its own
    if isinstance(target, functools.partial):
        target = target.func
    if getattr(target, "__name__", "") == "apply":
        target = getattr(target, "__self__", target)
    pair = pair_of(target)
    found = [] if pair is None else [pair[0]]
    found += [each for each in (getattr(target, "forward", None), target) if callable(each)]
    return found


def _called(tree: ast.Module, function: Any, owner: Any) -> Iterator[Any]:
    """The functions that are called by a name of the module, or as attributes of the object."""
    inner = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                try:
                    found = inner[name].cell_contents if name in inner else None
                except ValueError:  # not assigned yet
                    found = None
                found = function.__globals__.get(name) if found is None else found
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                found = getattr(owner, name, None)
            case ast.Call(func=ast.Attribute(attr="forward")) if owner is not None:
                for each in _held(owner):
                    yield each.forward
                continue
            case _:
                continue
        is_code = inspect.isroutine(found)
        yield found if is_code else getattr(found, "forward", None)


def _held(owner: Any) -> Iterator[Any]:
    """The objects with a forward that an object holds, as a network holds its layers."""
    for value in list(vars(owner).values()) if hasattr(owner, "__dict__") else ():
        several = value.values() if isinstance(value, dict) else value
        for each in several if isinstance(several, list | tuple) or several is not value else ():
            if callable(getattr(each, "forward", None)):
                yield each
        if callable(getattr(value, "forward", None)):
            yield value
