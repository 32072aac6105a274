"""Imports of a user's file that fail: of packages not installed, such as plotting and GPUs.

A layer seldom needs what stands at the top of its file. Once an import has failed for want of a
package, the file is read again with a stand-in for it, whose parts raise where they are used.
"""

from __future__ import annotations

import collections
import collections.abc
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, NoReturn

import numpy as np

#: Folders of code that is not the user's.
LIBRARIES: Final = tuple(
    {*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))}
    | {str(Path(__file__).parent)}
)


#: Names that NumPy 1 had, and those by which NumPy 2 calls the same.
_RENAMED: Final = dict(
    pair.split()
    for pair in (
        *("float_ float64", "complex_ complex128", "string_ bytes_", "unicode_ str_"),
        *("Inf inf", "infty inf", "NaN nan", "product prod", "cumproduct cumprod", "alltrue all"),
        *("sometrue any", "in1d isin", "row_stack vstack", "trapz trapezoid", "round_ round"),
    )
)
_BUILT_IN: Final = (bool, int, float, complex, object, str)


class Absent:
    """A part of a package that is not there: of it comes more of the same while a file is read.

    As a decorator it leaves the function as it is written. Used later, it raises
    ModuleNotFoundError.
    """

    _package: Package
    _name: str

    def __init__(self, package: Package, name: str) -> None:
        self.__dict__.update(_package=package, _name=name)

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("_"):
            raise AttributeError(name)
        return Absent(self._package, f"{self._name}.{name}")

    def __call__(self, *values: Any, **_: Any) -> Any:
        if not self._package.is_read:
            self._raise()
        alone = values[0] if len(values) == 1 else None
        return alone if isinstance(alone, FunctionType) else self

    def __getitem__(self, _: Any) -> Absent:
        return self

    def __setitem__(self, *_: Any) -> None:
        if not self._package.is_read:
            self._raise()

    def __setattr__(self, *_: Any) -> None:
        if not self._package.is_read:
            self._raise()

    def __instancecheck__(self, _: object) -> bool:
        return False

    def __mro_entries__(self, _: tuple[Any, ...]) -> NoReturn:
        self._raise()

    def __iter__(self) -> NoReturn:
        self._raise()

    def _raise(self) -> NoReturn:
        package = self._package.name
        raise ModuleNotFoundError(
            f"No module named {package!r}, of which {self._name} is used", name=package
        )


class Package(MetaPathFinder, Loader):
    """Finds a package that is not installed, and all that is asked of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: While a file is read, what it does with the package is let pass.
        self.is_read = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The package, or a module of it."""
        of_it = f"{fullname}.".startswith(f"{self.name}.")
        return ModuleSpec(fullname, self, is_package=True) if of_it else None

    def exec_module(self, module: ModuleType) -> None:
        def part(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Absent(self, f"{module.__name__}.{name}")

        module.__getattr__ = part  # type: ignore[method-assign]


def without_absent(home: str, read: Callable[[], ModuleType]) -> ModuleType:
    """The module `home` that `read` gives, with stand-ins for packages that are not installed.

    Raises whatever `read` does where that helps nothing.
    """
    packages: list[Package] = []
    while True:
        known = set(sys.modules)
        try:
            with _found(packages):
                return read()
        except ModuleNotFoundError as error:
            name = error.name or home
            is_known = name in [each.name for each in packages]
            if is_known or f"{home}.".startswith(f"{name}."):
                raise
            packages.append(Package(name))
            for each in set(sys.modules) - known:  # the user's, which were read in part
                if not str(getattr(sys.modules[each], "__file__", None)).startswith(LIBRARIES):
                    del sys.modules[each]


@contextmanager
def _found(packages: Sequence[Package]) -> Iterator[None]:
    """Let the packages be found while a file is read, and raise where they are used later.

    So are the abstract classes that old code imports from `collections`, and NumPy's old names.
    """
    _name_as_before()
    known = set(sys.modules)
    moved = [name for name in collections.abc.__all__ if not hasattr(collections, name)]
    for name in moved:  # where they were before Python 3.10
        setattr(collections, name, getattr(collections.abc, name))
    sys.meta_path += packages
    for each in packages:
        each.is_read = True
    try:
        yield
    finally:
        for name in moved:
            delattr(collections, name)
        for each in packages:
            each.is_read = False
            sys.meta_path.remove(each)
        for name in set(sys.modules) - known:
            if isinstance(getattr(sys.modules[name].__spec__, "loader", None), Package):
                del sys.modules[name]  # others who ask get to know that there is none


def _name_as_before() -> None:
    """Give NumPy its old names back, for good: functions use them whenever they are called."""
    old = {name: getattr(np, new) for name, new in _RENAMED.items()}
    for name, each in {**old, **{each.__name__: each for each in _BUILT_IN}}.items():
        vars(np).setdefault(name, each)
