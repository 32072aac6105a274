"""A user's module, by its name or its file, with the neighbours that it imports.

A file in a package is imported as the module that it is there, so that its relative imports and
those of its package work from any folder. A module that is nowhere else is looked for beside the
file and above it, within the project, as if it ran from there. A package that is not installed is
read over, and raises only where the code that is run needs it.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final
from zlib import crc32

from handgrad.absent import LIBRARIES, without_absent
from handgrad.errors import ArgumentError

#: Where a project begins: nothing is looked for above it.
_ROOTS: Final = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
#: Folders above a file without a project that are looked through.
_ABOVE: Final = 2


class NoModuleError(ArgumentError):
    """There is no module of this name."""


def module_of(home: str) -> ModuleType:
    """The module of this name, looked for here first, or of this file, run anew.

    Raises NoModuleError where there is none, ArgumentError where importing it fails, with the line
    of the user's code that failed.
    """
    if home.endswith(".py"):
        return _file(Path(home))
    missing = NoModuleError(
        f"{home!r} is no module, here or installed; allowed: module:object or file.py:object"
    )
    if not all(part.isidentifier() for part in home.split(".")):
        raise missing
    _look_in(Path.cwd())
    try:
        with _importing(home):
            return without_absent(home, lambda: importlib.import_module(home))
    except ModuleNotFoundError:
        raise missing from None


def _file(path: Path) -> ModuleType:
    """The module in a file: that of its package, or with its folder searched first."""
    if not path.is_file():
        raise ArgumentError(f"{path} does not exist; allowed: a Python file")
    whole = path.absolute()
    with _importing(str(path), whole):
        packages = _packages(whole)

        def read() -> ModuleType:
            return _in_package(whole, packages) if packages else _alone(path, whole)

        return without_absent(str(path), read)


def _packages(path: Path) -> list[Path]:
    """The folders of the packages that a file stands in, the outermost first.

    They are those with an `__init__.py`, and as many as its relative imports count, or those of its
    neighbours, which it may import.
    """
    within = []
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        within.append(folder)
    level = _level(path)
    if level > 0:
        level = max(map(_level, (path, *path.parent.glob("*.py"))))
    counted = [each for each in path.parents if each.name]
    return counted[: max(len(within), level)][::-1]


def _level(path: Path) -> int:
    """The most dots of a relative import in a file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # importing it says so
        return 0
    levels = (each.level for each in ast.walk(tree) if isinstance(each, ast.ImportFrom))
    return max(levels, default=0)


def _in_package(path: Path, packages: Sequence[Path]) -> ModuleType:
    """The file as a module of its package."""
    top = packages[0]
    known = sys.modules.get(top.name)
    has_name = top.name.isidentifier() and (top / "__init__.py").is_file()
    _look_around(path)
    if has_name and (known is None or _is_home(known, top)):
        _look_in(top.parent)
        module = _anew(top.name, path, packages)
        if module.__file__ is not None and Path(module.__file__).samefile(path):
            return module
    return _anew(_stand_in(top), path, packages)


def _anew(top: str, path: Path, packages: Sequence[Path]) -> ModuleType:
    parts = [top, *(folder.name for folder in packages[1:])]
    name = ".".join([*parts, path.stem] if path.stem != "__init__" else parts)
    if name != top:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _stand_in(folder: Path) -> str:
    """The name of a package in place of a folder that has none, or whose own is taken."""
    name = f"{re.sub(r'[^0-9A-Za-z]', '_', folder.name)}_{crc32(str(folder).encode()):08x}"
    if name not in sys.modules:
        init = folder / "__init__.py"
        spec = ModuleSpec(name, None, is_package=True)
        if init.is_file():
            found = spec_from_file_location(name, init, submodule_search_locations=[])
            assert found is not None
            spec = found
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = package = module_from_spec(spec)
        if spec.loader is not None:
            spec.loader.exec_module(package)
    return name


def _is_home(package: ModuleType, folder: Path) -> bool:
    """Return whether a package is the one in this folder."""
    return any(Path(each).absolute() == folder for each in getattr(package, "__path__", ()))


def _alone(path: Path, whole: Path) -> ModuleType:
    """The module in a file, with its folder searched first as `python file.py` does."""
    _look_in(whole.parent)
    _look_around(whole)
    name = path.stem if path.stem not in sys.modules else f"{path.stem} ({path})"
    spec = spec_from_file_location(name, whole)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where inspect looks for the source of a class
    spec.loader.exec_module(module)
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


class _Neighbours(MetaPathFinder):
    """Finds a module that is nowhere else beside a user's file, or above it in its project.

    It is found for the user's own code alone: a library that tries whether another is installed
    must not get a folder of the project that has its name.
    """

    def __init__(self, folders: Sequence[Path], project: Path) -> None:
        self.folders = [str(each) for each in folders]
        self._project = project

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The first of this name with Python files in it."""
        for folder in self.folders if path is None and self._is_own(_importer()) else ():
            spec = PathFinder.find_spec(fullname, [folder], target)
            is_namespace = spec is not None and spec.origin is None
            if spec is not None and not (is_namespace and not _has_code(Path(folder) / fullname)):
                return spec
        return None

    def _is_own(self, file: str) -> bool:
        return Path(file).is_relative_to(self._project) and not file.startswith(LIBRARIES)


def _importer() -> str:
    """The file of the code whose import is looked up."""
    frame = sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith("<frozen importlib")
        or frame.f_code.co_filename in (__file__, importlib.__file__)
    ):
        frame = frame.f_back
    return frame.f_code.co_filename


def _has_code(folder: Path) -> bool:
    return any(folder.glob("*.py")) or any(folder.glob("*/*.py"))


def _look_around(path: Path) -> None:
    """Find what the file imports in the folders from its own up to that of its project."""
    above = list(path.parents)
    roots = [i for i, each in enumerate(above) if any((each / name).exists() for name in _ROOTS)]
    folders = above[: (roots[0] if roots else _ABOVE) + 1]
    project = folders[-1]
    folders += [each / "src" for each in folders if (each / "src").is_dir()]
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Neighbours)]
    sys.meta_path.append(_Neighbours(folders, project))


@contextmanager
def _importing(home: str, file: Path | None = None) -> Iterator[None]:
    """Whatever the module raises, as one sentence; except that there is no such module.

    A script that reads its arguments where it is imported finds none.
    """
    arguments, sys.argv = sys.argv, [str(file or home)]
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's own class of errors may be none of Exception
        missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if file is None and missing is not None and f"{home}.".startswith(f"{missing}."):
            raise
        raise ArgumentError(f"{home} cannot be imported: {_told(error)}") from None
    finally:
        sys.argv = arguments


def _told(error: BaseException) -> str:
    """The error, and the line of the user's code that raised it."""
    lines = str(error).splitlines() or ["no message"]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*LIBRARIES, "<"))]
    where = f"{_shown(own[-1].filename)}, line {own[-1].lineno}: " if own else ""
    return f"{where}{type(error).__name__}: {lines[0]}"


def _shown(file: str) -> str:
    """A path as short as it can be from here."""
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
