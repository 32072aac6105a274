"""The code of the user that a training runs: what it refers to, and whether it acts on a trainer.

A function decides numbers by its own code, and by what stands in the modules and functions around
it: globals, helpers, cells. Python's and handgrad's code, and that of installed packages, counts by
its name alone.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.util
import sys
from collections import deque
from collections.abc import Iterator, MutableMapping
from itertools import takewhile
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

#: Folders into which packages are installed.
_INSTALLED: Final = ("site-packages", "dist-packages")
#: Instructions that share a variable with functions in a function.
_CELLS: Final = ("LOAD_CLOSURE", "MAKE_CELL")
#: What a callback may read of a trainer without acting on it.
_READ: Final = (
    *("step", "epoch", "seconds", "stop", "history", "seed"),
    *("batch_size", "accumulate", "evaluation_batch", "clip_norm"),
    *("optimizer.lr", "replicas.rank", "replicas.size"),
)
#: Values of a name that are called or read without a training being acted on.
_HARMLESS: Final = (
    *(bool, int, float, complex, str, bytes, tuple, type(None), PurePath),
    *(list, dict, set, frozenset, deque, type, ModuleType, FunctionType, BuiltinFunctionType),
)


@functools.cache
def is_library(module: str) -> bool:
    """Return whether a module is Python's, handgrad's, or of an installed package."""
    top = module.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "handgrad":
        return True
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None) or getattr(sys.modules.get(top), "__file__", None)
    return file is not None and any(part in _INSTALLED for part in PurePath(file).parts)


def code_sum(code: CodeType, document: str | None = None) -> str:
    """The checksum of code, without its documentation, names of files and line numbers."""
    found = hashlib.sha256(code.co_code + code.co_exceptiontable)
    arguments = code.co_argcount + code.co_kwonlyargcount
    found.update(repr((code.co_names, code.co_varnames[:arguments])).encode())
    for i, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            found.update(code_sum(constant).encode())
        elif i > 0 or document is None or constant != document:  # the first one may be that
            # A set has no order of its own.
            several = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            found.update(repr(several).encode())
    return found.hexdigest()


def methods_of(kind: type) -> dict[str, FunctionType]:
    """The functions that a class has of the user, by name."""
    found: dict[str, FunctionType] = {}
    for base in reversed(kind.__mro__):
        if not is_library(base.__module__):
            for name, value in vars(base).items():
                for part in _functions(value):
                    found[name] = part
    return found


def _functions(value: Any) -> Iterator[FunctionType]:
    """The function of a method, as it was written, whatever it is wrapped in."""
    parts: tuple[Any, ...] = (value,)
    if isinstance(value, property):
        parts = (value.fset, value.fget)
    elif isinstance(value, staticmethod | classmethod):
        parts = (value.__func__,)
    for part in parts:
        own = unwrapped(part)
        if isinstance(own, FunctionType) and not is_library(own.__module__ or ""):
            yield own


def unwrapped(value: Any) -> Any:
    """The function that a decorator such as `functools.wraps` or `lru_cache` stands around."""
    while callable(inner := getattr(value, "__wrapped__", None)):
        value = inner
    return value


class Globals(MutableMapping[str, Any]):
    """The globals that a function and those in it refer to; parts of modules as `module.part`.

    The latter are modules of the user, whose parts can be others in another run.
    """

    def __init__(self, function: FunctionType) -> None:
        names, imported, parts = _names(function.__code__)
        own = function.__globals__
        self._at = {name: (own, name) for name in names if name in own}
        modules = {name: own[name] for name in self._at if isinstance(own[name], ModuleType)}
        modules |= {name: module for name in imported if (module := _imported(name)) is not None}
        for name, module in modules.items():
            if not is_library(module.__name__):
                inside = vars(module)
                self._at |= {f"{name}.{p}": (inside, p) for p in parts if p in inside}

    def __getitem__(self, name: str) -> Any:
        place, key = self._at[name]
        return place[key]

    def __setitem__(self, name: str, value: Any) -> None:
        place, key = self._at[name]
        place[key] = value

    def __delitem__(self, name: str) -> None:
        del self._at[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._at))

    def __len__(self) -> int:
        return len(self._at)


class Cells(MutableMapping[str, Any]):
    """The variables of the functions around a function that it refers to."""

    def __init__(self, function: FunctionType) -> None:
        names = function.__code__.co_freevars
        self._at = dict(zip(names, function.__closure__ or (), strict=True))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._at[name].cell_contents
        except ValueError:  # it has none yet
            return None

    def __setitem__(self, name: str, value: Any) -> None:
        self._at[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self._at[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


def _imported(name: str) -> ModuleType | None:
    """A module of the user that a function imports when it is called."""
    if is_library(name) or importlib.util.find_spec(name.partition(".")[0]) is None:
        return None
    try:
        return importlib.import_module(name)
    except Exception:  # the function says so when it comes to it
        return None


@functools.cache
def _names(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The globals, imported modules and attributes that code names."""
    names: dict[str, None] = {}
    imported: dict[str, None] = {}
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname == "IMPORT_NAME" and not step.argval.startswith("."):
            imported[step.argval] = None
    parts = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            for mine, inner in zip((names, imported, parts), _names(constant), strict=True):
                mine.update(dict.fromkeys(inner))
    return tuple(names), tuple(imported), tuple(parts)


