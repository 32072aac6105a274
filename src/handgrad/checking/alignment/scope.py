"""The values that a function's expressions had when it was last run, and the names it could use."""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, Final, TypeGuard

import numpy as np

from handgrad.checking.alignment.evaluating import NO_RESULTS, Results, evaluated, is_pure
from handgrad.checking.alignment.pieces import Call, Function
from handgrad.checking.alignment.wording import said
from handgrad.checking.object_arrays import has_fields
from handgrad.checking.tensors import as_values

#: Letters of a formula that is told beside its name.
_SHORT: Final = 24


class CallScope:
    """What expressions of one function give, from the values of its variables at its end.

    results: those of calls that a statement makes, by their text.
    """

    def __init__(self, function: Function, call: Call, results: Results = NO_RESULTS) -> None:
        self.function, self.call, self.results = function, call, {**call.results, **results}
        self._values: dict[str, Any] = {}

    def with_names(self, others: Mapping[str, Any]) -> CallScope:
        """The same with other values of variables."""
        call = replace(self.call, names={**self.call.names, **others})
        return CallScope(self.function, call, self.results)

    def value(self, node: ast.expr) -> Any:
        """What an expression gives, None where it is not to be had without running a call."""
        text = ast.unparse(node)
        if text not in self._values:
            self._values[text] = self._evaluated(node)
        return self._values[text]

    def changed(self, node: ast.expr, others: Mapping[str, ast.expr]) -> np.ndarray | None:
        """The value of an expression that is changed in many ways, of which none is kept.

        others: variables with the expressions that make them, as they now are.
        """
        scope, names = self.call.scope, self.call.names
        made = {name: evaluated(each, scope, names) for name, each in others.items()}
        return self._as_array(evaluated(node, scope, {**names, **made}, self.results))

    def _evaluated(self, node: ast.expr) -> Any:
        return evaluated(node, self.call.scope, self.call.names, self.results)

    def array(self, node: ast.expr) -> np.ndarray | None:
        """The value where it is an array or a number, else None."""
        return self._as_array(self.value(node))

    def _as_array(self, value: Any) -> np.ndarray | None:
        value = as_values(value)
        if isinstance(value, bool | int | float | np.ndarray | np.generic):
            found = np.asarray(value)
            return found if found.dtype.kind in "fiub" else None
        return None

    def knows(self, node: ast.AST) -> bool:
        """Return whether all names of an expression are there in the function."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        own, around = self.call.names, self.call.scope
        return all(name in own or name in around or hasattr(builtins, name) for name in names)

    @cached_property
    def _definitions(self) -> dict[str, ast.expr]:
        """Names, as formulas have them, that the function sets once, with what they are set to."""
        nodes = list(ast.walk(self.function))
        stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        stored += [n.arg for n in nodes if isinstance(n, ast.arg)]
        found: dict[str, ast.expr] = {}
        for node in nodes:
            match node:
                case ast.Assign([ast.Name(name) as own], ast.Call() | ast.BinOp() as value):
                    if stored.count(name) == 1 and len(said(value)) <= _SHORT:
                        found[said(own)] = value
        return found

    def explained(self, part: str) -> str:
        """A term that is a variable, with what it is: `−m` as `−m = −mean(a)`."""
        sign = "−" if part.startswith("−") else ""
        value = self._definitions.get(part.removeprefix("−"))
        return part if value is None else f"{part} = {sign}{said(value, 2 if sign else 0)}"

    @cached_property
    def atoms(self) -> list[tuple[ast.expr, np.ndarray]]:
        """Names, attributes and elements that the function could use, with their values."""
        return list(self._atoms())

    @cached_property
    def sizes(self) -> list[tuple[ast.expr, np.ndarray]]:
        """Numbers of elements and of rows of arrays, with their values."""
        found: list[tuple[ast.expr, np.ndarray]] = []
        for each, value in self.atoms:
            if not value.ndim or not isinstance(each, ast.Name | ast.Attribute):
                continue
            for text, number in (
                ("size", value.size),
                *((f"shape[{i}]", length) for i, length in enumerate(value.shape)),
            ):
                if number > 1:
                    size = ast.parse(f"{ast.unparse(each)}.{text}", mode="eval").body
                    found.append((size, np.asarray(number)))
        return found

    def _atoms(self) -> Iterator[tuple[ast.expr, np.ndarray]]:
        names = [ast.Name(name, ast.Load()) for name in self.call.names if name.isidentifier()]
        found: dict[str, ast.expr] = {ast.unparse(each): each for each in names}
        for node in ast.walk(self.function):
            if isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
                plain = copy.deepcopy(node)
                plain.ctx = ast.Load()
                if all(map(is_pure, _calls_in(plain))):
                    found.setdefault(ast.unparse(plain), plain)
        for name, value in list(self.call.names.items()):
            for field in _fields(value):
                found.setdefault(f"{name}{field}", ast.parse(f"{name}{field}", mode="eval").body)
        known = [
            (each, array) for each in found.values() if (array := self.array(each)) is not None
        ]
        yield from known
        yield from self._taken(known, found)

    @cached_property
    def steps(self) -> list[str]:
        """The counters of loops."""
        rounds = dict.fromkeys(n.target.id for n in ast.walk(self.function) if _counts(n))
        return [name for name in rounds if isinstance(self.call.names.get(name), int)]

    def _taken(
        self, known: list[tuple[ast.expr, np.ndarray]], found: Container[str]
    ) -> Iterator[tuple[ast.expr, np.ndarray]]:
        """Elements at indices that are variables: a step's of a list or argument, rows of one."""
        steps = self.steps
        lists = [name for name, each in self.call.names.items() if isinstance(each, list)]
        asked = list(product(lists, steps))
        for each, index in known:
            if index.dtype.kind in "iu" and index.ndim == 1:
                rows = (other for other, value in known if value.ndim and value.dtype.kind != "b")
                asked += [(ast.unparse(other), ast.unparse(each)) for other in rows]
        texts = [
            f"{array}[{name}]" for array, name in asked if name not in re.findall(r"\w+", array)
        ]
        for text in dict.fromkeys([*texts, *self._steps_of_arguments(steps)]):
            if text not in found:
                each = ast.parse(text, mode="eval").body
                if (value := self.array(each)) is not None:
                    yield each, value

    def _steps_of_arguments(self, steps: Sequence[str]) -> Iterator[str]:
        """The steps of arrays that are arguments: those of dy are what a carry may lack."""
        for own, step in product(self.function.args.args, steps):
            value = self.call.names.get(own.arg)
            if isinstance(value, np.ndarray) and value.ndim > 1:
                yield f"{own.arg}[{step}]"
            if isinstance(value, np.ndarray) and value.ndim > 2:
                yield f"{own.arg}[:, {step}]"


def distinct(numbers: Iterable[tuple[ast.expr, np.ndarray]]) -> list[tuple[ast.expr, float]]:
    """Numbers that differ; of equal ones one that counts rows and one that does not.

    At other inputs those two differ.
    """
    found: dict[tuple[float, bool], ast.expr] = {}
    for each, value in numbers:
        if not value.ndim and value.dtype.kind in "iuf":
            counts_rows = ast.unparse(each).endswith(("shape[0]", ".size"))
            found.setdefault((float(value), counts_rows), each)
    return [(each, value) for (value, _), each in found.items()]


def _fields(value: Any) -> Iterator[str]:
    """The parts of a cache or an object: fields, attributes, keys."""
    if isinstance(value, dict):
        yield from (f"[{key!r}]" for key in value if isinstance(key, str))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from (f".{name}" for name in value._fields)
    elif has_fields(value):
        for name, kept in vars(value).items():
            if name.isidentifier():
                yield f".{name}"
                if isinstance(kept, dict):
                    yield from (f".{name}{field}" for field in _fields(kept))


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def _counts(node: ast.AST) -> TypeGuard[Any]:
    """Return whether this is a loop that counts in one variable."""
    return isinstance(node, ast.For) and isinstance(node.target, ast.Name)
