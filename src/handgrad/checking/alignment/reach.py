"""What the code of functions can reach: only such as stays within arrays and Python is changed.

A changed line can give a compiled function another shape, type or layout than its author ever does,
and memory is then read or written out of bounds, which ends the interpreter. So nothing is changed
in a pass that reaches native code other than the array libraries', raw memory, files or processes.
"""

from __future__ import annotations

import ast
import dis
import functools
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

#: Packages whose functions look at the shapes that they are given, and change nothing outside.
_SOUND: Final = frozenset(
    {
        *("handgrad", "numpy", "scipy", "torch", "jax", "jaxlib", "ml_dtypes", "einops"),
        *("pytest",),  # which stands behind each `assert` of a test's module
        *("array_api_compat", "opt_einsum", "jaxtyping", "typing_extensions"),
        *("builtins", "math", "cmath", "random", "operator", "itertools", "functools", "copy"),
        *("collections", "dataclasses", "typing", "types", "abc", "enum", "numbers", "warnings"),
        *("contextlib", "string", "re", "statistics", "fractions", "decimal", "time", "__future__"),
    }
)
#: Packages of which no function may run in a pass, whoever calls it.
_UNSOUND: Final = frozenset(
    {
        *("ctypes", "_ctypes", "cffi", "numba", "triton", "cupy", "pycuda", "mmap", "subprocess"),
        *("socket", "multiprocessing", "shutil", "tempfile"),
    }
)
#: Attributes, and names of functions, that reach memory, files or code from within sound packages.
_ATTRIBUTES: Final = frozenset(
    {
        *("as_strided", "ctypes", "ctypeslib", "data_as", "data_ptr", "frombuffer", "from_buffer"),
        *("from_blob", "fromfile", "tofile", "memmap", "setflags", "resize", "resize_", "set_"),
        *("storage", "untyped_storage", "load_library", "from_dlpack", "__array_interface__"),
        *("__cuda_array_interface__", "__dlpack__", "save", "savez", "savez_compressed", "savetxt"),
        *("load", "loadtxt", "genfromtxt", "cuda", "_getframe", "pure_callback", "io_callback"),
    }
)
#: Those of them that look at what they are given while a line is changed.
_CHECKED: Final = frozenset({"as_strided"})
#: Built-in functions that do.
_GLOBALS: Final = frozenset(
    {
        *("open", "exec", "eval", "compile", "__import__", "input", "breakpoint", "exit", "quit"),
        *("memoryview", "globals", "setattr", "delattr"),
    }
)
#: Classes that are asked for by name as types, and which make arrays of memory where called.
_MAKERS: Final = frozenset({"ndarray", "recarray", "chararray"})
_SITES: Final = tuple(
    str(Path(sysconfig.get_path(each)).resolve()) for each in ("stdlib", "purelib", "platlib")
)
_DEEP: Final = 6
_ELEMENTS: Final = 64


def is_unsound(module: str) -> bool:
    """Return whether code of this module makes a pass one that nothing is changed in."""
    return module.partition(".")[0] in _UNSOUND


def is_memory(code: CodeType) -> bool:
    """Return whether this is the code behind an array's `ctypes`."""
    return code.co_qualname.startswith("_ctypes.") and "numpy" in code.co_filename


class _Named:
    """The names that a function and those in it have of what is outside of them."""

    def __init__(self, code: CodeType) -> None:
        self.attributes: set[str] = set()
        self.globals: set[str] = set()
        self.imported: set[str] = set()
        self.sets_strides = False
        self._read(code)

    def _read(self, code: CodeType) -> None:
        for each in dis.get_instructions(code):
            name = str(each.argval)
            if each.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER", "IMPORT_FROM")):
                self.attributes.add(name)
            elif each.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")):
                self.globals.add(name)
            elif each.opname == "IMPORT_NAME":
                self.imported.add(name)
            elif each.opname == "STORE_ATTR" and name == "strides":
                self.sets_strides = True
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._read(inner)

    def lead_out(self) -> bool:
        unknown = [each for each in self.imported if not (_is_sound(each) or _is_users(each))]
        named = (self.attributes - _CHECKED) & _ATTRIBUTES or self.globals & _GLOBALS
        return bool(named or unknown or self.sets_strides)

    def every(self) -> set[str]:
        return self.attributes | self.globals


