"""On which library's arrays a function is written, and what it reaches."""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any, Final

import numpy as np

from handgrad.program.jax_arrays import at
from handgrad.program.jax_arrays.module import within_jax
from handgrad.program.source import nested
from handgrad.program.tensors.module import ATTRIBUTES
from handgrad.program.tensors.parameters import is_module, scripted

#: Attributes by which a function is known to be one on tensors, and keywords.
_OF_TENSORS: Final = {*(name for name in ATTRIBUTES if not hasattr(np.ndarray, name)), "view"}
_KEYWORDS: Final = {"dim", "keepdim"}
_LIBRARIES: Final = frozenset({"numpy", "torch", "jax"})
_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
#: Packages by names that stand in annotations, also where they are imported for those alone.
_BY_NAME: Final = {"torch": "torch", "Tensor": "torch", "numpy": "numpy", "ndarray": "numpy"}


def attributes_of(*libraries: str) -> Mapping[str, Callable[[Any], Any]]:
    """The attributes of a library's arrays that NumPy's have otherwise; none of several's."""
    own: dict[tuple[str, ...], Any] = {("torch",): ATTRIBUTES, ("jax",): at.ATTRIBUTES}
    return own.get(libraries, {})


def libraries_of(function: Callable[..., Any]) -> set[str]:
    """The library that a function is written for: "numpy", "torch" or "jax".

    Its annotations decide, then what it and the user's functions in it name, then what its module
    imports. There are several where all of these leave it open: for a function of methods that
    the arrays of all have, in a module that has several.
    """
    plain = _plain(function)
    if any(hasattr(each, "takes_tensors") for each in (function, plain)):
        return {"torch"}
    return set(_libraries_of(plain))


@functools.lru_cache(maxsize=256)
def _libraries_of(function: Any) -> Set[str]:
    annotated = _LIBRARIES.intersection(_annotated(function))
    if len(annotated) == 1:
        return annotated
    named = _LIBRARIES.intersection(map(package_of, reached(function)))
    if others := named - {"numpy"}:
        return others & {"torch"} or others
    own = getattr(function, "__globals__", {})
    imported = _LIBRARIES.intersection(map(package_of, own.values())) | named
    if "torch" in imported and (
        not _OF_TENSORS.isdisjoint(_attributes(function))
        or not _KEYWORDS.isdisjoint(_keywords(function))
    ):
        return {"torch"}
    return imported or {"numpy"}


def _annotated(function: Any) -> Iterator[str]:
    """The packages of what the annotations of parameters and results name."""
    names = getattr(function, "__globals__", {})
    for annotation in getattr(function, "__annotations__", {}).values():
        is_text = isinstance(annotation, str)
        text = annotation if is_text else inspect.formatannotation(annotation)
        for name in _named(text):
            yield _BY_NAME.get(name) or package_of(names.get(name))


def _named(text: str) -> Iterator[str]:
    """The names in an annotation."""
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(text, mode="eval")):
            if isinstance(node, ast.Name | ast.Attribute):
                yield node.id if isinstance(node, ast.Name) else node.attr
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _named(node.value)


def _attributes(function: Any) -> Iterator[str]:
    """The names of attributes of values, not those of modules."""
    for code in nested(function.__code__) if hasattr(function, "__code__") else ():
        in_module = False
        for step in dis.get_instructions(code):
            if step.opname in _LOADS:
                value = function.__globals__.get(step.argval)
                in_module = isinstance(value, types.ModuleType)
            elif step.opname not in _ATTRIBUTES:
                in_module = False
            elif not in_module:
                yield str(step.argval)


def _keywords(function: Any) -> Iterator[str]:
    """The names of arguments in calls, among other tuples of texts."""
    for code in nested(function.__code__) if hasattr(function, "__code__") else ():
        for constant in code.co_consts:
            if isinstance(constant, tuple):
                yield from (each for each in constant if isinstance(each, str))


def _plain(function: Any) -> Any:
    """The function that a method, a partial or an object with __call__ runs."""
    while not isinstance(function, types.FunctionType):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif (own := _compiled(function)) is not None:
            function = own
        else:
            called = vars(type(function)).get("__call__")
            if not isinstance(called, types.FunctionType):
                break
            function = called
    return function


def reached(function: Any) -> Iterator[Any]:
    """The values that a function names, and those that the functions and objects in it do."""
    waiting, seen = [function], {id(function)}
    while waiting:
        value = waiting.pop()
        for each in _within(value):
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
                yield each


def _within(value: Any) -> Iterator[Any]:
    """The values that a thing of the user's names or keeps."""
    if isinstance(value, types.FunctionType):
        if package_of(value) not in ("torch", "numpy", "scipy", "jax"):
            yield from _names_of(value)
    elif isinstance(value, types.MethodType):
        yield from (value.__func__, value.__self__)
    elif (own := _compiled(value)) is not None:
        yield own
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif is_module(value) or is_users(value):
        yield from vars(value).values()
        called = getattr(type(value), "forward" if is_module(value) else "__call__", None)
        if isinstance(called, types.FunctionType):
            yield called


def _compiled(value: Any) -> Any:
    """The user's function in one that PyTorch or JAX has made of it; None for others."""
    return scripted(value) or within_jax(value)


def is_users(value: Any) -> bool:
    """True for an object of a class that the user wrote."""
    kind = type(value)
    is_data = hasattr(value, "__dict__") and not isinstance(value, type | types.ModuleType)
    return is_data and kind.__module__.split(".")[0] not in (
        *("torch", "numpy", "jax", "jaxlib", "builtins"),
    )


def _names_of(function: types.FunctionType) -> Iterator[Any]:
    values = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        values[name] = getattr(cell, "cell_contents", None) if _is_filled(cell) else None
    steps = (step for code in nested(function.__code__) for step in dis.get_instructions(code))
    used = {step.argval for step in steps if step.opname in _LOADS}
    yield from (values[name] for name in used if name in values)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # a local function that refers to itself before it is bound
        return False
    return True


def package_of(value: Any) -> str:
    """The package of a thing; of a module its own name's."""
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0]
    if type(value).__module__.split(".")[0] in ("jax", "jaxlib"):
        return "jax"  # also what JAX has made of a function of the user's
    home = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
    return str(home).split(".")[0]
