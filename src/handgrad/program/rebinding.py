"""Copies of functions that see the stand-ins; those that they call likewise."""

from __future__ import annotations

import builtins
import functools
import sys
import types
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from handgrad.program.array_api import STAND_INS
from handgrad.program.jax_arrays import module as jax_module
from handgrad.program.jax_arrays.mapping import made_by_jax
from handgrad.program.marking import EACH, MADE, STEPPED, marked
from handgrad.program.node import as_node, world
from handgrad.program.source import nested
from handgrad.program.special import Vectorized
from handgrad.program.standins import (
    ARRAY_MODULES,
    BUILTINS,
    ROUNDS,
    each,
    is_function,
    made,
    shown_function,
    shown_module,
)
from handgrad.program.stepping import stepped
from handgrad.program.tensors import module as tensors
from handgrad.program.tensors import parameters
from handgrad.program.tensors.parameters import is_module
from handgrad.program.tensors.table import shown_class
from handgrad.program.tracer import Tracer

_LIBRARIES = {*ARRAY_MODULES, *sys.stdlib_module_names, "torch", "jax", "array_api_compat"}
#: Packages whose decorators only check what a function is given.
_CHECKERS = ("jaxtyping", "beartype", "typeguard")
_IN_ROUNDS = {id(f): g for f, g in ROUNDS.items()}


class Rebinder:
    """Copies, each made once; `codes` are those of all that was copied."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}
        self._kept: list[Any] = []  # what ids above belong to
        self._scopes: dict[int, dict[str, Any]] = {}
        self.codes: set[types.CodeType] = set()

    def shown(self, x: Any) -> Any:
        """What the traced function sees in the place of a thing of the module or a closure."""
        if id(x) in self._done:
            return self._done[id(x)]
        if isinstance(x, types.ModuleType):
            return self._module(x)
        if isinstance(x, types.MethodType):
            return self._method(x)
        if isinstance(x, functools.partial):
            keywords = {k: self.shown(v) for k, v in x.keywords.items()}
            return functools.partial(self.shown(x.func), *map(self.shown, x.args), **keywords)
        if isinstance(x, np.vectorize):
            own = self.shown(x.pyfunc)
            return self._keep(x, Vectorized(own, excluded=x.excluded, signature=x.signature))
        if is_function(x):
            return shown_function(x)
        if (found := tensors.shown_function_of(x)) is not None:
            return found
        if jax_module.has_own_rule(x):
            return self._keep(x, self._with_own_rule(x))
        if parameters.is_autograd_function(x):
            return self._keep(x, _WithOwnRule(x, self))
        if (own := jax_module.within_jax(x)) is not None:
            return self.shown(own)
        if (found := jax_module.shown_function_of(x)) is not None:
            return found
        if callable(x) and id(x) in _IN_ROUNDS:
            return _IN_ROUNDS[id(x)]
        if (made := made_by_jax(x, self.shown)) is not None:
            return self._keep(x, made)
        if isinstance(x, types.FunctionType):
            return self._function(x)
        if isinstance(x, functools._lru_cache_wrapper):
            return self.shown(x.__wrapped__)
        if (own := parameters.scripted(x)) is not None:
            return self.shown(own)
        if type(x) in (list, tuple, dict, OrderedDict):
            return self._nest(x)
        if (array := tensors.of_tensor(x)) is not None:
            return self._keep(x, Tracer(as_node(array)))
        if isinstance(x, type):
            return self._class(x) if _is_plain(x) else shown_class(x)
        is_copied = is_module(x) or (_is_plain(type(x)) and hasattr(x, "__dict__"))
        return self._object(x) if is_copied else x

    def _keep(self, original: Any, copy: Any) -> Any:
        self._done[id(original)] = copy
        self._kept.append(original)
        return copy

    def _with_own_rule(self, x: Any) -> Any:
        """The function of a custom_vjp or custom_jvp; a proof compares the gradient of its own."""

        def followed(*args: Any, **kwargs: Any) -> Any:
            world().own_rules[x.__name__] = type(x).__name__
            return self.shown(jax_module.within_jax(x))(*args, **kwargs)

        return followed

    def _method(self, x: types.MethodType) -> Any:
        owner = self.shown(x.__self__)
        if owner is x.__self__ or isinstance(owner, type | type(x.__self__)):
            return types.MethodType(self.shown(x.__func__), owner)
        return getattr(owner, x.__name__)  # of a stand-in of another class

    def _nest(self, x: Any) -> Any:
        """A copy, so that nothing traced gets into the user's own lists and dicts."""
        if isinstance(x, dict):
            copy = self._keep(x, type(x)())
            copy.update({k: self.shown(v) for k, v in x.items()})
            return copy
        if isinstance(x, list):
            copy = self._keep(x, [])
            copy += map(self.shown, x)
            return copy
        return self._keep(x, tuple(map(self.shown, x)))

    def _module(self, module: types.ModuleType) -> Any:
        if module.__name__.split(".")[0] in _LIBRARIES:
            return shown_module(module)
        return self._keep(module, _UserModule(module, self))

    def _object(self, x: Any) -> Any:
        """An object whose methods see the stand-ins; what they change in it is undone."""
        made = self._keep(x, object.__new__(self.shown(type(x))))
        made.__dict__.update({k: self.shown(v) for k, v in vars(x).items()})
        return made

    def _class(self, kind: type) -> type:
        """A class whose methods see the stand-ins."""
        # Its order of classes is that of the original with copies of those above beside them, so
        # that super() finds the copies.
        above = [self.shown(base) for base in kind.__bases__ if _is_plain(base)]
        copy: type = self._keep(kind, type(kind.__name__, (kind, *above), {}))
        for name, f in vars(kind).items():
            if isinstance(f, types.FunctionType):
                setattr(copy, name, self.shown(f))
            elif isinstance(f, property) and f.fget:
                setattr(copy, name, property(self.shown(f.fget)))
            elif isinstance(f, staticmethod | classmethod):
                setattr(copy, name, type(f)(self.shown(f.__func__)))
        return copy

    def _function(self, function: types.FunctionType) -> Any:
        home = (function.__module__ or "").split(".")[0]
        if home in _CHECKERS and hasattr(function, "__wrapped__"):
            return self.shown(function.__wrapped__)
        if home in _LIBRARIES:
            return STAND_INS.get(function, function)
        if isinstance(own := getattr(function, "reference", None), types.FunctionType):
            copy = self._keep(function, self.shown(own))  # of an op: the mathematics
            copy.reference = copy
            return copy
        code = marked(function.__code__, function.__qualname__)
        scope = self._scope(function)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        copy = types.FunctionType(code, scope, function.__name__, function.__defaults__, cells)
        self._keep(function, copy)
        if function.__module__ != parameters.__name__:  # lines are those of the user's source
            self.codes.update(nested(code))
        copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
        if (signature := getattr(function, "__signature__", None)) is not None:
            copy.__signature__ = signature  # type: ignore[attr-defined]
        if function.__defaults__:
            copy.__defaults__ = tuple(map(self.shown, function.__defaults__))
        for name in _names(code):
            if name in function.__globals__:
                scope[name] = self.shown(function.__globals__[name])
        for name, cell, source in zip(
            code.co_freevars, cells, function.__closure__ or (), strict=True
        ):
            try:
                found = source.cell_contents
            except ValueError:  # a local function that refers to itself before it is bound
                continue
            # super() looks for the class above that which the method was written in.
            cell.cell_contents = found if name == "__class__" else self.shown(found)
        return copy

    def _scope(self, function: types.FunctionType) -> dict[str, Any]:
        """Globals of the copies of one module's functions: what one sets, the others see."""
        key = id(function.__globals__)
        if key not in self._scopes:
            tools = {**vars(builtins), **BUILTINS}
            self._scopes[key] = {
                **function.__globals__,
                "__builtins__": tools,
                EACH: each,
                MADE: made,
                STEPPED: stepped,
            }
        return self._scopes[key]