def makes_memory(tree: ast.AST) -> bool:
    """Return whether an array is made of memory: `np.ndarray(shape, buffer=...)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in _MAKERS or any(each.arg == "buffer" for each in node.keywords):
                return True
    return False


class Reach:
    """Whether values that functions name lead out of arrays and Python."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def leads_out(self, code: CodeType, names: Mapping[str, Any], scope: Mapping[str, Any]) -> bool:
        """Return whether a function does, with the values of its variables and its module's."""
        own = _Named(code)
        if own.lead_out():
            return True
        values = [*names.values(), *(scope[name] for name in own.globals if name in scope)]
        return any(self._leads_out(each, own.every(), _DEEP) for each in values)

    def _leads_out(self, value: Any, asked: set[str], depth: int) -> bool:
        if value is None or id(value) in self._seen or depth < 0:
            return False
        if isinstance(value, ModuleType):
            return self._module(value, asked, depth)
        self._seen.add(id(value))
        if not isinstance(value, type) and getattr(value, "__name__", "") in _ATTRIBUTES:
            return True  # under another name, or kept somewhere
        if isinstance(value, FunctionType):
            return not (_is_sound(value.__module__) or _is_users(value.__module__)) or self._any(
                [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)],
                *(asked, depth),
            )
        if isinstance(value, MethodType):
            return self._any([value.__self__, value.__func__], asked, depth)
        if isinstance(value, functools.partial):
            given = [value.func, *value.args, *value.keywords.values()]
            return self._any(given, asked, depth)
        if isinstance(value, type):
            return not _is_plain(value)
        if callable(value) and isinstance(getattr(value, "__module__", None), str):
            own = type(value)
            if own.__module__.partition(".")[0] in ("builtins", "numpy"):
                return not _is_sound(value.__module__)
        return self._instance(value, asked, depth)

    def _instance(self, value: Any, asked: set[str], depth: int) -> bool:
        kind = type(value)
        if not _is_plain(kind) or isinstance(value, np.memmap):
            return True
        if kind.__module__.startswith("torch") and str(getattr(value, "device", "cpu")) != "cpu":
            return True  # an index out of range there ends every later call as well
        if isinstance(value, dict):
            return self._any([*value.values()][:_ELEMENTS], asked, depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._any([*value][:_ELEMENTS], asked, depth)
        fields = getattr(value, "__dict__", None)
        owned = [] if not isinstance(fields, dict) else [*fields.values()]
        bound = getattr(value, "__self__", None)
        return self._any([*owned, bound], asked, depth)

    def _module(self, module: ModuleType, asked: set[str], depth: int) -> bool:
        if _is_sound(module.__name__):
            return module.__name__ == "torch" and "ops" in asked  # where others put their own
        if not _is_users(module.__name__):
            return True
        own = vars(module)
        return self._any([own[name] for name in asked if name in own], asked, depth)

    def _any(self, values: Iterable[Any], asked: set[str], depth: int) -> bool:
        return any(self._leads_out(each, asked, depth - 1) for each in values)


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that has no value yet
        return False


def _is_plain(kind: type) -> bool:
    """Return whether a class and all above it are sound packages' or written in Python."""
    return all(_is_sound(each.__module__) or _is_users(each.__module__) for each in kind.__mro__)


def _is_sound(module: str | None) -> bool:
    top = (module or "").partition(".")[0]
    return top.lstrip("_") in _SOUND or top in _SOUND


def _is_users(module: str | None) -> bool:
    """Return whether a module is written in Python and belongs to no installed package."""
    name = module or ""
    if is_unsound(name):
        return False
    known = sys.modules.get(name)
    path = getattr(known, "__file__", None)
    if known is None or path is None:
        return name not in sys.builtin_module_names  # a cell of a notebook, or what exec made
    whole = Path(path).resolve()  # no file where a library stands in an archive
    return whole.suffix == ".py" and whole.is_file() and not str(whole).startswith(_SITES)