def acts(function: FunctionType) -> bool:
    """Return whether a method of a callback may change the trainer that it is given.

    A method that reads counters, remembers something, prints or ends the program does not, so
    neither its code nor what it reads decides numbers. In doubt it does.
    """
    if function.__code__.co_argcount < 2:
        return True
    own, trainer = function.__code__.co_varnames[:2]
    steps = [step for step in dis.get_instructions(function) if step.opname != "CACHE"]
    doubled: list[bool] = []  # objects whose attribute is read to be set, such as self.count += 1
    for i, step in enumerate(steps):
        before = steps[i - 1] if i else step
        if step.opname.startswith("LOAD_FAST") and trainer in _locals(step):
            if step.argval != trainer or not _is_read(steps[i + 1 : i + 3]):
                return True
        elif step.opname == "COPY" and steps[i + 1].opname == "LOAD_ATTR":
            doubled.append(_locals(before)[-1:] == (own,))
        elif step.opname == "STORE_ATTR":
            is_own = doubled.pop() if before.opname == "SWAP" else _locals(before)[-1:] == (own,)
            if not is_own:
                return True
        elif _sets(step.opname) or (step.opname in _CELLS and step.argval == trainer):
            return True
    outside = [*Globals(function).values()]
    outside += Cells(function).values()
    return not all(isinstance(value, _HARMLESS) for value in outside)


def _sets(name: str) -> bool:
    """Return whether an instruction sets what is no local variable."""
    return name.startswith(("STORE_", "DELETE_")) and "FAST" not in name


def _locals(step: dis.Instruction) -> tuple[str, ...]:
    """The local variables that an instruction loads; newer versions of Python load two at once."""
    if not step.opname.startswith("LOAD_FAST"):
        return ()
    return step.argval if isinstance(step.argval, tuple) else (step.argval,)


def _is_read(steps: list[dis.Instruction]) -> bool:
    """Return whether what is loaded next of a trainer is a plain number of it."""
    rest = steps[1:] if steps[0].opname == "COPY" else steps  # to be set, which is seen there
    names = [step.argval for step in takewhile(lambda each: each.opname == "LOAD_ATTR", rest)]
    return any(".".join(names[:n]) in _READ for n in (1, 2))


def attributes_read(function: FunctionType) -> frozenset[str]:
    """The names of attributes that a method and those in it use."""
    return frozenset(_names(function.__code__)[2])