class _UserModule:
    """A module of the user's, whose functions see the stand-ins."""

    def __init__(self, module: types.ModuleType, rebinder: Rebinder) -> None:
        self._module, self._rebinder = module, rebinder

    def __getattr__(self, name: str) -> Any:
        return self._rebinder.shown(getattr(self._module, name))


class _WithOwnRule:
    """A torch.autograd.Function by its forward; a proof compares the gradient of its own."""

    def __init__(self, function: Any, rebinder: Rebinder) -> None:
        self._function, self._rebinder = function, rebinder

    def apply(self, *args: Any) -> Any:
        world().own_rules[self._function.__name__] = "torch.autograd.Function"
        takes_context = "setup_context" not in vars(self._function)
        context = [parameters.FunctionContext(len(args))] if takes_context else []
        return self.forward(*context, *args)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        if isinstance(value, types.MethodType):  # of the class
            return types.MethodType(self._rebinder.shown(value.__func__), self)
        return self._rebinder.shown(value)


def _is_plain(kind: type) -> bool:
    """True for a class that somebody wrote in Python, without tricks in making its objects."""
    home = (kind.__module__ or "").split(".")[0]
    made = any("__new__" in vars(k) or "__slots__" in vars(k) for k in kind.__mro__[:-1])
    return (
        type(kind) is type
        and kind is not object
        and not made
        and home not in {*_LIBRARIES, "handgrad"}
    )


def _names(code: types.CodeType) -> Iterator[str]:
    for each_code in nested(code):
        yield from each_code.co_names
